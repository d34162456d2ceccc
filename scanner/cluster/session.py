"""One conversation with an API server: requests that only read, answers as raw bytes.

Source of truth: the behaviour of kubectl. Answers that say "later" (429, 5xx), broken connections and answers that are
late are tried again, with growing and jittered pauses, a bounded number of times.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Final, Literal
from urllib.parse import urlencode

import orjson
import urllib3
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    LocationValueError,
    NewConnectionError,
    ProxyError,
    ReadTimeoutError,
    SSLError,
)
from urllib3.util import Retry

from scanner import __version__
from scanner.cluster.credentials import Credentials, load_credentials
from scanner.cluster.exchange import MOST, Received, TooLarge, fetch
from scanner.cluster.limits import ATTEMPTS, Deadline, RateLimiter, Watch, another, patience, pause_before
from scanner.cluster.transport import encoding_for, pool_for, timeout_for, without_password
from scanner.errors import UsageError
from scanner.model.json import Json, JsonObject, as_object, as_text

_LATER: Final = frozenset({429, 500, 502, 503, 504})
_UNAUTHORIZED: Final = 401
_QUOTED: Final = 200
_LONGEST: Final = 2000
_AT_LEAST: Final = 0.001


class Unanswered(Exception):
    """No answer came; the message says why, as the end of a sentence."""


class AnswerTooLarge(Unanswered):
    """The answer has more bytes than it may; it may be asked for in smaller pieces."""


class _Lost(Unanswered):
    """The connection broke: the same request may well succeed."""


class _Late(Unanswered):
    """The answer did not come in time."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer. `data` is the body, decompressed; `retry_after` and `warnings` the headers of these names."""

    status: int
    data: bytes
    retry_after: str = ""
    warnings: tuple[str, ...] = ()

    def body(self) -> JsonObject:
        """The decoded body, or an empty object if it is not a JSON object."""
        try:
            return as_object(orjson.loads(self.data))
        except orjson.JSONDecodeError:
            return {}

    def message(self) -> str:
        """What the server says about a refusal, in one line."""
        said = as_text(self.body().get("message")) or self.data[:_QUOTED].decode(errors="replace")
        return " ".join(said.split())[:_LONGEST] or "without a word"


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    path: str
    accept: str
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class _Login:
    """Credentials and the connections that were made with them."""

    credentials: Credentials
    pool: urllib3.PoolManager
    encoding: str

    @property
    def root(self) -> str:
        return str(self.credentials.configuration.host).rstrip("/")


