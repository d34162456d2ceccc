"""Reads the tallies of a scan: there are thousands, of few checks and kinds, each of which is read once."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias, TypeVar

from sqlalchemy import Connection, Table, select

from scanner.model.outcome import SkipReason
from scanner.model.scans.census import OwnerOf
from scanner.model.scans.tally import OutcomeName, OwnedTally, TallyKey
from scanner.store.database.engine import select_numbers
from scanner.store.history.evaluated_sets import KindOfScan, read_sets_of_scan
from scanner.store.read.census import GroupOfFindings, read_finding_groups
from scanner.store.read.kept_labels import KeptLabels, ObjectNames, PlacedObjects
from scanner.store.rows.columns import CheckColumns, KindColumns, columns_of
from scanner.store.rows.row_ids import RowIdSet
from scanner.store.rows.tables import CHECKS, FINDINGS, KINDS
from scanner.store.rows.tally_lists import read_tallied_checks, read_tally_rows

_RowT = TypeVar("_RowT", CheckColumns, KindColumns)


def read_tallies(connection: Connection, number: int) -> dict[TallyKey, int]:
    """The tallies of a scan by its number, in the order of checks and kinds."""
    rows = read_tally_rows(connection, number)
    checks = read_checks(connection, {row.check for row in rows})
    kinds = _read_by_id(connection, KINDS, KindColumns, {row.kind for row in rows})
    check_ranks, kind_ranks = _rank_rows(checks, _order_of_check), _rank_rows(kinds, _order_of_kind)
    rows.sort(key=lambda row: (check_ranks[row.check], kind_ranks[row.kind], row.namespace, row.outcome))
    outcomes = {name.value: name for name in OutcomeName}
    parts = {number: (*_invocation_of(check), check.make_check()) for number, check in checks.items()}
    return {
        TallyKey(
            *parts[row.check],
            kinds[row.kind].api_version,
            kinds[row.kind].kind,
            row.namespace,
            outcomes[row.outcome],
            row.requester,
            checks[row.check].language,
        ): row.number
        for row in rows
    }


def read_checks(connection: Connection, ids: Collection[int]) -> Mapping[int, CheckColumns]:
    """Checks by id."""
    return _read_by_id(connection, CHECKS, CheckColumns, ids)


def _read_by_id(
    connection: Connection, table: Table, columns: type[_RowT], ids: Collection[int]
) -> Mapping[int, _RowT]:
    """Rows of a table by id."""
    if not ids:
        return {}
    wanted = select(table.c.id, *columns_of(table, columns)).where(
        table.c.id.in_(select_numbers(connection, sorted(ids)))
    )
    return {number: columns(*values) for number, *values in connection.execute(wanted)}


def _invocation_of(check: CheckColumns) -> tuple[str, str, str, str]:
    return check.policy, check.binding, check.param_namespace, check.param_name


def _order_of_check(check: CheckColumns) -> tuple[str | int, ...]:
    """The order of checks in a report, as `findings.CHECK_ORDER` has it."""
    place = check.binding, check.param_namespace, check.param_name
    return check.policy, check.language, *place, check.kind, check.index, check.expression


def _order_of_kind(kind: KindColumns) -> tuple[str, str]:
    return kind.kind, kind.api_version


def _rank_rows(rows: Mapping[int, _RowT], order: Callable[[_RowT], Any]) -> dict[int, int]:
    """The place of each row in an order, by id."""
    return {number: rank for rank, number in enumerate(sorted(rows, key=lambda each: order(rows[each])))}


# Counts the outcomes of a scan by the owners of the objects, from its sets of objects and its findings.
#
# An object passes a check if the check was evaluated on it and no finding has both. The sets are one bit for each
# object, and the owner of each object is a number: the objects of a set are counted by these numbers in one pass,
# however many owners there are.


class _CheckPlace(NamedTuple):
    """A check of an invocation, by its id, and a kind of objects."""

    check: int
    api_version: str
    kind: str


_Findings: TypeAlias = dict[_CheckPlace, dict[OutcomeName, "array[int]"]]
"""Findings by check and kind, and by outcome: the number of an owner, the number of its findings, the next owner and so on."""


def tally_by_owner(
    connection: Connection, cluster: int, scan: int, revision: int, unchecked: RowIdSet, owner_of: OwnerOf
) -> Iterator[OwnedTally]:
    """The outcomes of a scan, by its number and revision, by owner; none of a scan of an older version.

    `unchecked` are the rows of findings that the scan did not check.
    """
    owners = PlacedObjects(KeptLabels(connection, cluster, revision, owner_of.names), owner_of).owners
    owner = owners.number_column(FINDINGS.c.object)
    yield from tally_owners(
        connection, scan, owners, read_finding_groups(connection, cluster, revision, unchecked, owner)
    )


def tally_owners(
    connection: Connection, scan: int, owners: ObjectNames, found: Iterable[GroupOfFindings]
) -> Iterator[OwnedTally]:
    """The same, given the owners and the findings of each."""
    sets = list(read_sets_of_scan(connection, scan))
    if not sets:
        return
    findings = _find_places(connection, owners, found)
    keys = _Keys(connection, scan)
    for place, by_outcome in findings.items():
        for outcome, pairs in by_outcome.items():
            yield OwnedTally(keys.key_of(place, outcome), owners.name_numbers(_add_up(pairs)))
    for kind in sets:
        yield from _tally_sets(kind, owners, findings, keys)


def _tally_sets(
    kind_of_scan: tuple[str, str, KindOfScan], owners: ObjectNames, findings: _Findings, keys: _Keys
) -> Iterator[OwnedTally]:
    """The tallies of the objects of a kind without a finding. Checks of the same sets of objects share one count."""
    api_version, kind, sets = kind_of_scan
    of_check: defaultdict[tuple[int, str], list[RowIdSet]] = defaultdict(list)
    for checks, ids in sets.sets:
        for pair in checks:
            of_check[pair].append(ids)
    alike: defaultdict[tuple[int, ...], list[tuple[int, str]]] = defaultdict(list)
    for pair, several in of_check.items():
        alike[tuple(map(id, several))].append(pair)
    for checks_of_sets in alike.values():
        counted: Counter[int] = Counter()
        for ids in of_check[checks_of_sets[0]]:
            counted.update(owners.count_objects(ids))
        for check, reason in checks_of_sets:
            place = _CheckPlace(check, api_version, kind)
            numbers = Counter(counted)
            for pairs in findings.get(place, {}).values() if not reason else ():
                numbers.subtract(_add_up(pairs))
            yield OwnedTally(keys.key_of(place, _outcome_of_reason(reason)), owners.name_numbers(+numbers))


def _add_up(pairs: array[int]) -> Counter[int]:
    """The number of findings by the number of the owner."""
    numbers: Counter[int] = Counter()
    for owner, number in zip(pairs[::2], pairs[1::2], strict=True):
        numbers[owner] += number
    return numbers


def _outcome_of_reason(reason: str) -> OutcomeName:
    if not reason:
        return OutcomeName.PASSED
    return OutcomeName.NOT_AUDITABLE if reason == SkipReason.NOT_AUDITABLE else OutcomeName.SKIPPED


def _find_places(connection: Connection, owners: ObjectNames, found: Iterable[GroupOfFindings]) -> _Findings:
    rows = connection.execute(select(KINDS.c.id, KINDS.c.api_version, KINDS.c.kind))
    kinds = {number: (api_version, kind) for number, api_version, kind in rows}
    findings: _Findings = {}
    for group in found:
        outcome = _outcome_of(group.outcome, would_deny=bool(group.would_deny), excepted=bool(group.excepted))
        of_place = findings.setdefault(_CheckPlace(group.check, *kinds[group.kind]), {})
        of_place.setdefault(outcome, array("q")).extend((owners.decode_number(group.first), int(group.number)))
    return findings


def _outcome_of(outcome: str, *, would_deny: bool, excepted: bool) -> OutcomeName:
    """The name under which a finding is counted: see `audit.findings.counted_as`."""
    if outcome == "wouldChange":
        return OutcomeName.WOULD_CHANGE
    if excepted:
        return OutcomeName.EXCEPTED
    if outcome == "violated":
        return OutcomeName.VIOLATED
    return OutcomeName.ERRORED_DENY if would_deny else OutcomeName.ERRORED_ADMIT


class _Keys:
    """The keys of tallies, without a namespace."""

    def __init__(self, connection: Connection, scan: int) -> None:
        """Read which checks of a scan depend on the requester."""
        self._requester = read_tallied_checks(connection, scan)
        self._checks = read_checks(connection, self._requester)

    def key_of(self, place: _CheckPlace, outcome: OutcomeName) -> TallyKey:
        """The key of the objects of a check and a kind with one outcome."""
        check = self._checks[place.check]
        return TallyKey(
            policy=check.policy,
            binding=check.binding,
            param_namespace=check.param_namespace,
            param_name=check.param_name,
            check=check.make_check(),
            api_version=place.api_version,
            kind=place.kind,
            namespace="",
            outcome=outcome,
            requester=self._requester[place.check],
            language=check.language,
        )
