"""The Python operations that replace functions, as declarations name them and generated code writes them.

Each is valid where Python's operation returns the function's result, or raises; `scanner.cel.generation` checks the conditions.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal, TypeAlias


class PlainForm(Enum):
    """A form without parameters."""

    SIZE = "len(x)"
    CONTAINS = "y in x"
    MEMBERSHIP = "x in y"
    TEXT = "str(x)"
    SAME = "x"
    PATTERN = "answers[x]"


@dataclass(frozen=True, slots=True)
class MethodForm:
    """`x.name(y)`."""

    name: str


@dataclass(frozen=True, slots=True)
class ComparisonForm:
    """`x < y`."""

    sign: Literal["<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True)
class ArithmeticForm:
    """`x + y`, where the result fits 64 bits."""

    sign: Literal["+", "-", "*"]


@dataclass(frozen=True, slots=True)
class DivisionForm:
    """`x // y`, for operands that are not negative."""

    sign: Literal["/", "%"]


PythonForm: TypeAlias = PlainForm | MethodForm | ComparisonForm | ArithmeticForm | DivisionForm
