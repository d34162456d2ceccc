"""Addresses to listen on, such as `127.0.0.1:8080` and `[::1]:8080`, and sockets that are bound to them."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

from scanner.errors import AssayError, UsageError

LOCALHOST: Final = "localhost"
_MOST: Final = 65_535
_FORM: Final = (
    "write HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080; 0.0.0.0 stands for every address, port 0 for any free port"
)


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """A host and a port. `host` is a name or an IP address, without brackets."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Return whether only programs of this machine can reach the address."""
        try:
            return self.host == LOCALHOST or ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def address_of(text: str, flag: str) -> ListenAddress:
    """Parse the value of a flag. Raises UsageError."""
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        colon = ""
    if not colon or not host or not (port.isascii() and port.isdigit()) or int(port) > _MOST:
        raise UsageError(f"{flag} {text}: {_FORM}")
    return ListenAddress(host.lower(), int(port))


def host_of(header: str) -> str:
    """The host of a Host header or an authority, without its port and brackets; empty if it is none."""
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


def bind(address: ListenAddress, flag: str) -> socket.socket:
    """A socket that is bound to an address. Raises AssayError if that is impossible."""
    listener: socket.socket | None = None
    try:
        family, kind, protocol, place = _resolve(address)
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
    except OSError as error:
        if listener is not None:
            listener.close()
        why = (error.strerror or str(error)).lower()
        raise AssayError(f"cannot listen on {address} ({why}): name another address with {flag}") from error
    return listener


def address_bound(listener: socket.socket, named: ListenAddress) -> ListenAddress:
    """The address of a socket with the host as it was named: port 0 has become a port."""
    return ListenAddress(named.host, listener.getsockname()[1])


def _resolve(address: ListenAddress) -> tuple[socket.AddressFamily, socket.SocketKind, int, tuple[Any, ...]]:
    addresses = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    if address.host == LOCALHOST:
        addresses = [each for each in addresses if ip_address(each[4][0]).is_loopback]
    if not addresses:
        raise OSError(f"{address.host} is no address of this machine")
    # `localhost` is 127.0.0.1 where both are known: that is the address that users and programs try first.
    family, kind, protocol, _, place = min(addresses, key=lambda each: each[0] != socket.AF_INET)
    return family, kind, protocol, place
