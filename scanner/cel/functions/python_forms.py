"""The Python operations that replace functions, as declarations name them and generated code writes them.

Each is valid where Python's operation returns the function's result, or raises; `scanner.cel.generation` checks the conditions.
"""

from __future__ import annotations

from enum import Enum
from typing import Literal, TypeAlias

from msgspec import Struct


class PlainForm(Enum):
    """A form without parameters."""

    SIZE = "len(x)"
    CONTAINS = "y in x"
    MEMBERSHIP = "x in y"
    TEXT = "str(x)"
    SAME = "x"
    PATTERN = "answers[x]"


class MethodForm(Struct, frozen=True):
    """`x.name(y)`."""

    name: str


class ComparisonForm(Struct, frozen=True):
    """`x < y`."""

    sign: Literal["<", "<=", ">", ">="]


class ArithmeticForm(Struct, frozen=True):
    """`x + y`, where the result fits 64 bits."""

    sign: Literal["+", "-", "*"]


class DivisionForm(Struct, frozen=True):
    """`x // y`, for operands that are not negative."""

    sign: Literal["/", "%"]


PythonForm: TypeAlias = PlainForm | MethodForm | ComparisonForm | ArithmeticForm | DivisionForm
