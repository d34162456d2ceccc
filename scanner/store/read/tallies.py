"""Reads the tallies of a scan: there are thousands, of few checks and kinds, each of which is read once."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import chain, repeat
from typing import Any, NamedTuple, TypeAlias, TypeVar

from sqlalchemy import ColumnElement, Connection, Table, func, select

from scanner.model.outcome import SkipReason
from scanner.model.scans.census import OwnerOf
from scanner.model.scans.tally import OutcomeName, OwnedTally, TallyKey
from scanner.store.database.engine import is_among, select_numbers
from scanner.store.history.evaluated_sets import read_sets_of_scan
from scanner.store.read.findings import is_open_in
from scanner.store.read.kept_labels import KeptLabels, ObjectOwners
from scanner.store.rows.columns import CheckColumns, KindColumns, columns_of
from scanner.store.rows.interning import CHUNK, chunks
from scanner.store.rows.row_ids import RowIdSet
from scanner.store.rows.tables import CHECKS, FINDINGS, KINDS, VERDICTS
from scanner.store.rows.tally_lists import read_tally_rows

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
"""Findings by check and kind, and by outcome: the number of an owner, the number of its findings, the next owner and so on.

A negative number of findings leaves as many out.
"""


def tally_by_owner(
    connection: Connection, cluster: int, scan: int, revision: int, unchecked: RowIdSet, owner_of: OwnerOf
) -> Iterator[OwnedTally]:
    """The outcomes of a scan, by its number and revision, by owner; none of a scan of an older version.

    `unchecked` are the rows of findings that the scan did not check.
    """
    if not any(True for _ in read_sets_of_scan(connection, scan)):
        return
    owners = ObjectOwners(KeptLabels(connection, cluster, revision, owner_of.names), owner_of)
    findings = _read_findings(connection, cluster, revision, unchecked, owners)
    keys = _Keys(connection, scan)
    for place, by_outcome in findings.items():
        for outcome, pairs in by_outcome.items():
            if numbers := +_add_up(pairs):
                yield OwnedTally(keys.key_of(place, outcome), owners.name_numbers(numbers))
    yield from _tally_sets(connection, scan, owners, findings, keys)


def _tally_sets(
    connection: Connection, scan: int, owners: ObjectOwners, findings: _Findings, keys: _Keys
) -> Iterator[OwnedTally]:
    """The tallies of the objects without a finding. Checks of the same sets of objects share one count."""
    for api_version, kind, sets in read_sets_of_scan(connection, scan):
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


def _read_findings(
    connection: Connection, cluster: int, revision: int, unchecked: RowIdSet, owners: ObjectOwners
) -> _Findings:
    """The findings that the scan of a revision saw."""
    rows = connection.execute(select(KINDS.c.id, KINDS.c.api_version, KINDS.c.kind))
    kinds = {number: (api_version, kind) for number, api_version, kind in rows}
    seen = is_open_in(cluster, revision)
    left_out = (seen & is_among(connection, FINDINGS.c.id, portion) for portion in chunks(list(unchecked)))
    findings: _Findings = {}
    for sign, chosen in chain([(1, seen)], zip(repeat(-1), left_out)):
        for check, kind, outcome, owner, number in _group_findings(connection, chosen, owners):
            of_place = findings.setdefault(_CheckPlace(check, *kinds[kind]), {})
            of_place.setdefault(outcome, array("q")).extend((owner, sign * number))
    return findings


def _group_findings(
    connection: Connection, chosen: ColumnElement[bool], owners: ObjectOwners
) -> Iterator[tuple[int, int, OutcomeName, int, int]]:
    """Some findings: the ids of check and kind, the outcome, the number of the owner, and how many of them there are."""
    finding, verdict = FINDINGS.c, VERDICTS.c
    facts = (
        select(
            finding.check.label("check"),
            finding.kind.label("kind"),
            verdict.outcome.label("outcome"),
            verdict.would_deny.label("would_deny"),
            (verdict.excepted_by != "").label("excepted"),
            owners.number_column(finding.object).label("owner"),
        )
        .join(VERDICTS, verdict.id == finding.verdict)
        .where(chosen)
        .subquery()
    )
    grouped = select(*facts.c, func.count().label("number")).group_by(*facts.c).execution_options(yield_per=CHUNK)
    with connection.execute(grouped) as rows:
        for row in rows:
            name = _outcome_of(row.outcome, would_deny=bool(row.would_deny), excepted=bool(row.excepted))
            yield row.check, row.kind, name, owners.decode_number(bytes(row.owner)), row.number


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
        rows = read_tally_rows(connection, scan)
        self._requester = frozenset(row.check for row in rows if row.requester)
        self._checks = read_checks(connection, {row.check for row in rows})

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
            requester=place.check in self._requester,
            language=check.language,
        )
