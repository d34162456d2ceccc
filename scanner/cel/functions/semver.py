"""Semantic versions (upstream parses with blang/semver).

Build metadata plays no part in comparisons, equality included. The numbers are unsigned 64 bit integers, which `major()` and its
siblings reinterpret as signed ones.

Rules: `docs/semantics/cel-libraries.md#semantic-versions`.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from functools import lru_cache
from typing import ClassVar

from scanner.cel import releases
from scanner.cel.errors import EvaluationError
from scanner.cel.functions.declaration import Function, Library, Overload, declare_member
from scanner.cel.functions.pricing import ONE, READ
from scanner.cel.functions.result_sizes import parts
from scanner.cel.types.type_system import BOOL, INT, STRING, Type, object_type
from scanner.cel.values.text import quote
from scanner.cel.values.values import INT_MAX, UINT_MAX, Opaque, make_unhashable

SEMVER = object_type("kubernetes.Semver")
_DIGITS = re.compile(r"[0-9]*")
_IDENTIFIER = re.compile(r"[0-9A-Za-z-]*")
_PARTS = 3


class Semver(Opaque):
    """A version; `order` decides comparisons."""

    __slots__ = ("build", "numbers", "order", "prerelease")
    TYPE: ClassVar[Type] = SEMVER
    GO_TYPE: ClassVar[str] = "cel.Semver"
    EQUAL_AT_ONCE: ClassVar[bool] = True
    GO_NATIVE: ClassVar[str] = "semver.Version"

    def __init__(self, numbers: tuple[int, ...], prerelease: tuple[str, ...], build: tuple[str, ...]) -> None:
        self.numbers = numbers
        self.prerelease = prerelease
        self.build = build
        self.order = (numbers, not prerelease, tuple(map(_make_sort_key, prerelease)))

    def __str__(self) -> str:
        text = ".".join(map(str, self.numbers))
        text += f"-{'.'.join(self.prerelease)}" if self.prerelease else ""
        return text + (f"+{'.'.join(self.build)}" if self.build else "")

    def equals(self, other: Opaque) -> bool:
        """Return whether two versions have the same precedence."""
        return isinstance(other, Semver) and self.order == other.order

    def map_key(self) -> Hashable:
        """Raise EvaluationStopped: Go cannot hash the slices inside, so a version cannot be a key."""
        raise make_unhashable(self.GO_TYPE)


def _make_sort_key(identifier: str) -> tuple[bool, int, str]:
    """Return the sort key of prerelease identifiers: numbers come before words."""
    return (False, int(identifier), "") if identifier.isdigit() else (True, 0, identifier)


@lru_cache(maxsize=4096)
def parse(text: str) -> Semver:
    """Return the version of a text; raise `EvaluationError` with upstream's message for a malformed one."""
    if not text:
        raise EvaluationError("Version string empty")
    parts = text.split(".", _PARTS - 1)
    if len(parts) != _PARTS:
        raise EvaluationError("No Major.Minor.Patch elements found")
    major, minor = _parse_number(parts[0], "Major"), _parse_number(parts[1], "Minor")
    rest, _, build = parts[2].partition("+")
    patch, _, prerelease = rest.partition("-")
    return Semver(
        (major, minor, _parse_number(patch, "Patch")),
        tuple(_parse_prerelease(part) for part in prerelease.split(".")) if "-" in rest else (),
        tuple(_parse_build(part) for part in build.split(".")) if "+" in parts[2] else (),
    )


def _parse_number(text: str, name: str) -> int:
    if not _DIGITS.fullmatch(text):
        raise EvaluationError(f"Invalid character(s) found in {name.lower()} number {quote(text)}")
    if len(text) > 1 and text.startswith("0"):
        raise EvaluationError(f"{name} number must not contain leading zeroes {quote(text)}")
    return _parse_unsigned(text)


def _parse_unsigned(text: str) -> int:
    if not text:
        raise EvaluationError('strconv.ParseUint: parsing "": invalid syntax')
    # More digits than any 64 bit number has need not be read.
    if len(text) > len(str(UINT_MAX)) or int(text) > UINT_MAX:
        raise EvaluationError(f"strconv.ParseUint: parsing {quote(text)}: value out of range")
    return int(text)


