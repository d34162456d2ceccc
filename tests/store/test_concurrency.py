"""Several processes use one database."""

from __future__ import annotations

import subprocess
import sys

from scanner.model.scan import ScanState
from scanner.store import open_store
from tests.store.databases import count
from tests.store.made import clock
from tests.store.victim import PAGES


def test_scans_at_once_do_not_disturb_each_other(fresh: str) -> None:
    """Four processes open a fresh database and scan three times each; all twelve scans are complete."""
    names = ("amber", "birch", "cedar", "amber-2")
    command = (sys.executable, "-m", "tests.store.victim", fresh)
    processes = [subprocess.Popen([*command, name, "done"], stderr=subprocess.PIPE, text=True) for name in names]
    errors = [process.communicate(timeout=120)[1] for process in processes]
    with open_store(fresh, clock) as store:
        scans = store.scans()
        counts = {len(list(store.record(scan.id).findings())) for scan in scans}

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
        store.page(name, each.page())
        store.finish(name, each.end(number))
"""
