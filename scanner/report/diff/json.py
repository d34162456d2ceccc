"""The difference of two scans as JSON: one document, with a problem on each line, written while the problems are read.

Shape: `docs/diff.schema.json`. A minor version only adds fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final

from scanner.model.json import Json, JsonObject
from scanner.model.outcome import Gap
from scanner.model.scans.cause import CauseKind
from scanner.model.scans.scan import Scan
from scanner.posture.history.scan_diff import DifferingProblem, ProblemState, RuleDifference, ScanDiff
from scanner.posture.score import SeverityOf, default_severity
from scanner.posture.waivers.waiving import NO_WAIVER_CHANGES, WaiverChanges
from scanner.report.diff.words import (
    DiffValue,
    changes_json,
    circumstances,
    count_findings,
    count_problems,
    incomparable_values,
    rule_change,
    rule_lines,
)
from scanner.report.text.json_text import cause_json, dump, gap_json
from scanner.report.text.times import iso

VERSION: Final = "1.1"


def lines(
    diff: ScanDiff, severity: SeverityOf = default_severity, waivers: WaiverChanges = NO_WAIVER_CHANGES
) -> Iterator[str]:
    """The lines of the document."""
    head: JsonObject = {
        "schemaVersion": VERSION,
        "comparable": not diff.incomparable,
        "differences": list(map(_value, incomparable_values(diff))),
        "cluster": diff.now.cluster.name,
        "before": _scan(diff.before, diff.gaps[0]),
        "now": _scan(diff.now, diff.gaps[1]),
        "rulesChanged": [kind.value for kind in diff.rules_changed],
        "circumstances": list(map(_value, circumstances(diff))),
        "totals": _numbers(diff),
        "notChecked": diff.unchecked,
        "causes": [{"kind": kind.value, **_numbers(diff, kind)} for kind in diff.causes],
        "waivers": changes_json(waivers),
    }
    yield "{"
    for name, value in head.items():
        yield f"{_text(name)}: {_text(value)},"
    yield from _list("rules", map(_rule, diff.rules), ",")
    yield from _list(
        "problems", (_problem(each, severity) for kind in diff.causes for each in diff.list_problems(kind, None)), ""
    )
    yield "}"


def _list(name: str, rows: Iterator[JsonObject], end: str) -> Iterator[str]:
    """A list with a row on each line, and the text that follows the list."""
    before = ""
    for row in rows:
        yield before or f"{_text(name)}: ["
        before = f"{_text(row)},"
    yield from (before.removesuffix(","), f"]{end}") if before else (f"{_text(name)}: []{end}",)


def _text(value: Json) -> str:
    return dump(value).decode()


def _scan(scan: Scan, gaps: Sequence[Gap]) -> JsonObject:
    return {
        "id": scan.id,
        "state": scan.state.value,
        "startedAt": iso(scan.started_at),
        "finishedAt": iso(scan.finished_at) if scan.finished_at else None,
        "serverVersion": scan.cluster.server_version,
        "toolVersion": scan.tool_version,
        "policySetDigest": scan.policy_set_digest or None,
        "preview": scan.preview,
        "gaps": [gap_json(gap) for gap in gaps],
    }


def _value(value: DiffValue) -> JsonObject:
    return {"part": value.part, "before": value.before, "now": value.now}


def _numbers(diff: ScanDiff, kind: CauseKind | None = None) -> JsonObject:
    problems, findings = count_problems(diff, kind), count_findings(diff, kind)
    return {
        "problems": {_name(change): number for change, number in problems.items()},
        "findings": {_name(change): number for change, number in findings.items()},
    }


def _name(change: StrEnum) -> str:
    return str(change)


def _rule(difference: RuleDifference) -> JsonObject:
    return {
        "type": difference.kind.value,
        "language": difference.language or None,
        "name": difference.name,
        "change": rule_change(difference).value,
        "diff": "\n".join(rule_lines(difference)),
    }


def _problem(problem: DifferingProblem, severity: SeverityOf) -> JsonObject:
    check, top = problem.check, problem.workload
    return {
        "id": problem.id,
        "change": problem.change.value,
        "changed": [part.value for part in problem.parts],
        "cause": cause_json(problem.cause),
        "notCheckedBefore": problem.unchecked_before,
        "resolution": problem.resolution or None,
        "movedTo": list(problem.moved_to),
        "firstSeen": iso(problem.first_seen),
        "resolvedAt": iso(problem.resolved_at) if problem.resolved_at else None,
        "policy": problem.policy,
        "language": problem.language,
        "severity": str(severity(*problem.severity_key)),
        "check": {"kind": str(check.kind), "index": check.index, "expression": check.expression},
        "workload": {
            "apiVersion": top.api_version,
            "kind": top.kind,
            "namespace": top.namespace,
            "name": top.name,
            "derived": top.derived,
        },
        "before": _state(problem.before),
        "now": _state(problem.now),
    }


def _state(state: ProblemState | None) -> Json:
    if state is None:
        return None
    return {
        "findings": state.findings,
        "notChecked": state.unchecked,
        "outcomes": list(state.outcomes),
        "action": state.action or None,
        "wouldDeny": state.denies,
        "excepted": state.excepted,
        "message": state.message,
    }
