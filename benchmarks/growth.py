"""Row 13: the database after 400 nightly scans of a cluster in which one object changes a night, and after those of a larger one.

Of three objects that change, two pass a check that they failed and fail another, and one is deleted while another with the same
content is created in its namespace. Every check is a policy of its own, so daily tallies are as many as they can be. `ASSAY_TEST_POSTGRES` names a server for the same on PostgreSQL.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Final, NamedTuple

from benchmarks.measured import say
from benchmarks.memory_cluster import MemoryCluster, paged, stored
from benchmarks.objects import Body, Made
from scanner.model.json import Json, JsonObject
from scanner.model.scans.method import ClockDifferences
from scanner.model.scans.scan import ScanState
from scanner.scan.clocks import ScanClock
from scanner.scan.documents import Manifest
from scanner.scan.options import Options
from scanner.scan.run import run
from scanner.store import open_store
from scanner.store.database.address import address_of
from scanner.store.database.engine import make_autocommit_engine
from scanner.store.rows.sizes import read_table_sizes
from tests.requirements import POSTGRES
from tests.store.databases import database

_FIRST: Final = datetime(2025, 1, 1, 2, 17, tzinfo=UTC)
_VERSION: Final = "admissionregistration.k8s.io/v1"
_REPLACED: Final = 3
"""One in so many objects that change is deleted, and another one is created."""
_FAILING: Final = 20
"""An object fails one in so many checks."""
_TABLES: Final = 8
"""The number of tables that are printed."""


class Shape(NamedTuple):
    """The size of a cluster, and the number of objects that change between two scans."""

    objects: int
    checks: int
    namespaces: int
    changed: int


@dataclass(frozen=True)
class Growth:
    """The bytes of a database after the first scan and after the last one, by table, and the seconds of the first and of the last one."""

    tables_first: Mapping[str, int]
    tables: Mapping[str, int]
    nights: int
    seconds_first: float
    seconds: float

    @property
    def first(self) -> int:
        """The bytes after the first scan."""
        return sum(self.tables_first.values())

    @property
    def last(self) -> int:
        """The bytes after the last scan."""
        return sum(self.tables.values())

    @property
    def nightly(self) -> float:
        """The bytes of a night."""
        return (self.last - self.first) / max(1, self.nights - 1)


_SMALL: Final = Shape(objects=80, checks=60, namespaces=41, changed=1)
_LARGE: Final = Shape(objects=1000, checks=300, namespaces=500, changed=10)
_MOST_BYTES: Final = 12_000_000
_MOST_NIGHTLY: Final = 200_000


def main() -> None:
    """Measure both clusters on both databases."""
    nights = int(os.environ.get("NIGHTS", "400"))
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("sqlite", *(["postgresql"] if POSTGRES.place() else [])):
            small = _measured(kind, Path(folder), _SMALL, nights)
            large = _measured(kind, Path(folder), _LARGE, max(2, nights // 10))
            worst = max(worst, small.last / _MOST_BYTES, large.nightly / _MOST_NIGHTLY)
    say(
        f"bench=13 ratio={worst:.2f} goal=<=1.00 rounds=1 (of {_MOST_BYTES:,} bytes in all, and {_MOST_NIGHTLY:,} a night)"
    )


def _measured(kind: str, folder: Path, shape: Shape, nights: int) -> Growth:
    with database(kind, folder) as url:
        growth = grow(url, shape, nights)
        say(
            f"{kind}, {shape.objects:,} objects, {shape.checks} checks, {shape.namespaces} namespaces, {shape.changed} changed a night, "
            f"{nights} nights: {growth.first / 1e6:.2f} MB after the first, {growth.last / 1e6:.2f} MB after the last, "
            f"{growth.nightly / 1e3:.1f} kB a night; the first scan took {growth.seconds_first:.2f} s, the last one {growth.seconds:.2f} s"
        )
        grown = {name: (size - growth.tables_first[name]) / max(1, nights - 1) for name, size in growth.tables.items()}
        for name, size in sorted(grown.items(), key=lambda each: -each[1])[:_TABLES]:
            say(f"  {name}: {size / 1e3:,.2f} kB a night, {growth.tables[name] / 1e3:,.0f} kB in all")
        return growth


def grow(url: str, shape: Shape, nights: int) -> Growth:
    """Scan a changing cluster every night into a new database."""
    manifests = tuple(Manifest("cluster", document) for number in range(shape.checks) for document in _policy(number))
    cluster = ChangingCluster(shape)
    seconds: list[float] = []
    tables_first: Mapping[str, int] = {}
    for night in range(nights):
        with open_store(url) as store:
            begun = perf_counter()
            moment = _FIRST + timedelta(days=night)
            clock = partial(_at, moment)
            dated = ScanClock(moment, timedelta(), clock, ClockDifferences())  # PostgreSQL's own clock is later
            options, scan = Options(manifests=manifests), f"night-{night:03}"
            ended = run(cluster.now(), store, options, scan_id=scan, clock=clock, dated=dated)
            seconds.append(perf_counter() - begun)
        if ended.state is not ScanState.COMPLETE:
            sys.exit(f"scan {ended.id} is {ended.state.value}")
        tables_first = tables_first or read_sizes(url)
        cluster.age(night)
    return Growth(tables_first, read_sizes(url), nights, seconds[0], seconds[-1])


def read_sizes(url: str) -> dict[str, int]:
    """The bytes of the tables of a database with their indexes; of PostgreSQL without those of deleted rows, as autovacuum leaves them."""
    engine = make_autocommit_engine(address_of(url))
    with engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            connection.exec_driver_sql("VACUUM")
        sizes = {table.name: table.bytes or 0 for table in read_table_sizes(connection)}
    engine.dispose()
    return sizes


def _at(moment: datetime) -> datetime:
    return moment


class ChangingCluster:
    """Config maps that change from night to night, the same for the same shape."""

    def __init__(self, shape: Shape) -> None:
        """Spread the objects over the namespaces."""
        self._shape = shape
        self._names = list(range(shape.objects))
        self._versions = [1] * shape.objects
        dice = random.Random(1)
        checks = range(shape.checks)
        self._failing = [dice.sample(checks, shape.checks // _FAILING) for _ in range(shape.objects)]
        self._next = shape.objects

    def now(self) -> MemoryCluster:
        """The cluster of this night."""
        return MemoryCluster(paged(self._list_objects()))

    def age(self, night: int) -> None:
        """Change some objects."""
        dice = random.Random(night)
        for count, place in enumerate(dice.sample(range(self._shape.objects), self._shape.changed)):
            self._versions[place] += 1
            if (night * self._shape.changed + count) % _REPLACED == 0:
                self._names[place] = self._next
                self._next += 1
            else:
                passed = sorted({*range(self._shape.checks)} - {*self._failing[place]})
                self._failing[place] = [*self._failing[place][1:], dice.choice(passed)]

    def _list_objects(self) -> Iterator[JsonObject]:
        for number in range(self._shape.namespaces):
            body: Body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"team-{number:03}"}}
            yield stored(Made("namespaces", body), 90_000_000 + number)
        for place, name in enumerate(self._names):
            made: Body = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": f"settings-{name:06x}", "namespace": f"team-{place % self._shape.namespaces:03}"},
                "data": {f"fails-{number}": "true" for number in self._failing[place]},
            }
            yield stored(Made("configmaps", made), name, str(self._versions[place]))


def _policy(number: int) -> Iterator[JsonObject]:
    rules: list[Json] = [
        {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    ]
    validation: JsonObject = {"expression": f"!has(object.data) || !('fails-{number}' in object.data)"}
    spec: JsonObject = {"matchConstraints": {"resourceRules": rules}, "validations": [validation]}
    bound: JsonObject = {"policyName": f"check-{number:03}", "validationActions": ["Deny"]}
    for suffix, own in (("", spec), ("Binding", bound)):
        kind = f"ValidatingAdmissionPolicy{suffix}"
        yield {"apiVersion": _VERSION, "kind": kind, "metadata": {"name": f"check-{number:03}"}, "spec": own}
