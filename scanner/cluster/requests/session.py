"""Requests to an API server, which only read, and their responses as raw bytes.

Source of truth: the behaviour of kubectl. Status 429 and 5xx, broken connections and timeouts are retried a limited number
of times, with growing and jittered pauses. A failure within admission is the answer to a dry run.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock, Thread, current_thread, main_thread
from typing import Any, Final, Literal, TypeAlias, TypeVar
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
from scanner.audit.own_secrets import NO_SECRETS, OwnSecrets
from scanner.cluster.requests.credentials import PLUGIN_SECONDS, Credentials, list_secrets, load_credentials
from scanner.cluster.requests.exchange import MOST, RawResponse, ResponseTooLarge, fetch
from scanner.cluster.requests.limits import (
    ATTEMPTS,
    Deadline,
    RateLimiter,
    TimeLimit,
    compute_pause,
    count_failure,
    make_retry,
)
from scanner.cluster.requests.transport import choose_encoding, make_pool, make_timeout
from scanner.errors import ClusterError, UsageError
from scanner.files import SETTINGS, read_file
from scanner.model.json import Json, JsonObject, as_object, as_text
from scanner.model.urls import remove_password

_Result = TypeVar("_Result")
_LATER: Final = frozenset({429, 500, 502, 503, 504})
_UNAUTHORIZED: Final = 401
_INTERNAL: Final = 500
_QUOTED: Final = 200
_READ: Final = 64 << 10
_LONGEST: Final = 2000
_AT_LEAST: Final = 0.001
_REMEMBERED: Final = 60.0
_AT_ONCE: Final = 4
"""The connections of reads that are begun: a distant server answers several at the same time, and a near one is not slower."""


class NoResponse(Exception):
    """There was no response; the message is the reason, as the end of a sentence."""


class AnswerTooLarge(NoResponse):
    """The response has too many bytes; smaller pages may help."""


class _ConnectionLost(NoResponse):
    """The connection broke; a retry may help."""


class _ResponseLate(NoResponse):
    """The response did not arrive in time."""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """An HTTP response. `data` is the body, decompressed; `retry_after`, `warnings` and `date` the headers of these names.

    A proxy or a server may repeat the `secrets` of the request: every text but `data` and `exact_body` is without them.
    """

    status: int
    data: bytes
    retry_after: str = ""
    warnings: tuple[str, ...] = ()
    date: str = ""
    secrets: OwnSecrets = NO_SECRETS

    def body(self) -> JsonObject:
        """The decoded body, or an empty object if it is not a JSON object."""
        body = self.exact_body()
        return as_object(self.secrets.mask_document(body)) if self.secrets.occur_in(self.data) else body

    def exact_body(self) -> JsonObject:
        """The decoded body as the server wrote it, for the content of an object, which may be a token of this user."""
        try:
            return as_object(orjson.loads(self.data))
        except orjson.JSONDecodeError:
            return {}

    def message(self) -> str:
        """The message of an error response, in one line."""
        message = as_text(self.body().get("message"))[:_LONGEST] or self._quote_beginning()
        return " ".join(message.split()) or "without a message"

    def _quote_beginning(self) -> str:
        """The beginning of a body that is no Status. It is cut last: a part of a secret might not be recognised."""
        return self.secrets.mask(self.data[:_READ].decode(errors="replace"))[:_QUOTED]


_Outcome: TypeAlias = HttpResponse | _ConnectionLost | _ResponseLate
"""The result of an attempt: a response, or the reason why there is none."""


_APPLY: Final = "application/apply-patch+yaml"
"""The content type of a server-side apply; JSON is YAML."""
_MERGE: Final = "application/merge-patch+json"


@dataclass(frozen=True, slots=True)
class _HttpRequest:
    method: str
    path: str
    accept: str
    body: bytes | None = None
    content_type: str = "application/json"
    requester: Requester | None = None


@dataclass(frozen=True, slots=True)
class Requester:
    """A user to impersonate in one request. Without groups, the server adds those of a service account."""

    user: str
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Login:
    """Credentials and their connections, and the time from which on they are loaded again."""

    credentials: Credentials
    pool: urllib3.PoolManager
    encoding: str
    until: float

    @property
    def root(self) -> str:
        return str(self.credentials.configuration.host).rstrip("/")


class ApiSession:
    """Connections with credentials, which threads may share.

    It sends GET, the POST of `review`, and the writes of `dry_run`, which change nothing.
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
        """Load the credentials. `request_timeout` is in seconds, also for a credential plugin; see `transport.timeout_for` for the default.

        Raises ClusterError when the credentials cannot be loaded, UsageError for groups without a user.
        """
        self._kubeconfig = kubeconfig
        self._context = context
        self._seconds = request_timeout or None
        self._clock = clock
        self._failure: tuple[float, str] | None = None
        self._secrets = OwnSecrets()
        self._login = self._log_in()
        self._as_user = as_user or self._login.credentials.as_user
        self._as_groups = as_groups or self._login.credentials.as_groups
        self._pace = pace or RateLimiter(0, 0)
        self._sleep = sleep
        self._lock = Lock()
        self._reached = False
        self._beat: Callable[[], None] = lambda: None
        self._begun: dict[tuple[str, str], Future[HttpResponse]] = {}
        self.requests = 0
        if self._as_groups and not self._as_user:
            raise UsageError("--as-group needs --as")

    @property
    def as_user(self) -> str:
        """The impersonated user, or an empty string."""
        return self._as_user

    @property
    def cluster(self) -> str:
        """The name of the cluster in the kubeconfig."""
        return self._login.credentials.cluster

    @property
    def server_digest(self) -> str:
        """SHA-256, in hex, of the CA and the URL of the server."""
        return digest_server(self._login.credentials.configuration)

    @property
    def valid_until(self) -> int | None:
        """The Unix time at which the credentials in the kubeconfig expire, None if unknown."""
        return self._login.credentials.valid_until

    @property
    def place(self) -> str:
        """The context of the kubeconfig; in a pod, the server's URL."""
        return self._login.credentials.context or self.server

    @property
    def server(self) -> str:
        """The server's URL for messages."""
        return remove_password(self._login.root)

    def while_waiting(self, beat: Callable[[], None]) -> None:
        """Call `beat` before each attempt of a request for which the main thread waits."""
        self._beat = beat

    def add_secrets(self, *secrets: str) -> None:
        """Mask these texts in what comes back: a request has them, which is no part of the credentials."""
        self._secrets.add(*secrets)

    def quote(self, text: str, most: int) -> str:
        """The beginning of a text of the server for a message, without what this session sends."""
        return self._secrets.mask(text)[:most]

    def begin(self, reads: Sequence[tuple[str, str]]) -> None:
        """Fetch paths, each with its content type, in other threads. The first `get` of a path takes the response, or raises the error.

        The program imports modules and reads files in the meantime. An interruption does not wait for the threads.
        """
        begun = {read: Future[HttpResponse]() for read in reads}
        waiting = deque(begun.items())

        def fetch_waiting() -> None:
            with suppress(IndexError):
                while True:
                    (path, accept), response = waiting.popleft()
                    settle(response, partial(self._fetch, _HttpRequest("GET", path, accept)))

        self._begun |= begun
        for _ in range(min(_AT_ONCE, len(begun))):
            Thread(target=fetch_waiting, daemon=True).start()

    def get(
        self,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        accept: str = "application/json",
        attempts: int = ATTEMPTS,
        time_limit: TimeLimit | None = None,
    ) -> HttpResponse:
        """Fetch a path, with retries. Raises NoResponse, and ClusterError for expired credentials."""
        request = _HttpRequest("GET", f"{path}?{urlencode(query)}" if query else path, accept)
        if begun := self._begun.pop((request.path, accept), None):
            return begun.result()
        return self._fetch(request, attempts, time_limit)

    def review(self, path: str, body: Json) -> HttpResponse:
        """Post a review, which the server does not store. Raises like `get`."""
        return self._fetch(_HttpRequest("POST", path, "application/json", orjson.dumps(body)))

    def _fetch(
        self, request: _HttpRequest, attempts: int = ATTEMPTS, time_limit: TimeLimit | None = None
    ) -> HttpResponse:
        time_limit = time_limit or TimeLimit()
        with time_limit.count_time():
            return self._persist(request, make_retry(attempts), time_limit)

    def dry_run(
        self,
        method: Literal["POST", "PUT", "PATCH"],
        path: str,
        body: Json,
        *,
        manager: str = "",
        requester: Requester | None = None,
    ) -> HttpResponse:
        """Send a dry-run write, which the server admits or denies but does not store. Raises like `get`.

        A PATCH with a field manager is a server-side apply: the manager owns no field yet, and takes over those of others. Another
        PATCH is a merge patch. A `requester` is impersonated instead of the user that the session impersonates.

        This is the only place that writes, and `dryRun=All` is part of every path. Admission answers 500 where a policy
        or a webhook fails: the same Status twice is the answer, and no further retry follows.
        """
        applied = {"fieldManager": manager, "force": "true"} if manager else {}
        query = urlencode({"dryRun": "All", **applied})
        patch_type = _APPLY if manager else _MERGE
        content_type = patch_type if method == "PATCH" else "application/json"
        request = _HttpRequest(method, f"{path}?{query}", "application/json", _encode(body), content_type, requester)
        time_limit = TimeLimit()
        with time_limit.count_time():
            return self._persist(request, make_retry(), time_limit, settles=_is_same_answer)

    def _persist(
        self,
        request: _HttpRequest,
        retry: Retry,
        time_limit: TimeLimit,
        *,
        settles: Callable[[_Outcome | None, _Outcome], bool] = lambda _before, _now: False,
    ) -> HttpResponse:
        """Send a request until it has an answer; `settles` compares a failed attempt with the attempt before it."""
        before: _Outcome | None = None
        while True:
            # The other threads only fetch ahead, and the reader beats while it waits for them.
            if current_thread() is main_thread():
                self._beat()
            outcome = self._try(request, time_limit)
            if isinstance(outcome, HttpResponse) and (outcome.status not in _LATER or settles(before, outcome)):
                return outcome
            before = outcome
            more = count_failure(retry, late=isinstance(outcome, _ResponseLate))
            retry_after = outcome.retry_after if isinstance(outcome, HttpResponse) else ""
            if more is None or (pause := compute_pause(more, retry_after)) >= time_limit.seconds_left:
                return _return_or_raise(outcome)
            retry = more
            self._sleep(pause)

    def _try(self, request: _HttpRequest, time_limit: TimeLimit) -> _Outcome:
        """The response, after reading rejected credentials again, or the reason why there is none."""
        login = self._login if self._clock() < self._login.until else self._renew(self._login)
        try:
            answer = self._send(login, request, time_limit)
            if answer.status != _UNAUTHORIZED:
                return answer
            return self._send(self._renew(login), request, time_limit)
        except (_ConnectionLost, _ResponseLate) as trouble:
            return trouble

    def _log_in(self) -> _Login:
        credentials = load_credentials(self._kubeconfig, self._context, seconds=self._seconds or PLUGIN_SECONDS)
        self._secrets.add(*credentials.list_secrets())
        until = self._clock() + credentials.lifetime
        return _Login(credentials, make_pool(credentials), choose_encoding(credentials), until)

    def _renew(self, refused: _Login) -> _Login:
        """The login after a rejected or expired one; of several threads, one reads the credentials.

        A failure is the answer to all of them, for some time: a plugin that hangs would hang again for every list.
        """
        with self._lock:
            if self._login is not refused:
                return self._login
            if self._failure and self._clock() < self._failure[0]:
                raise ClusterError(self._failure[1])
            try:
                self._login = self._log_in()
            except ClusterError as error:
                self._failure = self._clock() + _REMEMBERED, str(error)
                raise
            return self._login

    def _send(self, login: _Login, request: _HttpRequest, time_limit: TimeLimit) -> HttpResponse:
        self._pace.wait()
        with self._lock:
            self.requests += 1
        deadline = Deadline(min(self._seconds or math.inf, time_limit.seconds_left), clock=self._clock)
        try:
            response = self._receive(login, request, deadline)
        except (HTTPError, OSError, ResponseTooLarge) as error:
            raise self._explain_error(error, login, time_limit, deadline) from error
        self._reached = True
        headers = response.headers
        return HttpResponse(
            response.status,
            response.data,
            self._secrets.mask(headers.get("Retry-After", "")),
            tuple(map(self._secrets.mask, headers.getlist("Warning"))),
            self._secrets.mask(headers.get("Date", "")),
            self._secrets,
        )

    def _receive(self, login: _Login, request: _HttpRequest, deadline: Deadline) -> RawResponse:
        seconds = None if deadline.seconds_left == math.inf else max(deadline.seconds_left, _AT_LEAST)
        return fetch(
            login.pool,
            request.method,
            f"{login.root}{request.path}",
            headers=self._make_headers(login, request),
            body=request.body,
            timeout=make_timeout(seconds),
            deadline=deadline,
        )

    def _make_headers(self, login: _Login, request: _HttpRequest) -> urllib3.HTTPHeaderDict:
        headers = urllib3.HTTPHeaderDict(
            {"User-Agent": f"assay/{__version__}", "Accept": request.accept, "Accept-Encoding": login.encoding}
        )
        # In a pod this may read the token again, into the configuration that threads share.
        with self._lock:
            authorization = login.credentials.get_authorization()
        if authorization:
            self._secrets.add(*list_secrets(authorization))
            headers.add("Authorization", authorization)
        if request.body is not None:
            headers.add("Content-Type", request.content_type)
        requester = request.requester or Requester(self._as_user, self._as_groups)
        if requester.user:
            headers.add("Impersonate-User", requester.user)
        for group in requester.groups:
            headers.add("Impersonate-Group", group)
        return headers

    def _explain_error(self, error: Exception, login: _Login, time_limit: TimeLimit, deadline: Deadline) -> NoResponse:
        server, reason = remove_password(login.root), self._secrets.mask(_find_reason(error))
        match error:
            case ResponseTooLarge():
                return AnswerTooLarge(f"the response of {server} is larger than {MOST >> 20} MiB")
            case LocationValueError():
                return NoResponse(f"{server} is not the URL of a server: correct it in the kubeconfig")
            case SSLError() if not self._reached:
                return NoResponse(f"TLS to {server} failed ({reason})")
            case NewConnectionError() if not self._reached:
                return NoResponse(f"{server} cannot be reached ({reason})")
            case NewConnectionError():
                return _ConnectionLost(f"{server} can no longer be reached ({reason})")
            case _ if not time_limit.seconds_left:
                return _ResponseLate(
                    f"{server} did not finish it within {time_limit.seconds:g} s; raise --kind-timeout"
                )
            case _ if not deadline.seconds_left or isinstance(error, ReadTimeoutError | ConnectTimeoutError):
                return _ResponseLate(f"{server} did not respond in time; raise --request-timeout")
            case ProxyError() if not self._reached:
                return NoResponse(f"the proxy before {server} failed ({reason})")
            case _:
                return _ConnectionLost(f"the connection to {server} broke ({reason})")


