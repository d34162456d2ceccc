"""The problems that a waiver covers in one of two scans only: the cause `waiver` of a difference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from scanner.model.json import Json
from scanner.posture.problems import problem_id
from scanner.posture.waiving import WaivedProblem, WaiverChanges
from scanner.report.waivers import waiver_text

WAIVED: Final = "waived"
NO_LONGER: Final = "no longer waived"


class WaiverRow(NamedTuple):
    """A problem that is waived in one scan: the change, its id, its policy, its workload, and the waiver with its last day."""

    change: str
    id: str
    policy: str
    workload: str
    waiver: str


def waiver_rows(changes: WaiverChanges) -> Iterator[WaiverRow]:
    """The problems that are no longer waived, then those that are waived since, each by policy and workload."""
    for change, problems in ((NO_LONGER, changes.no_longer), (WAIVED, changes.waived)):
        rows = (_row(change, number, problem) for number, problem in problems.items())
        yield from sorted(rows, key=lambda row: (row.policy, row.workload, row.id))


def _row(change: str, number: int, problem: WaivedProblem) -> WaiverRow:
    name = "/".join(filter(None, (problem.namespace, problem.workload_name)))
    workload = f"{problem.workload_kind} {name}"
    return WaiverRow(change, problem_id(max(number, 0)), problem.policy, workload, waiver_text(problem.waiver))


def counts_text(changes: WaiverChanges) -> str:
    """The numbers of both."""
    return f"{len(changes.no_longer):,} {NO_LONGER}, {len(changes.waived):,} {WAIVED}"


def changes_json(changes: WaiverChanges) -> dict[str, Json]:
    """Both lists as JSON objects."""
    return {"waived": _list(changes, WAIVED), "noLongerWaived": _list(changes, NO_LONGER)}


def _list(changes: WaiverChanges, change: str) -> list[Json]:
    problems = changes.waived if change == WAIVED else changes.no_longer
    rows = [(_row(change, number, problem), problem) for number, problem in problems.items()]
    return [
        {
            "id": row.id,
            "policy": row.policy,
            "language": problem.language,
            "workload": {
                "kind": problem.workload_kind,
                "namespace": problem.namespace,
                "name": problem.workload_name,
            },
            "waiver": {
                "name": problem.waiver.name,
                "state": problem.waiver.state.value,
                "until": problem.waiver.until.isoformat(),
            },
        }
        for row, problem in sorted(rows, key=lambda pair: (pair[0].policy, pair[0].workload, pair[0].id))
    ]
