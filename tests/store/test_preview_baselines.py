"""A preview, a scan with assumed bindings, is no baseline: not of a difference, of a gate, of the banner, nor of the trend."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date

import pytest

from scanner.model.scans.scan import ScanStart
from scanner.store import SqlStore, open_store, upgrade
from scanner.store.upkeep.retention import prune
from scanner.store.upkeep.retention_plan import RetentionRule
from tests.store.conftest import Original
from tests.store.databases import execute, kept_store, refill, rows, without_lists
from tests.store.made import Round, clock, ended, finding
from tests.store.test_previews import PREVIEW, Previewing

A, B = finding("a"), finding("b")


class Digested(Round):
    """A scan whose policy set has a digest."""

    def start(self, number: int) -> ScanStart:
        """The start of the scan."""
        return replace(super().start(number), policy_set_digest="1" * 64)


class DigestedPreview(Previewing):
    """A preview, whose policy set has another digest."""

    def start(self, number: int) -> ScanStart:
        """The start of the scan."""
        return replace(super().start(number), policy_set_digest="2" * 64)


@pytest.fixture
def filled(url: str, original: Original) -> Iterator[SqlStore]:
    """A store with the scans of `fill`."""
    refill(url, original(url, fill))
    with kept_store(url, clock) as store:
        yield store


def fill(store: SqlStore) -> None:
    """Record a scan, two previews that find more, and a scan that finds the same."""
    Digested((A,)).record(store, 1)
    for number in (2, 3):
        DigestedPreview((A, B, PREVIEW)).record(store, number)
    Digested((A, B)).record(store, 4)


def test_a_scan_with_an_assumed_binding_is_a_preview(filled: SqlStore) -> None:
    """The flag alone makes none: a policy that is bound already needs no assumption."""
    assert [False, True, True, False] == [filled.read_scan(f"scan-{number}").scan.preview for number in (1, 2, 3, 4)]


def test_the_default_difference_leaves_previews_out(filled: SqlStore) -> None:
    """On both sides, also if a preview is the newest scan."""
    DigestedPreview((A, B)).record(filled, 5)

    assert ("scan-1", "scan-4") == filled.find_newest_scans_to_compare(filled.cluster())


@pytest.mark.parametrize("later", [2, 3, 4])
def test_a_scan_and_a_preview_are_compared_with_the_newest_scan_before_that_is_no_preview(
    filled: SqlStore, later: int
) -> None:
    """Two previews in a row have the same baseline."""
    assert "scan-1" == filled.find_earlier_scan_to_compare(f"scan-{later}")


def test_a_gate_is_compared_with_no_preview(filled: SqlStore) -> None:
    """The problem that a preview saw first is new in the first scan after it."""
    counts = filled.count_problems("scan-4")

    assert (1, "scan-1") == (counts.new, counts.baseline.id if counts.baseline else "")


def test_the_banner_compares_with_no_preview(filled: SqlStore) -> None:
    """The rules are those of the scan before the previews."""
    record = filled.read_scan("scan-4")

    assert ("scan-1", ()) == (record.comparable.id if record.comparable else "", record.changed_rules)


def test_a_day_with_a_preview_marks_no_changed_rules(filled: SqlStore) -> None:
    """Neither that day, nor the next one: the trend compares the days around it."""
    days = filled.days(1, date(2026, 1, 1))

    assert [None, None, None, ()] == [day.rules_changed for day in days]


def test_the_list_of_scans_marks_no_changed_rules_after_a_preview(filled: SqlStore) -> None:
    """As the banner of the report."""
    register = filled.read_scan("scan-4").register
    assert register is not None

    assert [False, False, False, False] == [line.rules_changed for line in register().lines]


def test_a_named_preview_is_compared(filled: SqlStore) -> None:
    """And the difference knows that it is one."""
    found = filled.compare_scans("scan-1", "scan-2")

    assert (False, True) == (found.before.preview, found.now.preview)
    assert ["b"] == [each.workload.name for kind in found.causes for each in found.list_problems(kind, None)]


def test_a_prune_keeps_the_baseline_before_a_preview(filled: SqlStore, url: str) -> None:
    """Later scans are compared with the newest scan that is no preview, however old that is."""
    DigestedPreview((A, B)).record(filled, 5)
    prune(url, RetentionRule(1), ended(9))
    kept = {scan.id for scan in filled.scans()} - filled.find_pruned_scans(filled.scans())
    Digested((A, B)).record(filled, 6)

    assert {"scan-4", "scan-5"} == kept
    assert "scan-4" == filled.find_earlier_scan_to_compare("scan-6")


def test_a_pruned_preview_is_no_baseline(store: SqlStore, url: str) -> None:
    """Its tombstone has no bindings any more, and is marked."""
    Digested((A,)).record(store, 1)
    DigestedPreview((A,)).record(store, 2)
    Digested((A,)).record(store, 3)
    before = store.read_scan("scan-3").comparable
    prune(url, RetentionRule(1), ended(9))
    after = store.read_scan("scan-3").comparable

    assert "scan-1" == (before.id if before else "") == (after.id if after else "")
    assert {"scan-1", "scan-2"} == store.find_pruned_scans(store.scans())


def test_a_notification_is_compared_with_a_preview_about_which_its_route_was_notified(
    filled: SqlStore, url: str
) -> None:
    """Else it would name the same problem twice."""
    for number in (1, 2, 4):
        filled.plan_notifications(f"scan-{number}", ["all"])
    query = (
        "SELECT scans.id AS scan, earlier.id AS before FROM notifications JOIN scans ON scans.number = notifications.scan "
        'LEFT JOIN scans AS earlier ON earlier.number = notifications."before" ORDER BY scans.number'
    )

    assert [("scan-1", None), ("scan-2", "scan-1"), ("scan-4", "scan-2")] == [
        (row["scan"], row["before"]) for row in rows(url, query)
    ]


def test_an_upgrade_marks_the_previews_of_older_versions(filled: SqlStore, url: str) -> None:
    """By their bindings; of a pruned one, the command line tells."""
    method = rows(url, "SELECT method FROM scans WHERE id = 'scan-1'")[0]["method"]
    asked = method.replace('"command_line":[]', '"command_line":["assay","scan","--assume-bound","new"]')
    execute(url, "UPDATE scans SET method = :method WHERE id IN ('scan-1', 'scan-2')", method=asked)
    execute(url, "DELETE FROM scan_bindings WHERE scan = (SELECT number FROM scans WHERE id = 'scan-2')")
    execute(url, "UPDATE scans SET bindings_of = 0 WHERE id = 'scan-3'")
    execute(url, "UPDATE scans SET pruned_at = started_at WHERE id = 'scan-2'")
    bindings = rows(url, "SELECT id FROM bindings WHERE name = 'assumed:new'")
    execute(
        url,
        "INSERT INTO scan_bindings SELECT number, 99, :binding FROM scans WHERE id = 'scan-3'",
        binding=bindings[0]["id"],
    )
    filled.close()
    without_lists(url)
    execute(url, "DROP TABLE closing_sums")
    execute(url, "DROP TABLE waived_checks")
    execute(url, "ALTER TABLE scans DROP COLUMN preview")
    execute(url, "UPDATE alembic_version SET version_num = '0029'")

    assert upgrade(url, backup=False)
    with open_store(url, clock) as store:
        previews = {scan.id: scan.preview for scan in store.scans()}
    assert {"scan-1": False, "scan-2": True, "scan-3": True, "scan-4": False} == previews