def settle(result: Future[_Result], read: Callable[[], _Result]) -> None:
    """Read, for a thread that waits for the result or the error."""
    try:
        result.set_result(read())
    except BaseException as error:  # noqa: BLE001 - it is raised again by the thread that waits
        result.set_exception(error)


def _encode(body: Json) -> bytes:
    """The JSON of an object of a user, which may have numbers of any size, and texts that are no Unicode."""
    try:
        return orjson.dumps(body)
    except TypeError:
        return json.dumps(body).encode()


def _is_same_answer(before: _Outcome | None, now: _Outcome) -> bool:
    """Return whether two attempts have the same Status with reason InternalError. Errors of etcd have no reason."""
    if not (isinstance(before, HttpResponse) and isinstance(now, HttpResponse)):
        return False
    same = (before.status, before.data) == (now.status, now.data)
    return same and now.status == _INTERNAL and now.body().get("reason") == "InternalError"


def _return_or_raise(outcome: _Outcome) -> HttpResponse:
    if isinstance(outcome, HttpResponse):
        return outcome
    raise outcome


def _find_reason(error: BaseException) -> str:
    """The innermost cause of a transport error, without the names of objects in memory."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return getattr(error, "strerror", None) or " ".join(str(error).split()) or type(error).__name__


# The identity of a cluster whose kube-system namespace may not be read: the CA and the URL of its API server.
#
# The URL alone does not: in every cluster with default settings, pods reach the API server at the same address.


def digest_server(configuration: Any) -> str:
    """SHA-256, in hex, of the certificates that the server is verified with and of its URL without user, password and query."""
    url = remove_password(str(configuration.host)).rstrip("/")
    return hashlib.sha256(_read_authority(configuration).strip() + b"\0" + url.encode()).hexdigest()


def _read_authority(configuration: Any) -> bytes:
    """The CA certificates of the configuration in PEM; empty if the system's certificates are used, or none."""
    if data := getattr(configuration, "ca_cert_data", None):
        return str(data).encode()
    if configuration.ssl_ca_cert:
        with suppress(OSError):
            return read_file(Path(configuration.ssl_ca_cert), SETTINGS)
    return b""
