"""Scans of two clusters close at the same moment in one database: neither waits for the other, nor in a circle."""

from __future__ import annotations

import random
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import replace
from threading import Barrier

import pytest

from scanner.model.scans.scan import ClusterIdentity, Scan
from scanner.store import SqlStore, open_store
from scanner.store.database.address import address_of
from scanner.store.database.engine import insert_missing, lock_history, make_engine, writing
from scanner.store.rows.interning import digest, reserve_ids
from scanner.store.rows.search_index import index_inserted
from scanner.store.rows.tables import KINDS
from tests.store.databases import count, prepared_database
from tests.store.made import Round, clock, finding, statuses

CLUSTERS = tuple(ClusterIdentity(f"cluster-{number}", f"uid-{number}") for number in range(4))
ANOTHER = 99
"""The id of a cluster that is not scanned here."""
SECONDS = 60


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> object:
    """The URL of a PostgreSQL database without a scan: SQLite has one writer."""
    with prepared_database("postgresql", tmp_path_factory.mktemp("at-once")) as url:
        yield url


def scanned(store: SqlStore, name: str, each: Round, barrier: Barrier) -> Scan:
    """Scan up to the end, and close together with the others."""
    store.begin(replace(each.start(1), id=name))
    store.write_page(name, each.page())
    barrier.wait(SECONDS)
    return store.finish(name, each.end(1))


def test_scans_with_the_same_checks_close_together(server: str) -> None:
    """Every finding is stored once for each cluster, and what they share once for all."""
    findings = tuple(finding(f"object-{number}", policy=f"policy-{number % 9}") for number in range(200))
    with ExitStack() as stack, ThreadPoolExecutor(4) as threads:
        stores = [stack.enter_context(open_store(server, clock)) for _ in CLUSTERS]
        for number in range(3):
            barrier = Barrier(len(CLUSTERS))
            running = [
                threads.submit(scanned, store, f"{cluster.name}-{number}", Round(findings, cluster=cluster), barrier)
                for store, cluster in zip(stores, CLUSTERS, strict=True)
            ]
            new = [scan.result(SECONDS).new for scan in running]
            assert [0 if number else 200] * 4 == new

    assert (9, 1, 800) == (count(server, "checks"), count(server, "verdicts"), count(server, "findings"))


def test_a_closing_waits_for_no_closing_of_another_cluster(server: str) -> None:
    """While one transaction has stored new shared rows and the history of its cluster is locked, another scan ends."""
    engine = make_engine(address_of(server))
    each = Round((finding("a", kind="Pod"),), cluster=CLUSTERS[1])
    with open_store(server, clock) as store, ThreadPoolExecutor(1) as thread:
        with writing(engine) as closing:
            lock_history(closing, ANOTHER)
            [number] = reserve_ids(closing, KINDS, 1)
            key = ("v1", "Pod")
            row = number, digest(key), *key
            insert_missing(closing, KINDS, ["id", "digest", "api_version", "kind"], [row], index_inserted)
            ended = thread.submit(each.record, store, 1)
            wait([ended], SECONDS)
            finished = ended.done()
        ended.result(SECONDS)
    engine.dispose()

    assert finished
    assert 1 == count(server, "kinds")


def test_two_scans_of_one_cluster_close_one_after_the_other(server: str) -> None:
    """The second waits for the first: the history of a cluster has one order."""
    engine = make_engine(address_of(server))
    with open_store(server, clock) as store, ThreadPoolExecutor(1) as thread:
        store.begin(Round().start(1))
        with writing(engine) as closing:
            lock_history(closing, 1)
            ended: Future[Scan] = thread.submit(store.finish, "scan-1", Round().end(1))
            wait([ended], 1)
            waits = not ended.done()
        ended.result(SECONDS)
    engine.dispose()

    assert waits


@pytest.mark.parametrize("seed", range(3))
def test_random_scans_at_once_are_stored_as_if_one_came_after_the_other(server: str, seed: int) -> None:
    """Four clusters, five scans each, with overlapping findings: the history of each is that of its own scans."""
    random_numbers = random.Random(seed)
    rounds = {
        cluster: [
            frozenset(random_numbers.sample([f"object-{number}" for number in range(12)], random_numbers.randrange(9)))
            for _ in range(5)
        ]
        for cluster in CLUSTERS
    }

    def scans(cluster: ClusterIdentity) -> list[dict[str, str]]:
        shown: list[dict[str, str]] = []
        with open_store(server, clock) as store:
            for number, names in enumerate(rounds[cluster]):
                scan_id = f"{cluster.name}-{number}"
                each = Round(
                    tuple(finding(name, policy=f"policy-{name[-1]}") for name in sorted(names)), cluster=cluster
                )
                each = replace(each, policies=POLICIES, bound=POLICIES)
                store.begin(replace(each.start(number), id=scan_id))
                store.write_page(scan_id, each.page())
                store.finish(scan_id, each.end(number))
                record = store.read_scan(scan_id)
                shown.append({**statuses(record.findings()), **statuses(record.resolved_findings())})
        return shown

    with ThreadPoolExecutor(4) as threads:
        results = dict(zip(CLUSTERS, threads.map(scans, CLUSTERS), strict=True))

    assert {cluster: replayed(rounds[cluster]) for cluster in CLUSTERS} == results


POLICIES = tuple(f"policy-{digit}" for digit in range(10))


def replayed(rounds: list[frozenset[str]]) -> list[dict[str, str]]:
    """What each scan of a cluster shows: the status of every finding that it saw or resolved."""
    shown: list[dict[str, str]] = []
    seen: set[str] = set()
    before: frozenset[str] = frozenset()
    for names in rounds:
        status = {name: "open" if name in before else "reopened" if name in seen else "new" for name in names}
        shown.append({**status, **dict.fromkeys(before - names, "resolved")})
        seen |= names
        before = names
    return shown


def test_readers_see_no_half_of_a_scan(server: str) -> None:
    """Shared rows are committed early: without findings that refer to them they show nowhere."""
    with open_store(server, clock) as store:
        Round((finding("a"),)).record(store, 1)
        engine = make_engine(address_of(server))
        with writing(engine) as closing:
            key = ("v1", "Ghost")
            row = 99, digest(key), *key
            insert_missing(closing, KINDS, ["id", "digest", "api_version", "kind"], [row], index_inserted)
        engine.dispose()
        Round((finding("a"),)).record(store, 2)

        assert {"a": "open"} == statuses(store.read_scan("scan-2").findings())
