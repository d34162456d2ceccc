"""Whose scan it is, and whether that process still lives.

A killed process cannot say goodbye. On its own host its process number tells, together with the moment that process
began (numbers are used again, in containers at once); on another host only the last sign of life does.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

SILENCE = timedelta(minutes=15)
"""How long a scan on another host may be silent before it counts as dead."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that writes a scan. `started` is empty where the system does not tell."""

    host: str
    process: int
    started: str

    def alive(self, *, heartbeat: datetime, now: datetime) -> bool:
        """Whether the process can still be at work, `heartbeat` being its last sign of life."""
        if self.host != socket.gethostname():
            return now - heartbeat <= SILENCE
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
    """Linux: field 22 of /proc/PID/stat, counted after the name, which is in brackets and may hold anything."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]