def _parse_prerelease(part: str) -> str:
    if not part:
        raise EvaluationError("Prerelease is empty")
    if _DIGITS.fullmatch(part):
        if len(part) > 1 and part.startswith("0"):
            message = f"Numeric PreRelease version must not contain leading zeroes {quote(part)}"
            raise EvaluationError(message)
        return str(_parse_unsigned(part))
    if not _IDENTIFIER.fullmatch(part):
        raise EvaluationError(f"Invalid character(s) found in prerelease {quote(part)}")
    return part


def _parse_build(part: str) -> str:
    if not part:
        raise EvaluationError("Build meta data is empty")
    if not _IDENTIFIER.fullmatch(part):
        raise EvaluationError(f"Invalid character(s) found in build meta data {quote(part)}")
    return part


def _parse(text: str, normalize: bool) -> Semver:  # noqa: FBT001 (a CEL argument)
    return parse(_normalize(text) if normalize else text)


def _normalize(text: str) -> str:
    """Return a version without its `v` and leading zeros, filled up to three numbers."""
    parts = [_strip_zeros(part) for part in text.removeprefix("v").split(".", _PARTS - 1)]
    if len(parts) < _PARTS and ("+" in parts[-1] or "-" in parts[-1]):
        raise EvaluationError("short version cannot contain PreRelease/Build meta data")
    return ".".join([*parts, *["0"] * (_PARTS - len(parts))])


def _strip_zeros(part: str) -> str:
    if not part or (len(part) == 1 and part.isascii()):
        return part
    shorter = part.lstrip("0")
    return shorter if _DIGITS.fullmatch(shorter[:1]) and shorter else f"0{shorter}"


def _is_semver(text: str, normalize: bool = False) -> bool:  # noqa: FBT001, FBT002 (a CEL argument)
    try:
        _parse(text, normalize)
    except EvaluationError:
        return False
    return True


def _compare(left: Semver, right: Semver) -> int:
    return (left.order > right.order) - (left.order < right.order)


def _check_int64(number: int) -> int:
    return number if number <= INT_MAX else number - UINT_MAX - 1


LIBRARY = Library(
    "kubernetes.Semver",
    (
        Function(
            "semver",
            (
                Overload("string_to_semver", (STRING,), SEMVER, parse),
                Overload("string_bool_to_semver", (STRING, BOOL), SEMVER, _parse),
            ),
            cost=READ,
            result=parts,
            parses=True,
        ),
        Function(
            "isSemver",
            (
                Overload("is_semver_string", (STRING,), BOOL, _is_semver),
                Overload("is_semver_string_bool", (STRING, BOOL), BOOL, _is_semver),
            ),
            cost=READ,
        ),
        Function(
            "isGreaterThan",
            (
                declare_member(
                    "semver_is_greater_than", (SEMVER, SEMVER), BOOL, lambda left, right: left.order > right.order
                ),
            ),
            cost=ONE,
            only_reads=True,
        ),
        Function(
            "isLessThan",
            (
                declare_member(
                    "semver_is_less_than", (SEMVER, SEMVER), BOOL, lambda left, right: left.order < right.order
                ),
            ),
            cost=ONE,
            only_reads=True,
        ),
        Function(
            "compareTo",
            (declare_member("semver_compare_to", (SEMVER, SEMVER), INT, _compare),),
            cost=ONE,
            only_reads=True,
        ),
        Function(
            "major",
            (declare_member("semver_major", (SEMVER,), INT, lambda version: _check_int64(version.numbers[0])),),
            cost=ONE,
            only_reads=True,
        ),
        Function(
            "minor",
            (declare_member("semver_minor", (SEMVER,), INT, lambda version: _check_int64(version.numbers[1])),),
            cost=ONE,
            only_reads=True,
        ),
        Function(
            "patch",
            (declare_member("semver_patch", (SEMVER,), INT, lambda version: _check_int64(version.numbers[2])),),
            cost=ONE,
            only_reads=True,
        ),
    ),
    since=releases.SEMVER.since,
)
