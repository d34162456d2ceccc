"""Whether somebody can tell more of the values of an evaluation than expressions can: generated functions then say too little."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_EXACT_ONLY: ContextVar[bool] = ContextVar("exact_only", default=False)

exact_only = _EXACT_ONLY.get
"""Return whether the closures alone are to evaluate."""


@contextmanager
def closures_alone() -> Iterator[None]:
    """Evaluate, inside the block, by the closures alone."""
    token = _EXACT_ONLY.set(True)
    try:
        yield
    finally:
        _EXACT_ONLY.reset(token)
