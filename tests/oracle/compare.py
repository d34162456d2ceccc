"""When two replies differ, and whether Kubernetes' own reply is the same every time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_OVER = frozenset(
    {
        "operation cancelled: actual cost limit exceeded",
        "validation failed due to running out of cost budget, no further validation rules will be run",
    }
)
_NAMES = re.compile(r"""'[^']*'|"[^"]*"|: \w+$|[0-9]+""")
_KINDS = ("compilation failed", "program instantiation failed", "must evaluate to")


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs (`refusal`, `type`, `value`, `error`, `cost`, `crash`), on which object, and both sides."""

    what: str
    index: int | None
    expected: Any
    actual: Any

    @property
    def likeness(self) -> str:
        """What differences of one cause have in common: both texts without names and numbers, else both types."""
        return f"{self.what} {_outline(self.expected)} {_outline(self.actual)}"


def _outline(side: Any) -> str:
    match side:
        case {"error": text}:
            return _NAMES.sub("", text.split("ERROR")[0])[:100]
        case {"type": kind} | {"value": {"type": kind}}:
            return str(kind)
        case str():
            return _NAMES.sub("", side.partition("\n")[0])[:100]
        case _:
            return ""


def first_difference(theirs: Any, ours: Any, *, texts: bool = False) -> Difference | None:
    """The first thing in which our reply is not the oracle's; `texts`: the words of a refusal count, not just its kind.

    Requests that crash the oracle are never different.
    """
    if "panic" in theirs or "unreadable" in theirs:
        return None
    if "panic" in ours:
        return Difference("crash", None, theirs, ours["panic"])
    if "refused" in theirs or "refused" in ours:
        return _refusal(theirs, ours, texts=texts)
    if theirs.get("resultType") != ours.get("resultType"):
        return Difference("type", None, theirs.get("resultType"), ours.get("resultType"))
    return next(_outcomes(theirs.get("outcomes", []), ours["outcomes"]), None)


def _refusal(theirs: Any, ours: Any, *, texts: bool) -> Difference | None:
    one, two = theirs.get("refused", ""), ours.get("refused", "")
    if _kind(one) != _kind(two):
        return Difference("refusal", None, one, two)
    return Difference("text", None, one, two) if texts and one != two else None


def _kind(refusal: str) -> str:
    return next((kind for kind in _KINDS if refusal.startswith(kind)), refusal)


def _outcomes(theirs: list[Any], ours: list[Any]) -> Iterator[Difference]:
    for index, (one, two) in enumerate(zip(theirs, ours, strict=True)):
        if "panic" in one or ("cost" not in two and one.get("error") in _OVER):
            continue
        if "error" in one or "error" in two:
            if one.get("error") != two.get("error"):
                yield Difference("error" if "error" in one and "error" in two else "value", index, one, two)
        elif not same(one["value"], two["value"]):
            yield Difference("value", index, one["value"], two["value"])
        if "cost" in two and one["cost"] != two["cost"]:
            yield Difference("cost", index, one["cost"], two["cost"])


def same(one: Any, two: Any) -> bool:
    """Whether two tagged values are the same; maps have no order."""
    if one["type"] != two["type"]:
        return False
    theirs, ours = one["plain"], two["plain"]
    match one["type"]:
        case "list" | "optional_type":
            return len(theirs) == len(ours) and all(map(same, theirs, ours))
        case "map":
            return _same_entries(theirs, ours)
        case "double":
            return repr(float(theirs)) == repr(float(ours))
        case "kubernetes.variables":
            return True
        case "google.protobuf.Empty" | "google.protobuf.Struct.FieldsEntry":
            return True  # Go prints messages of protobuf differently in each build
        case "kubernetes.Quantity":
            return _number(theirs) == _number(ours)
        case _:
            return bool(theirs == ours)


def _same_entries(theirs: Any, ours: Any) -> bool:
    left = list(ours)
    for key, value in theirs:
        found = next((entry for entry in left if same(key, entry[0]) and same(value, entry[1])), None)
        if found is None:
            return False
        left.remove(found)
    return not left


def _number(text: str) -> tuple[str, int]:
    digits, _, exponent = text.partition("e")
    short = digits.rstrip("0")
    if not short.strip("-"):
        return "0", 0
    return short, int(exponent) + len(digits) - len(short)
