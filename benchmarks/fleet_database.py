"""A PostgreSQL or SQLite database of many clusters with many scans each: one cluster is scanned, and its history copied.

The copies have rows, ids and fingerprints of their own, so that indexes and caches see as many as real scans would write.
"""

from __future__ import annotations

import hashlib
import random
import sqlite3
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, cast

import orjson
from sqlalchemy import Connection, String, Table, func, insert, literal, select, true, update
from sqlalchemy import cast as cast_to
from sqlalchemy.engine import create_engine, make_url

from benchmarks.bulk import written_objects
from benchmarks.measured import say
from benchmarks.memory_cluster import MemoryCluster, paged
from benchmarks.objects import namespaces
from benchmarks.report_cluster import policies
from scanner.model.json import JsonObject, as_object
from scanner.model.scans.method import ClockDifferences
from scanner.scan.clocks import ScanClock
from scanner.scan.documents import Manifest
from scanner.scan.options import Options
from scanner.scan.run import run
from scanner.store import open_store
from scanner.store.database.address import address_of
from scanner.store.rows.row_ids import RowIdSet, unpack_row_ids
from scanner.store.rows.search_index import rebuild
from scanner.store.rows.tables import (
    CHECK_NAMES,
    CLUSTERS,
    COVERAGE,
    DAYS,
    FINDINGS,
    FIXES,
    HEALTH,
    LAST_IDS,
    OBJECT_SETS,
    OBJECTS,
    OUTSIDE,
    POPULATION,
    RUNS,
    SCAN_BINDINGS,
    SCAN_POLICIES,
    SCAN_RULES,
    SCANS,
    SET_LISTS,
    UNCOVERED,
    VERDICT_USES,
)

FIRST: Final = datetime(2026, 1, 1, 2, 17, tzinfo=UTC)
POLICIES: Final = 20
_OF_SCANS: Final = (SCAN_POLICIES, SCAN_BINDINGS, SCAN_RULES, HEALTH, OUTSIDE, UNCOVERED)
_SCANNED: Final = {
    **dict.fromkeys((FINDINGS.name, POPULATION.name), "since"),
    **dict.fromkeys((table.name for table in _OF_SCANS), "scan"),
    DAYS.name: "number",
}
"""The columns that tell which scan wrote a row."""
_CHANGED: Final = 100
"""One object in so many changes between two scans."""


