"""The form of the URL of a receiver of notifications."""

from __future__ import annotations

from typing import Final
from urllib.parse import SplitResult, urlsplit

_SCHEMES: Final = ("http", "https")


def fault_of_url(url: str, *, insecure_http: bool) -> str:
    """The reason why a URL is not one of a receiver, empty if it is. No reason repeats the URL, whose path can be a secret."""
    parts = _parts(url)
    if parts is None or parts.scheme not in _SCHEMES:
        return "must be a URL such as https://hooks.example.com/assay"
    if parts.username is not None or parts.password is not None:
        return "must have no user and no password: the signature authenticates Assay"
    if parts.fragment:
        return "must have no fragment: remove # and what follows"
    if parts.scheme == "http" and not insecure_http:
        return "must begin with https; insecureHttp: true allows http"
    return ""


def _parts(url: str) -> SplitResult | None:
    """The parts of a URL; None for a text that is no URL with a host."""
    if not url.isascii() or not url.isprintable() or " " in url:
        return None
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    return parts if parts.hostname and port != 0 else None
