"""Compares what a database answers about a history with a replay of it: records, views, explanations, gates, differences and trends."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any, cast

from sqlalchemy import Engine, text

from scanner.model.population import Workload
from scanner.model.scans.stored_finding import StoredFinding
from scanner.model.scans.stored_scan import StoredScan
from scanner.posture.problem_rows import Problem as ProblemRow
from scanner.posture.problem_rows import problems
from scanner.posture.settings import DEFAULT_SETTINGS
from scanner.posture.triage import Triage
from scanner.posture.worst_problems import MOST, count_problems, problems_of
from scanner.report import FORMATS
from scanner.report.document.document import document_of
from scanner.store import SqlStore
from scanner.store.catalog.clusters import read_clusters
from tests.store.made import DAWN
from tests.store.replay import Expected, Problem, Replay

_APPEARED = ("new", "reopened")


@dataclass
class Answers:
    """Asks one database about one cluster. `known` are its problems by id: an id stands for one problem.

    `strays` are the problems whose workload answers need not have: that of the object of an unchecked finding stands for it.
    """

    store: SqlStore
    engine: Engine
    name: str
    strays: Collection[Problem]
    known: dict[str, Problem] = field(default_factory=dict)

    def recorded(self, record: StoredScan, expected: Expected) -> Expected:
        """What a scan recorded."""
        found = list(record.findings())
        ended = list(record.resolved_findings())
        for stored in (*found, *ended):
            self.known.setdefault(stored.problem, expected.problem_of[stored.id])
        rows = list(problems(record.findings_by_problem()))
        scan = record.scan
        return Expected(
            findings={
                stored.id: (stored.status, stored.first_seen, stored.opened_at, cause(stored), stored.continues)
                for stored in found
            },
            resolved={
                stored.id: (stored.resolution, cause(stored), stored.first_seen, stored.opened_at) for stored in ended
            },
            problems={self.known[row.id]: self._facts(row) for row in rows},
            problem_of={stored.id: self.known[stored.problem] for stored in (*found, *ended)},
            unchecked=record.unchecked,
            numbers={name: getattr(scan, name) for name in ("findings", "new", "resolved")},
        )

    def _facts(self, row: ProblemRow) -> tuple[object, ...]:
        moved_to = frozenset(self.known[each] for each in row.moved_to)
        clocks = row.first_seen, row.opened_at
        return (
            row.status,
            row.findings,
            row.resolution,
            moved_to,
            *clocks,
            self._of(self.known[row.id], _place(row.workload)),
        )

    def _of(self, problem: Problem, workload: tuple[str, ...]) -> tuple[str, ...] | None:
        """The workload of a problem as an answer has it; None for one that strayed."""
        return None if problem in self.strays else workload

    def differences(self, record: StoredScan, replay: Replay) -> Iterator[str]:
        """One line for each answer after the newest scan that is not that of the replay."""
        yield from self.lasting_differences(replay, replay.concerned)
        yield from _differing("finding in v_findings_open", _expected_findings(replay), self._findings())
        yield from self._difference(record, replay)

    def lasting_differences(self, replay: Replay, explained: Collection[Problem]) -> Iterator[str]:
        """One line for each answer about problems that is not that of the replay; some problems are explained."""
        yield from _differing("problem in v_problems", self._expected_problems(replay), self._problems())
        yield from _differing("times to fix", dict(_expected_times(replay)), self._times())
        for problem in explained:
            yield from _differing(
                "explained", {problem: _expected_explanation(replay, problem)}, self._explained(problem)
            )

    def _expected_problems(self, replay: Replay) -> dict[Problem, tuple[object, ...]]:
        return {problem: self._expected_problem(replay, problem) for problem in replay.members}

    def _expected_problem(self, replay: Replay, problem: Problem) -> tuple[object, ...]:
        """The facts of a problem, of which the view has the first of several other problems alone."""
        status, findings, reason, moved_to, *facts = replay.facts(problem)
        first = (
            min(number for number, each in self.known.items() if each in cast("tuple[Problem, ...]", moved_to))
            if moved_to
            else None
        )
        return status, findings, reason, first, *facts, _resolved_at(replay, problem)

    def _problems(self) -> dict[Problem, tuple[object, ...]]:
        return {
            self.known[row["problem"]]: (
                *(row["status"], row["findings"], row["resolution"] or ""),
                *(row["moved_to"], _moment(row["first_seen"]), _moment(row["opened_at"])),
                *(self._of(self.known[row["problem"]], _workload_of(row)), _moment(row["resolved_at"])),
            )
            for row in self._rows("v_problems")
        }

    def _findings(self) -> dict[str, tuple[object, ...]]:
        return {
            row["finding"]: (
                *(row["status"], _moment(row["first_seen"]), _moment(row["opened_at"])),
                *(self.known[row["problem"]], self._of(self.known[row["problem"]], _workload_of(row))),
                *(row["cause"], bool(row["checked"])),
            )
            for row in self._rows("v_findings_open")
        }

    def _rows(self, view: str) -> list[Mapping[str, Any]]:
        with self.engine.connect() as connection:
            found = connection.execute(text(f"SELECT * FROM {view} WHERE cluster = :name"), {"name": self.name})
            return [dict(row) for row in found.mappings()]

    def _explained(self, problem: Problem) -> dict[Problem, tuple[object, ...]]:
        """The explanation of a problem: its workload, its clocks, and its findings with their ends."""
        [number] = [each for each, known in self.known.items() if known == problem]
        explained = self.store.find_problem(number, self.name)
        findings = [each.stored for each in explained.findings]
        ends = {stored.id: (stored.resolution, self.known.get(stored.moved_to)) for stored in findings}
        first = min(stored.problem_first_seen for stored in findings if stored.problem_first_seen)
        workloads = {self._of(problem, _place(stored.workload)) for stored in findings if stored.workload}
        return {problem: (explained.open, ends, first, workloads)}

    def _times(self) -> dict[str, tuple[object, ...]]:
        with self.engine.connect() as connection:
            [cluster] = [each.id for each in read_clusters(connection) if each.name == self.name]
        times = self.store.times_to_fix(cluster, DAWN.date())
        return {each.policy: (each.problems, each.median) for each in times}

    def _difference(self, record: StoredScan, replay: Replay) -> Iterator[str]:
        """What the gate and the difference from the baseline say about new problems."""
        counts = self.store.count_problems(record.scan.id)
        open_now = {state.problem for name, state in replay.states.items() if name in replay.seen}
        if counts.total != len(open_now):
            yield f"problems of the gate: expected {len(open_now)}, found {counts.total}"
        if counts.baseline is None:
            return
        before = next(at for at, kept in enumerate(replay.scans) if kept.at == counts.baseline.finished_at)
        expected = dict(_expected_changes(replay, before))
        appeared = [change for change, *_ in expected.values() if change in _APPEARED]
        if counts.new != len(appeared):
            yield f"new problems of the gate since scan {before}: expected {len(appeared)}, found {counts.new}"
        named = {self.known[each] for each in self.store.find_new_problems(record.scan.id).ids}
        if named & open_now != {problem for problem, (change, *_) in expected.items() if change in _APPEARED}:
            yield f"ids of the new problems of the gate since scan {before}: {named & open_now}"
        if self.store.find_pruned_scans([counts.baseline]):
            return
        diff = self.store.compare_scans(counts.baseline.id, record.scan.id)
        found: dict[Problem, tuple[object, ...]] = {
            self.known[each.id]: (each.change.value, each.resolution, frozenset(map(self.known.get, each.moved_to)))
            for kind in diff.causes
            for each in diff.list_problems(kind, None)
            if each.change.value in (*_APPEARED, "resolved")
        }
        if before < len(replay.scans) - 2:
            # The findings of a problem may have ended one after the other in several scans, and others may have come before some moved.
            moved = {state.problem for state in replay.states.values() if state.left}
            expected, found = (
                {problem: facts[:1] for problem, facts in each.items() if problem not in moved}
                for each in (expected, found)
            )
        yield from _differing(f"difference from scan {before}", expected, found)


def _expected_changes(replay: Replay, before: int) -> Iterator[tuple[Problem, tuple[object, ...]]]:
    """The problems that were open in one of two scans alone."""
    checked = {state.problem for name, state in replay.states.items() if name in replay.seen}
    for problem in replay.members:
        was_open, is_open = replay.was_open(problem, before), replay.is_open(problem)
        if was_open and not is_open:
            _, _, reason, moved_to, *_ = replay.facts(problem)
            yield problem, ("resolved", reason, moved_to)
        elif problem in checked and not was_open and not replay.continues_one_of(problem, before):
            yield problem, ("reopened" if replay.first[problem] <= before else "new", "", frozenset())


def _expected_explanation(replay: Replay, problem: Problem) -> tuple[object, ...]:
    members = replay.members[problem]
    ends = {name: (member.reason, member.moved_to) for name, member in members.items()}
    still_open = sum(member.ended is None for member in members.values())
    return still_open, ends, replay.scans[replay.first[problem]].at, {replay.workload_of(problem)}


def _expected_findings(replay: Replay) -> dict[str, tuple[object, ...]]:
    newest = len(replay.scans) - 1
    return {
        name: (
            *(replay.status(state) if state.since == newest else "open", replay.scans[state.first].at),
            *(replay.scans[state.opened].at, state.problem, replay.workload_of(state.problem)),
            *(state.cause[0], name in replay.seen),
        )
        for name, state in replay.states.items()
        if state.ended is None
    }


def _expected_times(replay: Replay) -> Iterator[tuple[str, tuple[object, ...]]]:
    took: dict[str, list[Any]] = {}
    for (policy, opened, ended), number in replay.fixes.items():
        took.setdefault(policy, []).extend(
            [max(replay.scans[ended].at - replay.scans[opened].at, timedelta())] * number
        )
    for policy, times in took.items():
        yield policy, (len(times), sorted(times)[(len(times) - 1) // 2])


def verdict_differences(lines: Sequence[str], replay: Replay) -> Iterator[str]:
    """One line for each number of the verdict of a JSON report that is not that of the replay."""
    numbers = json.loads("\n".join(lines))["verdict"]["problems"]
    facts = [replay.facts(problem) for problem in replay.concerned]
    expected = {
        "open": len({state.problem for name, state in replay.states.items() if name in replay.seen}),
        **{status: sum(status == each for each, *_ in facts) for status in ("new", "reopened", "resolved")},
        "fixed": sum(reason == "fixed" for _, _, reason, *_ in facts),
    }
    yield from _differing("verdict", expected, {name: numbers[name] for name in expected})


def _resolved_at(replay: Replay, problem: Problem) -> datetime | None:
    return None if replay.is_open(problem) else replay.scans[replay.ended(problem)].at


def _moment(written: str | None) -> datetime | None:
    return datetime.fromisoformat(written).astimezone(UTC) if written else None


def _workload_of(row: Mapping[str, Any]) -> tuple[str, ...]:
    names = ("workload_api_version", "workload_kind", "workload_namespace", "workload_name")
    return _place(Workload(*(row[name] for name in names)))


def _place(workload: Workload) -> tuple[str, ...]:
    return workload.api_version.rpartition("/")[0], workload.kind, workload.namespace, workload.name


def check_problem_totals(record: StoredScan) -> None:
    """Compare the numbers and the worst problems that the database finds with those of all findings."""
    triage = Triage(DEFAULT_SETTINGS, record)
    totals, worst = problems_of(record, triage)
    expected, findings = count_problems(record.findings_by_problem(), triage.ranks, triage.waives, MOST)
    ids = dict.fromkeys(each.stored.problem or each.stored.id for each in findings)
    assert (expected, [*ids]) == (totals, [each.problem.id for each in worst])


def differing_facts(expected: Expected, found: Expected) -> list[str]:
    """One line for each fact of a scan that differs."""
    return [
        *_differing("finding", expected.findings, found.findings),
        *_differing("resolved finding", expected.resolved, found.resolved),
        *_differing("problem", expected.problems, found.problems),
        *_differing("problem of a finding", expected.problem_of, found.problem_of),
        *_differing("number", expected.numbers, found.numbers),
        *_differing("unchecked", {"": expected.unchecked}, {"": found.unchecked}),
    ]


def _differing(what: str, expected: Mapping[Any, object], found: Mapping[Any, object]) -> Iterator[str]:
    for key in sorted(expected.keys() | found.keys(), key=str):
        if expected.get(key) != found.get(key):
            yield f"{what} {key}: expected {expected.get(key)}, found {found.get(key)}"


def cause(stored: StoredFinding) -> tuple[str, ...]:
    """The kinds of the cause of a change."""
    return tuple(kind.value for kind in stored.cause.kinds) if stored.cause else ()


def report(record: StoredScan) -> list[str]:
    """The lines of the JSON report."""
    out = BytesIO()
    FORMATS["json"].render(document_of(record), out)
    return out.getvalue().decode().splitlines()
