"""All numbers of a scan that its first page shows, at once: from one query over its objects and two over its findings.

Each number is also the answer to one question of `StoredScan`, which a report of few numbers asks by itself; tests compare both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import partial
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    BigInteger,
    Connection,
    LargeBinary,
    Select,
    and_,
    case,
    cast,
    func,
    literal,
    null,
    select,
    union_all,
)

from scanner.model.scans.census import Census, OwnedCensus, OwnerOf
from scanner.model.scans.problem_numbers import (
    GroupedProblems,
    OpenProblems,
    ProblemGroup,
    ProblemTotals,
    SeverityRanks,
)
from scanner.model.scans.stored_finding import ProblemFinding
from scanner.model.scans.tally import OwnedTally
from scanner.posture.grouped_problems import join_groups
from scanner.store.history.problem_clocks import FIRST, OPENED
from scanner.store.read.census import count_buckets, count_owners, read_finding_groups
from scanner.store.read.findings import is_open_in
from scanner.store.read.kept_labels import NOT_READ, KeptLabels, ObjectNames, PlacedObjects
from scanner.store.read.open_problems import (
    IS_PODS,
    MILDEST_FIRST,
    NUMBER,
    OUTCOMES,
    ScanPlace,
    rank_actions,
    rank_outcome,
    rank_severity,
    select_counted_findings,
)
from scanner.store.read.problem_counts import count_resolved, read_open_findings
from scanner.store.read.tallies import read_checks, tally_owners
from scanner.store.rows.columns import CheckColumns
from scanner.store.rows.tables import FINDINGS, SCANS, VERDICTS

_NO_NAME: Final = cast(null(), LargeBinary)
_NO_PROBLEM: Final = cast(null(), BigInteger)


@dataclass(frozen=True, slots=True)
class AllNumbers:
    """The numbers of a scan; the fields have the names of the questions of `StoredScan` whose answers they are."""

    census: Census = field(default_factory=dict)
    census_by_owner: tuple[OwnedCensus, ...] = ()
    tallies_by_owner: tuple[OwnedTally, ...] = ()
    problem_totals: tuple[ProblemTotals, tuple[ProblemFinding, ...]] = (ProblemTotals(), ())
    problem_groups: tuple[ProblemGroup, ...] = ()
    problems_by_namespace: GroupedProblems = field(default_factory=GroupedProblems)
    problems_by_owner: GroupedProblems = field(default_factory=GroupedProblems)


def read_all_numbers(
    connection: Connection,
    place: ScanPlace,
    scan: int,
    owner_of: OwnerOf,
    ranks: SeverityRanks,
    waived: frozenset[int],
    most: int,
) -> AllNumbers:
    """The numbers of a scan, by its number and place; the findings of the worst problems are those of `most` of them."""
    objects = PlacedObjects(KeptLabels(connection, place.cluster, place.revision, owner_of.names), owner_of)
    owners, namespaces, of_object = objects.owners, objects.namespaces, FINDINGS.c.object
    by_owner = [*read_finding_groups(connection, *place, owners.number_column(of_object))]
    by_namespace = [*read_finding_groups(connection, *place, namespaces.number_column(of_object))]
    if any(namespaces.decode_number(each.first) == NOT_READ for each in by_namespace):
        objects.add_namespaces(select(of_object).where(is_open_in(place.cluster, place.revision)))
        by_namespace = [*read_finding_groups(connection, *place, namespaces.number_column(of_object))]
    problems = _read_problems(connection, place, ranks, waived, most, objects)
    resolved, fixed = count_resolved(connection, place)
    return AllNumbers(
        census=count_buckets((each, namespaces.decode(each.first)) for each in by_namespace),
        census_by_owner=tuple(count_owners(owners, by_owner)),
        tallies_by_owner=tuple(tally_owners(connection, scan, owners, by_owner)),
        problem_totals=(
            replace(problems.totals(), resolved=resolved, fixed=fixed),
            tuple(read_open_findings(connection, place, problems.worst)),
        ),
        problem_groups=problems.groups(read_checks(connection, problems.checks), ranks),
        problems_by_namespace=problems.by_namespace(namespaces.names),
        problems_by_owner=problems.by_owner(owners.names),
    )


class _ProblemFacts(NamedTuple):
    """The facts that open problems share. `opens` tells that their episodes, `begins` that they themselves begin with the scan."""

    check: int
    action: int
    outcome: int
    refused: int
    pods: int
    opens: int
    begins: int

    def numbers_of(self, number: int) -> OpenProblems:
        """The numbers of so many such problems."""
        return OpenProblems(
            number,
            number * self.refused,
            number * (self.opens and self.begins),
            number * (self.pods and not self.refused),
        )


class _RowKind(IntEnum):
    """The kinds of rows that the statement about problems has: three count the problems whose objects have one owner and one namespace."""

    BY_CHECK = 0
    BY_NAMESPACE = 1
    BY_OWNER = 2
    PART = 3
    WORST = 4


class _Row(NamedTuple):
    """A row of that statement. The names are bytes of `ObjectNames.number_column`, None where they are not known, and so is `problem`."""

    kind: _RowKind
    problem: int | None
    namespace: bytes | None
    owner: bytes | None
    facts: _ProblemFacts
    number: int


class _OpenProblems:
    """The open problems of a scan without waived rows, counted by their facts, and by the owners and namespaces of their objects.

    `worst` are the numbers of the worst of them, `checks` the ids of all checks.
    """

    def __init__(self, rows: Sequence[_Row]) -> None:
        """Take the rows of the statement."""
        of_kind: defaultdict[_RowKind, list[_Row]] = defaultdict(list)
        for row in rows:
            of_kind[row.kind].append(row)
        self._counted: Final = of_kind
        self._several: Final = [*_join_parts(of_kind[_RowKind.PART])]
        self._by_check: Final = [
            *((row.facts, row.number) for row in of_kind[_RowKind.BY_CHECK]),
            *((facts, 1) for _, facts in self._several),
        ]
        self.worst: Final = [row.problem for row in of_kind[_RowKind.WORST] if row.problem is not None]
        self.checks: Final = {facts.check for facts, _ in self._by_check}

    def totals(self) -> ProblemTotals:
        """The numbers of all open problems."""
        sums = OpenProblems()
        for facts, number in self._by_check:
            sums = sums.add(facts.numbers_of(number))
        reopened = sum(number for facts, number in self._by_check if facts.opens and not facts.begins)
        return ProblemTotals(sums.open, sums.refused, sums.new, reopened, pods_refused=sums.pods_refused)

    def groups(self, checks: Mapping[int, CheckColumns], ranks: SeverityRanks) -> tuple[ProblemGroup, ...]:
        """The answer of `StoredScan.problem_groups`, given the checks by id."""
        sums: defaultdict[tuple[str, str, int, str, str], OpenProblems] = defaultdict(OpenProblems)
        for facts, number in self._by_check:
            check = checks[facts.check]
            rank = ranks.of((check.language, check.policy), check.expression)
            key = check.language, check.policy, rank, ("", *MILDEST_FIRST)[facts.action], OUTCOMES[facts.outcome]
            sums[key] = sums[key].add(facts.numbers_of(number))
        return tuple(ProblemGroup(*key, *numbers[:3]) for key, numbers in sorted(sums.items()))

    def by_namespace(self, names: Sequence[str]) -> GroupedProblems:
        """The answer of `StoredScan.problems_by_namespace`, given the names by number."""
        one = [(row.namespace, row) for row in self._counted[_RowKind.BY_NAMESPACE]]
        return _join_names(names, one, (({row.namespace for row in rows}, facts) for rows, facts in self._several))

    def by_owner(self, names: Sequence[str]) -> GroupedProblems:
        """The answer of `StoredScan.problems_by_owner`, given the names by number."""
        one = [(row.owner, row) for row in self._counted[_RowKind.BY_OWNER]]
        return _join_names(names, one, (({row.owner for row in rows}, facts) for rows, facts in self._several))


def _join_parts(rows: Iterable[_Row]) -> Iterator[tuple[Sequence[_Row], _ProblemFacts]]:
    """The problems whose objects have several owners or namespaces, and their facts."""
    of_problem: defaultdict[int | None, list[_Row]] = defaultdict(list)
    for row in rows:
        of_problem[row.problem].append(row)
    for parts in of_problem.values():
        *highest, opens, begins = zip(*(part.facts for part in parts), strict=True)
        yield parts, _ProblemFacts._make((*map(max, highest), min(opens), min(begins)))


def _join_names(
    names: Sequence[str],
    one: Iterable[tuple[bytes | None, _Row]],
    several: Iterable[tuple[Collection[bytes | None], _ProblemFacts]],
) -> GroupedProblems:
    """The problems in one group, and those in several, by the name of the group."""

    def name_of(data: bytes | None) -> str:
        return names[ObjectNames.decode_number(data or b"")]

    counted = [(name_of(data), 1, row.facts.numbers_of(row.number)) for data, row in one]
    counted += [(name_of(data), len(groups), facts.numbers_of(1)) for groups, facts in several for data in groups]
    return join_groups(counted)


def _read_problems(
    connection: Connection,
    place: ScanPlace,
    ranks: SeverityRanks,
    waived: frozenset[int],
    most: int,
    objects: PlacedObjects,
) -> _OpenProblems:
    columns = (
        objects.namespaces.number_column(FINDINGS.c.object).label("namespace"),
        objects.owners.number_column(FINDINGS.c.object).label("owner"),
        FINDINGS.c.check,
        rank_actions(VERDICTS.c.actions).label("action"),
        rank_outcome(VERDICTS.c.outcome).label("outcome"),
        rank_severity(connection, FINDINGS.c.check, ranks).label("rank"),
        case((VERDICTS.c.denies, 1), else_=0).label("refused"),
        *(IS_PODS.label("pods"), FIRST.label("first"), OPENED.label("opened")),
    )
    findings = select_counted_findings(connection, place, waived, NUMBER, *columns).subquery()
    rows = connection.execute(_select_numbers(findings.c, place, most)).all()
    return _OpenProblems(
        [
            _Row(_RowKind(kind), problem, namespace, owner, _ProblemFacts(*facts), number)
            for kind, problem, namespace, owner, *facts, number in rows
        ]
    )


def _select_numbers(findings: Any, place: ScanPlace, most: int) -> Any:
    """One statement, so that findings are grouped by problem once."""
    group = findings.problem, findings.namespace, findings.owner
    highest = (func.max(findings[name]).label(name) for name in ("check", "action", "outcome", "refused", "pods"))
    lowest = (func.min(findings[name]).label(name) for name in ("rank", "first", "opened"))
    size = func.count().over(partition_by=findings.problem).label("size")
    parts = select(*group, *highest, *lowest, size).group_by(*group).cte("parts")
    part = parts.c
    opens = case((part.opened == place.revision, 1), else_=0)
    begins = case((part.first == place.revision, 1), else_=0)
    effect = part.refused, part.pods, opens, begins
    facts = part.check, part.action, part.outcome, *effect
    any_check = (literal(0), literal(0), literal(0), *effect)
    alike = partial(_select_alike, part.size == 1)
    worst = _select_worst(parts, place, most)
    return union_all(
        alike(_RowKind.BY_CHECK, (_NO_NAME, _NO_NAME, *facts), facts),
        alike(_RowKind.BY_NAMESPACE, (part.namespace, _NO_NAME, *any_check), (part.namespace, *effect)),
        alike(_RowKind.BY_OWNER, (_NO_NAME, part.owner, *any_check), (part.owner, *effect)),
        select(literal(_RowKind.PART.value), *(part[column.name] for column in group), *facts, literal(1)).where(
            part.size > 1
        ),
        select(literal(_RowKind.WORST.value), worst.c.problem, _NO_NAME, _NO_NAME, *(literal(0) for _ in (*facts, 1))),
    )


def _select_alike(one: Any, kind: _RowKind, columns: Sequence[Any], keys: Sequence[Any]) -> Select[Any]:
    """The numbers of problems with equal keys, of those whose objects have one owner and one namespace."""
    return select(literal(kind.value), _NO_PROBLEM, *columns, func.count()).where(one).group_by(*keys)


def _select_worst(parts: Any, place: ScanPlace, most: int) -> Any:
    """The worst problems. The objects of one problem can have several owners and namespaces."""
    highest = (func.max(parts.c[name]).label(name) for name in ("refused", "pods"))
    lowest = (func.min(parts.c[name]).label(name) for name in ("rank", "opened"))
    whole = select(parts.c.problem, *highest, *lowest).group_by(parts.c.problem).subquery()
    # A clock may have been set back between two scans: the older problem is that with the earlier date.
    opening = and_(SCANS.c.cluster == place.cluster, SCANS.c.revision == whole.c.opened)
    order = whole.c.refused.desc(), whole.c.pods.desc(), whole.c.rank, SCANS.c.finished_at, whole.c.problem
    return select(whole.c.problem).join(SCANS, opening).order_by(*order).limit(most).subquery()
