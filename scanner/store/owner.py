"""The process that writes a scan, and whether it still runs.

A killed process leaves no note. On its own host the process id decides, together with the start time of the process (ids are
reused, in containers at once); on another host only the last heartbeat decides.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that writes a scan. `started` is empty if the system does not report it."""

    host: str
    process: int
    started: str

    def alive(self, *, heartbeat: datetime, now: datetime, silence: timedelta) -> bool:
        """Return whether the process may still run.

        On this host the process id and the start time decide; on another host the process is alive until its last heartbeat
        is older than `silence`.
        """
        if self.host != socket.gethostname():
            return now - heartbeat <= silence
        return _exists(self.process) and self.started in {"", _started(self.process)}


def this_process() -> Owner:
    """The running process as an owner."""
    return Owner(socket.gethostname(), os.getpid(), _started(os.getpid()))


def _exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _started(process: int) -> str:
    """The start time of a process. Linux: field 22 of /proc/PID/stat, counted from the end of the name in brackets."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]
