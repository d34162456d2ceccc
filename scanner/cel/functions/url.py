"""URLs: Go's net/url, its grammar and its messages.

Works on text; percent escapes that decode to bytes which are not UTF-8 come out with replacement characters.

Rules: `docs/semantics/cel-libraries.md#urls`.
"""

from __future__ import annotations

import re
from typing import ClassVar
from urllib.parse import unquote_to_bytes

from msgspec import Struct

from scanner.cel.errors import EvaluationError
from scanner.cel.functions import ip
from scanner.cel.functions.declaration import Function, Library, Overload, declare_member
from scanner.cel.functions.pricing import ONE, READ
from scanner.cel.functions.result_sizes import parts, pieces, text
from scanner.cel.types.type_system import BOOL, STRING, Type, list_of, map_of, object_type
from scanner.cel.values.text import quote
from scanner.cel.values.values import Opaque, Value

URL = object_type("kubernetes.URL")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_PATH = _UNRESERVED | frozenset("$&+,/:;=@")
_FRAGMENT = _UNRESERVED | frozenset("!$&()*+,/:;=?@")
_HOST = _UNRESERVED | frozenset("!\"$&'()*+,:;<=>[]")
_USER = _UNRESERVED | frozenset("$&+,;=")
_VALID_PATH = _PATH | frozenset("!'()*[]%")
_VALID_FRAGMENT = _FRAGMENT | frozenset("'[]%")
_USER_INFO = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*\Z")
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.\-]*):")
_ESCAPE = re.compile(r"%[0-9a-fA-F]{2}")
_SPECIAL = re.compile(r"%(?:[0-9a-fA-F]{2})?|[\x00-\x7f]")
"""Escapes, and the characters that a host must escape, from left to right."""
_PORT = re.compile(r"(?::[0-9]*)?\Z")
_MOST_PARAMETERS = 10_000
_FIRST_BEYOND_ASCII = 0x80
_BYTES = "surrogateescape"
"""The error handler that keeps bytes that are not UTF-8 for a message that quotes them."""


class BadUrl(Exception):
    """A text that net/url rejects; the message is Go's, with the prefix `parse "…": ` when it comes from `parse_request`."""


class _UrlParts(Struct, frozen=True):
    """The components that net/url parses from a text."""

    scheme: str = ""
    opaque: str = ""
    user: str | None = None
    host: str = ""
    path: str = ""
    raw_path: str = ""
    query: str = ""
    force_query: bool = False
    omit_host: bool = False


class Url(Opaque):
    """A parsed URL; two are equal when they print alike."""

    __slots__ = ("fragment", "parts")
    TYPE: ClassVar[Type] = URL
    GO_TYPE: ClassVar[str] = "cel.URL"
    EQUAL_AT_ONCE: ClassVar[bool] = True
    GO_NATIVE: ClassVar[str] = "*url.URL"

    def __init__(self, parts: _UrlParts, fragment: str) -> None:
        self.parts = parts
        self.fragment = fragment

    def __str__(self) -> str:
        """Return the text of the URL."""
        parts = self.parts
        query = f"?{parts.query}" if parts.force_query or parts.query else ""
        scheme = f"{parts.scheme}:" if parts.scheme else ""
        body = parts.opaque or f"{self._write_authority()}{escape_path(parts)}"
        return f"{scheme}{body}{query}{self.fragment}"

    def _write_authority(self) -> str:
        parts = self.parts
        if parts.omit_host or not (parts.host or parts.path or parts.user is not None):
            return ""
        if not (parts.scheme or parts.host or parts.user is not None):
            return ""
        user = "" if parts.user is None else f"{parts.user}@"
        return f"//{user}{_escape(parts.host, _HOST)}"

    def equals(self, other: Opaque) -> bool:
        """Return whether the texts are equal."""
        return str(self) == str(other)


def _escape(text: str, allowed: frozenset[str]) -> str:
    return "".join(
        character if character in allowed else "".join(f"%{byte:02X}" for byte in character.encode())
        for character in text
    )


def _unescape(text: str, *, host: bool = False, zone: bool = False, errors: str = "replace") -> str:
    """Return a text with its percent escapes decoded, or raise `BadUrl`."""
    for match in _SPECIAL.finditer(text):
        shown = match.group()
        if shown.startswith("%"):
            _require_escape(_read_escape(text, match.start()), host=host, zone=zone)
        elif (host or zone) and shown not in _HOST:
            raise BadUrl(f"invalid character {quote(shown)} in host name")
    return unquote_to_bytes(text.encode()).decode(errors=errors) if "%" in text else text


