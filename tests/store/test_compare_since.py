"""The scan with which the page of changes compares: that before, or the newest one that is old enough."""

from __future__ import annotations

from scanner.model.scans.cause import CauseKind
from scanner.store import SqlStore
from tests.store.made import Round, finding

A, B = finding("a"), finding("b")


def test_a_period_leads_to_the_newest_scan_that_is_old_enough(store: SqlStore) -> None:
    """With no days to the scan before; without such a scan, to none."""
    for number in range(1, 10):
        Round((A, B) if number > 4 else (A,)).record(store, number)
    diffs = {days: store.compare_since("scan-9", days) for days in (0, 7, 30)}

    assert {0: "scan-8", 7: "scan-2", 30: None} == {
        days: diff.before.id if diff else None for days, diff in diffs.items()
    }
    assert diffs[7] is not None
    assert 1 == sum(diffs[7].problems.values())
    assert CauseKind.POLICY not in diffs[7].causes
