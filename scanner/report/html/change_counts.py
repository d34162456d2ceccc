"""The numbers of the changed findings of a scan by their causes, and of the resolved ones by their reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from scanner.model.scans.cause import Cause
from scanner.model.scans.stored_finding import ProblemFinding
from scanner.report.group_files import GroupReader, GroupWriter
from scanner.report.text.titles import RESOLUTIONS, cause_text

_GROUP: Final = "changes"
_REASON: Final = "reason"
_CHANGED: Final = ("new", "reopened", "resolved")


class ChangeLine(NamedTuple):
    """Findings of one status with one cause, or resolved findings with one reason; `why` is a clause."""

    status: str
    why: str
    number: int


class ChangeCounts:
    """Counts the changed findings that a process reads."""

    def __init__(self) -> None:
        self._numbers = Counter[tuple[str, str]]()

    def add(self, findings: Iterable[ProblemFinding]) -> None:
        """Count those findings that the scan changed."""
        for stored, checked, _ in findings:
            if checked:
                self.count(stored.status, stored.cause, stored.resolution)

    def count(self, status: str, cause: Cause | None, resolution: str, number: int = 1) -> None:
        """Count checked findings."""
        if status in _CHANGED:
            self._numbers[status, cause_text(cause) if cause else ""] += number
        if status == "resolved":
            self._numbers[_REASON, resolution] += number

    def lines(self) -> ChangeLines:
        """The numbers of this process."""
        return _change_lines(self._numbers)

    def write(self, spill: GroupWriter) -> None:
        """Write the numbers."""
        for (status, why), number in sorted(self._numbers.items()):
            spill.add(_GROUP, f"{status}\t{why}\t{number}")


class ChangeLines(NamedTuple):
    """The numbers of changed findings by status and cause, and of resolved ones by reason, the largest first."""

    causes: tuple[ChangeLine, ...]
    reasons: tuple[ChangeLine, ...]


def changes_of(spilled: GroupReader) -> ChangeLines:
    """The numbers that processes have written."""
    numbers = Counter[tuple[str, str]]()
    for line in spilled.rows(_GROUP):
        status, why, number = line.split("\t")
        numbers[status, why] += int(number)
    return _change_lines(numbers)


def _change_lines(numbers: Mapping[tuple[str, str], int]) -> ChangeLines:
    lines = _lines(numbers)
    reasons = (line for line in lines if line.status == _REASON)
    return ChangeLines(
        tuple(line for line in lines if line.status in _CHANGED),
        tuple(ChangeLine("resolved", RESOLUTIONS.get(why, why), number) for _, why, number in reasons),
    )


def _lines(numbers: Mapping[tuple[str, str], int]) -> list[ChangeLine]:
    lines = (ChangeLine(status, why, number) for (status, why), number in numbers.items())
    return sorted(lines, key=lambda line: (_rank(line.status), -line.number, line.why))


def _rank(status: str) -> int:
    return _CHANGED.index(status) if status in _CHANGED else len(_CHANGED)
