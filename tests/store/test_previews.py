"""The findings of an assumed binding belong to the scan that assumed it, and to no history."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scanner.model.outcome import Finding
from scanner.model.scans.scan import ScanStart
from scanner.store import SqlStore
from tests.store.made import Round, binding, ended, finding, policy

ASSUMED = replace(binding("new"), name="assumed:new", assumed=True)
A = finding("a")
PREVIEW = finding("a", policy="new", binding="assumed:new", denies=False)


class Previewing(Round):
    """A scan with an assumed binding of one more policy."""

    def start(self, number: int) -> ScanStart:
        """The start of the scan."""
        start = super().start(number)
        return replace(start, policies=(*start.policies, policy("new")), bindings=(*start.bindings, ASSUMED))


def previewed(*findings: Finding) -> Round:
    """A scan with an assumed binding and these findings."""
    return Previewing(findings)


def test_a_preview_is_shown_with_its_scan(store: SqlStore) -> None:
    """It has a status of its own; findings of bound policies are new or open as usual."""
    Round((A,)).record(store, 1)
    scan = previewed(A, PREVIEW).record(store, 2)

    statuses = {finding.finding.policy: finding.status for finding in store.read_scan("scan-2").findings()}
    assert {"replicas": "open", "new": "preview"} == statuses
    assert (2, 0, 0) == (scan.findings, scan.new, scan.resolved)


def test_a_preview_is_seen_once_a_scan(store: SqlStore) -> None:
    """An object that a list shows twice is one finding."""
    round_ = previewed(PREVIEW)
    store.begin(round_.start(1))
    for _ in range(2):
        store.write_page("scan-1", round_.page())

    assert 1 == store.finish("scan-1", round_.end(1)).findings
    assert 1 == len(list(store.read_scan("scan-1").findings()))


@pytest.mark.parametrize("later", [Round((A,)), Round(()), previewed(A), previewed(A, PREVIEW)])
def test_no_later_scan_inherits_a_preview(store: SqlStore, later: Round) -> None:
    """A preview is not open, resolved, unchecked or reopened in a later scan."""
    previewed(A, PREVIEW).record(store, 1)
    later.record(store, 2)
    record = store.read_scan("scan-2")

    assert 0 == record.unchecked
    assert [] == [stored for stored in record.resolved_findings() if stored.finding.policy == "new"]
    assert {"preview"} >= {finding.status for finding in record.findings() if finding.finding.policy == "new"}


def test_an_older_scan_keeps_its_previews(store: SqlStore) -> None:
    """They are in every later report of the scan."""
    previewed(A, PREVIEW).record(store, 1)
    Round((A,)).record(store, 2)

    assert ["preview"] == [
        finding.status for finding in store.read_scan("scan-1").findings() if finding.finding.policy == "new"
    ]


def test_a_preview_can_be_explained(store: SqlStore) -> None:
    """Its id finds it as the newest scan with it saw it."""
    for number in (1, 2):
        previewed(A, PREVIEW).record(store, number)
    Round((A,)).record(store, 3)
    explained = store.find_finding(PREVIEW.fingerprint[:12])

    assert ("preview", ended(2), "scan-2") == (explained.stored.status, explained.stored.last_seen, explained.scan.id)
    assert explained.policy is not None


def test_a_previewed_violation_is_new_when_its_policy_is_bound(store: SqlStore) -> None:
    """The same failure under a real binding is another finding."""
    previewed(A, PREVIEW).record(store, 1)
    real = finding("a", policy="new")
    Round((A, real), policies=("replicas", "labels", "new"), bound=("replicas", "labels", "new")).record(store, 2)

    assert ["new"] == [
        finding.status for finding in store.read_scan("scan-2").findings() if finding.finding.policy == "new"
    ]
