"""Which lists and maps are wrapped Go values, as Kubernetes 1.37 hands parts of native objects to expressions.

Here they are plain lists and dicts; who evaluates says which of them are wrapped, and only the few operations that can tell
the difference ask: equality with something of another kind, keys and indexes of other types than theirs.

Source of truth: `common.SchemalessTypedToVal` of apiserver 1.37.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeAlias

from scanner.cel.telling import closures_alone

if TYPE_CHECKING:
    from scanner.cel.values import Value

IsWrapped: TypeAlias = "Callable[[Value], bool]"
_CURRENT: ContextVar[IsWrapped | None] = ContextVar("wrapped", default=None)


@contextmanager
def wrapping(is_wrapped: IsWrapped) -> Iterator[None]:
    """Evaluate, inside the block, as if these values were wrapped."""
    token = _CURRENT.set(is_wrapped)
    try:
        with closures_alone():
            yield
    finally:
        _CURRENT.reset(token)


def wrapped(value: Value) -> bool:
    """Return whether a value is wrapped in the evaluation that runs."""
    is_wrapped = _CURRENT.get()
    return is_wrapped is not None and is_wrapped(value)
