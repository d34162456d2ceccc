"""Compares two stored scans: the problems that differ, by cause, and what changed besides objects.

Memory holds four bytes for the row of each listed finding.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from typing import NamedTuple

from sqlalchemy import Connection, Engine

from scanner.model.outcome import Gap, GapKind
from scanner.model.population import Workload
from scanner.model.scans.cause import CauseKind
from scanner.model.scans.census import OwnerOf
from scanner.model.scans.method import Method
from scanner.posture.history.scan_diff import (
    ComparedFinding,
    DifferingProblem,
    FindingChange,
    ProblemChange,
    ProblemDifference,
    ProblemState,
    ScanDiff,
    state_of,
)
from scanner.posture.problem_ids import problem_id
from scanner.store.catalog.scans import find_incomparable_parts, scan_of, select_scans
from scanner.store.database.address import Address
from scanner.store.database.store_errors import as_store_error
from scanner.store.read.diff.compared_findings import ComparedRow, ComparedSides, read_problems, read_rows
from scanner.store.read.diff.rule_differences import find_rule_differences
from scanner.store.read.diff.scan_pairs import read_scan_pair
from scanner.store.read.findings import SHORT, Times
from scanner.store.read.kept_labels import KeptLabels, read_object_owners
from scanner.store.read.recorded_objects import read_workloads
from scanner.store.read.stored_scan import ScanRow
from scanner.store.rows import codec
from scanner.store.rows.gap_lists import read_gaps
from scanner.store.rows.interning import CHUNK
from scanner.store.rows.tables import SCANS


def compare_scans(
    engine: Engine, address: Address, before_id: str, now_id: str, now: datetime, owner_of: OwnerOf | None
) -> ScanDiff:
    """The difference of two scans, by their full ids, the earlier one first; `now` decides which running scans are dead.

    A problem has the owner of its first object.

    Raises UsageError for scans of two clusters, for scans without findings or without a report, and for the wrong order.
    """
    with engine.connect() as connection:
        before, later = read_scan_pair(connection, before_id, now_id, now)
        reading = ComparedSides.read(connection, before, later, owner_of)
        comparison = reading.explanation.earlier.comparison
        index = _index_problems(connection, reading)
        scans = [
            scan_of(connection.execute(select_scans().where(SCANS.c.id == scan_id)).one())
            for scan_id in (before_id, now_id)
        ]

        def list_problems_of(kind: CauseKind, limit: int | None) -> Iterator[DifferingProblem]:
            with as_store_error(address), engine.connect() as separate:
                yield from _list_problems(separate, reading, index, kind, limit)

        return ScanDiff(
            before=scans[0],
            now=scans[1],
            methods=(_decode_method(before), _decode_method(later)),
            incomparable=find_incomparable_parts(connection, before.number, later.number),
            rules_changed=comparison.kinds,
            rules=tuple(find_rule_differences(connection, before.number, later.number, comparison)),
            problems=index.problems,
            findings=index.findings,
            unchecked=later.unchecked,
            list_problems=list_problems_of,
            gaps=(_read_gaps(connection, before.number), _read_gaps(connection, later.number)),
        )


def _decode_method(scan: ScanRow) -> Method:
    return codec.from_text(Method, scan.method) if scan.method else Method()


def _read_gaps(connection: Connection, number: int) -> tuple[Gap, ...]:
    return tuple(Gap(GapKind(kind), where, why) for _, kind, where, why in read_gaps(connection, number))


class _ListedProblems:
    """The problems of one cause with one change: the ids of their rows, and how many rows each has."""

    def __init__(self) -> None:
        self.rows = array("I")
        self.sizes = array("I")

    def add(self, rows: Sequence[ComparedRow]) -> None:
        """Add a problem."""
        self.rows.extend(row.finding.number for row in rows)
        self.sizes.append(len(rows))

    def split_portions(self, limit: int | None) -> Iterator[list[array[int]]]:
        """The ids of the rows of each problem, for some problems at a time."""
        portion: list[array[int]] = []
        start = held = 0
        for size in self.sizes[:limit]:
            portion.append(self.rows[start : start + size])
            start, held = start + size, held + size
            if held >= CHUNK:
                yield portion
                portion, held = [], 0
        if portion:
            yield portion


@dataclass(frozen=True, slots=True)
class _Index:
    """The numbers of differences by cause, and the listed problems."""

    problems: Counter[tuple[CauseKind, ProblemChange]]
    findings: Counter[tuple[CauseKind, FindingChange]]
    listed: defaultdict[tuple[CauseKind, ProblemChange], _ListedProblems]


def _index_problems(connection: Connection, reading: ComparedSides) -> _Index:
    """Compare all problems of which a finding differs."""
    index = _Index(Counter(), Counter(), defaultdict(_ListedProblems))
    for rows in read_problems(connection, reading):
        difference = reading.compare(rows)
        index.findings.update((cause.kind, change) for change, cause in difference.findings)
        if difference.change is not None:
            key = difference.cause.kind, difference.change
            index.problems[key] += 1
            index.listed[key].add(rows)
    return index


def _list_problems(
    connection: Connection, reading: ComparedSides, index: _Index, kind: CauseKind, limit: int | None
) -> Iterator[DifferingProblem]:
    """The first problems of a cause: those of each change in the order of policies and objects."""
    left = limit
    for change in ProblemChange:
        listed = index.listed.get((kind, change))
        if listed is None or left == 0:
            continue
        for portion in listed.split_portions(left):
            yield from _build_problems(connection, reading, portion)
        left = None if left is None else left - min(left, len(listed.sizes))


def _build_problems(
    connection: Connection, reading: ComparedSides, problems: Sequence[array[int]]
) -> Iterator[DifferingProblem]:
    read = {row.finding.number: row for row in read_rows(connection, reading, list(chain.from_iterable(problems)))}
    differing = []
    for numbers in problems:
        rows = [read[number] for number in numbers]
        differing.append((rows, reading.compare(rows)))
    places = _read_places(connection, reading, [difference for _, difference in differing])
    for rows, difference in differing:
        yield _build_problem(rows, difference, reading.times, places)


class _ObjectPlaces(NamedTuple):
    """The workloads and the owners of objects, by their ids."""

    workloads: dict[int, Workload | None]
    owners: dict[int, str]


def _read_places(
    connection: Connection, reading: ComparedSides, differences: Sequence[ProblemDifference]
) -> _ObjectPlaces:
    """The places of the first objects of problems: of resolved ones at the earlier scan, of others at the later one."""
    places = _ObjectPlaces({}, {})
    for revision, resolved in ((reading.period.before, True), (reading.period.now, False)):
        chosen = [each for each in differences if (each.change is ProblemChange.RESOLVED) is resolved]
        ids = [_first_finding(each).object_id for each in chosen]
        places.workloads.update(read_workloads(connection, ids, revision))
        if reading.owner_of is not None:
            labels = KeptLabels(connection, reading.cluster, revision, reading.owner_of.names)
            places.owners.update(read_object_owners(labels, reading.owner_of, ids))
    return places


def _first_finding(difference: ProblemDifference) -> ComparedFinding:
    return (difference.now or difference.before)[0]


def _build_problem(
    rows: Sequence[ComparedRow], difference: ProblemDifference, times: Times, places: _ObjectPlaces
) -> DifferingProblem:
    by_number = {row.finding.number: row for row in rows}
    row = by_number[_first_finding(difference).number]
    place, check = row.place, row.check
    itself = Workload(place.api_version, place.kind, place.coordinates.namespace, place.name)
    before, now = _choose_messages(difference)
    was_checked = sum(not each.unchecked_before for each in difference.before)
    is_checked = sum(not each.unchecked for each in difference.now)
    assert difference.change is not None  # noqa: S101 - only such problems are listed
    return DifferingProblem(
        id=problem_id(row.problem) if row.problem >= 0 else row.finding.fingerprint.hex()[:SHORT],
        change=difference.change,
        cause=difference.cause,
        language=check.language,
        policy=check.policy,
        check=check.make_check(),
        workload=places.workloads.get(place.object_id) or itself,
        first_seen=times[min(each.finding.problem_first for each in rows)],
        resolved_at=times[difference.end] if difference.end else None,
        resolution=difference.resolution,
        parts=difference.parts,
        before=_build_state(difference.before, by_number, before, checked=was_checked),
        now=_build_state(difference.now, by_number, now, checked=is_checked, unchecked=difference.unchecked),
        owner=places.owners.get(place.object_id, ""),
        moved_to=difference.moved_to,
    )


def _choose_messages(difference: ProblemDifference) -> tuple[ComparedFinding | None, ComparedFinding | None]:
    """The findings whose messages stand for the problem in both scans: if there are, those with another message."""
    before, now = difference.before, difference.now
    return _choose_message(before, now), _choose_message(now, before)


def _choose_message(findings: Sequence[ComparedFinding], others: Sequence[ComparedFinding]) -> ComparedFinding | None:
    messages = {each.effect.message for each in others}
    return next((each for each in findings if each.effect.message not in messages), findings[0] if findings else None)


def _build_state(
    findings: Sequence[ComparedFinding],
    rows: dict[int, ComparedRow],
    shown: ComparedFinding | None,
    *,
    checked: int,
    unchecked: int | None = None,
) -> ProblemState | None:
    """The state of a problem with the numbers of its findings that the scan checked and did not. None if it was not open."""
    if shown is None:
        return None
    row = rows[shown.number]
    message = row.verdict.make_verdict_on(row.place.name, row.place.coordinates.namespace).outcome.message
    left = len(findings) - checked if unchecked is None else unchecked
    return replace(state_of(findings), message=message, findings=checked, unchecked=left)
