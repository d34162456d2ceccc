"""Several processes use one database."""

from __future__ import annotations

import subprocess
import sys

from scanner.model.outcome import Finding
from scanner.model.scans.scan import ScanEnd, ScanState
from scanner.store import SqlStore, open_store
from tests.store.databases import count
from tests.store.made import Round, clock, finding, statuses
from tests.store.test_integrity import problems_of
from tests.store.victim import PAGES


def test_scans_at_once_do_not_disturb_each_other(fresh: str) -> None:
    """Four processes open a fresh database and scan three times each; all twelve scans are complete."""
    names = ("amber", "birch", "cedar", "amber-2")
    command = (sys.executable, "-m", "tests.store.victim", fresh)
    processes = [subprocess.Popen([*command, name, "done"], stderr=subprocess.PIPE, text=True) for name in names]
    errors = [process.communicate(timeout=120)[1] for process in processes]
    with open_store(fresh, clock) as store:
        scans = store.scans()
        counts = {len(list(store.read_scan(scan.id).findings())) for scan in scans}

    assert [""] * len(names) == errors
    assert [ScanState.COMPLETE] * 12 == [scan.state for scan in scans]
    assert {2 * PAGES} == counts
    assert 0 == count(fresh, "staged_pages")


def test_two_scans_of_one_cluster_at_once_keep_one_history(url: str) -> None:
    """A finding of two processes that scan the same cluster is stored once."""
    command = (sys.executable, "-c", SCRIPT, url)
    processes = [subprocess.Popen([*command, name], stderr=subprocess.PIPE, text=True) for name in ("x", "y")]
    errors = [process.communicate(timeout=120)[1] for process in processes]

    assert ["", ""] == errors
    assert 40 == count(url, "findings")
    assert 10 == count(url, "scans WHERE state = 'complete'")


SCRIPT = """
import sys
from dataclasses import replace
from scanner.store import open_store
from tests.store.made import Round, clock, finding

each = Round(tuple(finding(str(number)) for number in range(40)))
with open_store(sys.argv[1], clock) as store:
    for number in range(5):
        name = f"{sys.argv[2]}-{number}"
        store.begin(replace(each.start(number), id=name))
        store.write_page(name, each.page())
        store.finish(name, each.end(number))
"""


A, B = finding("a"), finding("b")


def begun(store: SqlStore, number: int, findings: tuple[Finding, ...]) -> ScanEnd:
    """Begin a scan with these findings; return its end."""
    each = Round(findings)
    store.begin(each.start(number))
    store.write_page(f"scan-{number}", each.page())
    return each.end(number)


def statuses_of(store: SqlStore, number: int) -> tuple[dict[str, str], dict[str, str]]:
    """The status of the findings of a scan, and the resolutions of those that it resolved, by the name of the object."""
    record = store.read_scan(f"scan-{number}")
    return statuses(record.findings()), {each.finding.name: each.resolution for each in record.resolved_findings()}


def test_an_older_scan_that_ends_first_keeps_what_the_newer_one_misses(store: SqlStore, url: str) -> None:
    """The newer scan began before the older one was merged, so its list may be the older of both: the next scan resolves."""
    Round((A, B)).record(store, 1)
    older, newer = begun(store, 2, (A, B)), begun(store, 3, (B,))
    assert 0 == store.finish("scan-2", older).resolved
    assert 0 == store.finish("scan-3", newer).resolved

    assert (({"a": "open", "b": "open"}, {}), ({"b": "open"}, {})) == (statuses_of(store, 2), statuses_of(store, 3))
    assert 1 == store.read_scan("scan-3").unchecked
    Round((B,)).record(store, 4)
    assert ({"b": "open"}, {"a": "objectGone"}) == statuses_of(store, 4)
    assert [] == problems_of(url)


def test_an_older_scan_that_ends_last_reopens_nothing_that_the_newer_one_resolved(store: SqlStore, url: str) -> None:
    """The finding is outdated in its report, and stays resolved; the newer report stays as it was."""
    Round((A, B)).record(store, 1)
    older, newer = begun(store, 2, (A, B)), begun(store, 3, (B,))
    assert 1 == store.finish("scan-3", newer).resolved
    before = statuses_of(store, 3)
    assert (0, 1) == (store.finish("scan-2", older).resolved, store.read_scan("scan-2").unchecked + 1)

    assert ({"b": "open"}, {"a": "objectGone"}) == before == statuses_of(store, 3)
    assert ({"a": "outdated", "b": "open"}, {}) == statuses_of(store, 2)
    Round((B,)).record(store, 4)
    assert ({"b": "open"}, {}) == statuses_of(store, 4)
    assert [] == problems_of(url)
