"""Room on Python's stack for expressions and documents that nest deeply.

Upstream allows 250 levels of each grammar rule, which are several thousand of our calls, and ten thousand levels of JSON. What
finds too little room runs again on a stack of its own, large enough for both; the interpreter's limit, a process-wide number, is
raised for as long as that takes.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

ENOUGH = 250_000
STACK = 512 * 1024 * 1024
"""Bytes of address space; only the used part occupies memory."""
_Result = TypeVar("_Result")
_lock = threading.Lock()


def run_with_room(run: Callable[[], _Result]) -> _Result:
    """Return the result of a function, which is called again on a stack of `STACK` bytes when the first one was too small.

    Raises what the function raises, `RecursionError` where that stack is too small, too. The function must be safe to repeat.
    """
    try:
        return run()
    except RecursionError:
        # This call runs on a large stack already.
        if sys.getrecursionlimit() >= ENOUGH:
            raise
        return _run_on_large_stack(run)


def _run_on_large_stack(run: Callable[[], _Result]) -> _Result:
    call = _Call(run)
    # Both settings belong to the whole process.
    with _lock:
        size, limit = threading.stack_size(STACK), sys.getrecursionlimit()
        sys.setrecursionlimit(ENOUGH)
        try:
            thread = threading.Thread(target=call)
            thread.start()
            thread.join()
        finally:
            threading.stack_size(size)
            sys.setrecursionlimit(limit)
    return call.result()


class _Call(Generic[_Result]):
    """A call whose result another thread waits for."""

    def __init__(self, run: Callable[[], _Result]) -> None:
        self._run = run
        self._returned: list[_Result] = []
        self._raised: BaseException | None = None

    def __call__(self) -> None:
        try:
            self._returned.append(self._run())
        except BaseException as error:  # noqa: BLE001 (raised again where it is waited for)
            self._raised = error

    def result(self) -> _Result:
        """Return the result of the finished call, or raise its exception."""
        if self._raised is not None:
            raise self._raised
        return self._returned[0]
