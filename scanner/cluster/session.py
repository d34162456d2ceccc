"""One conversation with an API server: requests that only read, answers as raw bytes.

Source of truth: the behaviour of kubectl. Answers that say "later" (429, 5xx) and broken connections are tried again
with growing pauses; a timeout is not, because the server has had all the time that the user grants.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

import orjson
import urllib3
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    NewConnectionError,
    ProxyError,
    ReadTimeoutError,
    SSLError,
)

from scanner import __version__
from scanner.cluster.credentials import load_credentials
from scanner.cluster.transport import pool_for, timeout_for, without_password
from scanner.errors import UsageError
from scanner.model.json import Json, JsonObject, as_object, as_text

ATTEMPTS: Final = 5
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 30.0
_LATER: Final = frozenset({429, 500, 502, 503, 504})
_UNAUTHORIZED: Final = 401
_QUOTED: Final = 200


class Unanswered(Exception):
    """No answer came; the message says why, as the end of a sentence."""


class _Lost(Unanswered):
    """The connection broke: the same request may well succeed."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer. `data` is the body, decompressed; `retry_after` the header of that name."""

    status: int
    data: bytes
    retry_after: str = ""

    def body(self) -> JsonObject:
        """The decoded body, or an empty object if it is not a JSON object."""
        try:
            return as_object(orjson.loads(self.data))
        except orjson.JSONDecodeError:
            return {}

    def message(self) -> str:
        """What the server says about a refusal, in one line."""
        said = as_text(self.body().get("message")) or self.data[:_QUOTED].decode(errors="replace")
        return " ".join(said.split()) or "without a word"


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    url: str
    accept: str
    body: bytes | None = None


class Session:
    """A pool of connections with credentials. Nothing but GET, and the POST of `review`, ever leaves it."""

    def __init__(
        self,
        *,
        kubeconfig: str = "",
        context: str = "",
        as_user: str = "",
        as_groups: tuple[str, ...] = (),
        request_timeout: float | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Load the credentials. Raises ClusterError when that fails, UsageError for groups without a user."""
        self._kubeconfig = kubeconfig
        self._context = context
        self._credentials = load_credentials(kubeconfig, context)
        self._pool = pool_for(self._credentials)
        self._as_user = as_user or self._credentials.as_user
        self._as_groups = as_groups or self._credentials.as_groups
        self._timeout = timeout_for(request_timeout)
        self._sleep = sleep
        self._reached = False
        if self._as_groups and not self._as_user:
            raise UsageError("--as-group needs --as: name the user whose groups these are")

    @property
    def cluster(self) -> str:
        """The name that the kubeconfig gives to the cluster."""
        return self._credentials.cluster

    @property
    def server(self) -> str:
        """The server's URL, as it may be shown."""
        return without_password(self._root)

    @property
    def _root(self) -> str:
        return str(self._credentials.configuration.host).rstrip("/")

    def get(
        self,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        accept: str = "application/json",
        attempts: int = ATTEMPTS,
    ) -> Answer:
        """Fetch a path, again where that can help. Raises Unanswered, ClusterError for stale credentials."""
        url = f"{self._root}{path}?{urlencode(query)}" if query else f"{self._root}{path}"
        return self._persist(_Request("GET", url, accept), attempts)

    def review(self, path: str, body: Json) -> Answer:
        """Post a review, which the server answers and does not store. Raises like `get`."""
        return self._persist(_Request("POST", f"{self._root}{path}", "application/json", orjson.dumps(body)), 1)

    def _persist(self, request: _Request, attempts: int) -> Answer:
        for pause in _pauses(attempts):
            try:
                answer = self._authorized(request)
            except _Lost:
                self._sleep(pause)
                continue
            if answer.status not in _LATER:
                return answer
            self._sleep(_asked_pause(answer.retry_after, pause))
        return self._authorized(request)

    def _authorized(self, request: _Request) -> Answer:
        """The answer, with credentials read anew if the ones at hand have been refused."""
        answer = self._once(request)
        if answer.status != _UNAUTHORIZED:
            return answer
        self._credentials = load_credentials(self._kubeconfig, self._context)
        self._pool = pool_for(self._credentials)
        return self._once(request)

    def _once(self, request: _Request) -> Answer:
        try:
            response = self._pool.request(
                request.method,
                request.url,
                headers=self._headers(request),
                body=request.body,
                timeout=self._timeout,
                retries=False,
                redirect=False,
            )
        except (HTTPError, OSError) as error:
            raise self._explained(error) from error
        self._reached = True
        return Answer(response.status, response.data, response.headers.get("Retry-After", ""))

    def _headers(self, request: _Request) -> urllib3.HTTPHeaderDict:
        headers = urllib3.HTTPHeaderDict(
            {"User-Agent": f"assay/{__version__}", "Accept": request.accept, "Accept-Encoding": "gzip"}
        )
        if authorization := self._credentials.authorization():
            headers.add("Authorization", authorization)
        if request.body is not None:
            headers.add("Content-Type", "application/json")
        if self._as_user:
            headers.add("Impersonate-User", self._as_user)
        for group in self._as_groups:
            headers.add("Impersonate-Group", group)
        return headers

    def _explained(self, error: Exception) -> Unanswered:
        match error:
            case SSLError():
                return Unanswered(f"TLS to {self.server} failed ({_reason(error)})")
            case NewConnectionError() if not self._reached:
                return Unanswered(f"{self.server} cannot be reached ({_reason(error)})")
            case NewConnectionError():
                return _Lost(f"{self.server} cannot be reached any more ({_reason(error)})")
            case ReadTimeoutError() | ConnectTimeoutError():
                return Unanswered(f"{self.server} did not answer in time; grant it more with --request-timeout")
            case ProxyError():
                return Unanswered(f"the proxy before {self.server} failed ({_reason(error)})")
            case _:
                return _Lost(f"the connection to {self.server} broke ({_reason(error)})")


def _pauses(attempts: int) -> Iterator[float]:
    """Seconds to wait before the second attempt, the third, and so on."""
    return (min(_FIRST_PAUSE * 2**number, _LONGEST_PAUSE) for number in range(attempts - 1))


def _asked_pause(retry_after: str, pause: float) -> float:
    """The seconds that the server asks for, if it asks for a number of them, within reason."""
    return min(float(retry_after), _LONGEST_PAUSE) if retry_after.isdecimal() else pause


def _reason(error: BaseException) -> str:
    """The innermost cause of a transport error, without the names of objects in memory."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return getattr(error, "strerror", None) or " ".join(str(error).split()) or type(error).__name__
