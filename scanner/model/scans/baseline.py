"""The baseline of a report: the scan, or the JSON report, with whose problems it is compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final


@dataclass(frozen=True, slots=True)
class Baseline:
    """The baseline of a report, and the ids of the problems that are new since then.

    `as_recorded` tells that these are the problems that the store recorded as new. `scan` is the id of a scan, `file` the path
    of a JSON report; both are empty if no earlier scan is comparable. `gone` is the number of its problems that are not open
    any more. `opened` has the beginnings of the problems of a report, by their ids.
    """

    new: frozenset[str]
    scan: str = ""
    file: str = ""
    gone: int = 0
    opened: Mapping[str, datetime] = field(default_factory=dict)
    as_recorded: bool = False

    @property
    def title(self) -> str:
        """The name of the baseline in a sentence; empty without a baseline."""
        return self.file or (f"scan {self.scan}" if self.scan else "")


NO_EARLIER_SCAN: Final = "no earlier scan is comparable, so every problem is new"
