"""Counts the outcomes of a scan by the owners of the objects, from its sets of objects and its findings.

An object passes a check if the check was evaluated on it and no finding has both. The sets are one bit for each object, and so are
the objects of each owner: a number is the size of the part that two sets share. Owners are counted in groups, so that memory does
not grow with their number.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, func, select

from scanner.model.census import OwnerOf
from scanner.model.outcome import SkipReason
from scanner.model.scan import OutcomeName, OwnedTally, TallyKey
from scanner.store.columns import CheckColumns, columns_of
from scanner.store.engine import among
from scanner.store.evaluated_sets import sets_of
from scanner.store.findings import seen_in
from scanner.store.interning import chunks
from scanner.store.kept_labels import KeptLabels
from scanner.store.object_owners import ObjectOwners
from scanner.store.row_ids import RowIdSet, intersection
from scanner.store.tables import CHECKS, FINDINGS, KINDS, TALLIES, VERDICTS

_BYTES: Final = 16_000_000
"""The size of the sets of a group of owners."""


class _Place(NamedTuple):
    """A check of an invocation, by its id, and a kind of objects."""

    check: int
    api_version: str
    kind: str


def tallies_by(
    connection: Connection,
    cluster: int,
    scan: int,
    revision: int,
    unchecked: RowIdSet,
    owner_of: OwnerOf,
    *,
    group_bytes: int = _BYTES,
) -> Iterator[OwnedTally]:
    """The outcomes of a scan, by its number and revision, by owner; none of a scan of an older version.

    `unchecked` are the rows of findings that the scan did not check.
    """
    if not any(True for _ in sets_of(connection, scan)):
        return
    owners = ObjectOwners(KeptLabels(connection, cluster, revision), owner_of)
    findings = _findings(connection, cluster, revision, unchecked, owners)
    keys = _Keys(connection, scan)
    for place, by_outcome in findings.items():
        for outcome, numbers in by_outcome.items():
            yield OwnedTally(keys.of(place, outcome), numbers)
    for group in owners.groups(group_bytes):
        yield from _of_sets(connection, scan, group, findings, keys)


def _of_sets(
    connection: Connection,
    scan: int,
    group: Mapping[str, RowIdSet],
    findings: Mapping[_Place, Mapping[OutcomeName, Counter[str]]],
    keys: _Keys,
) -> Iterator[OwnedTally]:
    """The tallies of the objects without a finding, of some owners."""
    for api_version, kind, sets in sets_of(connection, scan):
        counted: dict[int, dict[str, int]] = {}
        numbers: defaultdict[tuple[int, str], Counter[str]] = defaultdict(Counter)
        for checks, ids in sets.sets:
            if id(ids) not in counted:
                counted[id(ids)] = {owner: shared for owner, own in group.items() if (shared := _shared(own, ids))}
            for check, reason in checks:
                numbers[check, reason].update(counted[id(ids)])
        for (check, reason), by_owner in numbers.items():
            place = _Place(check, api_version, kind)
            if not reason:
                for found in findings.get(place, {}).values():
                    by_owner.subtract({owner: number for owner, number in found.items() if owner in group})
            yield OwnedTally(keys.of(place, _outcome(reason)), +by_owner)


def _shared(first: RowIdSet, second: RowIdSet) -> int:
    return intersection(first, second).count


def _outcome(reason: str) -> OutcomeName:
    if not reason:
        return OutcomeName.PASSED
    return OutcomeName.NOT_AUDITABLE if reason == SkipReason.NOT_AUDITABLE else OutcomeName.SKIPPED


def _findings(
    connection: Connection, cluster: int, revision: int, unchecked: RowIdSet, owners: ObjectOwners
) -> dict[_Place, dict[OutcomeName, Counter[str]]]:
    """The findings that the scan of a revision saw, by check, kind, outcome and owner."""
    rows = connection.execute(select(KINDS.c.id, KINDS.c.api_version, KINDS.c.kind))
    kinds = {number: (api_version, kind) for number, api_version, kind in rows}
    seen = seen_in(cluster, revision)
    counted = _grouped(connection, seen, owners)
    for portion in chunks(list(unchecked)):
        counted.subtract(_grouped(connection, seen & among(connection, FINDINGS.c.id, portion), owners))
    findings: dict[_Place, dict[OutcomeName, Counter[str]]] = {}
    for (check, kind, outcome, owner), number in (+counted).items():
        of_place = findings.setdefault(_Place(check, *kinds[kind]), {})
        of_place.setdefault(outcome, Counter())[owner] += number
    return findings


def _grouped(
    connection: Connection, chosen: ColumnElement[bool], owners: ObjectOwners
) -> Counter[tuple[int, int, OutcomeName, str]]:
    """The number of some findings by the ids of check and kind, the outcome and the owner."""
    own, verdict = FINDINGS.c, VERDICTS.c
    facts = (
        select(
            own.check.label("check"),
            own.kind.label("kind"),
            verdict.outcome.label("outcome"),
            verdict.would_deny.label("would_deny"),
            (verdict.excepted_by != "").label("excepted"),
            owners.column(own.object).label("owner"),
        )
        .join(VERDICTS, verdict.id == own.verdict)
        .where(chosen)
        .subquery()
    )
    counted: Counter[tuple[int, int, OutcomeName, str]] = Counter()
    for row in connection.execute(select(*facts.c, func.count().label("number")).group_by(*facts.c)):
        name = _outcome_of(row.outcome, would_deny=bool(row.would_deny), excepted=bool(row.excepted))
        counted[row.check, row.kind, name, owners.unpacked(bytes(row.owner))] += row.number
    return counted


def _outcome_of(outcome: str, *, would_deny: bool, excepted: bool) -> OutcomeName:
    """The name under which a finding is counted: see `audit.tally.counted_as`."""
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
        depending = select(TALLIES.c.check).where(and_(TALLIES.c.scan == scan, TALLIES.c.requester)).distinct()
        self._requester = frozenset(connection.execute(depending).scalars())
        tallied = select(TALLIES.c.check).where(TALLIES.c.scan == scan).distinct()
        numbers = sorted(connection.execute(tallied).scalars())
        self._checks: dict[int, CheckColumns] = {}
        for portion in chunks(numbers):
            wanted = select(CHECKS.c.id, *columns_of(CHECKS, CheckColumns))
            for number, *columns in connection.execute(wanted.where(among(connection, CHECKS.c.id, portion))):
                self._checks[number] = CheckColumns._make(columns)

    def of(self, place: _Place, outcome: OutcomeName) -> TallyKey:
        """The key of the objects of a check and a kind with one outcome."""
        check = self._checks[place.check]
        return TallyKey(
            policy=check.policy,
            binding=check.binding,
            param_namespace=check.param_namespace,
            param_name=check.param_name,
            check=check.check(),
            api_version=place.api_version,
            kind=place.kind,
            namespace="",
            outcome=outcome,
            requester=place.check in self._requester,
            language=check.language,
        )
