"""The record of a scan has the newest earlier scan with which it can be compared."""

from __future__ import annotations

from dataclasses import replace

from scanner.model.scans.scan import ScanState, Scope
from scanner.store import SqlStore
from scanner.store.upkeep.retention import prune
from scanner.store.upkeep.retention_plan import RetentionRule
from tests.store.made import Round, ended, finding

A = finding("a")


def comparable(store: SqlStore, number: int) -> str:
    """The id of the scan, or an empty text."""
    scan = store.read_scan(f"scan-{number}").comparable
    return scan.id if scan else ""


def test_the_scope_must_be_the_same(store: SqlStore) -> None:
    """And the scan must have ended."""
    Round((A,)).record(store, 1)
    Round((A,), scope=Scope(namespaces=("shop",))).record(store, 2)
    Round((), state=ScanState.FAILED).record(store, 3)
    Round((A,)).record(store, 4)

    assert ["", "", "", "scan-1"] == [comparable(store, number) for number in (1, 2, 3, 4)]


def test_a_pruned_scan_is_compared_with(store: SqlStore, url: str) -> None:
    """Its tombstone has what the comparison needs."""
    for number, digest in ((1, "ab"), (2, "cd"), (3, "cd")):
        each = Round((A,))
        store.begin(replace(each.start(number), policy_set_digest=digest))
        store.write_page(f"scan-{number}", each.page())
        store.finish(f"scan-{number}", each.end(number))
    before = store.read_scan("scan-3").comparable
    prune(url, RetentionRule(1), ended(4))

    assert before == store.read_scan("scan-3").comparable
    assert before is not None
    assert ("scan-2", "cd") == (before.id, before.policy_set_digest)
