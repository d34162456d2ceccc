"""The assignability of types, and the binding of type parameters.

Mirrors `checker/types.go` of cel-go. A substitution maps free type parameters to types. The bindings of an attempt are separate
until it succeeds, so that a candidate overload that does not fit leaves no bindings.
"""

from __future__ import annotations

from operator import is_
from typing import TypeAlias

from scanner.cel.types.type_system import DYN, UNTYPED, Type

Substitution: TypeAlias = "dict[Type, Type]"
_NULLABLE = frozenset({"opaque", "object", "duration", "timestamp"})
_WILD = frozenset({"dyn", "any", "error"})


class _Trial:
    """A substitution and the bindings to be added to it."""

    __slots__ = ("_base", "added")

    def __init__(self, base: Substitution) -> None:
        self._base = base
        self.added: Substitution = {}

    def get(self, free: Type) -> Type | None:
        return self.added.get(free) or self._base.get(free)


def assign(substitution: Substitution, targets: tuple[Type, ...], types: tuple[Type, ...]) -> bool:
    """Return whether every type is assignable to its target, in pairs; if so, add the necessary bindings to the substitution."""
    trial = _Trial(substitution)
    fits = _assignable_all(trial, targets, types)
    if fits:
        substitution.update(trial.added)
    return fits


def substitute(substitution: Substitution, type_: Type, *, free_to_dyn: bool = False) -> Type:
    """Return a type with its bound parameters replaced; `free_to_dyn` makes the unbound ones dyn."""
    if type_.family == "parameter":
        bound = substitution.get(type_)
        if bound is not None:
            return substitute(substitution, bound, free_to_dyn=free_to_dyn)
        return DYN if free_to_dyn else type_
    if not type_.parameters:
        return type_
    parameters = tuple([substitute(substitution, part, free_to_dyn=free_to_dyn) for part in type_.parameters])
    return type_ if all(map(is_, parameters, type_.parameters)) else Type(type_.family, type_.name, parameters)


def choose_more_general(left: Type, right: Type) -> Type:
    """Return the more general of two types that fit each other; the left one where neither is."""
    return left if _is_no_more_specific(left, right) else right


def _assignable_all(trial: _Trial, lefts: tuple[Type, ...], rights: tuple[Type, ...]) -> bool:
    if len(lefts) != len(rights):
        return False
    return all(_assignable(trial, left, right) for left, right in zip(lefts, rights, strict=True))


def _assignable(trial: _Trial, left: Type, right: Type) -> bool:
    if right.family == "parameter":
        valid, substituted = _bind(trial, left, right)
        if valid or substituted:
            return valid
    if left.family == "parameter":
        return _bind(trial, right, left)[0]
    if left.family in _WILD or right.family in _WILD:
        return True
    if left.family == "null" or right.family == "null":
        other = right if left.family == "null" else left
        return other.nullable or other.family in _NULLABLE or other.family == "null"
    return _same_shape(trial, left, right)


def _same_shape(trial: _Trial, left: Type, right: Type) -> bool:
    if left.family == "type":
        return right.family == "type"
    if left.family != right.family or left.name != right.name or left == UNTYPED:
        return False
    return _assignable_all(trial, left.parameters, right.parameters)


def _bind(trial: _Trial, type_: Type, free: Type) -> tuple[bool, bool]:
    """Return whether a type may be bound to a parameter, and whether the parameter was bound before; bind it if so."""
    if type_ == free:
        return True, True
    bound = trial.get(free)
    if bound is None:
        if not _is_free_of(trial, free, type_):
            return False, False
        trial.added[free] = type_
        return True, False
    if type_ == bound and type_ != UNTYPED:
        return True, True
    if not _assignable(trial, type_, bound):
        return False, True
    general = choose_more_general(type_, bound)
    if _is_free_of(trial, free, general):
        trial.added[free] = general
    return True, True


def _is_free_of(trial: _Trial, free: Type, within: Type) -> bool:
    """Return whether a parameter does not occur within a type."""
    if free == within:
        return False
    if within.family == "parameter":
        bound = trial.get(within)
        return bound is None or _is_free_of(trial, free, bound)
    return all(_is_free_of(trial, free, part) for part in within.parameters)


def _is_no_more_specific(left: Type, right: Type) -> bool:
    if left.is_dyn or left.family == "parameter":
        return True
    if right.is_dyn or right.family == "parameter" or left.family != right.family:
        return False
    if left.family == "type":
        return True
    if left.name != right.name or len(left.parameters) != len(right.parameters):
        return False
    return all(map(_is_no_more_specific, left.parameters, right.parameters))
