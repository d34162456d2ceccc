"""For all events of a cluster, its history is that of a replay that keeps everything, and an old report stays as it was.

`REPLAYS` is about the number of steps, which are changes of the cluster and scans, on each database; `make nightly` sets it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from difflib import unified_diff
from itertools import count
from math import ceil
from typing import Any, TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from scanner.model.scans.stored_scan import StoredScan
from scanner.store import SqlStore, prune
from scanner.store.database.address import address_of
from scanner.store.database.engine import make_reading_engine
from scanner.store.upkeep.integrity import check_database
from scanner.store.upkeep.retention_plan import RetentionRule as Retention
from tests.store.agreement import Answers, check_problem_totals, differing_facts, report, verdict_differences
from tests.store.changing import EXPRESSIONS, NAMES, Question, World, scan
from tests.store.kept_scan import Kept
from tests.store.made import DAWN
from tests.store.replay import Replay

pytestmark = pytest.mark.long

Act: TypeAlias = tuple[Any, ...]
Overlap: TypeAlias = tuple[list[Act], Question]
"""Acts after the lists of a scan, and how the scan is made that begins after them, and ends before the first one."""
Step: TypeAlias = tuple[list[Act], Question, int, bool, Overlap | None]
"""Acts, how the scan after them is made, the minutes by which its clock is ahead, whether a prune follows, and an overlapping scan."""

kinds = st.sampled_from(["Pod", "Pod", "Pod", "Deployment", "Widget"])
spaces, names, rules = (
    st.sampled_from(["shop", "shop", "bank"]),
    st.sampled_from(NAMES),
    st.sampled_from(list(EXPRESSIONS)),
)
places, indexes = st.integers(0, 5), st.integers(0, 2)
matched = st.sampled_from([("Pod",), ("Pod", "Deployment"), ("Pod", "Widget"), ("Deployment", "Widget")])
of_kinds = {
    "Pod": [("ReplicaSet", "a-1"), ("ReplicaSet", "b-1"), ("Deployment", "a"), ("Widget", "a"), None],
    "ReplicaSet": [("Deployment", "a"), ("Deployment", "b"), ("Widget", "a"), None],
    "Deployment": [("Widget", "a"), ("Widget", "b"), None],
}
owned = st.sampled_from(["Pod", "Pod", "ReplicaSet", "Deployment"]).flatmap(
    lambda kind: st.tuples(
        *(st.just("own"), spaces, st.just(kind)),
        *(st.sampled_from(["a-1", "b-1"]) if kind == "ReplicaSet" else names, st.sampled_from(of_kinds[kind])),
    )
)
controllers = st.sampled_from([("ReplicaSet", "a-1"), ("Deployment", "a"), ("Deployment", "b"), ("Widget", "a")])


def on_controllers(*verbs: str) -> st.SearchStrategy[tuple[Any, ...]]:
    """Acts on objects that control others."""
    return st.builds(lambda verb, space, of: (verb, of[0], space, of[1]), st.sampled_from(verbs), spaces, controllers)


above = on_controllers("cascade", "scale", "remove", "recreate")
OWNERS: tuple[st.SearchStrategy[tuple[Any, ...]], ...] = (owned, owned, on_controllers("orphan"))
OF_OBJECTS: tuple[st.SearchStrategy[tuple[Any, ...]], ...] = (
    st.tuples(st.just("store"), kinds, spaces, names, st.sampled_from([1, 3])),
    st.tuples(st.just("store"), st.just("ReplicaSet"), spaces, st.sampled_from(["a-1", "b-1"]), st.just(1)),
    st.tuples(st.just("rollout"), spaces, names, st.sampled_from([1, 3])),
    above,
    above,
    st.tuples(st.just("recreate"), kinds, spaces, names),
    st.tuples(st.just("replace"), spaces, names, names),
)
OFTEN: tuple[st.SearchStrategy[tuple[Any, ...]], ...] = (
    *OF_OBJECTS,
    st.tuples(st.just("edit"), rules, indexes, places),
    st.tuples(st.just("insert"), rules, indexes, places),
    st.tuples(st.just("rename"), rules, names, names),
    st.tuples(st.just("rename_param"), names, names),
    st.tuples(st.just("limit"), names, st.sampled_from(["1", "2", "3"])),
    st.tuples(st.just("label"), spaces, st.sampled_from(["prod", "test"])),
    st.tuples(st.just("act"), rules, names, st.booleans()),
    st.tuples(st.just("demand"), names, st.booleans()),
    st.tuples(st.just("unlimit"), names),
)
SELDOM: tuple[st.SearchStrategy[tuple[Any, ...]], ...] = (
    st.tuples(st.just("remove"), kinds, spaces, names),
    st.tuples(st.just("serve"), st.booleans()),
    st.tuples(st.just("write"), rules, st.lists(places, min_size=1, max_size=3), matched),
    st.tuples(st.just("forget"), rules),
    st.tuples(st.just("bind"), rules, names, st.booleans()),
    st.tuples(st.just("unbind"), rules, names),
    st.sampled_from([("upgrade", "server", "v1.36.1"), ("upgrade", "server", "v1.37.0"), ("upgrade", "assay", "2.0")]),
)
REST: st.SearchStrategy[tuple[Any, ...]] = st.just(("rest",))
acts = st.one_of(REST, *OFTEN, *OWNERS, *OFTEN, *OWNERS, *SELDOM)
MOSTLY = 12


questions = st.sampled_from(
    [Question()] * MOSTLY
    + [Question(namespaces=("shop",)), Question(operation="update")]
    + [Question(denied=denied) for denied in (("Pod",), ("Deployment",), ("ReplicaSet",), ("Widget",))]
    + [Question(denied=("ReplicaSet", "Deployment"))] * 2
)
ahead = st.sampled_from([0, 0, 0, 0, 0, 0, -150, 135])
prunes = st.sampled_from([False, False, False, True])
SCANS, ACTS, OVERLAPS = 6, 2, 7
"""The scans of a history after the first one, the acts before each, and the number of scans of which one overlaps a further one."""


# Only objects change between two overlapping scans. The one that ends last has read its rules first, but is compared with the
# other one, and the next scan with it: a change of rules between them would be a cause back and forth, which no definition tells.
meanwhile = st.tuples(st.lists(st.one_of(*OF_OBJECTS, *OWNERS), min_size=ACTS, max_size=ACTS), questions)
overlaps = st.sampled_from([*[False] * (OVERLAPS - 1), True]).flatmap(
    lambda overlap: meanwhile if overlap else st.none()
)
steps = st.tuples(st.lists(acts, min_size=ACTS, max_size=ACTS), questions, ahead, prunes, overlaps)
histories = st.lists(steps, min_size=SCANS, max_size=SCANS)
FIRST: Step = ([], Question(), 0, False, None)
TAKES = timedelta(minutes=20)
"""The time that a scan takes; one that overlaps it ends after half of it."""
NUMBERS = count(1)
STEPS = 1 + (SCANS + SCANS / OVERLAPS) * (1 + ACTS)
"""The steps of a history, on average."""
SETTINGS = settings(
    max_examples=ceil(int(os.environ.get("REPLAYS", "120")) / STEPS),
    derandomize="REPLAYS" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@given(history=histories)
@SETTINGS
def test_a_history_is_that_of_a_replay(store: SqlStore, url: str, history: list[Step]) -> None:
    """Findings, problems, views, explanations, gates, differences and times to fix; reports of a date do not change."""
    name, world, replay, reports = f"cluster-{next(NUMBERS)}", World(), Replay(), dict[datetime, list[str]]()
    with _reading(url) as engine:
        answers = Answers(store, engine, name, replay.strays)

        def compare(record: StoredScan, kept: Kept, *, overtaken: bool = False) -> None:
            expected = replay.scan(kept, overtaken=overtaken)
            assert [] == differing_facts(expected, answers.recorded(record, expected))
            reports[kept.at] = report(record)
            assert [] == list(verdict_differences(reports[kept.at], replay))
            check_problem_totals(record)
            assert [] == list(answers.differences(record, replay))

        for number, (changes, question, minutes, prunes, overlap) in enumerate([FIRST, *history]):
            at, scan_id = DAWN + timedelta(hours=number, minutes=minutes), f"{name} scan {number}"

            def scan_meanwhile(overlap: Overlap | None = overlap, at: datetime = at, scan_id: str = scan_id) -> None:
                if overlap is not None:
                    world.do_all(overlap[0])
                    compare(*scan(store, world, overlap[1], name, at + TAKES / 2, f"{scan_id}, meanwhile"))

            world.do_all(changes)
            scanned = scan(store, world, question, name, at, scan_id, takes=TAKES, meanwhile=scan_meanwhile)
            compare(*scanned, overtaken=overlap is not None)
            if prunes:
                prune(url, Retention(days=0), at + TAKES + timedelta(minutes=1))
                assert [] == list(answers.lasting_differences(replay, replay.members))
    scans = {at: store.find_scan_at(at, name) for at in reports}
    pruned = store.find_pruned_scans(list(scans.values()))
    again = {at: report(store.read_scan(found.id)) for at, found in scans.items() if found.id not in pruned}
    assert [] == [line for at in again for line in unified_diff(reports[at], again[at], n=0)]
    assert [] == check_database(url)


@contextmanager
def _reading(url: str) -> Iterator[Engine]:
    engine = make_reading_engine(address_of(url))
    try:
        yield engine
    finally:
        engine.dispose()