class Session:
    """Connections with credentials, which threads may share.

    Nothing leaves it but GET, the POST of `review`, and the writes of `dry_run`, which change nothing.
    """

    def __init__(
        self,
        *,
        kubeconfig: str = "",
        context: str = "",
        as_user: str = "",
        as_groups: tuple[str, ...] = (),
        request_timeout: float | None = None,
        pace: RateLimiter | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Load the credentials. Raises ClusterError when that fails, UsageError for groups without a user."""
        self._kubeconfig = kubeconfig
        self._context = context
        self._login = self._logged_in()
        self._as_user = as_user or self._login.credentials.as_user
        self._as_groups = as_groups or self._login.credentials.as_groups
        self._seconds = request_timeout or None
        self._pace = pace or RateLimiter(0, 0)
        self._sleep = sleep
        self._clock = clock
        self._lock = Lock()
        self._reached = False
        self.requests = 0
        if self._as_groups and not self._as_user:
            raise UsageError("--as-group needs --as: name the user whose groups these are")

    @property
    def cluster(self) -> str:
        """The name that the kubeconfig gives to the cluster."""
        return self._login.credentials.cluster

    @property
    def server(self) -> str:
        """The server's URL, as it may be shown."""
        return without_password(self._login.root)

    def get(
        self,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        accept: str = "application/json",
        attempts: int = ATTEMPTS,
        watch: Watch | None = None,
    ) -> Answer:
        """Fetch a path, again where that can help. Raises Unanswered, ClusterError for stale credentials."""
        request = _Request("GET", f"{path}?{urlencode(query)}" if query else path, accept)
        watch = watch or Watch()
        with watch.running():
            return self._persist(request, patience(attempts), watch)

    def review(self, path: str, body: Json) -> Answer:
        """Post a review, which the server answers and does not store. Raises like `get`."""
        request = _Request("POST", path, "application/json", orjson.dumps(body))
        watch = Watch()
        with watch.running():
            return self._persist(request, patience(), watch)

    def dry_run(self, method: Literal["POST", "PUT"], path: str, body: Json) -> Answer:
        """Send a write that the server judges and does not carry out. Raises like `get`.

        This is the one place that writes, and `dryRun=All` is part of every path it asks for.
        """
        request = _Request(method, f"{path}?dryRun=All", "application/json", orjson.dumps(body))
        watch = Watch()
        with watch.running():
            return self._persist(request, patience(), watch)

    def _persist(self, request: _Request, retry: Retry, watch: Watch) -> Answer:
        while True:
            outcome = self._tried(request, watch)
            if isinstance(outcome, Answer) and outcome.status not in _LATER:
                return outcome
            more = another(retry, late=isinstance(outcome, _Late))
            if more is None or (pause := pause_before(more, _retry_after(outcome))) >= watch.left:
                return _settled(outcome)
            retry = more
            self._sleep(pause)

    def _tried(self, request: _Request, watch: Watch) -> Answer | _Lost | _Late:
        """The answer, with credentials read anew if the ones at hand have been refused; or why there is none."""
        login = self._login
        try:
            answer = self._once(login, request, watch)
            if answer.status != _UNAUTHORIZED:
                return answer
            return self._once(self._renewed(login), request, watch)
        except (_Lost, _Late) as trouble:
            return trouble

    def _logged_in(self) -> _Login:
        credentials = load_credentials(self._kubeconfig, self._context)
        return _Login(credentials, pool_for(credentials), encoding_for(credentials))

    def _renewed(self, refused: _Login) -> _Login:
        """The login after the refused one; of several threads that are refused, one reads the credentials."""
        with self._lock:
            if self._login is refused:
                self._login = self._logged_in()
            return self._login

    def _once(self, login: _Login, request: _Request, watch: Watch) -> Answer:
        self._pace.wait()
        with self._lock:
            self.requests += 1
        deadline = Deadline(min(self._seconds or math.inf, watch.left), clock=self._clock)
        try:
            received = self._received(login, request, deadline)
        except (HTTPError, OSError, TooLarge) as error:
            raise self._explained(error, login, watch, deadline) from error
        self._reached = True
        headers = received.headers
        return Answer(received.status, received.data, headers.get("Retry-After", ""), tuple(headers.getlist("Warning")))

    def _received(self, login: _Login, request: _Request, deadline: Deadline) -> Received:
        seconds = None if deadline.left == math.inf else max(deadline.left, _AT_LEAST)
        return fetch(
            login.pool,
            request.method,
            f"{login.root}{request.path}",
            headers=self._headers(login, request),
            body=request.body,
            timeout=timeout_for(seconds),
            deadline=deadline,
        )

    def _headers(self, login: _Login, request: _Request) -> urllib3.HTTPHeaderDict:
        headers = urllib3.HTTPHeaderDict(
            {"User-Agent": f"assay/{__version__}", "Accept": request.accept, "Accept-Encoding": login.encoding}
        )
        with self._lock:
            authorization = login.credentials.authorization()
        if authorization:
            headers.add("Authorization", authorization)
        if request.body is not None:
            headers.add("Content-Type", "application/json")
        if self._as_user:
            headers.add("Impersonate-User", self._as_user)
        for group in self._as_groups:
            headers.add("Impersonate-Group", group)
        return headers

    def _explained(self, error: Exception, login: _Login, watch: Watch, deadline: Deadline) -> Unanswered:
        server = without_password(login.root)
        match error:
            case TooLarge():
                return AnswerTooLarge(f"the answer of {server} is larger than {MOST >> 20} MiB")
            case LocationValueError():
                return Unanswered(f"{server} is not the URL of a server: correct it in the kubeconfig")
            case SSLError() if not self._reached:
                return Unanswered(f"TLS to {server} failed ({_reason(error)})")
            case NewConnectionError() if not self._reached:
                return Unanswered(f"{server} cannot be reached ({_reason(error)})")
            case NewConnectionError():
                return _Lost(f"{server} cannot be reached any more ({_reason(error)})")
            case _ if not watch.left:
                return _Late(
                    f"{server} did not come to the end of it in {watch.seconds:g} s; grant it more with --kind-timeout"
                )
            case _ if not deadline.left or isinstance(error, ReadTimeoutError | ConnectTimeoutError):
                return _Late(f"{server} did not answer in time; grant it more with --request-timeout")
            case ProxyError() if not self._reached:
                return Unanswered(f"the proxy before {server} failed ({_reason(error)})")
            case _:
                return _Lost(f"the connection to {server} broke ({_reason(error)})")


def _settled(outcome: Answer | _Lost | _Late) -> Answer:
    if isinstance(outcome, Answer):
        return outcome
    raise outcome


def _retry_after(outcome: Answer | _Lost | _Late) -> str:
    return outcome.retry_after if isinstance(outcome, Answer) else ""


def _reason(error: BaseException) -> str:
    """The innermost cause of a transport error, without the names of objects in memory."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return getattr(error, "strerror", None) or " ".join(str(error).split()) or type(error).__name__
