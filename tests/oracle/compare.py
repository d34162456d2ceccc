"""The first difference between the oracle's reply and ours."""

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
_SYNTAX = ("Syntax error: ", "expression recursion limit exceeded")
"""Marks of the errors for which Assay has words of its own."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference: its kind (`refusal`, `text`, `type`, `value`, `error`, `cost`, `crash`), the object's index, and both sides."""

    what: str
    index: int | None
    expected: Any
    actual: Any

    @property
    def likeness(self) -> str:
        """The text that differences of one cause share: both texts without names and numbers, else both types."""
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
    """Return the first difference of our reply from the oracle's; None when there is none.

    `texts`: the words of a refusal count, except of syntax errors, not only its kind. Requests that crash the oracle are never different.
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
    expected, actual = theirs.get("refused", ""), ours.get("refused", "")
    if _kind(expected) != _kind(actual):
        return Difference("refusal", None, expected, actual)
    if any(mark in expected for mark in _SYNTAX):
        return None if any(mark in actual for mark in _SYNTAX) else Difference("text", None, expected, actual)
    return Difference("text", None, expected, actual) if texts and expected != actual else None


def _kind(refusal: str) -> str:
    return next((kind for kind in _KINDS if refusal.startswith(kind)), refusal)


def _outcomes(theirs: list[Any], ours: list[Any]) -> Iterator[Difference]:
    for index, (expected, actual) in enumerate(zip(theirs, ours, strict=True)):
        if "panic" in expected or ("cost" not in actual and expected.get("error") in _OVER):
            continue
        if "error" in expected or "error" in actual:
            if expected.get("error") != actual.get("error"):
                yield Difference(
                    "error" if "error" in expected and "error" in actual else "value", index, expected, actual
                )
        elif not same(expected["value"], actual["value"]):
            yield Difference("value", index, expected["value"], actual["value"])
        if "cost" in actual and expected["cost"] != actual["cost"]:
            yield Difference("cost", index, expected["cost"], actual["cost"])


def same(expected: Any, actual: Any) -> bool:
    """Return whether two tagged values are the same; maps have no order."""
    if expected["type"] != actual["type"]:
        return False
    theirs, ours = expected["plain"], actual["plain"]
    match expected["type"]:
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
        counterpart = next((entry for entry in left if same(key, entry[0]) and same(value, entry[1])), None)
        if counterpart is None:
            return False
        left.remove(counterpart)
    return not left


def _number(text: str) -> tuple[str, int]:
    digits, _, exponent = text.partition("e")
    short = digits.rstrip("0")
    if not short.strip("-"):
        return "0", 0
    return short, int(exponent) + len(digits) - len(short)
