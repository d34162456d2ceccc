"""A run of `assay scan`, which is recorded even if the scan does not begin."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Run:
    """A run. `finished_at` and `exit_code` are None while it runs, and for ever if its process was killed.

    `name` is the name that the user gave to the cluster, else its context, URL or folder; `reason` is empty after exit
    code 0; `scan` is the id of the scan, or empty if none began.
    """

    number: int
    name: str
    started_at: datetime
    finished_at: datetime | None = None
    exit_code: int | None = None
    reason: str = ""
    scan: str = ""
    host: str = ""

    @property
    def open(self) -> bool:
        """Whether the end of the run is not recorded: it still runs, or its process was killed."""
        return self.exit_code is None
