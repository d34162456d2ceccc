"""Row quarter: 90 daily scans of a cluster in which one object in a hundred changes each day, and questions about them.

Of three objects that change, two get other content, and one is deleted while another is created.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.live import ASSAY, rounds, sizes
from benchmarks.measured import say
from benchmarks.memory_cluster import MemoryCluster, paged, stored
from benchmarks.objects import MAKERS, NAMESPACES, SHARES, WORDS, namespaces
from benchmarks.policies import policies
from benchmarks.processes import timed
from scanner.model.json import JsonObject
from scanner.scan.documents import Manifest
from scanner.scan.options import Options
from scanner.scan.run import run
from scanner.store import open_store

_GOAL: Final = 1.0
_FIRST: Final = datetime(2026, 1, 1, 2, 17, tzinfo=UTC)
_REPLACED: Final = 3
"""One in so many objects that change is deleted, and another one is created."""
_QUESTIONS: Final = {
    "diff": ("diff",),
    "findings --at": ("findings", "--at", "2026-02-10"),
    "trend": ("trend", "--days", "10000"),
    "trend -o json": ("trend", "--days", "10000", "-o", "json"),
    "trend -o csv": ("trend", "--days", "10000", "-o", "csv"),
}


def main() -> None:
    """Make the scans, and time each question."""
    days = int(os.environ.get("DAYS", "90"))
    for size in sizes("20000"):
        with tempfile.TemporaryDirectory() as folder:
            database = Path(folder) / "assay.db"
            bytes_by_day = list(_scans(database, size, days))
            first, *daily = (after - before for before, after in zip([0, *bytes_by_day], bytes_by_day, strict=False))
            say(
                f"{size:,} objects: first scan {first / 1e6:.1f} MB, each of {len(daily)} later days {sum(daily) / max(1, len(daily)) / 1e3:.0f} kB"
            )
            worst = 0.0
            for name, arguments in _QUESTIONS.items():
                command = [str(ASSAY), *arguments, "--db", str(database)]
                seconds = median(timed(command, Path(folder)) for _ in range(rounds()))
                say(f"  assay {name}: {seconds:.2f} s")
                worst = max(worst, seconds)
            say(f"bench=quarter seconds={worst:.2f} goal=<={_GOAL:.2f} rounds={rounds()} (the slowest question)")


def _scans(database: Path, size: int, days: int) -> Iterator[int]:
    """The size of the database after each scan, in bytes."""
    manifests = tuple(Manifest("cluster", document) for document in policies())
    population = _Population(size)
    with open_store(str(database)) as store:
        for day in range(days):
            moment = _FIRST + timedelta(days=day)
            cluster = MemoryCluster(paged(population.objects()))
            run(cluster, store, Options(manifests=manifests), scan_id=f"day-{day:03}", clock=partial(_at, moment))
            yield database.stat().st_size
            population.age(day)


def _at(moment: datetime) -> datetime:
    return moment


class _Population:
    """Objects that change from day to day, the same for the same size."""

    def __init__(self, size: int) -> None:
        dice = random.Random(1)
        self._kinds = dice.choices(list(SHARES), weights=list(SHARES.values()), k=size)
        self._names = list(range(size))
        self._content = list(range(size))
        self._namespaces = [stored(made, 90_000_000 + number) for number, made in enumerate(namespaces())]
        self._objects = [self._made(place) for place in range(size)]
        self._next = size

    def objects(self) -> Iterator[JsonObject]:
        yield from self._namespaces
        yield from self._objects

    def age(self, day: int) -> None:
        """Change one object in a hundred."""
        dice = random.Random(day)
        for count, place in enumerate(dice.sample(range(len(self._objects)), len(self._objects) // 100)):
            self._next += 1
            self._content[place] = self._next
            if count % _REPLACED == 0:
                self._names[place] = self._next
            self._objects[place] = self._made(place)

    def _made(self, place: int) -> JsonObject:
        name, content = self._names[place], self._content[place]
        kind = self._kinds[place]
        chosen = random.Random(name)
        word, namespace = chosen.choice(WORDS), f"team-{chosen.randrange(NAMESPACES):02}"
        made = MAKERS[kind](random.Random(content), f"{word}-{name:06x}", namespace)
        return stored(made, name, str(content))
