"""How many processes judging is worth.

Source of truth: the scheduler's affinity mask, and `cpu.max` of the control group, which is the CPU limit of a container.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

FORKS: Final = sys.platform == "linux"
"""Whether a process may be forked; macOS' own libraries do not bear it."""
MOST: Final = 8
"""One process can list, record and report for about so many."""
_LIMIT: Final = Path("/sys/fs/cgroup/cpu.max")


def cores(limit: Path = _LIMIT) -> int:
    """How many processors this process may use, at most `MOST`; 1 where it may not be forked."""
    if sys.platform != "linux":
        return 1
    allowed = len(os.sched_getaffinity(0))
    with suppress(OSError, ValueError):
        quota, period = limit.read_text().split()
        allowed = min(allowed, -(-int(quota) // int(period)))
    return max(1, min(allowed, MOST))
