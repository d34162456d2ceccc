"""The numbers of a scan's problems, which gates count."""

from __future__ import annotations

from dataclasses import dataclass

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
