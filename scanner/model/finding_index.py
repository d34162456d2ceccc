"""A finding of a scan without its texts: what a list of findings is filtered and ordered by."""

from __future__ import annotations

from typing import NamedTuple

from scanner.model.cause import Cause
from scanner.model.policy import PolicyKey


class IndexedFinding(NamedTuple):
    """A finding. `row`, `check`, `verdict`, `object`, `workload_row` (0 for none) and `kept` are ids of the store.

    `id` has the first 48 bits of the fingerprint, `problem` is the number of the problem (negative in scans of older versions), `opened` the beginning of
    the problem's latest episode in seconds since 1970, `actions` are joined with commas. `status` and `episode` are as in
    `ProblemFinding`, `cause` and `resolution` as in `StoredFinding`. `kind` and `workload` (`namespace/name`) are those of the workload, or of the object itself.
    """

    row: int
    problem: int
    id: int
    check: int
    verdict: int
    object: int
    workload_row: int
    kept: int
    policy: PolicyKey
    namespace: str
    name: str
    owner: str
    kind: str
    workload: str
    status: str
    checked: bool
    episode: str
    opened: int
    outcome: str
    denies: bool
    actions: str
    excepted: bool
    cause: Cause | None
    resolution: str
