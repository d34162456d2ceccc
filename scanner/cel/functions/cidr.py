"""CIDR prefixes; bits of the host part are kept.

Rules: `docs/semantics/cel-libraries.md#cidr`.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

from scanner.cel import releases
from scanner.cel.errors import EvaluationError
from scanner.cel.functions import ip
from scanner.cel.functions.declaration import ArgumentFlow, Function, Library, Overload, declare_member
from scanner.cel.functions.ip import IP, IPAddress
from scanner.cel.functions.pricing import (
    CONVERTED,
    ONE,
    READ,
    UNIT,
    Arguments,
    Cost,
    Operands,
    Outcome,
    bound_reads,
    make_price,
    measure_size,
    take_tenth,
)
from scanner.cel.functions.python_forms import PlainForm
from scanner.cel.functions.result_sizes import parts, text
from scanner.cel.types.type_system import BOOL, INT, STRING, Type, opaque
from scanner.cel.values.runtime import make_no_overload
from scanner.cel.values.text import quote
from scanner.cel.values.values import Opaque

CIDR = opaque("net.CIDR")
_CONVERSION = "network address parse error during conversion from string: "
_WIDTHS = {4: 32, 6: 128}


class Prefix(Opaque):
    """An address and the length of the prefix, in bits."""

    __slots__ = ("address", "length")
    TYPE: ClassVar[Type] = CIDR
    GO_TYPE: ClassVar[str] = "cel.CIDR"
    EQUAL_AT_ONCE: ClassVar[bool] = True
    GO_NATIVE: ClassVar[str] = "netip.Prefix"

    def __init__(self, address: IPAddress, length: int) -> None:
        self.address = address
        self.length = length

    def __str__(self) -> str:
        """Return the canonical text."""
        return f"{self.address}/{self.length}"

    def equals(self, other: Opaque) -> bool:
        """Return whether the addresses, the bits of the host included, and the lengths are equal."""
        return isinstance(other, Prefix) and self.length == other.length and self.address.equals(other.address)

    def cost_size(self) -> int:
        """Return the number of bytes that the bits of the prefix take."""
        return -(-self.length // 8)

    def map_key(self) -> Hashable:
        """Return the same key for equal prefixes."""
        return (Prefix, self.address.map_key(), self.length)

    def network(self, length: int) -> int:
        """Return the first `length` bits of the address as a number."""
        return self.address.number >> (_WIDTHS[self.address.version] - length)


class BadPrefix(Exception):
    """A text that netip does not accept as a prefix."""

    def __init__(self, text: str, message: str) -> None:
        super().__init__(f"netip.ParsePrefix({quote(text)}): {message}")


def _parse_prefix(text: str) -> Prefix:
    before, slash, bits = text.rpartition("/")
    if not slash:
        raise BadPrefix(text, "no '/'")
    try:
        address, zone = ip.parse_address(before)
    except ip.BadAddress as bad:
        raise BadPrefix(text, str(bad)) from None
    if zone:
        raise BadPrefix(text, "IPv6 zones cannot be present in a prefix")
    if (
        not (bits.isascii() and bits.isdigit())
        or (len(bits) > 1 and bits.startswith("0"))
        or len(bits) > len(str(2**63))
    ):
        raise BadPrefix(text, f"bad bits after slash: {quote(bits)}")
    if int(bits) > _WIDTHS[address.version]:
        raise BadPrefix(text, "prefix length out of range")
    return Prefix(address, int(bits))


def parse(text: str) -> Prefix:
    """Return the prefix of a text. Raises `EvaluationError` with upstream's doubled phrase for a malformed one.

    Mirrors `netip.ParsePrefix` of Go.
    """
    try:
        prefix = _parse_prefix(text)
    except BadPrefix as bad:
        raise EvaluationError(f"{_CONVERSION}{_CONVERSION}{bad}") from None
    if ip.is_mapped(prefix.address):
        raise EvaluationError(f"{_CONVERSION}IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return prefix


def _is_cidr(text: str) -> bool:
    try:
        parse(text)
    except EvaluationError:
        return False
    return True


def _contains_ip(prefix: Prefix, address: IPAddress) -> bool:
    if prefix.address.version != address.version:
        return False
    return prefix.network(prefix.length) == Prefix(address, prefix.length).network(prefix.length)


def _contains_ip_text(prefix: Prefix, text: str) -> bool:
    """Answer for a text; one that is no address is no overload."""
    try:
        address = ip.parse(text)
    except EvaluationError:
        raise make_no_overload() from None
    return _contains_ip(prefix, address)


def _contains_cidr(prefix: Prefix, other: Prefix) -> bool:
    return prefix.length <= other.length and _contains_ip(prefix, other.address)


def _contains_cidr_text(prefix: Prefix, text: str) -> bool:
    return _contains_cidr(prefix, parse(text))


def mask(prefix: Prefix) -> Prefix:
    """Return a network with its host bits cleared."""
    width = _WIDTHS[prefix.address.version]
    number = prefix.network(prefix.length) << (width - prefix.length)
    return Prefix(IPAddress(prefix.address.version, number), prefix.length)


def _price_contains_ip(arguments: Arguments, _result: Outcome) -> int:
    return take_tenth(2 * measure_size(arguments[0]))


def _price_contains_ip_text(arguments: Arguments, result: Outcome) -> int:
    return _price_contains_ip(arguments, result) + take_tenth(measure_size(arguments[1]))


def _price_contains_cidr(arguments: Arguments, result: Outcome) -> int:
    return _price_contains_ip(arguments, result) + take_tenth(measure_size(arguments[0])) + 1


def _price_contains_cidr_text(arguments: Arguments, result: Outcome) -> int:
    return _price_contains_cidr(arguments, result) + take_tenth(measure_size(arguments[1]))


def _bound_contains(operands: Operands) -> float:
    return 16 + 3 * bound_reads(operands)


LIBRARY = Library(
    "kubernetes.net.cidr",
    (
        Function("cidr", (Overload("string_to_cidr", (STRING,), CIDR, parse),), cost=READ, result=parts, parses=True),
        Function(
            "containsIP",
            (
                declare_member(
                    "cidr_contains_ip_string",
                    (CIDR, STRING),
                    BOOL,
                    _contains_ip_text,
                    price=make_price(_price_contains_ip_text),
                ),
                declare_member("cidr_contains_ip_ip", (CIDR, IP), BOOL, _contains_ip),
            ),
            cost=Cost(make_price(_price_contains_ip), _bound_contains),
            only_reads=True,
        ),
        Function(
            "containsCIDR",
            (
                declare_member(
                    "cidr_contains_cidr_string",
                    (CIDR, STRING),
                    BOOL,
                    _contains_cidr_text,
                    price=make_price(_price_contains_cidr_text),
                ),
                declare_member("cidr_contains_cidr", (CIDR, CIDR), BOOL, _contains_cidr),
            ),
            cost=Cost(make_price(_price_contains_cidr), _bound_contains),
            only_reads=True,
        ),
        Function(
            "ip",
            (declare_member("cidr_ip", (CIDR,), IP, lambda prefix: prefix.address, price=UNIT),),
            cost=READ,
            result=parts,
            parses=True,
        ),
        Function(
            "prefixLength",
            (declare_member("cidr_prefix_length", (CIDR,), INT, lambda prefix: prefix.length),),
            cost=ONE,
            only_reads=True,
        ),
        Function(
            "masked", (declare_member("cidr_masked", (CIDR,), CIDR, mask),), cost=ONE, result=parts, only_reads=True
        ),
        Function("isCIDR", (Overload("is_cidr", (STRING,), BOOL, _is_cidr),), cost=READ),
        Function(
            "string",
            (Overload("cidr_to_string", (CIDR,), STRING, str),),
            cost=CONVERTED,
            result=text,
            flow=ArgumentFlow.CARRIES,
            folds=True,
            python=PlainForm.TEXT,
        ),
    ),
    types=(CIDR,),
    since=releases.ADDRESSES.since,
)
