"""Room on Python's stack for expressions and documents that nest deeply.

Upstream allows 250 levels of each grammar rule, which are several thousand of our calls. The interpreter's limit is a process-wide
number, so it is raised only when something needs it, and never lowered again: another thread may be deep by then.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

ENOUGH = 20_000
_Result = TypeVar("_Result")


def with_room(run: Callable[[], _Result]) -> _Result:
    """Return what a function returns, called a second time with more room when the first had too little."""
    try:
        return run()
    except RecursionError:
        sys.setrecursionlimit(max(ENOUGH, sys.getrecursionlimit()))
        return run()
