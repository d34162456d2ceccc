"""The digests of a scan are those of its logical rows, in every database and beside all other scans."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from scanner.model.outcome import Evidence, Reason, Violated
from scanner.model.rule import RuleObject, RuleType
from scanner.model.scans.health import Health, HealthKind
from scanner.model.scans.out_of_scope import OutOfScope
from scanner.model.scans.scan import UncoveredKind
from scanner.report.document.section_digests import ScanDigests, digest_scan
from scanner.store import SqlStore, open_store, upgrade
from scanner.store.upkeep.copying import copy_database
from scanner.store.upkeep.renaming import rename_cluster
from scanner.store.upkeep.retention import prune
from scanner.store.upkeep.retention_plan import RetentionRule
from tests.store.conftest import Original
from tests.store.databases import execute, kept_store, prepared_database, refill, without_lists
from tests.store.made import DAWN, Round, clock, ended, finding
from tests.store.test_closing_sums import GAP, GONE, OTHER, WEB, record_story

SHOP = finding(
    "web",
    outcome=Violated("web in shop has too many replicas"),
    evidence=Evidence((Reason("object.metadata.name", '"web"', "metadata.name"),), excerpt="web: 1"),
)


def record(store: SqlStore, number: int, version: str = "1") -> None:
    """Record a scan that has something in every section."""
    several = tuple(
        each._replace(resource_version=version) for each in (SHOP, finding("api"), finding("db", kind="Pod"))
    )
    each = Round(several, gaps=(GAP,))
    limit = RuleObject(RuleType.PARAM, "limit", "digest", {"limit": 3})
    store.begin(replace(each.start(number), rules=(limit,)))
    for page in each.pages():
        store.write_page(f"scan-{number}", page)
    end = replace(
        each.end(number),
        health=(Health(HealthKind.UNBOUND, "replicas", "", "no binding"),),
        outside=(OutOfScope("webhook", "hook", "why"),),
        uncovered=(UncoveredKind("v1", "Event"),),
    )
    store.finish(f"scan-{number}", end)


def digests(store: SqlStore, number: int) -> ScanDigests:
    """The digests of a scan."""
    return digest_scan(store.read_scan(f"scan-{number}"))


def sections(store: SqlStore, number: int) -> dict[str, str]:
    """The digests of a scan by section."""
    return {each.section: each.digest for each in digests(store, number).sections}


def record_one(store: SqlStore) -> None:
    """Record one scan."""
    record(store, 1)


@pytest.fixture
def filled(url: str, original: Original) -> Iterator[SqlStore]:
    """A store with one scan."""
    refill(url, original(url, record_one))
    with kept_store(url, clock) as store:
        yield store


def test_both_databases_have_equal_digests(tmp_path: Path) -> None:
    """Of every scan of a history: no digest has an id of a row, or an order of one database."""
    found = []
    for kind in ("sqlite", "postgresql"):
        with prepared_database(kind, tmp_path) as url, open_store(url, clock) as store:
            record_story(store)
            record(store, 9)
            found.append([digests(store, number) for number in (0, 1, 2, 3, 9)])

    assert found[0] == found[1]
    assert 5 == len({each.digest for each in found[0]})
    assert all(each.rows for each in found[0][-1].sections)


def test_rows_that_scans_share_change_no_digest(store: SqlStore, filled: SqlStore) -> None:
    """The third of four equal scans has the digests that it would have alone, but for its id and time."""
    alone = sections(filled, 1)
    for number in (2, 3, 4):
        record(filled, number, version=str(number))

    assert {**alone, "method": ""} == {**sections(filled, 3), "method": ""}
    assert alone["method"] != sections(filled, 3)["method"]


def test_a_prune_of_other_scans_changes_no_digest(store: SqlStore, url: str) -> None:
    """Intervals between the scans that stay are deleted, and shared rows get another owner."""
    record_story(store)
    for number in range(4, 9):
        Round((WEB, GONE) if number % 2 else (WEB, OTHER)).record(store, number)
    before = {number: digests(store, number) for number in (7, 8)}
    prune(url, RetentionRule(1), ended(8))

    assert store.find_pruned_scans([store.find_scan("scan-6")])
    assert before == {number: digests(store, number) for number in (7, 8)}


def test_another_name_changes_no_digest(filled: SqlStore, url: str) -> None:
    """The name of a cluster is no part of the method."""
    before = digests(filled, 1)
    rename_cluster(url, "prod", "production", DAWN)
    assert before == digests(filled, 1)


def test_an_upgrade_changes_no_digest(filled: SqlStore, url: str) -> None:
    """Migrations that store gaps and tallies in another form."""
    before = digests(filled, 1)
    filled.close()
    without_lists(url)
    upgrade(url, backup=False)

    with open_store(url, clock) as store:
        assert before == digests(store, 1)


CHANGES = {
    "a finding's message": ("findings", "UPDATE verdicts SET message = 'other' WHERE message LIKE 'too%'"),
    "evidence": ("findings", "UPDATE evidence SET reasons = replace(reasons, 'metadata', 'metadatb')"),
    "a lost finding": ("findings", "UPDATE findings SET until = since WHERE id = 1"),
    "a label": ("population", "UPDATE population SET until = since WHERE object = 1"),
    "gaps": ("gaps", "UPDATE scans SET gaps = NULL"),
    "tallies": ("tallies", "UPDATE scans SET tallies = NULL"),
    "health": ("health", "UPDATE health SET detail = 'no bindinh'"),
    "listed objects": ("coverage", "UPDATE coverage SET objects = objects + 1"),
    "kind without a policy": ("coverage", "UPDATE uncovered SET kind = 'Evens'"),
    "webhook": ("coverage", "UPDATE outside SET name = 'hooj'"),
    "policy": ("rules", """UPDATE policies SET document = replace(document, 'replicas <= 5', 'replicas <= 6')"""),
    "param": ("rules", "UPDATE rules SET document = replace(document, '3', '4')"),
    "server": ("method", "UPDATE scans SET server_version = 'v1.37.0'"),
    "matched objects": ("tallies", "UPDATE scans SET matched = '[7,0]'"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_row_changes_the_digest_of_its_section_alone(filled: SqlStore, url: str, name: str) -> None:
    """One byte of one row in SQL, behind the back of the store."""
    section, statement = CHANGES[name]
    before = sections(filled, 1)
    execute(url, statement)
    after = sections(filled, 1)

    assert {section} == {each for each in before if before[each] != after[each]}


def test_a_copy_has_equal_digests(filled: SqlStore, url: str, tmp_path: Path) -> None:
    """In a database of the other kind."""
    with prepared_database("postgresql" if url.startswith("sqlite") else "sqlite", tmp_path) as target:
        copy_database(url, target, DAWN)
        with open_store(target, clock) as copy:
            assert digests(filled, 1) == digests(copy, 1)
