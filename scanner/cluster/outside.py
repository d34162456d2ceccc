"""Requests to servers and registries outside the cluster, which Kyverno's expressions name and the user allows with --allow-network.

Mirrors the http library of Kyverno's SDK as its controllers run it: a status of 400 and more is an answer and no error, and what is
on the default block list (the metadata services of clouds, this machine) is not asked. Beyond that every request has an end: so
many seconds, so many bytes, so many different ones; the same one is made once in a scan. Nothing of a URL but its host is repeated.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
import time
from collections.abc import Mapping
from typing import Final
from urllib.parse import urljoin

import urllib3
from urllib3.exceptions import HTTPError, LocationParseError
from urllib3.util import Timeout, parse_url

from scanner.cel import EvaluationError, Value
from scanner.cel.kyverno import Call, Unavailable
from scanner.cluster.registry import Got, Registries
from scanner.cluster.transport import Dripping, body_of

BLOCKED_HOSTS: Final = ("169.254.169.254", "169.254.169.253", "metadata.google.internal")
BLOCKED_RANGES: Final = ("127.0.0.0/8", "::1/128")
_SECONDS: Final = 10.0
_BYTES: Final = 4 << 20
_REQUESTS: Final = 1000
_REDIRECTS: Final = 5
_ELSEWHERE: Final = (301, 302, 303, 307, 308)
_SCHEMES: Final = ("http", "https")


class Outside:
    """Makes requests. `hosts` and `ranges` are not asked."""

    def __init__(
        self,
        hosts: tuple[str, ...] = BLOCKED_HOSTS,
        ranges: tuple[str, ...] = BLOCKED_RANGES,
        seconds: float = _SECONDS,
    ) -> None:
        """Nothing is opened before it is needed; an answer that has not come in so many seconds is none."""
        self._seconds = seconds
        self._hosts = frozenset(hosts)
        self._ranges = tuple(map(ipaddress.ip_network, ranges))
        self._known: dict[Call, Got | EvaluationError] = {}
        self._images: dict[str, Value | EvaluationError] = {}
        self._registries = Registries(self._get)

    def request(self, call: Call, /) -> tuple[int, bytes]:
        """See Network."""
        got = self._once(call)
        return got.status, got.body

    def image(self, reference: str, /) -> Value:
        """See Network."""
        if reference not in self._images:
            try:
                self._images[reference] = self._registries.describe(reference)
            except EvaluationError as error:
                self._images[reference] = error
        known = self._images[reference]
        if isinstance(known, EvaluationError):
            raise known
        return known

    def _get(self, url: str, headers: Mapping[str, str]) -> Got:
        """A request of ours; registries send blobs from elsewhere."""
        for _ in range(_REDIRECTS):
            try:
                got = self._once(Call("GET", url, tuple(sorted(headers.items()))))
            except Unavailable:
                raise
            except EvaluationError as error:
                why = str(error).replace("request failed: ", "")
                raise EvaluationError(f"failed to get image data: {why}") from None
            if got.status not in _ELSEWHERE or "location" not in got.headers:
                return got
            target = urljoin(url, got.headers["location"])
            # What a registry may see of us is nobody else's business.
            headers = headers if _host(target) == _host(url) else {}
            url = target
        raise EvaluationError(f"failed to get image data: {_host(url)} redirects without end")

    def _once(self, call: Call) -> Got:
        """The answer to a request, which is made once. Raises EvaluationError, the same one every time."""
        if call not in self._known:
            if len(self._known) >= _REQUESTS:
                raise Unavailable(f"more than {_REQUESTS:,} different requests would be made in one scan")
            try:
                self._known[call] = self._made(call)
            except EvaluationError as error:
                self._known[call] = error
        known = self._known[call]
        if isinstance(known, EvaluationError):
            raise known
        return known

    def _made(self, call: Call) -> Got:
        self._reject_blocked(call.url)
        kind = {"Content-Type": "application/json"} if call.data else {}
        until = time.monotonic() + self._seconds
        try:
            with self._pool(call) as pool:
                answer = pool.request(
                    call.method,
                    call.url,
                    body=call.data.encode() if call.data else None,
                    headers={**kind, **dict(call.headers)},
                    timeout=Timeout(total=self._seconds),
                    retries=False,
                    redirect=False,
                    preload_content=False,
                )
                body = body_of(answer, lambda: time.monotonic() > until, _BYTES)
                headers = {name.lower(): value for name, value in answer.headers.items()}
        except (HTTPError, OSError, UnicodeError, ValueError, Dripping) as error:
            why = self._reason(error)
            raise EvaluationError(f"request failed: request failed: {_host(call.url)}: {why}") from None
        if len(body) > _BYTES:
            raise EvaluationError(f"request failed: {_host(call.url)}: the answer is larger than {_BYTES >> 20} MiB")
        return Got(answer.status, headers, body)

    def _reason(self, error: Exception) -> str:
        """What went wrong, without the URL, in which a secret may stand."""
        match error:
            case urllib3.exceptions.NewConnectionError():
                return "the connection was refused"
            case urllib3.exceptions.ConnectTimeoutError() | urllib3.exceptions.ReadTimeoutError() | Dripping():
                return f"no answer within {self._seconds:g} seconds"
            case urllib3.exceptions.SSLError():
                return "the certificate cannot be verified"
            case _:
                return type(error).__name__

    def _pool(self, call: Call) -> urllib3.PoolManager:
        if not call.bundle:
            return urllib3.PoolManager()
        try:
            context = ssl.create_default_context(cadata=call.bundle)
        except ssl.SSLError:
            raise EvaluationError("request failed: the CA bundle holds no certificate") from None
        return urllib3.PoolManager(ssl_context=context)

    def _reject_blocked(self, url: str) -> None:
        """Raise for what Kyverno would not ask, and for what is no URL."""
        try:
            parsed = parse_url(url)
        except LocationParseError:
            raise EvaluationError("request failed: it is no URL") from None
        host = (parsed.host or "").strip("[]")
        if parsed.scheme not in _SCHEMES or not host:
            raise EvaluationError(f"request failed: unsupported protocol scheme {parsed.scheme or ''!r}")
        if host.lower() in self._hosts:
            raise EvaluationError(f'request failed: URL of "{host}" is blocked: hostname "{host}" is on the blocklist')
        for address in _addresses(host):
            if blocked := next((one for one in self._ranges if address in one), None):
                text = f"connection to {host} blocked: IP {address} falls in blocked range {blocked}"
                raise EvaluationError(f"request failed: request failed: {text}")


def _addresses(host: str) -> list[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    try:
        found = socket.getaddrinfo(host, None, proto=socket.IPPROTO_TCP)
    except OSError as error:
        raise EvaluationError(f"request failed: request failed: {host}: {error.strerror or 'no such host'}") from None
    return [ipaddress.ip_address(str(one[4][0]).partition("%")[0]) for one in found]


def _host(url: str) -> str:
    return parse_url(url).host or ""
