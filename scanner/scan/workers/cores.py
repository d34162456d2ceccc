"""The number of processes that a scan can use.

Source of truth: the scheduler's affinity mask, and `cpu.max` of the control group, which is the CPU limit of a container.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

FORKS: Final = sys.platform == "linux"
"""True if a process may be forked; libraries of macOS do not support it."""
MOST: Final = 8
"""The number of workers for which one process can list, record and report."""
_LIMIT: Final = Path("/sys/fs/cgroup/cpu.max")


def cores(limit: Path = _LIMIT) -> int:
    """The number of processors that this process may use, from 1 to `MOST`; 1 on a system without fork.

    `limit` is the file `cpu.max` of the control group: microseconds of processor time in a period, rounded up to processors.
    """
    if sys.platform != "linux":
        return 1
    allowed = len(os.sched_getaffinity(0))
    with suppress(OSError, ValueError):
        quota, period = limit.read_text().split()
        allowed = min(allowed, -(-int(quota) // int(period)))
    return max(1, min(allowed, MOST))
