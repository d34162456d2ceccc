"""The numbers of a record are those of its findings, counted without reading them."""

from __future__ import annotations

from collections import Counter

from scanner.model.outcome import Change, Check, CheckKind, Errored, Violated, WouldChange
from scanner.model.scans.problem_numbers import SeverityRanks
from scanner.model.scans.scan import Scope
from scanner.model.scans.stored_finding import make_census
from scanner.model.scans.stored_scan import StoredScan
from scanner.posture.owners import Owners
from scanner.store import SqlStore
from tests.store.made import Round, finding

A, B, C = finding("a"), finding("b"), finding("c", namespace="")
CHANGES = finding("d", policy="labels", outcome=WouldChange((Change("add", "/x", 1),)), denies=False)
ERRS = finding("a", policy="labels", outcome=Errored("no such key", would_deny=False), denies=False)
SECOND = A._replace(check=Check(CheckKind.VALIDATION, 1, "true"), fingerprint="ab" * 32)
OTHER = A._replace(language="ValidatingPolicy", fingerprint="cd" * 32)


def test_the_numbers_of_a_scan_are_those_of_its_findings(store: SqlStore) -> None:
    """After findings appeared, changed, were resolved and reopened, and were left unchecked by a narrower scan."""
    rounds = [
        Round((A, B, C, CHANGES, ERRS, SECOND, OTHER)),
        Round((A._replace(outcome=Violated("another message")), CHANGES)),
        Round((B, C), scope=Scope(namespaces=("shop",))),
        Round((A, B), scope=Scope(exclude_namespaces=("kube-*",))),
        Round(()),
    ]
    for number, each in enumerate(rounds, start=1):
        each.record(store, number)
    for number in range(1, len(rounds) + 1):
        record = store.read_scan(f"scan-{number}")
        assert dict(make_census(record.findings())) == dict(record.census())
        at_once = record.all_numbers(Owners(), SeverityRanks({}, {}, 2), frozenset(), 1)
        assert record.census() == at_once.census
        assert record.problems_by_namespace(frozenset()) == at_once.problems_by_namespace
        assert len(list(record.resolved_findings())) == sum(record.resolutions().values())
        assert Counter(each.finding.name for each in record.findings()) == _by_name(record)


def _by_name(record: StoredScan) -> Counter[str]:
    """The numbers of findings of the examined objects, by the names of these."""
    names = {item.id: item.name for item in record.population()}
    numbers = record.count_findings_by_object()
    assert numbers.keys() <= names.keys()
    return Counter({names[item]: number for item, number in numbers.items()})
