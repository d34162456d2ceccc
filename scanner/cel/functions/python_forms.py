"""The Python operations that replace functions, as declarations name them and generated code writes them.

Each is valid where Python's operation returns the function's result, or raises; `scanner.cel.generation` checks the conditions.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal, TypeAlias


class Form(Enum):
    """A form without parameters."""

    SIZE = "len(x)"
    CONTAINS = "y in x"
    MEMBERSHIP = "x in y"
    TEXT = "str(x)"
    SAME = "x"
    PATTERN = "answers[x]"


@dataclass(frozen=True, slots=True)
class Method:
    """`x.name(y)`."""

    name: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """`x < y`."""

    sign: Literal["<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`x + y`, where the result fits 64 bits."""

    sign: Literal["+", "-", "*"]


@dataclass(frozen=True, slots=True)
class Division:
    """`x // y`, for operands that are not negative."""

    sign: Literal["/", "%"]


PythonForm: TypeAlias = Form | Method | Comparison | Arithmetic | Division
