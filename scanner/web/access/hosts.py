"""The Host header of requests that a browser may have been tricked into sending.

A page of another site whose name is made to resolve to 127.0.0.1 (DNS rebinding) has its own name in the Host header.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request

from scanner.web.requests.listen import ListenAddress, host_of

_CROSS: Final = frozenset({"cross-site", "same-site"})


def is_known(request: Request, hosts: frozenset[str] | None) -> bool:
    """Return whether a request names this server as one of `hosts`; if these are given, loopback addresses are always among them."""
    if hosts is None:
        return True
    host = host_of(request.headers.get("host", ""))
    return host in hosts or ListenAddress(host, 0).is_loopback


def comes_from_own_page(request: Request) -> bool:
    """Return whether a POST comes from a page of this server, as far as the browser tells (or from no browser)."""
    if request.headers.get("sec-fetch-site", "none") in _CROSS:
        return False
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc.lower() == request.headers.get("host", "").lower()
