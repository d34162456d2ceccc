"""The function libraries of Kubernetes' CEL environment: one file each, listed here in upstream's order.

The order matters where two libraries add overloads to one function: candidates are tried as listed.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from scanner.cel.functions import optionals, quantity, regex, standard, strings
from scanner.cel.functions.declaration import Function, Library

if TYPE_CHECKING:
    from scanner.cel.type_system import Type

LIBRARIES: tuple[Library, ...] = (
    standard.LIBRARY,
    regex.LIBRARY,
    optionals.LIBRARY,
    quantity.LIBRARY,
    strings.LIBRARY,
)


@cache
def functions_of(version: tuple[int, int]) -> dict[str, Function]:
    """Return all functions of a Kubernetes version by name, overloads of several libraries merged."""
    merged: dict[str, Function] = {}
    for library in _libraries(version):
        for function in library.functions:
            known = merged.get(function.name)
            merged[function.name] = function if known is None else known.merged(function)
    return merged


@cache
def types_of(version: tuple[int, int]) -> tuple[Type, ...]:
    """Return the types that libraries add, whose names expressions may use."""
    return tuple(type_ for library in _libraries(version) for type_ in library.types)


def _libraries(version: tuple[int, int]) -> tuple[Library, ...]:
    return tuple(library for library in LIBRARIES if library.since <= version)
