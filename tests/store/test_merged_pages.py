"""A page with the findings that it had in the scan before is merged without reading them."""

from __future__ import annotations

import pytest

from scanner.model.outcome import Finding, Violated
from scanner.model.scans.scan import PageResult, ScanState, Scope
from scanner.store import SqlStore
from scanner.store.history.staged_pages import PageFindings, StagedPage, pack, unpack
from scanner.store.rows.row_ids import RowIdRun, RowIdSet
from tests.store.databases import count
from tests.store.made import Round, finding, page_of, statuses

A, B, C = finding("a"), finding("b"), finding("c")


def recorded(store: SqlStore, number: int, *pages: PageResult) -> None:
    """Store a scan with these pages."""
    each = Round()
    store.begin(each.start(number))
    for page in pages:
        store.write_page(f"scan-{number}", page)
    store.finish(f"scan-{number}", each.end(number))


def page(*findings: Finding) -> PageResult:
    """A page of deployments."""
    return page_of(findings, "apps/v1", "Deployment")


def test_an_unchanged_page_is_not_read(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scan has the findings of the scan before, and its counts."""
    Round((A, B)).record(store, 1)
    monkeypatch.setattr("scanner.store.history.staged_pages._decode_findings", forbidden)
    Round((A, B)).record(store, 2)

    assert {"a": "open", "b": "open"} == statuses(store.read_scan("scan-2").findings())
    scan = store.read_scan("scan-2").scan
    assert (2, 0, 0) == (scan.findings, scan.new, scan.resolved)


def forbidden(_data: bytes) -> PageFindings:
    """Fail instead of reading findings."""
    raise AssertionError


def test_an_unchanged_page_keeps_its_row(store: SqlStore, url: str) -> None:
    """A rescan with nothing changed writes nothing."""
    Round((A, B)).record(store, 1)
    Round((A, B)).record(store, 2)

    assert 1 == count(url, "merged_pages")


def test_a_status_write_leaves_the_page_unchanged(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The resource version alone does not decide whether a finding changed."""
    Round((A,)).record(store, 1)
    monkeypatch.setattr("scanner.store.history.staged_pages._decode_findings", forbidden)
    Round((A._replace(resource_version="2"),)).record(store, 2)

    assert {"a": "open"} == statuses(store.read_scan("scan-2").findings())


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(A._replace(outcome=Violated("other message")), id="message"),
        pytest.param(A._replace(denies=False), id="effect"),
        pytest.param(A._replace(uid="uid-new"), id="object"),
    ],
)
def test_a_changed_page_is_read(store: SqlStore, changed: Finding) -> None:
    """The page differs in what a report shows."""
    Round((A, B)).record(store, 1)
    Round((changed, B)).record(store, 2)

    [shown] = [each.finding for each in store.read_scan("scan-2").findings() if each.finding.name == "a"]
    assert changed == shown


def test_a_finding_of_two_pages_stays_open_if_one_page_remains(store: SqlStore) -> None:
    """A list that was started again has an object on two pages."""
    recorded(store, 1, page(A, B), page(B, C))
    recorded(store, 2, page(B, C))

    assert {"b": "open", "c": "open"} == statuses(store.read_scan("scan-2").findings())
    assert {"a": "resolved"} == statuses(store.read_scan("scan-2").resolved_findings())


def test_pages_of_an_earlier_scan_are_unknown(store: SqlStore) -> None:
    """The scan between resolved the finding, so the third scan reopens it."""
    Round((A,)).record(store, 1)
    Round(()).record(store, 2)
    Round((A,)).record(store, 3)

    assert {"a": "reopened"} == statuses(store.read_scan("scan-3").findings())


def test_pages_that_a_narrower_scan_did_not_list_are_unknown(store: SqlStore) -> None:
    """Their findings stay open all the same."""
    elsewhere = finding("d", namespace="other")
    Round((A, elsewhere)).record(store, 1)
    Round((A,), scope=Scope(namespaces=("shop",))).record(store, 2)
    Round((A, elsewhere)).record(store, 3)

    assert {"a": "open", "d": "open"} == statuses(store.read_scan("scan-3").findings())


def test_a_failed_scan_leaves_the_pages_alone(store: SqlStore, url: str) -> None:
    """It merged nothing, so the pages are still those of the newest merged scan."""
    Round((A,)).record(store, 1)
    Round((A, B), state=ScanState.FAILED).record(store, 2)
    Round((A,)).record(store, 3)

    assert {"a": "open"} == statuses(store.read_scan("scan-3").findings())
    assert 1 == count(url, "merged_pages")


def test_a_page_without_findings_has_no_digest() -> None:
    """There is nothing to merge."""
    assert b"" == unpacked(page()).digest


def test_the_order_of_columns_is_kept() -> None:
    """What is packed is read as it was."""
    staged = unpacked(page(A, B)).decode_findings().staged
    assert [A.fingerprint, B.fingerprint] == [fingerprint.hex() for fingerprint, _ in staged]
    assert [0, 1] == [columns.object for _, columns in staged]


def unpacked(result: PageResult) -> StagedPage:
    """The page after it was staged and read."""
    return unpack(pack(result))


@pytest.mark.parametrize("run", [RowIdRun(0, 1), RowIdRun(7, 2), RowIdRun(3, 40), RowIdRun(64, 8), RowIdRun(1000, 17)])
def test_a_run_of_ids_is_added_as_its_ids(run: RowIdRun) -> None:
    """Ids that the set has already are not counted again."""
    some = RowIdSet([5, 8, 66, 1003])
    expected = RowIdSet([*some, *range(run.start, run.start + run.length)])
    assert expected.count - some.count == some.add_run(run)
    assert list(expected) == list(some)
