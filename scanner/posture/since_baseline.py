"""A scan as compared with a baseline: a problem that the baseline has is open, and every other one is new.

The dates, the resolved findings and the reasons why they ended stay those of the history of the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Literal

from scanner.model.baseline import Baseline
from scanner.model.policy import PolicyKey
from scanner.model.scan import ALONE, ProblemFinding, ScanRecord, StoredFinding


def since_baseline(record: ScanRecord, baseline: Baseline) -> ScanRecord:
    """The record of a scan whose statuses follow a baseline. Its numbers are counted from the findings."""

    def findings() -> Iterator[StoredFinding]:
        return (_compared(stored, baseline) for stored in record.findings())

    def by_problem() -> Iterator[ProblemFinding]:
        return (_of_problem(each, baseline) for each in record.by_problem())

    chosen = record.by_problem_of
    return replace(
        record,
        findings=findings,
        by_problem=by_problem,
        by_problem_of=None if chosen is None else _of_policies(chosen, baseline),
        census=None,
        census_by=None,
        problem_totals=None,
        problem_groups=None,
        problems_by_namespace=None,
        problems_by_owner=None,
    )


def _of_policies(
    read: Callable[[frozenset[PolicyKey]], Iterator[ProblemFinding]], baseline: Baseline
) -> Callable[[frozenset[PolicyKey]], Iterator[ProblemFinding]]:
    return lambda policies: (_of_problem(each, baseline) for each in read(policies))


def _of_problem(each: ProblemFinding, baseline: Baseline) -> ProblemFinding:
    stored = each.stored
    if not stored.problem:
        return each
    return each._replace(stored=_compared(stored, baseline), episode=_status(each.episode, stored.problem, baseline))


def _compared(stored: StoredFinding, baseline: Baseline) -> StoredFinding:
    """The finding with its status since the baseline. A cause that explains another status than this one is left out."""
    before = stored.status
    if not stored.problem or before == "resolved" or before in ALONE:
        return stored
    status = _status(before, stored.problem, baseline)
    began = baseline.opened.get(stored.problem)
    opened = [moment for moment in (stored.problem_opened_at or stored.opened_at, began) if moment]
    return replace(
        stored,
        status=status,
        cause=stored.cause if status == before and not baseline.file else None,
        problem_opened_at=min(opened) if began else stored.problem_opened_at,
    )


def _status(status: str, problem: str, baseline: Baseline) -> Literal["new", "reopened", "open"]:
    if problem not in baseline.new:
        return "open"
    return "reopened" if status == "reopened" else "new"
