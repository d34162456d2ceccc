"""A context flag that forces the exact evaluator, for callers that need details of values that generated code drops."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_EXACT_ONLY: ContextVar[bool] = ContextVar("exact_only", default=False)

exact_only = _EXACT_ONLY.get
"""Return whether the closures alone are to evaluate."""


@contextmanager
def closures_alone() -> Iterator[None]:
    """Evaluate, inside the block, by the closures alone; the block affects its own thread or task only."""
    token = _EXACT_ONLY.set(True)
    try:
        yield
    finally:
        _EXACT_ONLY.reset(token)
