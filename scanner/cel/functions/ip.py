"""IP addresses: Go's netip parser with its messages, without zones and IPv4-mapped forms.

Rules: `docs/semantics/cel-libraries.md#ip-addresses`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Hashable
from typing import ClassVar

from scanner.cel import releases
from scanner.cel.errors import EvaluationError
from scanner.cel.functions.declaration import ArgumentFlow, Function, Library, Overload, declare_member
from scanner.cel.functions.pricing import CONVERTED, ONE, READ, REWRITTEN
from scanner.cel.functions.python_forms import PlainForm
from scanner.cel.functions.result_sizes import parts, text
from scanner.cel.types.type_system import BOOL, INT, STRING, Type, opaque
from scanner.cel.values.text import quote
from scanner.cel.values.values import Opaque, Value

IP = opaque("net.IP")
_DIGITS = frozenset("0123456789")
_HEXADECIMAL = frozenset("0123456789abcdefABCDEF")
_OCTETS = 4
_GROUPS = 8
_LONGEST_GROUP = 4
_EMBEDDED_AT = 6
_LARGEST_OCTET = 255
_MAPPED_PREFIX = 0xFFFF << 32
_BROADCAST = 0xFFFFFFFF


class IPAddress(Opaque):
    """An address: the version, 4 or 6, and its 32 or 128 bits as a number."""

    __slots__ = ("number", "version")
    TYPE: ClassVar[Type] = IP
    GO_TYPE: ClassVar[str] = "cel.IP"
    EQUAL_AT_ONCE: ClassVar[bool] = True
    GO_NATIVE: ClassVar[str] = "netip.Addr"

    def __init__(self, version: int, number: int) -> None:
        self.version = version
        self.number = number

    def __str__(self) -> str:
        """Return the canonical text."""
        return str(self.native())

    def native(self) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
        """Return Python's own address, for its classification of ranges."""
        return ipaddress.IPv4Address(self.number) if self.version == 4 else ipaddress.IPv6Address(self.number)  # noqa: PLR2004

    def equals(self, other: Opaque) -> bool:
        """Return whether version and bits are equal."""
        return isinstance(other, IPAddress) and self.version == other.version and self.number == other.number

    def cost_size(self) -> int:
        """Return the number of bytes of the address."""
        return 4 if self.version == 4 else 16  # noqa: PLR2004 (IP versions)

    def map_key(self) -> Hashable:
        """Return the same key for equal addresses."""
        return (IPAddress, self.version, self.number)


class BadAddress(Exception):
    """A text that netip does not accept as an address."""

    def __init__(self, text: str, message: str, at: str = "") -> None:
        rest = f" (at {quote(at)})" if at else ""
        super().__init__(f"ParseAddr({quote(text)}): {message}{rest}")


def parse_address(text: str) -> tuple[IPAddress, str]:
    """Return the address of a text and its zone, which may be empty. Raises `BadAddress` for a malformed one.

    Mirrors `netip.ParseAddr` of Go.
    """
    for character in text:
        match character:
            case ".":
                return IPAddress(4, _parse_octets(text, text)), ""
            case ":":
                return _parse_version_six(text)
            case "%":
                raise BadAddress(text, "missing IPv6 address")
            case _:
                continue
    raise BadAddress(text, "unable to parse IP")


def _parse_octets(text: str, part: str) -> int:
    """Return the bits of four dotted numbers, `part` of the whole text."""
    fields: list[int] = []
    value = digits = 0
    for position, character in enumerate(part):
        if character in _DIGITS:
            if digits == 1 and value == 0:
                raise BadAddress(text, "IPv4 field has octet with leading zero")
            value, digits = value * 10 + int(character), digits + 1
            if value > _LARGEST_OCTET:
                raise BadAddress(text, "IPv4 field has value >255")
        elif character != ".":
            raise BadAddress(text, "unexpected character", part[position:])
        elif position in (0, len(part) - 1) or part[position - 1] == ".":
            raise BadAddress(text, "IPv4 field must have at least one digit", part[position:])
        elif len(fields) == _OCTETS - 1:
            raise BadAddress(text, "IPv4 address too long")
        else:
            fields.append(value)
            value = digits = 0
    if len(fields) < _OCTETS - 1:
        raise BadAddress(text, "IPv4 address too short")
    return int.from_bytes([*fields, value])


def _parse_version_six(text: str) -> tuple[IPAddress, str]:
    rest, percent, zone = text.partition("%")
    if percent and not zone:
        raise BadAddress(text, "zone must be a non-empty string")
    ellipsis = 0 if rest.startswith("::") else None
    rest = rest[2:] if ellipsis is not None else rest
    groups, ellipsis = ([], 0) if ellipsis is not None and not rest else _parse_groups(text, rest, ellipsis)
    if len(groups) < _GROUPS:
        if ellipsis is None:
            raise BadAddress(text, "address string too short")
        groups = [*groups[:ellipsis], *[0] * (_GROUPS - len(groups)), *groups[ellipsis:]]
    elif ellipsis is not None:
        raise BadAddress(text, "the :: must expand to at least one field of zeros")
    return IPAddress(6, int.from_bytes(b"".join(group.to_bytes(2) for group in groups))), zone


