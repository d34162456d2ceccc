"""A run of `assay scan`, which is recorded even if the scan does not begin."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from scanner.model.scans.scan import Scope

KILLED: Final = 137
"""The exit code of a run whose process ended without a result: that of a container which the system killed, such as for its memory."""


def explain_kill(last_sign: datetime) -> str:
    """The reason of that exit code."""
    return f"the process ended without a result after {last_sign:%Y-%m-%d %H:%M:%SZ}"


@dataclass(frozen=True, slots=True)
class Run:
    """A run. `finished_at` and `exit_code` are None while it runs, and after its process was killed, until another run closes it.

    `name` is the name that the user gave to the cluster, else its context, URL or folder; `reason` is empty after exit
    code 0; `scan` is the id of the scan, or empty if none began. `command_line` is empty for a run of an older version.
    """

    number: int
    name: str
    started_at: datetime
    finished_at: datetime | None = None
    exit_code: int | None = None
    reason: str = ""
    scan: str = ""
    host: str = ""
    command_line: tuple[str, ...] = ()

    @property
    def open(self) -> bool:
        """Return whether the end of the run is not recorded: it still runs, or its process was killed since the last run began."""
        return self.exit_code is None


@dataclass(frozen=True, slots=True)
class RunDetails:
    """A run with the facts that its state depends on.

    `last_sign` is the last sign of life of an open run whose process is gone, else None. `gaps` are the places of the gaps of its
    scan, if the scan is incomplete; `complete` and `scope` are those of the scan, None if none began.
    """

    run: Run
    last_sign: datetime | None = None
    complete: bool | None = None
    gaps: tuple[str, ...] = ()
    scope: Scope | None = None

    @property
    def still_runs(self) -> bool:
        """Return whether its scan, if one began, has not ended."""
        return self.run.open and self.last_sign is None and self.complete is None
