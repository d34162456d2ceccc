"""The function libraries of Kubernetes' CEL environment: one file each, listed here in upstream's order.

The order matters where two libraries add overloads to one function: candidates are tried as listed.

Source of truth: `pkg/cel/environment/base.go` of apiserver.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from scanner.cel.functions import (
    amended,
    authorizer,
    cidr,
    comprehensions,
    format,
    ip,
    lists,
    named_formats,
    optionals,
    quantity,
    regex,
    semver,
    sets,
    standard,
    strings,
    url,
)
from scanner.cel.functions.declaration import Function, Library

if TYPE_CHECKING:
    from scanner.cel.releases import Version
    from scanner.cel.syntax.macros import Expand
    from scanner.cel.types.type_system import Type

LIBRARIES: tuple[Library, ...] = (
    standard.LIBRARY,
    url.LIBRARY,
    regex.LIBRARY,
    lists.KUBERNETES,
    authorizer.LIBRARY,
    optionals.LIBRARY,
    optionals.LISTS,
    optionals.BARE_NAME,
    optionals.NAME,
    quantity.LIBRARY,
    strings.LIBRARY,
    format.LIBRARY,
    sets.LIBRARY,
    ip.LIBRARY,
    cidr.LIBRARY,
    named_formats.LIBRARY,
    authorizer.SELECTORS,
    comprehensions.LIBRARY,
    semver.LIBRARY,
    lists.EXTENSION,
    lists.INCLUDES,
)


@cache
def load_functions(version: Version, features: Version, extras: tuple[Library, ...]) -> dict[str, Function]:
    """Return all functions of a Kubernetes version by name, overloads of several libraries merged.

    `features` is the version whose gated libraries may be used; `extras` are libraries of some environments only. Raises
    ValueError where two libraries declare different things of a function.
    """
    merged: dict[str, Function] = {}
    for library in _list_libraries(version, features, extras):
        for function in library.functions:
            declared = merged.get(function.name)
            merged[function.name] = function if declared is None else declared.merge(function)
    return amended.amend_functions(version, merged)


@cache
def load_macros(extras: tuple[Library, ...]) -> dict[tuple[str, int, bool], Expand]:
    """Return the macros that only some environments have, by name, number of arguments and whether it is a member call."""
    return {(name, size, member): expand for library in extras for name, size, member, expand in library.macros}


@cache
def load_types(version: Version, features: Version) -> tuple[Type, ...]:
    """Return the types whose names expressions may use, of the libraries of a Kubernetes version."""
    return tuple(type_ for library in _list_libraries(version, features, ()) for type_ in library.types)


def _list_libraries(version: Version, features: Version, extras: tuple[Library, ...]) -> tuple[Library, ...]:
    return (*(library for library in LIBRARIES if library.is_part_of(version, features)), *extras)
