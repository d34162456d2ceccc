"""The numbers of a scan's problems, which gates count."""

from __future__ import annotations

from dataclasses import dataclass, field

from scanner.model.scan import Scan


@dataclass(frozen=True, slots=True)
class ProblemCounts:
    """The numbers of problems with an open finding that a scan saw. Previews and excepted findings belong to none.

    `denied` problems have a finding whose object admission would refuse, errors under `failurePolicy: Fail` included;
    `violated`, `errored` and `drifting` are the outcomes of findings. `new` problems had no open finding in the `baseline`; all
    are new if that is None.
    """

    total: int = 0
    denied: int = 0
    violated: int = 0
    errored: int = 0
    drifting: int = 0
    new: int = 0
    baseline: Scan | None = None


@dataclass(frozen=True, slots=True)
class NewProblems:
    """The ids of the problems of a scan that are new since its baseline, a scan or the problems of a report.

    `as_recorded` is true if these are the problems that began with the scan, so that the statuses of its findings agree with the
    baseline. `gone` is the number of problems open in the baseline and not in this scan.
    """

    ids: frozenset[str] = field(default_factory=frozenset)
    baseline: Scan | None = None
    as_recorded: bool = True
    gone: int = 0
