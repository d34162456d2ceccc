"""The number of processes that a scan can use.

Source of truth: the scheduler's affinity mask, and the quota of the control group, which is the CPU limit of a container:
`cpu.max` in version 2 of control groups, `cpu/cpu.cfs_quota_us` and `cpu/cpu.cfs_period_us` in version 1.
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
_GROUP: Final = Path("/sys/fs/cgroup")
"""The control group of a container, as runtimes mount it."""


def count_cores(group: Path = _GROUP) -> int:
    """The number of processors that this process may use, from 1 to `MOST`; 1 on a system without fork.

    `group` is the folder of the control group. Its quota is rounded up to processors.
    """
    if sys.platform != "linux":
        return 1
    allowed = len(os.sched_getaffinity(0))
    with suppress(OSError, ValueError):
        quota, period = _read_quota(group)
        if quota > 0:  # -1 is no limit in version 1
            allowed = min(allowed, -(-quota // period))
    return max(1, min(allowed, MOST))


def _read_quota(group: Path) -> tuple[int, int]:
    """Microseconds of processor time, and of the period in which they may be used.

    Raises OSError or ValueError if there is no limit, or none that can be read.
    """
    limit = group / "cpu.max"
    if limit.exists():
        quota, period = limit.read_text().split()
    else:
        quota, period = ((group / "cpu" / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
    return int(quota), int(period)