def fill(url: str, *, clusters: int, scans: int, findings: int) -> None:
    """Fill an empty database: `findings` are those of each cluster, about."""
    with open_store(url, clock=lambda: datetime.now(UTC)) as store:
        manifests = tuple(Manifest("cluster", document) for document in policies())
        population = _Population(findings // POLICIES)
        for number in range(scans):
            moment = FIRST + timedelta(days=number)
            name = f"c000-{number:04}"
            cluster = MemoryCluster(paged(population.objects()))
            of_run = store.begin_run(name)
            store.begin_scan_of_run(of_run, name)
            clock = partial(_at, moment)
            dated = ScanClock(moment, timedelta(), clock, ClockDifferences())  # PostgreSQL's own clock is later
            run(cluster, store, Options(manifests=manifests), scan_id=name, clock=clock, dated=dated)
            store.end_run(of_run, exit_code=0, scan_id=name)
            population.age(number)
    say(f"one cluster is scanned {scans} times")
    engine = create_engine(make_url(address_of(url).url))
    with engine.begin() as connection:
        for table in (RUNS,):
            connection.execute(
                update(table).values(
                    started_at=select(SCANS.c.started_at).where(SCANS.c.number == RUNS.c.scan).scalar_subquery(),
                    finished_at=select(SCANS.c.finished_at).where(SCANS.c.number == RUNS.c.scan).scalar_subquery(),
                )
            )
        sizes = {table.name: _highest(connection, table) for table in (SCANS, OBJECTS, FINDINGS, DAYS, RUNS)}
        _copy(connection, clusters - 1, sizes)
        _keep_ids(connection)
        rebuild(connection)
    if engine.dialect.name == "postgresql":
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("ANALYZE")
    say(f"{clusters} clusters: {sum(sizes.values()) * clusters:,} rows")
    engine.dispose()


def _at(moment: datetime) -> datetime:
    return moment


class _Population:
    """Config maps of which a few change from scan to scan: some get the labels that policies want, others lose them."""

    def __init__(self, size: int) -> None:
        self._namespaces = [made.body for made in namespaces()]
        self._objects = written_objects(random.Random(1), range(size))
        self._fixed: set[int] = set()

    def objects(self) -> Iterator[JsonObject]:
        for number, body in enumerate(self._namespaces):
            metadata: JsonObject = {**as_object(body["metadata"]), "uid": f"namespace-{number}"}
            yield {**body, "metadata": metadata}
        for place, made in enumerate(self._objects):
            yield _labelled(made) if place in self._fixed else made

    def age(self, number: int) -> None:
        """Change one object in a hundred."""
        self._fixed ^= set(
            random.Random(number).sample(range(len(self._objects)), max(1, len(self._objects) // _CHANGED))
        )


def _labelled(body: JsonObject) -> JsonObject:
    metadata = as_object(body["metadata"])
    labels: JsonObject = {
        **as_object(metadata.get("labels", {})),
        **{f"policy-{number:02}": "" for number in range(POLICIES)},
    }
    return {**body, "metadata": {**metadata, "labels": labels, "resourceVersion": f"{metadata['resourceVersion']}1"}}


def _highest(connection: Connection, table: Table) -> int:
    return int(connection.execute(select(func.max(next(iter(table.primary_key))))).scalar() or 0)


def _copy(connection: Connection, copies: int, sizes: dict[str, int]) -> None:
    """Copy the first cluster with everything that its scans recorded, so many times; each table in one statement."""
    if (
        connection.dialect.name == "postgresql"
    ):  # the rows refer to rows that exist: checking each would take most of the time
        connection.exec_driver_sql("SET LOCAL session_replication_role = replica")
    copied = _numbers(connection, copies)
    copy: Any = copied.c.value
    scan, thing, finding, day, of_run = (copy * sizes[table.name] for table in (SCANS, OBJECTS, FINDINGS, DAYS, RUNS))
    name = literal("cluster-").concat(cast_to(copy + 1000, String))
    of_scan = literal("c").concat(cast_to(copy + 1000, String)).concat("-")

    def rows(table: Table, **changed: Any) -> None:
        columns = [changed.get(column.name, column) for column in table.c]
        first: Any = _FIRST[table.name]
        wanted = select(*columns).select_from(table.join(copied, true())).where(first(table))
        # Rows that one scan of one cluster writes stand together, as they do in a database that scans have filled.
        scanned = _SCANNED.get(table.name)
        order = *((table.c[scanned],) if scanned else ()), copied.c.value, *table.primary_key
        connection.execute(insert(table).from_select([column.name for column in table.c], wanted.order_by(*order)))

    rows(CLUSTERS, id=CLUSTERS.c.id + copy, identity=literal("name:").concat(name), name=name, observed=literal(""))
    shared = {column.name: _moved(column, scan) for column in SCANS.c if column.name.endswith("_of")}
    rows(
        SCANS,
        number=SCANS.c.number + scan,
        id=func.replace(SCANS.c.id, "c000-", of_scan),
        cluster=SCANS.c.cluster + copy,
        cluster_name=name,
        cluster_uid=name,
        **shared,
    )
    rows(
        RUNS,
        number=RUNS.c.number + of_run,
        scan=RUNS.c.scan + scan,
        scan_id=func.replace(RUNS.c.scan_id, "c000-", of_scan),
        name=func.replace(RUNS.c.name, "c000-", of_scan),
    )
    for table in _OF_SCANS:
        rows(table, scan=table.c.scan + scan)
    rows(OBJECTS, id=OBJECTS.c.id + thing, cluster=OBJECTS.c.cluster + copy)
    rows(POPULATION, object=POPULATION.c.object + thing, cluster=POPULATION.c.cluster + copy)
    rows(
        FINDINGS,
        id=FINDINGS.c.id + finding,
        cluster=FINDINGS.c.cluster + copy,
        object=FINDINGS.c.object + thing,
        fingerprint=_other_digest(connection, FINDINGS.c.fingerprint, copy),
    )
    for table in (FIXES, CHECK_NAMES, VERDICT_USES):
        rows(table, cluster=table.c.cluster + copy)
    rows(DAYS, number=DAYS.c.number + day, cluster=DAYS.c.cluster + copy, scan=DAYS.c.scan + scan)
    for number in range(1, copies + 1):
        _copy_coverage(connection, number * sizes[SCANS.name], number * sizes[OBJECTS.name])


def _numbers(connection: Connection, most: int) -> Any:
    """The numbers from 1 to `most`, as a table with the column `value`."""
    if connection.dialect.name == "postgresql":
        return func.generate_series(1, most).table_valued("value").render_derived()
    return func.json_each(orjson.dumps(list(range(1, most + 1))).decode()).table_valued("value")


def _moved(column: Any, scan: Any) -> Any:
    return func.coalesce(func.nullif(column, 0) + scan, 0)


def _other_digest(connection: Connection, column: Any, copy: Any) -> Any:
    """Another fingerprint of the same length: the first bytes are others, as they would be for objects of another cluster."""
    if connection.dialect.name == "postgresql":
        return func.sha256(column.concat(func.int4send(copy)))
    raw = cast("sqlite3.Connection", connection.connection.driver_connection)
    raw.create_function("sha_of", 2, _sha_of)
    return func.sha_of(column, copy)


def _sha_of(data: bytes, number: int) -> bytes:
    return hashlib.sha256(data + number.to_bytes(4, "big")).digest()


def _of_cluster(table: Table) -> Any:
    return table.c.cluster == 1


def _of_scan(table: Table) -> Any:
    return table.c.scan.in_(select(SCANS.c.number).where(SCANS.c.cluster == 1))


def _of_first(table: Table) -> Any:
    return table.c.id == 1


_FIRST: Final = {
    CLUSTERS.name: _of_first,
    **{
        table.name: _of_cluster
        for table in (SCANS, OBJECTS, POPULATION, FINDINGS, FIXES, CHECK_NAMES, VERDICT_USES, DAYS)
    },
    **{table.name: _of_scan for table in (*_OF_SCANS, COVERAGE, RUNS)},
}


def _copy_coverage(connection: Connection, scan: int, thing: int) -> None:
    """Copy the coverage with sets of the copied objects."""
    own = COVERAGE.c
    lists = {
        number: _copied_list(connection, number, thing)
        for (number,) in connection.execute(
            select(own.sets).where(_of_scan(COVERAGE), own.sets.is_not(None)).distinct()
        ).all()
    }
    rows = [dict(row) for row in connection.execute(select(COVERAGE).where(_of_scan(COVERAGE))).mappings()]
    connection.execute(
        insert(COVERAGE), [{**row, "scan": row["scan"] + scan, "sets": lists.get(row["sets"])} for row in rows]
    )


def _copied_list(connection: Connection, number: int, thing: int) -> int:
    content = connection.execute(select(SET_LISTS.c.content).where(SET_LISTS.c.id == number)).scalar_one()
    everything, own = orjson.loads(zlib.decompress(content))
    moved = [
        _copied_set(connection, everything, thing),
        [[_copied_set(connection, each, thing), checks] for each, checks in own],
    ]
    data = orjson.dumps(moved)
    return _added(connection, SET_LISTS, digest=hashlib.sha256(data).digest(), content=zlib.compress(data, 6))


def _copied_set(connection: Connection, number: int, thing: int) -> int:
    row = connection.execute(select(OBJECT_SETS.c["count"], OBJECT_SETS.c.data).where(OBJECT_SETS.c.id == number)).one()
    data = RowIdSet(each + thing for each in unpack_row_ids(bytes(row.data))).pack()
    digest = hashlib.sha256(data).digest()
    there = connection.execute(select(OBJECT_SETS.c.id).where(OBJECT_SETS.c.digest == digest)).scalar()
    return there or _added(connection, OBJECT_SETS, digest=digest, count=row[0], data=data)


def _added(connection: Connection, table: Table, **values: Any) -> int:
    number = _highest(connection, table) + 1
    connection.execute(insert(table).values(id=number, **values))
    return number


def _keep_ids(connection: Connection) -> None:
    """Raise the highest ids that the store remembers, so that later scans use none of the copies'."""
    for name in connection.execute(select(LAST_IDS.c.name)).scalars().all():
        table = LAST_IDS.metadata.tables.get(name)
        if table is not None:
            connection.execute(update(LAST_IDS).where(LAST_IDS.c.name == name).values(id=_highest(connection, table)))
