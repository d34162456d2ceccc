"""Counts stored findings in aggregate queries, without reading them.

The owners of the objects with findings are read first, because one object may have many findings. The query has them as numbers, so
that it has few groups, however many different labels the objects have, and those of one owner together: memory holds one owner.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, func, select

from scanner.model.scans.census import Bucket, Census, OwnedCensus, OwnerOf
from scanner.store.database.engine import among
from scanner.store.read.findings import resolved_in, seen_in, status_of
from scanner.store.read.kept_labels import KeptLabels, ObjectOwners
from scanner.store.rows.interning import CHUNK, chunks
from scanner.store.rows.row_ids import RowIdSet
from scanner.store.rows.tables import CHECKS, FINDINGS, OBJECTS, VERDICTS


def census_of_seen(connection: Connection, cluster: int, revision: int, unchecked: RowIdSet) -> Census:
    """The numbers of the findings of the scan of a revision, without those that it left unchecked."""
    seen = seen_in(cluster, revision)
    census = _counted(connection, seen, revision)
    for portion in chunks(list(unchecked)):
        census.subtract(_counted(connection, seen & among(connection, FINDINGS.c.id, portion), revision))
    return +census


def owned_census(
    connection: Connection, cluster: int, revision: int, unchecked: RowIdSet, owner_of: OwnerOf
) -> Iterator[OwnedCensus]:
    """The same numbers by owner, in no order."""
    seen = seen_in(cluster, revision)
    owners = ObjectOwners(
        KeptLabels(connection, cluster, revision, owner_of.names), owner_of, select(FINDINGS.c.object).where(seen)
    )
    left_out: defaultdict[int, Counter[Bucket]] = defaultdict(Counter)
    for portion in chunks(list(unchecked)):
        chosen = seen & among(connection, FINDINGS.c.id, portion)
        for number, counted in _owned(connection, chosen, revision, owners):
            left_out[number].update(counted)
    for number, counted in _owned(connection, seen, revision, owners):
        if census := counted - left_out[number]:
            yield OwnedCensus(owners.names[number], census)


def resolutions_of(connection: Connection, cluster: int, revision: int) -> dict[str, int]:
    """The numbers of the findings that the scan of a revision resolved, by reason."""
    own = FINDINGS.c.resolution
    counted = select(own, func.count()).where(resolved_in(cluster, revision)).group_by(own)
    return {reason or "": number for reason, number in connection.execute(counted)}


def _counted(connection: Connection, chosen: ColumnElement[bool], revision: int) -> Counter[Bucket]:
    """The number of findings in each bucket."""
    buckets: Counter[Bucket] = Counter()
    for row in _grouped(connection, OBJECTS.c.namespace, chosen, revision):
        buckets[_bucket(row, row.first)] += row.number
    return buckets


def _owned(
    connection: Connection, chosen: ColumnElement[bool], revision: int, owners: ObjectOwners
) -> Iterator[tuple[int, Counter[Bucket]]]:
    """The numbers of one owner after another, with the number of the owner."""
    rows = _grouped(connection, owners.column(FINDINGS.c.object), chosen, revision)
    for number, of_owner in groupby(rows, lambda row: owners.number(bytes(row.first))):
        buckets: Counter[Bucket] = Counter()
        for row in of_owner:
            buckets[_bucket(row, "")] += row.number
        yield number, buckets


def _grouped(
    connection: Connection, first: ColumnElement[Any], chosen: ColumnElement[bool], revision: int
) -> Iterator[Row[Any]]:
    """The numbers of findings that are alike, ordered by the first column, with the policy of their check."""
    facts = (
        select(
            first.label("first"),
            FINDINGS.c.check.label("check"),
            FINDINGS.c.event.label("event"),
            (FINDINGS.c.since == revision).label("begins"),
            VERDICTS.c.denies.label("denies"),
            (VERDICTS.c.outcome == "wouldChange").label("drift"),
        )
        .select_from(FINDINGS)
        .join(VERDICTS, VERDICTS.c.id == FINDINGS.c.verdict)
        .join(OBJECTS, OBJECTS.c.id == FINDINGS.c.object)
        .where(chosen)
        .subquery()
    )
    groups = select(*facts.c, func.count().label("number")).group_by(*facts.c).subquery()
    named = select(groups, CHECKS.c.language, CHECKS.c.policy).join(CHECKS, CHECKS.c.id == groups.c.check)
    with connection.execute(named.order_by(groups.c.first).execution_options(yield_per=CHUNK)) as rows:
        yield from rows


def _bucket(row: Row[Any], namespace: str) -> Bucket:
    status = status_of(row.event, begins=bool(row.begins))
    return Bucket((row.language, row.policy), namespace, status, bool(row.denies), bool(row.drift))
