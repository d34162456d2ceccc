"""The findings of some policies, and a database that two processes read at the same time."""

from __future__ import annotations

from pathlib import Path

from scanner.model.scans.stored_finding import ProblemFinding
from scanner.report.html.halves import work_in_halves
from scanner.store import SqlStore
from tests.store.made import Round, finding

FOUND = tuple(finding(name, policy=policy) for name in ("a", "b", "c") for policy in ("labels", "limits", "replicas"))
LABELS, OTHERS = (
    frozenset(("ValidatingAdmissionPolicy", name) for name in names) for names in (("labels",), ("limits", "replicas"))
)


def test_the_database_chooses_the_findings_of_some_policies(store: SqlStore) -> None:
    """They are those of all findings, in the same order, and the resolved ones too."""
    Round(FOUND).record(store, 1)
    record = store.read_scan(Round(FOUND[1:]).record(store, 2).id)
    chosen = [list(record.findings_by_problem(policies)) for policies in (LABELS, OTHERS)]
    every = list(record.findings_by_problem())
    filtered = [[each for each in every if each.stored.finding.policy_key in policies] for policies in (LABELS, OTHERS)]
    assert [3, 6] == list(map(len, chosen))
    assert filtered == chosen


def test_a_forked_process_reads_with_connections_of_its_own(store: SqlStore, tmp_path: Path) -> None:
    """Both halves are read, and the parent's connection is of use afterwards."""
    record = store.read_scan(Round(FOUND).record(store, 1).id)

    def work(half: int) -> None:
        names = [_name(each) for each in record.findings_by_problem((LABELS, OTHERS)[half])]
        (tmp_path / str(half)).write_text(" ".join(names))

    work_in_halves(work)
    assert ["a b c", "a b c a b c"] == [(tmp_path / str(half)).read_text() for half in (0, 1)]
    assert 9 == sum(1 for _ in record.findings_by_problem())


def _name(each: ProblemFinding) -> str:
    return each.stored.finding.name
