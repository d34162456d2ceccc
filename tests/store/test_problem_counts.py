"""The problems of a scan are counted in the database."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scanner.errors import UsageError
from scanner.model.outcome import Errored, WouldChange
from scanner.model.scans.problem_numbers import ProblemCounts
from scanner.model.scans.scan import ClusterIdentity, Scope
from scanner.store import SqlStore
from tests.store.databases import execute
from tests.store.made import Round, finding

A, B, C = finding("a"), finding("b"), finding("c")


def counts(store: SqlStore, number: int, baseline: str = "") -> ProblemCounts:
    """The numbers of a scan, without its baseline."""
    return replace(store.count_problems(f"scan-{number}", baseline), baseline=None)


def test_each_outcome_is_counted(store: SqlStore) -> None:
    """A problem with several outcomes counts for each of them."""
    errored = B._replace(outcome=Errored("no such key: x", would_deny=False), denies=False)
    drifting = C._replace(outcome=WouldChange(()), denies=False)
    Round((A, errored, drifting)).record(store, 1)

    assert ProblemCounts(total=3, denied=1, violated=1, errored=1, drifting=1, new=3) == counts(store, 1)


def test_two_bindings_find_one_problem(store: SqlStore) -> None:
    """Its action is the strictest."""
    audited = finding("a", binding="audits", denies=False, actions=("Audit",))
    Round((A, audited)).record(store, 1)

    assert ProblemCounts(total=1, denied=1, violated=1, new=1) == counts(store, 1)


def test_an_excepted_finding_is_no_problem(store: SqlStore) -> None:
    """Its policy makes an exception of the object."""
    Round((A._replace(excepted_by="shop/allowed", denies=False), B)).record(store, 1)

    assert 1 == counts(store, 1).total


def test_new_problems_were_not_open_in_the_scan_before(store: SqlStore) -> None:
    """A problem that was resolved and returns is new again."""
    Round((A, B)).record(store, 1)
    Round((B,)).record(store, 2)
    Round((A, B, C)).record(store, 3)

    assert [2, 0, 2] == [counts(store, number).new for number in (1, 2, 3)]
    assert 1 == counts(store, 3, "scan-1").new


def test_an_unchecked_finding_is_no_problem_of_the_scan_but_an_old_one(store: SqlStore) -> None:
    """The scan did not look, so it fails no gate; the next scan finds nothing new."""
    elsewhere = finding("d", namespace="other")
    Round((A, elsewhere)).record(store, 1)
    Round((A,), scope=Scope(namespaces=("shop",))).record(store, 2)
    Round((A, elsewhere)).record(store, 3)

    assert (1, 2) == (counts(store, 2).total, counts(store, 3).total)
    assert 0 == counts(store, 3, "scan-2").new


def test_the_baseline_has_the_same_scope(store: SqlStore) -> None:
    """The newest of them; another scope, operation or requester is no baseline."""
    Round((A,)).record(store, 1)
    Round((A,)).record(store, 2)
    Round((A,), scope=Scope(namespaces=("shop",))).record(store, 3)
    Round((A,), scope=Scope(operation="update")).record(store, 4)
    Round((A,)).record(store, 5)

    baseline = store.count_problems("scan-5").baseline
    assert baseline is not None
    assert "scan-2" == baseline.id
    assert store.count_problems("scan-3").baseline is None


def test_ids_of_a_report_are_a_baseline(store: SqlStore) -> None:
    """A report of another database has the same ids."""
    Round((A, B)).record(store, 1)
    [problem] = [stored.problem for stored in store.read_scan("scan-1").findings() if stored.finding.name == "a"]

    assert 1 == store.count_problems("scan-1", ids={problem}).new


def test_rows_of_an_older_version_are_problems_of_their_own(store: SqlStore, url: str) -> None:
    """Their problems are not known."""
    Round((A, finding("a", binding="audits"))).record(store, 1)
    execute(url, "UPDATE findings SET problem = NULL")

    assert 2 == counts(store, 1).total


def test_a_scan_of_another_cluster_is_no_baseline(store: SqlStore) -> None:
    """Its problems are those of other objects."""
    Round((A,)).record(store, 1)
    Round((A,), cluster=ClusterIdentity("other")).record(store, 2)

    with pytest.raises(UsageError, match="scan of another cluster"):
        store.count_problems("scan-2", "scan-1")
