"""The lists and maps that are wrapped Go values, in the form that Kubernetes 1.37 passes parts of native objects to expressions.

Here they are plain lists and dicts; the caller of an evaluation marks the wrapped ones, and only the few operations that depend
on that read the marks: equality with a value of another kind, keys and indexes of other types than theirs.

Source of truth: `common.SchemalessTypedToVal` of apiserver 1.37.

Rules: `docs/semantics/releases.md#native-values-in-137`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol, TypeAlias

from scanner.cel.values.exact_only import force_closures

if TYPE_CHECKING:
    from scanner.cel.values.values import Value

IsWrapped: TypeAlias = "Callable[[Value], bool]"


class Structures(Protocol):
    """The wrapped maps that are structures of Go, and the pairs of them that are equal to Kubernetes."""

    def is_structure(self, value: Value) -> bool:
        """Return whether a wrapped value is a structure."""
        ...

    def same(self, left: Value, right: Value) -> bool:
        """Return whether two structures are equal: of one type, with quantities of one number."""
        ...


_CURRENT: ContextVar[IsWrapped | None] = ContextVar("wrapped", default=None)
_STRUCTURES: ContextVar[Structures | None] = ContextVar("structures", default=None)


@contextmanager
def wrap_values(is_wrapped: IsWrapped, structures: Structures | None = None) -> Iterator[None]:
    """Evaluate, inside the block, as if these values were wrapped."""
    token, other = _CURRENT.set(is_wrapped), _STRUCTURES.set(structures)
    try:
        with force_closures():
            yield
    finally:
        _CURRENT.reset(token)
        _STRUCTURES.reset(other)


def find_go_name(value: Value) -> str:
    """Return the Go type of upstream's wrapper of a value; empty for a value without a wrapper."""
    if type(value) not in (dict, list) or not is_wrapped(value):
        return ""
    kind = "List" if type(value) is list else "Struct" if is_structure(value) else "Map"
    return f"*common.reflectSchemalessTyped{kind}"


def is_structure(value: Value) -> bool:
    """Return whether a value is a wrapped structure in the active evaluation."""
    structures = _STRUCTURES.get()
    return structures is not None and structures.is_structure(value)


def are_same_structures(left: Value, right: Value) -> bool:
    """Return whether two wrapped structures are equal; False where no evaluation with structures is active."""
    structures = _STRUCTURES.get()
    return structures is not None and structures.same(left, right)


def is_wrapped(value: Value) -> bool:
    """Return whether a value is wrapped in the active evaluation."""
    is_wrapped = _CURRENT.get()
    return is_wrapped is not None and is_wrapped(value)