def _read_escape(text: str, start: int) -> str:
    """Return the bytes of an escape, which need not be whole characters."""
    return text[start : start + 3].encode()[:3].decode(errors=_BYTES)


def _require_escape(shown: str, *, host: bool, zone: bool) -> None:
    if not _ESCAPE.match(shown) or (host and not _escape_for_host(shown)) or (zone and not _escape_for_zone(shown)):
        raise BadUrl(f"invalid URL escape {quote(shown)}")


def _escape_for_host(escape: str) -> bool:
    return int(escape[1:], 16) >= _FIRST_BEYOND_ASCII or escape == "%25"


def _escape_for_zone(escape: str) -> bool:
    return escape in ("%25", "%20") or chr(int(escape[1:], 16)) in _HOST


def _parse(text: str, *, request: bool, strict: bool) -> _UrlParts:
    if any(character < " " or character == "\x7f" for character in text):
        raise BadUrl("net/url: invalid control character in URL")
    if not text and request:
        raise BadUrl("empty url")
    if text == "*":
        return _UrlParts(path="*")
    scheme, rest = _split_scheme(text)
    rest, query, force_query = _split_query(rest)
    if not rest.startswith("/"):
        if scheme:
            return _UrlParts(scheme=scheme, opaque=rest, query=query, force_query=force_query)
        _reject_rootless(rest, request=request)
    user, host, omit_host = None, "", False
    if rest.startswith("//") and (scheme or not (request or rest.startswith("///"))):
        authority, slash, path = rest[2:].partition("/")
        user, host = _parse_authority(authority, strict=strict and scheme in ("http", "https"))
        rest = slash + path
    elif scheme:
        omit_host = True
    path = _unescape(rest)
    raw = "" if _escape(path, _PATH) == rest else rest
    return _UrlParts(scheme, "", user, host, path, raw, query, force_query, omit_host)


def _split_scheme(text: str) -> tuple[str, str]:
    if text.startswith(":"):
        raise BadUrl("missing protocol scheme")
    match = _SCHEME.match(text)
    return (match.group(1).lower(), text[match.end() :]) if match else ("", text)


def _split_query(rest: str) -> tuple[str, str, bool]:
    if rest.endswith("?") and rest.count("?") == 1:
        return rest[:-1], "", True
    before, _, query = rest.partition("?")
    return before, query, False


def _reject_rootless(rest: str, *, request: bool) -> None:
    if request:
        raise BadUrl("invalid URI for request")
    if ":" in rest.partition("/")[0]:
        raise BadUrl("first path segment in URL cannot contain colon")


def _parse_authority(authority: str, *, strict: bool) -> tuple[str | None, str]:
    info, at, host_text = authority.rpartition("@")
    host = _parse_host(host_text, strict=strict)
    if not at:
        return None, host
    if not _USER_INFO.match(info):
        raise BadUrl("net/url: invalid userinfo")
    name, colon, password = info.partition(":")
    return _escape(_unescape(name), _USER) + colon + _escape(_unescape(password), _USER), host


def _parse_host(host: str, *, strict: bool) -> str:
    bracket = host.rfind("[")
    if bracket > 0:
        raise BadUrl("invalid IP-literal")
    if bracket == 0:
        return _parse_literal(host)
    colon = host.find(":") if strict else host.rfind(":")
    if colon >= 0:
        _require_port(host[colon:])
    return _unescape(host, host=True)


def _require_port(text: str) -> None:
    if not _PORT.match(text):
        raise BadUrl(f"invalid port {quote(text)} after host")


def _parse_literal(host: str) -> str:
    """Return a host in brackets, which must be an IPv6 address."""
    close = host.rfind("]")
    if close < 0:
        raise BadUrl("missing ']' in host")
    _require_port(host[close + 1 :])
    inner, percent, zone = host[1:close].partition("%25")
    name = _unescape(inner, host=True, errors=_BYTES) + (
        _unescape(percent + zone, zone=True, errors=_BYTES) if percent else ""
    )
    try:
        address, _ = ip.parse_address(name)
    except ip.BadAddress as bad:
        raise BadUrl(f"invalid host: {bad}") from None
    if address.version == 4:  # noqa: PLR2004
        raise BadUrl("invalid IP-literal")
    return f"[{name.encode(errors=_BYTES).decode(errors='replace')}]{host[close + 1 :]}"


def parse_request(text: str, *, strict: bool = True) -> None:
    """Raise `BadUrl` unless a text is an absolute URI or an absolute path. Mirrors `url.ParseRequestURI` of Go.

    `strict`: whether the host of a web address may hold no colon but that of its port.
    """
    try:
        _parse(text, request=True, strict=strict)
    except BadUrl as bad:
        raise BadUrl(f"parse {quote(text)}: {bad}") from None


