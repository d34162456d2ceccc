"""Row 6: a second scan of the same cluster, with nothing changed and with one object in a hundred changed.

Counted are the rows that a scan writes, inserted or rewritten, and the bytes by which tables and indexes grow; left out is the table
of pages, which is empty again when a scan ends.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.live import KINDS, Live, filled, rounds, sizes
from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig

GOALS = {"nothing changed": 0.01, "1 % changed": 0.04}
LEFT_OUT = ("staged_pages", "sqlite_sequence", "written", "alembic_version")
SHARE = 100
OWNER = {"owner": "team-new"}
MERGE = "application/merge-patch+json"


@dataclass(frozen=True)
class Cost:
    """The rows and bytes that a scan adds to the database, and its seconds."""

    rows: int
    bytes: int
    seconds: float


def main() -> None:
    """Measure at every size."""
    worst = 0.0
    for size in sizes():
        with filled(size) as live:
            measured = [_round(live, number) for number in range(rounds())]
            print(f"{size:,}: {live.described()}")
            first = _median([costs["first scan"] for costs in measured])
            print(f"  first scan: {first.rows:,} rows, {first.bytes:,} bytes, {first.seconds:.2f} s")
            for name, goal in GOALS.items():
                again = _median([costs[name] for costs in measured])
                rows, size_of, wall = (
                    again.rows / first.rows,
                    again.bytes / first.bytes,
                    again.seconds / first.seconds,
                )
                print(
                    f"  {name}: {again.rows:,} rows ({rows:.2%}), {again.bytes:,} bytes ({size_of:.2%}), goal {goal:.0%}; "
                    f"{again.seconds:.2f} s ({wall:.2f} x)"
                )
                worst = max(worst, rows / goal, size_of / goal, wall)
    print(f"bench=6 ratio={worst:.2f} goal=1.00 rounds={rounds()}")


def _round(live: Live, number: int) -> dict[str, Cost]:
    """Measure a first scan and two others, into a database of their own."""
    scan = live.scan()
    path = live.home / "assay.db"
    live.timed([scan[0], "db", "upgrade", "--db", str(path)])
    _watch(path)
    costs = {"first scan": _cost(live, scan, path), "nothing changed": _cost(live, scan, path)}
    _change(live, number)
    return {**costs, "1 % changed": _cost(live, scan, path)}


def _cost(live: Live, scan: list[str], path: Path) -> Cost:
    before, size = _written(path), _size(path)
    seconds = live.timed(scan)
    return Cost(_written(path) - before, _size(path) - size, seconds)


def _median(costs: list[Cost]) -> Cost:
    return Cost(
        int(median(cost.rows for cost in costs)),
        int(median(cost.bytes for cost in costs)),
        median(cost.seconds for cost in costs),
    )


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path)) as connection, connection:
        yield connection


def _watch(path: Path) -> None:
    """Let the database count the written rows, except those of the tables in `LEFT_OUT`."""
    with _opened(path) as connection:
        connection.execute("CREATE TABLE written (rows INTEGER)")
        connection.execute("INSERT INTO written VALUES (0)")
        # The index of words is a virtual table, which has no triggers; its bytes count.
        wanted = "SELECT name FROM pragma_table_list WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        tables = [name for (name,) in connection.execute(wanted)]
        for table in set(tables) - set(LEFT_OUT):
            for event in ("INSERT", "UPDATE"):
                count = "BEGIN UPDATE written SET rows = rows + 1; END"
                connection.execute(f"CREATE TRIGGER {event}_{table} AFTER {event} ON {table} {count}")


def _written(path: Path) -> int:
    with _opened(path) as connection:
        rows: int = connection.execute("SELECT rows FROM written").fetchone()[0]
    return rows


def _size(path: Path) -> int:
    """Return the bytes that tables and indexes use, except those in `LEFT_OUT`."""
    with _opened(path) as connection:
        used = connection.execute(
            "SELECT tbl_name, sum(pgsize - unused) FROM dbstat JOIN sqlite_master USING (name) GROUP BY tbl_name"
        ).fetchall()
    return sum(size for table, size in used if table not in LEFT_OUT)


def _change(live: Live, number: int) -> None:
    """Change one object in a hundred, of every kind; an object whose change a policy denies is replaced by another one.

    A pod gets another status. Any other object gets another annotation and, where it has none, an owner.
    """
    dice = random.Random(number)
    for kind in KINDS:
        listed = as_list(dig(live.server.request("GET", kind).body, "items"))
        wanted = -(-len(listed) // SHARE)
        for item in dice.sample(listed, len(listed)):
            wanted -= _touched(live, kind, dig(item, "metadata"), number)
            if not wanted:
                break


def _touched(live: Live, kind: str, metadata: Json, number: int) -> bool:
    """Return whether an object has been changed; False where a policy denies the change."""
    group, _, plural = kind.rpartition("/")
    namespace, name = as_text(dig(metadata, "namespace")), as_text(dig(metadata, "name"))
    path = f"{group}/namespaces/{namespace}/{plural}/{name}" if namespace else f"{kind}/{name}"
    labels = {**OWNER, **as_object(dig(metadata, "labels"))}
    change: JsonObject = {"metadata": {"annotations": {"example.com/touched": str(number)}, "labels": labels}}
    if plural == "pods":
        path, change = f"{path}/status", {"status": {"message": f"touched {number}"}}
    answer = live.server.client.request("PATCH", path, change, content_type=MERGE)
    if answer.status not in (200, 422):
        raise RuntimeError(f"{path}: {answer.status} {answer.body}")
    return answer.status == 200
