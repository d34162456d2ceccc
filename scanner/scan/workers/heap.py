"""Returns freed memory to the system: the C library would keep the memory of pages of several megabytes.

Source of truth: mallopt(3). By default the first large block that is freed raises the size from which blocks are returned to the
system, and every thread has a heap of its own. Only Linux is changed.
"""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from typing import Final

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_SETTINGS: Final = {_MMAP_THRESHOLD: 512 << 10, _TRIM_THRESHOLD: 256 << 10, _ARENA_MAX: 1}


def return_freed_memory() -> None:
    """Return freed memory to the system from now on."""
    if sys.platform != "linux":
        return
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        for setting, value in _SETTINGS.items():
            library.mallopt(setting, value)
