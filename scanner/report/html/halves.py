"""Work that two processes do in halves: a forked child writes files beside its parent.

A child is forked only where no thread runs. Without a child, or if it fails, the parent does both halves, and raises the error.
Row 8: the HTML report of 100,000 findings takes half as long again in one process (31 s, goal 20).
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable


def work_in_halves(work: Callable[[int], None]) -> None:
    """Call `work(0)` in this process and `work(1)` in a child. The halves may not depend on each other."""
    child = _fork(work)
    work(0)
    if child is None or os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        work(1)


def _fork(work: Callable[[int], None]) -> int | None:
    """The number of a new process that does the second half, or None where there may be none."""
    if sys.platform != "linux" or threading.active_count() > 1:
        return None
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work(1)
        code = 0
    finally:
        # The child must not run what its parent has to do at its end, nor print: the parent does its half again.
        os._exit(code)
