"""Resource quantities as the API server writes them: `1024Mi` is stored as `1Gi`, `1000m` as `1`.

Mirrors `resource.Quantity.CanonicalizeBytes` of apimachinery: the suffix's family is kept, the mantissa is as small as an
integer can be.
"""

from __future__ import annotations

import re

from scanner.cel.errors import EvaluationError
from scanner.cel.functions.quantity import Quantity, compare, parse
from scanner.model.json import Json
from scanner.mutate.native import PatchFault

_SUFFIX = re.compile(r"[eEinumkKMGTP]+[-+]?[0-9]*\Z")
_DECIMAL = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_KIBI = 1024


def same_quantity(left: Json, right: Json) -> bool:
    """Whether two quantities are the same number. Raises PatchFault for a right one that is none."""
    try:
        ours = _parsed(left)
    except PatchFault:
        return False
    return compare(ours, _parsed(right)) == 0


def canonical(value: Json) -> str:
    """A quantity as the server writes it. Raises PatchFault for what is none."""
    quantity = _parsed(value)
    found = _SUFFIX.search(_text(value))
    suffix = found[0] if found else ""
    whole = _whole(quantity)
    if suffix.endswith("i") and whole is not None and abs(whole) >= _KIBI:
        return _binary(whole)
    return _decimal(quantity, powers=len(suffix) > 1 and suffix[0] in "eE")


def _text(value: Json) -> str:
    return value.strip() if isinstance(value, str) else str(value)


def _parsed(value: Json) -> Quantity:
    try:
        return parse(_text(value))
    except EvaluationError as error:
        raise PatchFault(str(error)) from None


def _whole(quantity: Quantity) -> int | None:
    """The integer that a quantity is, or None."""
    if quantity.exponent >= 0:
        scale: int = 10**quantity.exponent
        return quantity.unscaled * scale
    number, rest = divmod(quantity.unscaled, 10**-quantity.exponent)
    return None if rest else number


def _binary(number: int) -> str:
    power = 0
    while number and number % _KIBI == 0 and power < len(_BINARY) - 1:
        number, power = number // _KIBI, power + 1
    return f"{number}{_BINARY[power]}"


def _decimal(quantity: Quantity, *, powers: bool) -> str:
    mantissa, exponent = quantity.unscaled, quantity.exponent
    if mantissa == 0:
        return "0"
    while mantissa % 10 == 0:
        mantissa, exponent = mantissa // 10, exponent + 1
    shift = exponent % 3 if powers or exponent <= max(_DECIMAL) else exponent - max(_DECIMAL)
    mantissa, exponent = mantissa * 10**shift, exponent - shift
    if powers:
        return f"{mantissa}e{exponent}" if exponent else str(mantissa)
    return f"{mantissa}{_DECIMAL[exponent]}"