def _parse_groups(text: str, rest: str, ellipsis: int | None) -> tuple[list[int], int | None]:
    """Return the groups of 16 bits and the index of the group after the `::`."""
    groups: list[int] = []
    while len(groups) < _GROUPS:
        digits = _parse_group(text, rest)
        if rest[len(digits) :].startswith("."):
            groups += _parse_embedded(text, rest, len(groups), has_ellipsis=ellipsis is not None)
            return groups, ellipsis
        groups.append(int(digits, 16))
        rest = rest[len(digits) :]
        if not rest:
            return groups, ellipsis
        rest = _skip_colon(text, rest)
        if rest.startswith(":"):
            if ellipsis is not None:
                raise BadAddress(text, "multiple :: in address", rest)
            ellipsis, rest = len(groups), rest[1:]
            if not rest:
                return groups, ellipsis
    raise BadAddress(text, "trailing garbage after address", rest)


def _parse_group(text: str, rest: str) -> str:
    length = 0
    while length < len(rest) and rest[length] in _HEXADECIMAL:
        if length >= _LONGEST_GROUP:
            raise BadAddress(text, "each group must have 4 or less digits", rest)
        length += 1
    if not length:
        raise BadAddress(text, "each colon-separated field must have at least one digit", rest)
    return rest[:length]


def _skip_colon(text: str, rest: str) -> str:
    if not rest.startswith(":"):
        raise BadAddress(text, "unexpected character, want colon", rest)
    if len(rest) == 1:
        raise BadAddress(text, "colon must be followed by more characters", rest)
    return rest[1:]


def _parse_embedded(text: str, rest: str, before: int, *, has_ellipsis: bool) -> list[int]:
    """Return the two groups of an IPv4 address at the end."""
    if not has_ellipsis and before != _EMBEDDED_AT:
        raise BadAddress(text, "embedded IPv4 address must replace the final 2 fields of the address", rest)
    if before > _EMBEDDED_AT:
        raise BadAddress(text, "too many hex fields to fit an embedded IPv4 at the end of the address", rest)
    number = _parse_octets(text, rest)
    return [number >> 16, number & 0xFFFF]


def is_mapped(address: IPAddress) -> bool:
    """Return whether an IPv6 address represents an IPv4 address."""
    return address.version == 6 and address.number >> 32 == _MAPPED_PREFIX >> 32  # noqa: PLR2004


def parse(text: str) -> IPAddress:
    """Return the address of a text; raise `EvaluationError` for a malformed, a zoned or an IPv4-mapped one."""
    try:
        address, zone = parse_address(text)
    except BadAddress as bad:
        raise EvaluationError(f"IP Address {quote(text)} parse error during conversion from string: {bad}") from None
    if zone:
        raise EvaluationError(f"IP address {quote(text)} with zone value is not allowed")
    if is_mapped(address):
        raise EvaluationError(f"IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return address


def _is_ip(text: str) -> bool:
    try:
        parse(text)
    except EvaluationError:
        return False
    return True


def _is_canonical(text: str) -> bool:
    return str(parse(text)) == text


def _is_link_local_multicast(address: IPAddress) -> bool:
    if address.version == 4:  # noqa: PLR2004
        return address.number >> 8 == 0xE00000  # noqa: PLR2004
    return (address.number >> 112) & 0xFF0F == 0xFF02  # noqa: PLR2004


def _is_global_unicast(address: IPAddress) -> bool:
    native = address.native()
    if native.is_unspecified or (address.version == 4 and address.number == _BROADCAST):  # noqa: PLR2004
        return False
    return not (native.is_loopback or native.is_multicast or native.is_link_local)


def _declare_test(name: str, id_: str, answer: str) -> Function:
    """Declare a test that Python's address class has under another name."""

    def run(address: IPAddress) -> Value:
        return bool(getattr(address.native(), answer))

    return Function(name, (declare_member(id_, (IP,), BOOL, run),), cost=ONE, only_reads=True)


LIBRARY = Library(
    "kubernetes.net.ip",
    (
        Function("ip", (Overload("string_to_ip", (STRING,), IP, parse),), cost=READ, result=parts, parses=True),
        Function(
            "family",
            (declare_member("ip_family", (IP,), INT, lambda address: address.version),),
            cost=ONE,
            only_reads=True,
        ),
        Function("ip.isCanonical", (Overload("ip_is_canonical", (STRING,), BOOL, _is_canonical),), cost=REWRITTEN),
        _declare_test("isUnspecified", "ip_is_unspecified", "is_unspecified"),
        _declare_test("isLoopback", "ip_is_loopback", "is_loopback"),
        Function(
            "isLinkLocalMulticast",
            (declare_member("ip_is_link_local_multicast", (IP,), BOOL, _is_link_local_multicast),),
            cost=ONE,
            only_reads=True,
        ),
        _declare_test("isLinkLocalUnicast", "ip_is_link_local_unicast", "is_link_local"),
        Function(
            "isGlobalUnicast",
            (declare_member("ip_is_global_unicast", (IP,), BOOL, _is_global_unicast),),
            cost=ONE,
            only_reads=True,
        ),
        Function("isIP", (Overload("is_ip", (STRING,), BOOL, _is_ip),), cost=READ),
        Function(
            "string",
            (Overload("ip_to_string", (IP,), STRING, str),),
            cost=CONVERTED,
            result=text,
            flow=ArgumentFlow.CARRIES,
            folds=True,
            python=PlainForm.TEXT,
        ),
    ),
    types=(IP,),
    since=releases.ADDRESSES.since,
)