def find_request_uri_fault(text: str) -> str:
    """Return Go's error for a text that is neither an absolute URI nor an absolute path; empty for a valid one."""
    try:
        parse_request(text)
    except BadUrl as bad:
        return str(bad)
    return ""


def parse(text: str, *, strict: bool = True) -> Url:
    """Return the URL of a text; raise `EvaluationError` with Go's message for a malformed one.

    `strict`: as in `parse_request`.
    """
    before, _, fragment = text.partition("#")
    try:
        parse_request(text, strict=strict)
        return Url(_parse(before, request=False, strict=strict), _escape_fragment(text, fragment))
    except BadUrl as bad:
        message = str(bad) if str(bad).startswith("parse ") else f"parse {quote(before)}: {bad}"
        raise EvaluationError(f"URL parse error during conversion from string: {message}") from None


def _escape_fragment(text: str, fragment: str) -> str:
    """Return the fragment with its sign, escaped."""
    try:
        decoded = _unescape(fragment)
    except BadUrl as bad:
        raise BadUrl(f"parse {quote(text)}: {bad}") from None
    if not decoded:
        return ""
    return f"#{fragment if _VALID_FRAGMENT.issuperset(fragment) else _escape(decoded, _FRAGMENT)}"


def escape_path(parts: _UrlParts) -> str:
    """Return the path with its escapes: as it was written when that is a valid way to write it. Mirrors `URL.EscapedPath` of Go."""
    if parts.raw_path and _VALID_PATH.issuperset(parts.raw_path):
        return parts.raw_path
    return "*" if parts.path == "*" else _escape(parts.path, _PATH)


def _split_port(host: str) -> tuple[str, str]:
    colon = host.rfind(":")
    port = ""
    if colon >= 0 and _PORT.match(host[colon:]):
        host, port = host[:colon], host[colon + 1 :]
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    return host, port


def _parse_query(url: Url) -> Value:
    """Return the parameters; those that cannot be decoded are left out."""
    parameters: dict[str, Value] = {}
    settings = url.parts.query.split("&")
    if len(settings) > _MOST_PARAMETERS:
        return parameters
    for setting in settings:
        if not setting or ";" in setting:
            continue
        key, _, value = setting.partition("=")
        try:
            name, content = _unescape(key.replace("+", " ")), _unescape(value.replace("+", " "))
        except BadUrl:
            continue
        values = parameters.setdefault(name, [])
        if isinstance(values, list):
            values.append(content)
    return parameters


def _is_url(text: str) -> bool:
    return not find_request_uri_fault(text)


def parse_loosely(text: str) -> Url:
    """Return the URL of a text as releases before 1.36 do. Raises EvaluationError as `parse`."""
    return parse(text, strict=False)


def is_loose_url(text: str) -> bool:
    """Return whether a text is a URL as releases before 1.36 do."""
    try:
        parse_request(text, strict=False)
    except BadUrl:
        return False
    return True


LIBRARY = Library(
    "kubernetes.urls",
    (
        Function("url", (Overload("string_to_url", (STRING,), URL, parse),), cost=READ, result=parts, parses=True),
        Function(
            "getScheme",
            (declare_member("url_get_scheme", (URL,), STRING, lambda url: url.parts.scheme),),
            cost=ONE,
            result=text,
            only_reads=True,
        ),
        Function(
            "getHost",
            (declare_member("url_get_host", (URL,), STRING, lambda url: url.parts.host),),
            cost=ONE,
            result=text,
            only_reads=True,
        ),
        Function(
            "getHostname",
            (declare_member("url_get_hostname", (URL,), STRING, lambda url: _split_port(url.parts.host)[0]),),
            cost=ONE,
            result=text,
            only_reads=True,
        ),
        Function(
            "getPort",
            (declare_member("url_get_port", (URL,), STRING, lambda url: _split_port(url.parts.host)[1]),),
            cost=ONE,
            result=text,
            only_reads=True,
        ),
        Function(
            "getEscapedPath",
            (declare_member("url_get_escaped_path", (URL,), STRING, lambda url: escape_path(url.parts)),),
            cost=ONE,
            result=text,
            only_reads=True,
        ),
        Function(
            "getQuery",
            (declare_member("url_get_query", (URL,), map_of(STRING, list_of(STRING)), _parse_query),),
            cost=ONE,
            result=pieces,
            only_reads=True,
        ),
        Function("isURL", (Overload("is_url_string", (STRING,), BOOL, _is_url),), cost=ONE),
    ),
)
