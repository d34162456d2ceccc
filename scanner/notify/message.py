"""The body of a notification: JSON in the form of the Standard Webhooks specification, with `type`, `timestamp` and `data`.

Shape: `docs/notification.schema.json`. A minor version only adds fields. The same two scans give the same body.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from scanner.model.json import Json, JsonObject
from scanner.model.outcome import Gap
from scanner.model.scans.scan import Scan, ScanState
from scanner.posture.history.scan_diff import ProblemChange, ProblemState, RuleDifference
from scanner.posture.notices import NotedProblem, Notice, OwnerNotice, Totals

VERSION: Final = "1.0"
TYPE: Final = "assay.scan.changed"
_MOST: Final = 100
"""The rules and gaps that a body lists; their numbers count all."""
_LONGEST: Final = 500
"""The characters of a message or reason that a body has."""


def message_id(scan_id: str, route: str) -> str:
    """The id of a notification: the same for each attempt, so that a receiver can leave out what it has already."""
    return f"{scan_id}_{route}"


def write_body(notice: Notice) -> bytes:
    """The body of a notification, in ASCII."""
    scan = notice.diff.now
    document: JsonObject = {
        "type": TYPE,
        "timestamp": _time(scan.finished_at or scan.started_at),
        "data": {
            "schemaVersion": VERSION,
            "route": notice.route.name,
            "cluster": scan.cluster.name,
            "scan": _scan(scan),
            "before": _scan(notice.diff.before),
            "totals": _totals(notice.totals),
            "owners": [_owner(owner, own) for owner, own in sorted(notice.owners.items())],
            "problemsLeftOut": notice.left_out,
            "coverageLost": _list(map(_gap, notice.lost)),
            "rulesChanged": _list(map(_rule, notice.diff.rules)),
            "notChecked": _list_not_checked(notice),
        },
    }
    # The standard library writes DEL as it is.
    return json.dumps(document, separators=(",", ":")).replace("\x7f", r"\u007f").encode()


def _scan(scan: Scan) -> JsonObject:
    return {
        "id": scan.id,
        "state": scan.state.value,
        "startedAt": _time(scan.started_at),
        "finishedAt": _time(scan.finished_at) if scan.finished_at else None,
    }


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _totals(totals: Totals) -> JsonObject:
    """The numbers of new, reopened and resolved problems; the resolved ones also by resolution."""
    resolved: dict[str, Json] = {
        resolution or "unknown": number
        for (change, resolution), number in sorted(totals.items())
        if change is ProblemChange.RESOLVED
    }
    new, reopened, all_resolved = (
        sum(number for (change, _), number in totals.items() if change is kind)
        for kind in (ProblemChange.NEW, ProblemChange.REOPENED, ProblemChange.RESOLVED)
    )
    return {"new": new, "reopened": reopened, "resolved": all_resolved, "resolvedBy": resolved}


def _owner(owner: str, notice: OwnerNotice) -> JsonObject:
    return {
        "owner": owner or None,
        "totals": _totals(notice.totals),
        "problems": [_problem(each) for each in notice.problems],
    }


def _problem(noted: NotedProblem) -> JsonObject:
    problem, top = noted.problem, noted.problem.workload
    state = problem.before if problem.change is ProblemChange.RESOLVED else problem.now
    return {
        "id": problem.id,
        "change": problem.change.value,
        "resolution": problem.resolution or None,
        "cause": [kind.value for kind in problem.cause.kinds],
        "severity": noted.severity.value,
        "language": problem.language,
        "policy": problem.policy,
        "workload": {
            "apiVersion": top.api_version,
            "kind": top.kind,
            "namespace": top.namespace,
            "name": top.name,
        },
        "firstSeen": _time(problem.first_seen),
        **_state(state),
    }


def _state(state: ProblemState | None) -> JsonObject:
    if state is None:
        return {"findings": 0, "outcomes": [], "action": None, "wouldDeny": False, "message": ""}
    return {
        "findings": state.findings,
        "outcomes": list(state.outcomes),
        "action": state.action or None,
        "wouldDeny": state.denies,
        "message": _shorten(state.message),
    }


def _gap(gap: Gap) -> JsonObject:
    return {"kind": gap.kind.value, "where": _shorten(gap.where), "why": _shorten(gap.why)}


def _rule(rule: RuleDifference) -> JsonObject:
    """A rule without its text, which only those may read who may read the policies."""
    change = "added" if rule.before is None else "removed" if rule.now is None else "changed"
    return {"type": rule.kind.value, "language": rule.language or None, "name": rule.name, "change": change}


def _list(items: Iterable[JsonObject]) -> JsonObject:
    """The first items, and the number of all."""
    known: list[Json] = list(items)
    return {"total": len(known), "items": known[:_MOST]}


def _list_not_checked(notice: Notice) -> Json:
    """The parts that an incomplete scan did not check; null for a complete one."""
    if notice.diff.now.state is ScanState.COMPLETE:
        return None
    return {"gaps": _list(map(_gap, notice.gaps)), "findings": notice.diff.unchecked}


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
