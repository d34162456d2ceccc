"""Findings joined to problems: one for each check and workload, with the strictest action of its bindings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from scanner.model.outcome import Check
from scanner.model.population import Workload
from scanner.model.scan import StoredFinding

_STRICTEST: Final = ("Deny", "Warn", "Audit")


@dataclass(slots=True)
class Problem:
    """A problem. `findings` is the number of its open findings.

    `first_seen` is the earliest of its findings', `opened_at` the earliest beginning of an episode; None if it is not known.
    """

    id: str
    policy: str
    language: str
    check: Check
    workload: Workload
    first_seen: datetime
    last_seen: datetime
    status: str
    opened_at: datetime | None = None
    resolved_at: datetime | None = None
    denies: bool = False
    actions: set[str] = field(default_factory=set)
    findings: int = 0

    @property
    def action(self) -> str:
        """The strictest action; empty for a policy whose bindings have none."""
        return next((action for action in _STRICTEST if action in self.actions), "")


def problems(findings: Iterable[StoredFinding]) -> list[Problem]:
    """The problems of some findings, resolved ones included, in the order in which their first findings come.

    A problem is new if all its findings are, resolved if all are, and otherwise open: a rollout, which resolves some findings
    and opens others, leaves it open. A finding of an older version, whose problem is not known, is a problem of its own.
    """
    joined: dict[str, Problem] = {}
    statuses: dict[str, set[str]] = {}
    for stored in findings:
        key = stored.problem or stored.id
        problem = joined.get(key) or joined.setdefault(key, _problem(key, stored))
        statuses.setdefault(key, set()).add(stored.status)
        problem.first_seen = min(problem.first_seen, stored.first_seen)
        problem.last_seen = max(problem.last_seen, stored.last_seen)
        problem.resolved_at = max(filter(None, (problem.resolved_at, stored.resolved_at)), default=None)
        problem.opened_at = min(filter(None, (problem.opened_at, stored.opened_at)), default=None)
        if stored.status != "resolved":
            problem.findings += 1
            problem.denies |= stored.finding.denies
            problem.actions |= set(stored.finding.actions)
    for key, problem in joined.items():
        problem.status = _status(statuses[key])
        if problem.status != "resolved":
            problem.resolved_at = None
    return list(joined.values())


def _problem(key: str, stored: StoredFinding) -> Problem:
    finding = stored.finding
    own = Workload(finding.api_version, finding.kind, finding.namespace, finding.name)
    return Problem(
        id=key,
        policy=finding.policy,
        language=finding.language,
        check=finding.check,
        workload=stored.workload or own,
        first_seen=stored.first_seen,
        last_seen=stored.last_seen,
        status=stored.status,
    )


def _status(statuses: set[str]) -> str:
    """The status of a problem with findings of these statuses."""
    if len(statuses) == 1:
        return next(iter(statuses))
    return "reopened" if statuses <= {"new", "reopened"} else "open"
