"""Checks a database: what the database itself checks, and the rules by which Assay's tables refer to each other.

Every problem has the place and a remedy. A prune deletes intervals between the scans that it keeps, so a hole is a problem only
where a scan with a report lies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from sqlalchemy import Connection, Table, and_, func, select, text

from scanner.errors import DatabaseUnusable
from scanner.store.catalog.clusters import read_clusters
from scanner.store.database.address import Address
from scanner.store.database.engine import make_reading_engine, reading_snapshot
from scanner.store.database.store_errors import as_store_error
from scanner.store.history.damage import SHARED_TEXTS, UNREADABLE, SumCheck, find_changed_texts
from scanner.store.history.ledger import read_unchecked_parts
from scanner.store.rows.logical_rows import SHARED_TABLES
from scanner.store.rows.references import REFERENCES, REFERENCES_OF_CONTENTS, read_content_references
from scanner.store.rows.row_ids import RowIdSet, difference, unpack_row_ids
from scanner.store.rows.search_index import select_uses
from scanner.store.rows.tables import (
    FINDINGS,
    KEPT,
    LAST_IDS,
    METADATA,
    OBJECT_SETS,
    OBJECTS,
    SCANS,
    UNCHECKED,
    VERDICT_USES,
    WORKLOADS,
)
from scanner.store.upkeep.integrity_history import SHOWN, IntervalProblem, find_clock_problems, find_interval_problems
from scanner.store.upkeep.integrity_search import find_index_differences
from scanner.store.upkeep.retention import find_database
from scanner.store.upkeep.retention_rows import EVALUATION_ROWS
from scanner.store.upkeep.schema import check_schema
from scanner.store.upkeep.views import VIEWS, list_view_definitions

if TYPE_CHECKING:
    import sqlite3

SAMPLE: Final = 1000
"""The number of rows of each table whose words are compared with the index of the search, unless all are."""
_RESTORE: Final = "Restore the database from a backup, and scan again."
_RESTORE_OR_ACCEPT: Final = (
    "Restore the database from a backup; without a backup, go on with: assay scan --accept-damage."
)
_REINDEX: Final = "Run: assay db reindex."


class DatabaseProblem(NamedTuple):
    """A problem of a database: what is wrong, in which table or rows, and what to do."""

    what: str
    where: str
    remedy: str


def check_database(url: str, *, all_words: bool = False) -> list[DatabaseProblem]:
    """The problems of a database, which is only read. With `all_words`, the words of all rows are compared with the index of the search.

    Raises UsageError if the database is missing or empty, StoreError when it cannot be read.
    """
    with open_to_check(find_database(url)) as connection:
        return list(find_problems(connection, SAMPLE if not all_words else None))


@contextmanager
def open_to_check(address: Address) -> Iterator[Connection]:
    """A connection that reads a database as of one moment. Texts of SQLite that are no UTF-8 are read as other texts.

    Raises UsageError for an empty database, StoreError when it cannot be read.
    """
    engine = make_reading_engine(address)
    try:
        with as_store_error(address):
            check_schema(engine, address)
            with reading_snapshot(engine) as connection:
                if address.path is not None:
                    driver = cast("sqlite3.Connection", connection.connection.driver_connection)
                    driver.text_factory = _decode_text
                yield connection
    finally:
        engine.dispose()


def _decode_text(data: bytes) -> str:
    return data.decode(errors="replace")


def find_problems(connection: Connection, sample: int | None = SAMPLE) -> Iterator[DatabaseProblem]:
    """The problems of a database; the words of the newest `sample` rows of each table are compared with the index, or those of all."""
    damage = list(_check_file(connection))
    yield from damage
    if damage:
        # Nothing that a damaged file answers is certain.
        return
    steps: Mapping[str, Callable[[Connection], Iterator[DatabaseProblem]]] = {
        "the definitions of the views": _check_views,
        "references between tables": _check_references,
        "shared rows of scans": _check_owners,
        "intervals of history": _check_intervals,
        "clocks of problems": _check_clocks,
        "ids": _check_ids,
        "lists and sets": _check_contents,
        "sets of objects": _check_sets,
        "the verdicts of findings": _check_uses,
        "shared texts": _check_digests,
        "rows of scans": _check_sums,
        "the index of the search": partial(_check_search, sample=sample),
    }
    for place, step in steps.items():
        try:
            yield from step(connection)
        except UNREADABLE as error:
            yield DatabaseProblem(f"rows cannot be decoded ({type(error).__name__})", place, _RESTORE)


def _check_views(connection: Connection) -> Iterator[DatabaseProblem]:
    """Views with another definition than that of this version. PostgreSQL keeps definitions in another form."""
    if connection.dialect.name != "sqlite":
        return
    stored = text("SELECT sql FROM sqlite_master WHERE type = 'view'")
    there = frozenset(connection.execute(stored).scalars())
    for name, definition in zip(VIEWS, list_view_definitions(connection.dialect), strict=True):
        if definition not in there:
            yield DatabaseProblem("the view has another definition", f"view {name}", _RESTORE)


def _check_clocks(connection: Connection) -> Iterator[DatabaseProblem]:
    yield from (DatabaseProblem(what, where, _RESTORE) for what, where in find_clock_problems(connection))


def _check_search(connection: Connection, sample: int | None) -> Iterator[DatabaseProblem]:
    yield from (DatabaseProblem(what, where, _REINDEX) for what, where in find_index_differences(connection, sample))


def _check_file(connection: Connection) -> Iterator[DatabaseProblem]:
    if connection.dialect.name != "sqlite":
        return
    for line in connection.execute(text("PRAGMA integrity_check(20)")).scalars():
        if line != "ok":
            yield DatabaseProblem(str(line), "the file", _RESTORE)


def _check_references(connection: Connection) -> Iterator[DatabaseProblem]:
    """Rows that refer to rows that do not exist."""
    declared = ((key.parent, key.column) for table in METADATA.sorted_tables for key in table.foreign_keys)
    undeclared = ((column, table.c.id) for table, columns in REFERENCES.items() for column in columns)
    for column, referred in dict.fromkeys(chain(declared, undeclared)):
        of_none = select(referred).where(referred == column).exists()
        orphans = select(column).distinct().where(column.is_not(None), ~of_none).order_by(column)
        if referred.table in {WORKLOADS, KEPT}:
            orphans = orphans.where(column != 0)
        rows = connection.execute(orphans.limit(SHOWN)).scalars().all()
        if rows:
            names = ", ".join(map(str, rows))
            what = f"rows refer to {referred.table.name} {names}, which do not exist"
            yield DatabaseProblem(what, f"{column.table.name}.{column.name}", _RESTORE)


def _check_owners(connection: Connection) -> Iterator[DatabaseProblem]:
    """Scans that share rows of scans which do not exist, have no rows of their own, or were pruned."""
    for rows in SHARED_TABLES:
        column = SCANS.c[f"{rows}_of"]
        owner = SCANS.alias("owner")
        joined = SCANS.outerjoin(owner, owner.c.number == column)
        wrong = owner.c.number.is_(None) | (owner.c[f"{rows}_of"] != 0) | (owner.c.cluster != SCANS.c.cluster)
        if rows not in EVALUATION_ROWS:
            wrong |= and_(owner.c.pruned_at.is_not(None), SCANS.c.pruned_at.is_(None))
        wrong_scans = select(SCANS.c.id).select_from(joined).where(column != 0, wrong).limit(SHOWN)
        for scan in connection.execute(wrong_scans).scalars():
            yield DatabaseProblem(f"the scan shares {rows} of a scan that has none", f"scan {scan}", _RESTORE)


def _check_intervals(connection: Connection) -> Iterator[DatabaseProblem]:
    by_problem: dict[IntervalProblem, list[str]] = {}
    for problem, row in find_interval_problems(connection):
        places = by_problem.setdefault(problem, [])
        if len(places) < SHOWN:
            places.append(row)
    for problem, places in by_problem.items():
        yield DatabaseProblem(problem.value, ", ".join(places), _RESTORE)


def _check_ids(connection: Connection) -> Iterator[DatabaseProblem]:
    """Tables with ids above the highest id that was ever given: the next rows would get ids of others."""
    for name, last in connection.execute(select(LAST_IDS.c.name, LAST_IDS.c.id)).all():
        table = METADATA.tables.get(name)
        if table is None:
            continue
        [key] = table.primary_key.columns
        highest = connection.execute(select(func.max(key))).scalar() or 0
        if highest > last:
            yield DatabaseProblem(f"id {highest} is above the highest given id, {last}", name, _RESTORE)


def _check_contents(connection: Connection) -> Iterator[DatabaseProblem]:
    """Lists, sets and other contents that refer to rows which do not exist."""
    for table, references in REFERENCES_OF_CONTENTS.items():
        known = _read_ids(connection, table)
        for reference in references:
            for number, ids in read_content_references(connection, reference):
                if missing := _describe_missing(RowIdSet(ids), known):
                    what = f"refers to {table.name} {missing}, which do not exist"
                    yield DatabaseProblem(what, f"{reference.column.table.name} {number}", _RESTORE)


def _check_sets(connection: Connection) -> Iterator[DatabaseProblem]:
    """Sets whose objects do not exist, and findings that do not exist."""
    objects = _read_ids(connection, OBJECTS)
    for number, count, data in connection.execute(select(OBJECT_SETS.c.id, OBJECT_SETS.c.count, OBJECT_SETS.c.data)):
        members = unpack_row_ids(bytes(data))
        if missing := _describe_missing(members, objects):
            yield DatabaseProblem(f"refers to objects {missing}, which do not exist", f"object_sets {number}", _RESTORE)
        if members.count != count:
            yield DatabaseProblem("has another number of objects than is recorded", f"object_sets {number}", _RESTORE)
    yield from _check_unchecked(connection)


def _check_unchecked(connection: Connection) -> Iterator[DatabaseProblem]:
    """Unchecked findings that do not exist, and parts for the views that are not those of the newest scan."""
    findings = _read_ids(connection, FINDINGS)
    # Rows of findings may be pruned before the next prune removes them from the tombstones.
    reported = (
        select(UNCHECKED.c.scan, UNCHECKED.c.findings, SCANS.c.unchecked).join(SCANS).where(SCANS.c.pruned_at.is_(None))
    )
    for scan, data, recorded in connection.execute(reported):
        left = unpack_row_ids(bytes(data))
        if missing := _describe_missing(left, findings):
            yield DatabaseProblem(
                f"refers to findings {missing}, which do not exist", f"unchecked, scan {scan}", _RESTORE
            )
        if left.count != recorded:
            yield DatabaseProblem(
                "has another number of findings than is recorded", f"unchecked, scan {scan}", _RESTORE
            )
    newest = select(SCANS.c.cluster, func.max(SCANS.c.revision).label("revision")).group_by(SCANS.c.cluster).subquery()
    of_newest = and_(SCANS.c.cluster == newest.c.cluster, SCANS.c.revision == newest.c.revision)
    of_scan = UNCHECKED.c.scan == SCANS.c.number
    joined = SCANS.join(newest, of_newest).outerjoin(UNCHECKED, of_scan)
    for cluster, data in connection.execute(select(SCANS.c.cluster, UNCHECKED.c.findings).select_from(joined)).all():
        if read_unchecked_parts(connection, cluster) != dict(unpack_row_ids(data and bytes(data)).words()):
            what = "the findings that the newest scan left unchecked are others in the views"
            yield DatabaseProblem(what, f"unchecked_now, cluster {cluster}", _RESTORE)


def _check_sums(connection: Connection) -> Iterator[DatabaseProblem]:
    """Rows that differ from those that scans wrote."""
    for each in SumCheck(connection).check_all():
        yield DatabaseProblem(each.what, each.where, _RESTORE_OR_ACCEPT)


def _check_uses(connection: Connection) -> Iterator[DatabaseProblem]:
    """Findings whose verdicts and checks are not recorded for the search. Those of deleted findings go with the next prune."""
    for cluster in (row.id for row in read_clusters(connection)):
        missing = select_uses(FINDINGS, cluster).except_(select_uses(VERDICT_USES, cluster)).limit(SHOWN)
        if verdicts := ", ".join(str(row.verdict) for row in connection.execute(missing)):
            what = f"findings have verdicts {verdicts}, which the search does not know for the cluster"
            yield DatabaseProblem(what, f"verdict_uses, cluster {cluster}", _REINDEX)


def _read_ids(connection: Connection, table: Table) -> RowIdSet:
    return RowIdSet(connection.execute(select(table.c.id).execution_options(yield_per=10_000)).scalars())


def _describe_missing(numbers: RowIdSet, stored: RowIdSet) -> str:
    """Some of the numbers that are not stored, as text."""
    missing = difference(numbers, stored)
    return ", ".join(str(number) for number, _ in zip(missing, range(SHOWN), strict=False)) if missing.count else ""


def _check_digests(connection: Connection) -> Iterator[DatabaseProblem]:
    """Shared rows whose digest is not that of their content."""
    for table in SHARED_TEXTS:
        if wrong := [str(number) for number, _ in find_changed_texts(connection, table)]:
            what = "the content has changed since it was stored: its digest is another one"
            yield DatabaseProblem(what, f"{table.name} {', '.join(wrong[:SHOWN])}", _RESTORE)


def reject_damage(address: Address, error: Exception) -> None:
    """Raise DatabaseUnusable with the first problem of a database; do nothing if the database has none, so that the error is a bug."""
    with open_to_check(address) as connection:
        problem = next(iter(find_problems(connection)), None)
    if problem is not None:
        raise DatabaseUnusable(
            f"The database {address.text} is damaged: {problem.where}: {problem.what}. {problem.remedy} "
            "`assay db check` lists every problem."
        ) from error
