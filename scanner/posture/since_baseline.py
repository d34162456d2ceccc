"""A scan as compared with a baseline: a problem that the baseline has is open, and every other one is new.

The dates, the resolved findings and the reasons why they ended stay those of the history of the cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from scanner.model.policy import PolicyKey
from scanner.model.scans.baseline import Baseline
from scanner.model.scans.scan import ScanRecord
from scanner.model.scans.stored_finding import SINGLE_SCAN_STATUSES, ProblemFinding, StoredFinding
from scanner.model.scans.stored_scan import StoredScan


def follows_baseline(record: ScanRecord) -> bool:
    """Return whether a baseline gives the findings of a scan other statuses than those that the store recorded."""
    return record.baseline is not None and not record.baseline.as_recorded


def findings_since(scan: StoredScan) -> Iterator[StoredFinding]:
    """The findings of a scan, with their statuses since its baseline."""
    baseline = scan.baseline
    if baseline is None or baseline.as_recorded:
        return scan.findings()
    return (_apply_baseline(stored, baseline) for stored in scan.findings())


def problems_since(scan: StoredScan, policies: frozenset[PolicyKey] | None = None) -> Iterator[ProblemFinding]:
    """The findings of a scan by problem, those of some policies alone or all, with their statuses since its baseline."""
    baseline, findings = scan.baseline, scan.findings_by_problem(policies)
    if baseline is None or baseline.as_recorded:
        return findings
    return (_apply_to_problem(each, baseline) for each in findings)


def _apply_to_problem(each: ProblemFinding, baseline: Baseline) -> ProblemFinding:
    stored = each.stored
    if not stored.problem:
        return each
    return each._replace(
        stored=_apply_baseline(stored, baseline), episode=_status(each.episode, stored.problem, baseline)
    )


def _apply_baseline(stored: StoredFinding, baseline: Baseline) -> StoredFinding:
    """The finding with its status since the baseline. A cause that explains another status than this one is left out."""
    before = stored.status
    if not stored.problem or before == "resolved" or before in SINGLE_SCAN_STATUSES:
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
