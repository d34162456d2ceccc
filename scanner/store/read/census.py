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
from scanner.store.database.engine import is_among
from scanner.store.read.findings import is_open_in, status_of, was_resolved_in
from scanner.store.read.kept_labels import KeptLabels, ObjectOwners
from scanner.store.rows.interning import CHUNK, chunks
from scanner.store.rows.row_ids import RowIdSet
from scanner.store.rows.tables import CHECKS, FINDINGS, OBJECTS, VERDICTS


def count_seen(connection: Connection, cluster: int, revision: int, unchecked: RowIdSet) -> Census:
    """The numbers of the findings of the scan of a revision, without those that it left unchecked."""
    seen = is_open_in(cluster, revision)
    census = _count_buckets(connection, seen, revision)
    for portion in chunks(list(unchecked)):
        census.subtract(_count_buckets(connection, seen & is_among(connection, FINDINGS.c.id, portion), revision))
    return +census


def count_seen_by_owner(
    connection: Connection, cluster: int, revision: int, unchecked: RowIdSet, owner_of: OwnerOf
) -> Iterator[OwnedCensus]:
    """The same numbers by owner, in no order."""
    seen = is_open_in(cluster, revision)
    owners = ObjectOwners(
        KeptLabels(connection, cluster, revision, owner_of.names), owner_of, select(FINDINGS.c.object).where(seen)
    )
    left_out: defaultdict[int, Counter[Bucket]] = defaultdict(Counter)
    for portion in chunks(list(unchecked)):
        chosen = seen & is_among(connection, FINDINGS.c.id, portion)
        for number, counted in _count_by_owner(connection, chosen, revision, owners):
            left_out[number].update(counted)
    for number, counted in _count_by_owner(connection, seen, revision, owners):
        if census := counted - left_out[number]:
            yield OwnedCensus(owners.names[number], census)


def count_resolutions(connection: Connection, cluster: int, revision: int) -> dict[str, int]:
    """The numbers of the findings that the scan of a revision resolved, by reason."""
    reason_column = FINDINGS.c.resolution
    counted = select(reason_column, func.count()).where(was_resolved_in(cluster, revision)).group_by(reason_column)
    return {reason or "": number for reason, number in connection.execute(counted)}


def _count_buckets(connection: Connection, chosen: ColumnElement[bool], revision: int) -> Counter[Bucket]:
    """The number of findings in each bucket."""
    buckets: Counter[Bucket] = Counter()
    for row in _read_groups(connection, OBJECTS.c.namespace, chosen, revision):
        buckets[_bucket_of(row, row.first)] += row.number
    return buckets


def _count_by_owner(
    connection: Connection, chosen: ColumnElement[bool], revision: int, owners: ObjectOwners
) -> Iterator[tuple[int, Counter[Bucket]]]:
    """The numbers of one owner after another, with the number of the owner."""
    rows = _read_groups(connection, owners.number_column(FINDINGS.c.object), chosen, revision)
    for number, of_owner in groupby(rows, lambda row: owners.decode_number(bytes(row.first))):
        buckets: Counter[Bucket] = Counter()
        for row in of_owner:
            buckets[_bucket_of(row, "")] += row.number
        yield number, buckets


def _read_groups(
    connection: Connection, first: ColumnElement[Any], chosen: ColumnElement[bool], revision: int
) -> Iterator[Row[Any]]:
    """The numbers of findings that are alike, ordered by the first column, with their check."""
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
    named = select(groups, CHECKS.c.language, CHECKS.c.policy, CHECKS.c.expression).join(
        CHECKS, CHECKS.c.id == groups.c.check
    )
    with connection.execute(named.order_by(groups.c.first).execution_options(yield_per=CHUNK)) as rows:
        yield from rows


def _bucket_of(row: Row[Any], namespace: str) -> Bucket:
    status = status_of(row.event, begins=bool(row.begins))
    return Bucket((row.language, row.policy), row.expression, namespace, status, bool(row.denies), bool(row.drift))
