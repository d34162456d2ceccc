"""Whether somebody can tell more of the values of an evaluation than expressions can: generated functions then say too little."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_TELLING: ContextVar[bool] = ContextVar("telling", default=False)

telling = _TELLING.get
"""Return whether the closures alone are to evaluate."""


@contextmanager
def closures_alone() -> Iterator[None]:
    """Evaluate, inside the block, by the closures alone."""
    token = _TELLING.set(True)
    try:
        yield
    finally:
        _TELLING.reset(token)
