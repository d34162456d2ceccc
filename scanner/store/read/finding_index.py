"""The findings of a scan as columns without texts, from which a list is chosen and ordered before any text is read.

A scan has many findings, and few combinations of what they refer to: each combination is decoded once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, func, select, tuple_

from scanner.model.policy import PolicyKey
from scanner.model.scans.cause import Cause
from scanner.model.scans.census import OwnerOf
from scanner.model.scans.finding_index import CombinationNumbers, CommonFacts, CommonPlace, FindingIndex
from scanner.store.database.engine import select_numbers
from scanner.store.history.problem_clocks import FIRST, OPENED
from scanner.store.read.findings import PROBLEM, has_ended_in, is_open_in, read_causes, read_scan_ends, status_of
from scanner.store.read.kept_labels import KeptLabels, PlaceOfObject
from scanner.store.read.tallies import read_checks
from scanner.store.rows.row_ids import RowIdSet
from scanner.store.rows.tables import (
    CHECKS,
    FINDINGS,
    KINDS,
    OBJECTS,
    POPULATION,
    SINGLE_SCAN_EVENTS,
    VERDICTS,
    WORKLOADS,
)

_PORTION: Final = 5_000
_ID_BYTES: Final = 6


class _FactColumns(NamedTuple):
    """The columns of a row that many findings share. `begins` tells whether the row, `is_first` whether the problem begins with the revision."""

    check: int
    verdict: int
    event: str
    begins: bool
    opened: int
    is_first: bool
    resolution: str | None
    cause: int | None
    end_cause: int | None


class _PlaceColumns(NamedTuple):
    """The columns of a row that the findings of similar objects share."""

    kind: int
    namespace: str
    workload: int | None
    kept: int | None


class _TopColumns(NamedTuple):
    """The columns of a workload."""

    kind: str
    namespace: str
    name: str


class _EffectColumns(NamedTuple):
    """The columns of a verdict without its texts."""

    outcome: str
    denies: bool
    actions: str
    excepted_by: str


def index_findings(
    connection: Connection, cluster: int, revision: int, unchecked: RowIdSet, owner_of: OwnerOf
) -> FindingIndex:
    """The findings that were open at a revision, and those that its scan resolved.

    `unchecked` are the ids of the rows that the scan left unchecked.
    """
    index = FindingIndex(unchecked=frozenset(unchecked))
    facts, places = list[CommonFacts](), list[CommonPlace]()
    referred = _ReferredRows(connection, cluster, revision)
    for resolved in (False, True):
        at = revision - int(resolved)
        chosen = has_ended_in(cluster, revision) if resolved else is_open_in(cluster, revision)
        labels = KeptLabels(connection, cluster, at, owner_of.names)
        # The labels of a namespace may be others one revision earlier: both revisions have combinations of their own.
        seen_facts, seen_places = CombinationNumbers(), CombinationNumbers()
        first_fact, first_place = len(facts), len(places)
        with connection.execute(_select_columns(chosen, revision, at).execution_options(yield_per=_PORTION)) as result:
            for portion in result.partitions():
                ids, problems, fingerprints, objects, names, *others = zip(*portion, strict=True)
                of_facts, of_places = others[: len(_FactColumns._fields)], others[len(_FactColumns._fields) :]
                index.rows.extend(ids)
                index.problems.extend(problems)
                index.ids.extend([int.from_bytes(each, "big") for each in fingerprints])
                index.objects.extend(objects)
                index.names += names
                index.facts.extend([first_fact + seen_facts[each] for each in zip(*of_facts, strict=True)])
                index.places.extend([first_place + seen_places[each] for each in zip(*of_places, strict=True)])
                new_facts = [_FactColumns._make(each) for each in islice(seen_facts, len(facts) - first_fact, None)]
                new_places = [
                    _PlaceColumns._make(each) for each in islice(seen_places, len(places) - first_place, None)
                ]
                facts += referred.build_facts(new_facts, resolved=resolved)
                places += referred.build_places(new_places, labels, owner_of)
    index.common_facts, index.common_places = tuple(facts), tuple(places)
    return index


def count_findings_by_object(
    connection: Connection,
    cluster: int,
    revision: int,
    unchecked: RowIdSet,
    policies: Collection[PolicyKey] | None = None,
) -> Counter[int]:
    """The numbers of findings that the scan of a revision has, by the id of their object; without the `unchecked` rows.

    Of some policies alone, if these are given.
    """
    wanted = select(FINDINGS.c.id, FINDINGS.c.object).where(is_open_in(cluster, revision))
    if policies is not None:
        of_policies = tuple_(CHECKS.c.language, CHECKS.c.policy).in_(sorted(policies))
        wanted = wanted.join(CHECKS, CHECKS.c.id == FINDINGS.c.check).where(of_policies)
    with connection.execute(wanted.execution_options(yield_per=_PORTION)) as result:
        return Counter(item for row, item in result if row not in unchecked)


def _select_columns(chosen: ColumnElement[bool], revision: int, at: int) -> Any:
    """The query of the columns of an index, followed by those of `_FactColumns` and `_PlaceColumns`; labels are those of the revision `at`."""
    finding, interval = FINDINGS.c, POPULATION.c
    there = and_(interval.object == finding.object, interval.since <= at, interval.until > at)
    facts = (
        *(finding.check, finding.verdict, finding.event, finding.since == revision),
        OPENED,
        FIRST == revision,
        *(finding.resolution, finding.cause, finding.end_cause),
    )
    places = finding.kind, OBJECTS.c.namespace, interval.workload, interval.kept
    return (
        select(
            *(
                finding.id,
                PROBLEM,
                func.substr(finding.fingerprint, 1, _ID_BYTES),
                finding.object,
                OBJECTS.c.name,
            ),
            *(column.label(f"fact_{number}") for number, column in enumerate(facts)),
            *(column.label(f"place_{number}") for number, column in enumerate(places)),
        )
        .select_from(FINDINGS)
        .join(OBJECTS, OBJECTS.c.id == finding.object)
        .outerjoin(POPULATION, there)
        .where(chosen)
    )


class _ReferredRows:
    """The rows to which findings refer."""

    def __init__(self, connection: Connection, cluster: int, revision: int) -> None:
        self._connection = connection
        self._revision = revision
        self._ends = {number: int(ended.timestamp()) for number, ended in read_scan_ends(connection, cluster).items()}
        self._kinds = {row.id: row.kind for row in connection.execute(select(KINDS.c.id, KINDS.c.kind))}
        self._checks: dict[int, tuple[PolicyKey, str]] = {}
        self._verdicts: dict[int, _EffectColumns] = {}
        self._causes: dict[int | None, Cause | None] = {None: None}

    def build_facts(self, rows: Sequence[_FactColumns], *, resolved: bool) -> Iterable[CommonFacts]:
        """The facts of some combinations, in their order."""
        self._read_checks({row.check for row in rows} - self._checks.keys())
        self._read_verdicts({row.verdict for row in rows} - self._verdicts.keys())
        causes = {row.end_cause if resolved else row.cause if row.begins else None for row in rows}
        self._causes.update(read_causes(self._connection, causes - self._causes.keys()))
        return [self._build_fact(row, resolved=resolved) for row in rows]

    def _build_fact(self, row: _FactColumns, *, resolved: bool) -> CommonFacts:
        verdict = self._verdicts[row.verdict]
        if row.event in SINGLE_SCAN_EVENTS:
            status: str = row.event
        elif resolved:
            status = "resolved"
        else:
            status = status_of(row.event, begins=row.begins)
        return CommonFacts(
            check=row.check,
            verdict=row.verdict,
            policy=self._checks[row.check][0],
            expression=self._checks[row.check][1],
            status=status,
            episode="open" if row.opened != self._revision else "new" if row.is_first else "reopened",
            opened=self._ends[row.opened],
            outcome=verdict.outcome,
            denies=bool(verdict.denies),
            actions=tuple(verdict.actions.split(",")) if verdict.actions else (),
            excepted=bool(verdict.excepted_by),
            cause=self._causes[row.end_cause if resolved else row.cause if row.begins else None],
            resolution=(row.resolution or "") if resolved else "",
        )

    def build_places(
        self, rows: Sequence[_PlaceColumns], labels: KeptLabels, owner_of: OwnerOf
    ) -> Iterable[CommonPlace]:
        """The places of some combinations, in their order."""
        known = [row for row in rows if row.kept is not None]
        kept = labels.read([PlaceOfObject(row.kind, row.namespace, row.workload or 0, row.kept or 0) for row in known])
        # Equal labels are one object, so each owner is found once.
        owners = {number: owner_of(each) for number, each in {id(each): each for each in kept}.items()}
        following = iter(kept)
        tops = self._read_tops({row.workload for row in rows if row.workload})
        return [
            self._build_place(row, owner_of(None) if row.kept is None else owners[id(next(following))], tops)
            for row in rows
        ]

    def _read_tops(self, numbers: set[int]) -> Mapping[int, _TopColumns]:
        """Workloads by id."""
        if not numbers:
            return {}
        top = WORKLOADS.c
        wanted = select(top.id, top.kind, top.namespace, top.name).where(
            top.id.in_(select_numbers(self._connection, sorted(numbers)))
        )
        return {number: _TopColumns(*columns) for number, *columns in self._connection.execute(wanted)}

    def _build_place(self, row: _PlaceColumns, owner: str, tops: Mapping[int, _TopColumns]) -> CommonPlace:
        top = tops.get(row.workload or 0)
        return CommonPlace(
            namespace=row.namespace,
            owner=owner,
            kind=top.kind if top else self._kinds[row.kind],
            workload="/".join(filter(None, (top.namespace, top.name))) if top else "",
            workload_row=row.workload or 0,
            kept=row.kept or 0,
            object_kind=self._kinds[row.kind],
        )

    def _read_checks(self, checks: set[int]) -> None:
        rows = read_checks(self._connection, checks)
        self._checks.update((number, ((row.language, row.policy), row.expression)) for number, row in rows.items())

    def _read_verdicts(self, numbers: set[int]) -> None:
        if not numbers:
            return
        verdict = VERDICTS.c
        columns = (verdict[name] for name in _EffectColumns._fields)
        wanted = select(verdict.id, *columns).where(verdict.id.in_(select_numbers(self._connection, sorted(numbers))))
        self._verdicts.update((row[0], _EffectColumns._make(row[1:])) for row in self._connection.execute(wanted))
