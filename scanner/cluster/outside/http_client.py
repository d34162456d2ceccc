"""Requests of Kyverno's expressions to servers and registries outside the cluster, which the user allows with --allow-network.

Mirrors the http library of Kyverno's SDK over Go's client, as its controllers run it: a status of 400 and more is a response and
no error, ten redirects are followed, and the default block list (the metadata services of clouds, this machine) is an error. A
request that Kyverno would send and a scan does not is unavailable, which is never a response. Time, size and number of requests are
limited, and equal requests are sent once in a scan. Messages repeat the host of a URL, and nothing else of it.
"""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urljoin

import urllib3
from urllib3.exceptions import HTTPError, LocationParseError
from urllib3.util import Timeout, parse_url

from scanner.cel import EvaluationError, Value
from scanner.cluster.outside.destinations import Address, Destinations, canonicalize_host, list_forms, parse_address
from scanner.cluster.outside.registry import OutsideResponse, Registries
from scanner.cluster.requests.exchange import (
    Lookup,
    RawResponse,
    ResponseTooLarge,
    fetch,
    resolve_addresses,
    set_connection_classes,
)
from scanner.cluster.requests.limits import Deadline
from scanner.cluster.requests.transport import get_host
from scanner.policies.kyverno.libraries import Call, Unavailable

BLOCKED_HOSTS: Final = ("169.254.169.254", "169.254.169.253", "metadata.google.internal")
BLOCKED_RANGES: Final = ("127.0.0.0/8", "::1/128")
_SECONDS: Final = 10.0
_BYTES: Final = 4 << 20
_REQUESTS: Final = 1000
_REDIRECTS: Final = 10
_AS_IT_WAS: Final = (307, 308)
_ELSEWHERE: Final = (301, 302, 303, *_AS_IT_WAS)
_PORTS: Final = {"http": 80, "https": 443}
# Headers that Go's client does not send to another host after a redirect.
_CONFIDENTIAL: Final = frozenset({"authorization", "www-authenticate", "cookie", "cookie2", "proxy-authorization"})


@dataclass(frozen=True, slots=True)
class _ConnectionTarget:
    """The target of a request: the host in the URL, and the addresses to connect to."""

    host: str
    addresses: tuple[str, ...]


