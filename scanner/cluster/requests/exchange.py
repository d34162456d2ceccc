"""One request and its response within one deadline: name look-up, connection, TLS, request, headers and body.

Timeouts of sockets and of urllib3 restart with every read, so a server that sends a byte from time to time never exceeds one.
Here every wait ends with the deadline, also between a proxy and the server behind it.

Source of truth: `http.Client.Timeout` of Go, which client-go sets from `--request-timeout`: it covers the connection, redirects
and reading the body.
"""

from __future__ import annotations

import http.client
import ipaddress
import math
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from io import BufferedReader, BytesIO, RawIOBase
from queue import Empty, SimpleQueue
from typing import Any, Final, NamedTuple

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError
from urllib3.util import Timeout

from scanner.cluster.requests.limits import Deadline

MOST: Final = 64 << 20
"""The most bytes of a response, uncompressed. A page of 500 objects usually has 5 MB; one object has by default at most 3 MB."""
_PART: Final = 1 << 20
_SENT_AT_ONCE: Final = 64 << 10
_LEAST: Final = 0.001

Lookup = Callable[[str, int], Iterable[str]]
"""The addresses of a host; the port is that of the connection. Raises OSError."""


class ResponseTooLarge(Exception):
    """A response has too many bytes."""


class RawResponse(NamedTuple):
    """A response: status, headers and the uncompressed body."""

    status: int
    headers: urllib3.HTTPHeaderDict
    data: bytes


class _Exchange(threading.local):
    """The deadline and addresses for the connections of this thread, because urllib3 passes them timeouts only."""

    deadline: Deadline = Deadline()
    addresses: tuple[str, ...] = ()


_CURRENT: Final = _Exchange()


def fetch(
    pool: urllib3.PoolManager,
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    body: bytes | None,
    timeout: Timeout,
    deadline: Deadline,
    most: int = MOST,
    addresses: tuple[str, ...] = (),
) -> RawResponse:
    """Send a request and read the whole response, of at most `most` bytes. `addresses` replace those of the URL's host.

    The pool is from `set_connection_classes`. Raises ResponseTooLarge, and the errors of urllib3 and sockets.
    """
    _CURRENT.deadline, _CURRENT.addresses = deadline, addresses
    try:
        response = pool.request(
            method,
            url,
            headers=headers,
            body=body,
            timeout=timeout,
            retries=False,
            redirect=False,
            preload_content=False,
        )
        return RawResponse(response.status, response.headers, _read_body(response, most))
    finally:
        _CURRENT.deadline, _CURRENT.addresses = Deadline(), ()


def set_connection_classes(pool: urllib3.PoolManager) -> urllib3.PoolManager:
    """The pool, whose connections keep the deadline of `fetch` from now on."""
    pool.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}
    return pool


def resolve_addresses(host: str, port: int, deadline: Deadline, lookup: Lookup | None = None) -> tuple[str, ...]:
    """The addresses of a host, in the order of attempts. Raises OSError, and TimeoutError after the deadline."""
    lookup = lookup or _look_up
    if deadline.seconds_left == math.inf or _is_address(host):
        return tuple(lookup(host, port))
    answers: SimpleQueue[tuple[str, ...] | OSError | UnicodeError] = SimpleQueue()

    def look_up() -> None:
        try:
            answers.put(tuple(lookup(host, port)))
        except (OSError, UnicodeError) as error:
            answers.put(error)

    # The resolver of the C library has no deadline.
    threading.Thread(target=look_up, daemon=True).start()
    try:
        answer = answers.get(timeout=max(deadline.seconds_left, _LEAST))
    except Empty:
        raise TimeoutError(f"looking up {host} timed out") from None
    if isinstance(answer, Exception):
        raise answer
    return answer


def _look_up(host: str, port: int) -> Iterable[str]:
    """The addresses from the operating system, each once."""
    infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return dict.fromkeys(str(info[4][0]) for info in infos)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _read_body(response: urllib3.BaseHTTPResponse, most: int) -> bytes:
    body = BytesIO()  # returns its own buffer, where a join of the parts would be a second copy
    while part := response.read1(_PART, decode_content=True):
        body.write(part)
        if body.tell() > most:
            response.close()
            raise ResponseTooLarge
    return body.getvalue()


def _compute_wait(limit: float | None) -> float | None:
    """The time for the next wait: the given limit, but not beyond the deadline. Raises TimeoutError."""
    seconds_left = _CURRENT.deadline.seconds_left
    if seconds_left <= 0:
        raise TimeoutError("the deadline has passed")
    rest = min(math.inf if limit is None else limit, seconds_left)
    return None if rest == math.inf else max(rest, _LEAST)


class _Source(RawIOBase):
    """The bytes from a socket; every wait ends with the deadline."""

    def __init__(self, raw: RawIOBase, connected: socket.socket) -> None:
        self._raw = raw
        self._socket = connected
        self._limit = connected.gettimeout()

    def readable(self) -> bool:
        """See RawIOBase."""
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        """See RawIOBase. Raises TimeoutError."""
        self._socket.settimeout(_compute_wait(self._limit))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        """Close the socket's file as well, which may be the last that holds the socket."""
        self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    """A response whose status line, headers and body are read within the deadline; so is a proxy's to CONNECT."""

    def __init__(self, sock: socket.socket, *args: Any, **settings: Any) -> None:
        super().__init__(sock, *args, **settings)
        self.fp = BufferedReader(_Source(self.fp.detach(), sock))


class _WithinDeadline(HTTPConnection):
    """A connection that is made, and written to, within the deadline."""

    response_class = _Response

    def _new_conn(self) -> socket.socket:
        try:
            addresses = _CURRENT.addresses or resolve_addresses(
                self._dns_host.strip("[]"), self.port, _CURRENT.deadline
            )
            connected = self._connect(addresses)
            connected.settimeout(_compute_wait(self.timeout))
        except socket.gaierror as error:
            raise NameResolutionError(self.host, self, error) from error
        except TimeoutError as error:
            raise ConnectTimeoutError(self, f"Connection to {self.host} timed out") from error
        except (OSError, UnicodeError) as error:
            raise NewConnectionError(self, f"Failed to establish a new connection: {error}") from error
        return connected

    def _connect(self, addresses: Iterable[str]) -> socket.socket:
        trouble: OSError = OSError("the host has no address")
        for address in addresses:
            try:
                connected = socket.create_connection((address, self.port), _compute_wait(self.timeout))
            except OSError as error:
                trouble = error
                continue
            for option in self.socket_options or ():
                connected.setsockopt(*option)
            return connected
        raise trouble

    def _tunnel(self) -> None:
        super()._tunnel()
        self.sock.settimeout(_compute_wait(self.timeout))

    def send(self, data: Any) -> None:
        """Send bytes in parts, each within the deadline."""
        if self.sock is None:
            self.connect()
        parts = memoryview(data) if isinstance(data, bytes) else None
        if parts is None:
            super().send(data)
            return
        for start in range(0, len(parts), _SENT_AT_ONCE):
            self.sock.settimeout(_compute_wait(self.timeout))
            super().send(bytes(parts[start : start + _SENT_AT_ONCE]))


class _TlsWithinDeadline(_WithinDeadline, HTTPSConnection):
    pass


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _WithinDeadline


class _TlsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _TlsWithinDeadline