class HttpClient:
    """Sends requests to public addresses and to those that the user `allowed`.

    `hosts` and `ranges` are Kyverno's block list; `lookup` finds the addresses of a host.
    """

    def __init__(
        self,
        allowed: Destinations | None = None,
        *,
        hosts: tuple[str, ...] = BLOCKED_HOSTS,
        ranges: tuple[str, ...] = BLOCKED_RANGES,
        seconds: float = _SECONDS,
        lookup: Lookup | None = None,
    ) -> None:
        """Open no connection yet; a request fails after so many seconds."""
        self._allowed = allowed or Destinations()
        self._seconds = seconds
        self._hosts = frozenset(hosts)
        self._ranges = tuple(map(ipaddress.ip_network, ranges))
        self._lookup = lookup
        self._responses: dict[tuple[Call, bool], OutsideResponse | EvaluationError] = {}
        self._images: dict[str, Value | EvaluationError] = {}
        self._registries = Registries(self._get)

    def request(self, call: Call, /) -> tuple[int, bytes]:
        """See Network."""
        response = self._request_once(call)
        return response.status, response.body

    def image(self, reference: str, /) -> Value:
        """See Network."""
        if reference not in self._images:
            try:
                self._images[reference] = self._registries.describe(reference)
            except EvaluationError as error:
                self._images[reference] = error
        image = self._images[reference]
        if isinstance(image, EvaluationError):
            raise image
        return image

    def _get(self, url: str, headers: Mapping[str, str]) -> OutsideResponse:
        """A request to a registry, to which Kyverno's block list does not apply."""
        try:
            return self._request_once(Call("GET", url, tuple(sorted(headers.items()))), registry=True)
        except Unavailable:
            raise
        except EvaluationError as error:
            why = str(error).replace("request failed: ", "")
            raise EvaluationError(f"failed to get image data: {why}") from None

    def _request_once(self, call: Call, *, registry: bool = False) -> OutsideResponse:
        """The response to a request, which is sent once. Raises EvaluationError, the same for equal requests."""
        key = call, registry
        if key not in self._responses:
            if len(self._responses) >= _REQUESTS:
                raise Unavailable(f"more than {_REQUESTS:,} different requests would be made in one scan")
            try:
                self._responses[key] = self._follow_redirects(call, registry=registry)
            except EvaluationError as error:
                self._responses[key] = error
        response = self._responses[key]
        if isinstance(response, EvaluationError):
            raise response
        return response

    def _follow_redirects(self, call: Call, *, registry: bool) -> OutsideResponse:
        """The response after all redirects, within the time of one request."""
        deadline = Deadline(self._seconds)
        for _ in range(_REDIRECTS):
            response = self._send(call, deadline, registry=registry)
            if response.status not in _ELSEWHERE or "location" not in response.headers:
                return response
            call = _redirect(call, response)
        raise EvaluationError(
            f"request failed: request failed: {get_host(call.url)}: stopped after {_REDIRECTS} redirects"
        )

    def _send(self, call: Call, deadline: Deadline, *, registry: bool) -> OutsideResponse:
        try:
            received = self._receive(call, self._find_target(call.url, deadline, registry=registry), deadline)
        except ResponseTooLarge:
            why = f"the response is larger than {_BYTES >> 20} MiB"
            raise EvaluationError(f"request failed: {get_host(call.url)}: {why}") from None
        except (HTTPError, OSError, UnicodeError, ValueError) as error:
            why = self._explain_error(error, deadline)
            raise EvaluationError(f"request failed: request failed: {get_host(call.url)}: {why}") from None
        headers = {name.lower(): value for name, value in received.headers.items()}
        return OutsideResponse(received.status, headers, received.data)

    def _receive(self, call: Call, target: _ConnectionTarget, deadline: Deadline) -> RawResponse:
        kind = {"Content-Type": "application/json"} if call.data else {}
        with self._make_pool(call) as pool:
            return fetch(
                set_connection_classes(pool),
                call.method,
                call.url,
                headers={**kind, **dict(call.headers)},
                body=call.data.encode() if call.data else None,
                # urllib3 refuses a timeout of 0.
                timeout=Timeout(total=max(deadline.seconds_left, 0.001)),
                deadline=deadline,
                most=_BYTES,
                addresses=target.addresses,
            )

    def _explain_error(self, error: Exception, deadline: Deadline) -> str:
        """The reason of a failure, without the URL, which may contain a secret."""
        match error:
            case _ if not deadline.seconds_left:
                return f"no response within {self._seconds:g} seconds"
            case urllib3.exceptions.NewConnectionError():
                return "the connection was refused"
            case urllib3.exceptions.ConnectTimeoutError() | urllib3.exceptions.ReadTimeoutError():
                return f"no response within {self._seconds:g} seconds"
            case urllib3.exceptions.SSLError():
                return "the certificate cannot be verified"
            case _:
                return type(error).__name__

    def _make_pool(self, call: Call) -> urllib3.PoolManager:
        if not call.bundle:
            return urllib3.PoolManager()
        try:
            context = ssl.create_default_context(cadata=call.bundle)
        except ssl.SSLError:
            raise EvaluationError("request failed: the CA bundle holds no certificate") from None
        return urllib3.PoolManager(ssl_context=context)

    def _find_target(self, url: str, deadline: Deadline, *, registry: bool) -> _ConnectionTarget:
        """The addresses to connect to. Raises for an invalid URL, and for hosts that Kyverno or a scan does not contact."""
        try:
            parsed = parse_url(url)
        except LocationParseError:
            raise EvaluationError("request failed: it is no URL") from None
        host = (parsed.host or "").strip("[]")
        if parsed.scheme not in _PORTS or not host:
            raise EvaluationError(f"request failed: unsupported protocol scheme {parsed.scheme or ''!r}")
        if not registry and host.lower() in self._hosts:
            raise EvaluationError(f'request failed: URL of "{host}" is blocked: hostname "{host}" is on the blocklist')
        if canonicalize_host(host) in self._hosts:
            raise Unavailable(
                f"it sends a request to {host}, the metadata service of a cloud, to which a scan sends no request"
            )
        addresses = self._find_addresses(host, parsed.port or _PORTS[parsed.scheme], deadline)
        for address in addresses:
            self._reject(host, address, registry=registry)
        return _ConnectionTarget(host, tuple(map(str, addresses)))

    def _find_addresses(self, host: str, port: int, deadline: Deadline) -> tuple[Address, ...]:
        name = canonicalize_host(host) if parse_address(canonicalize_host(host)) else host
        try:
            texts = resolve_addresses(name, port, deadline, self._lookup)
        except TimeoutError:
            raise
        except (OSError, UnicodeError) as error:
            why = getattr(error, "strerror", None) or "no such host"
            raise EvaluationError(f"request failed: request failed: {host}: {why}") from None
        addresses = tuple(address for text in texts if (address := parse_address(text)))
        if not addresses:
            raise EvaluationError(f"request failed: request failed: {host}: no such host")
        return addresses

    def _reject(self, host: str, address: Address, *, registry: bool) -> None:
        """Raise for an address that Kyverno would not connect to, or that a scan does not."""
        for form in () if registry else list_forms(address):
            if blocked := next((blocked_range for blocked_range in self._ranges if form in blocked_range), None):
                text = f"connection to {host} blocked: IP {form} falls in blocked range {blocked}"
                raise EvaluationError(f"request failed: request failed: {text}")
        if why := self._allowed.find_refusal(canonicalize_host(host), address):
            host_text = host if host == str(address) else f"{host} ({address})"
            raise Unavailable(f"it sends a request to {host_text}, {why}")


def _redirect(call: Call, response: OutsideResponse) -> Call:
    """The request of Go's client after a redirect: it keeps another method than GET for status 307 and 308 only."""
    url = urljoin(call.url, response.headers["location"])
    before, after = canonicalize_host(get_host(call.url)), canonicalize_host(get_host(url))
    same = after == before or after.endswith(f".{before}")
    headers = tuple((name, value) for name, value in call.headers if same or name.lower() not in _CONFIDENTIAL)
    if response.status in _AS_IT_WAS:
        return replace(call, url=url, headers=headers)
    return replace(call, method="GET", url=url, headers=headers, data="")
