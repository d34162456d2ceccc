"""The third promise: a finding is resolved only by a later scan that would have found it."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scanner.model.outcome import Finding, Gap, GapKind, Violated
from scanner.model.scans.scan import ClusterIdentity, Coverage, CoverageState, ScanState, Scope
from scanner.model.scans.tally import TallyKey
from scanner.store import SqlStore
from tests.store.made import Round, binding, finding, listed, snapshot, statuses, tally
from tests.thorough import examples

OPEN = finding("web")
NAMESPACE = finding("shop", kind="Namespace", namespace="")
GAP = Gap(GapKind.OBJECT, "apps/v1/Deployment shop/web", "its namespace is gone")
UNREAD = Gap(GapKind.DOCUMENT, "shop.yaml, document 1", "line 4, column 1: found a tab")
OTHER_VERSION = Coverage("apps/v1beta1", "Deployment", CoverageState.LISTED)
BROKEN_VERSION = replace(OTHER_VERSION, state=CoverageState.PARTIAL)


@pytest.mark.parametrize(
    "blind",
    [
        pytest.param(Round(scope=Scope(selector="app=web")), id="a label selector was given"),
        pytest.param(Round(scope=Scope(namespaces=("bank",))), id="only another namespace was asked for"),
        pytest.param(Round(scope=Scope(exclude_namespaces=("shop",))), id="its namespace was left out"),
        pytest.param(Round(scope=Scope(exclude_namespaces=("sh*",))), id="its namespace was left out by a pattern"),
        pytest.param(Round(scope=Scope(policies=("labels",))), id="only another policy was asked for"),
        pytest.param(Round(scope=Scope(bindings=("labels-binding",))), id="only another binding was asked for"),
        pytest.param(Round(policies=("labels",), bound=("labels",)), id="its policy was not evaluated"),
        pytest.param(Round(bound=("labels",)), id="its binding is gone"),
        pytest.param(Round(coverage=(listed("Pod"),)), id="its kind was not listed"),
        pytest.param(Round(coverage=(listed("Deployment", CoverageState.SKIPPED),)), id="its kind was skipped"),
        pytest.param(Round(coverage=(listed("Deployment", CoverageState.FORBIDDEN),)), id="its kind was forbidden"),
        pytest.param(Round(coverage=(listed("Deployment", CoverageState.PARTIAL),)), id="its kind was listed in part"),
        pytest.param(Round(coverage=(listed("Deployment", CoverageState.FAILED),)), id="its kind could not be listed"),
        pytest.param(Round(coverage=(listed("Deployment"), BROKEN_VERSION)), id="one version of its kind broke off"),
        pytest.param(Round(gaps=(GAP,)), id="an object of its kind could not be evaluated"),
        pytest.param(Round(gaps=(replace(GAP, where="apps/v1/Deployment"),)), id="there is a gap about its kind"),
        pytest.param(Round(gaps=(replace(GAP, kind=GapKind.EVALUATION),)), id="an evaluation of its kind went wrong"),
        pytest.param(Round(gaps=(UNREAD,)), id="a document could not be read, and it may be in there"),
        pytest.param(Round(state=ScanState.FAILED), id="the scan failed"),
    ],
)
def test_a_finding_out_of_reach_stays_open(store: SqlStore, blind: Round) -> None:
    """A scan that does not reach the finding resolves nothing, and counts it as unchecked."""
    Round((OPEN,)).record(store, 1)
    scan = blind.record(store, 2)

    assert (0, 1) == (scan.resolved, store.read_scan("scan-2").unchecked)
    assert "open" == store.find_finding(OPEN.fingerprint).stored.status.replace("new", "open")


def test_a_document_that_was_unreadable_before_hides_nothing_new(store: SqlStore) -> None:
    """A finding of the earlier scan, which could not read the document either, is resolved when it is missing."""
    Round((OPEN,), gaps=(UNREAD,)).record(store, 1)
    scan = Round(gaps=(UNREAD,)).record(store, 2)

    assert 1 == scan.resolved


def test_a_document_that_stays_unreadable_hides_earlier_findings(store: SqlStore) -> None:
    """The second scan without the document resolves no more than the first."""
    Round((OPEN,)).record(store, 1)
    Round(gaps=(UNREAD,)).record(store, 2)
    scan = Round(gaps=(UNREAD,)).record(store, 3)

    assert 0 == scan.resolved


@pytest.mark.parametrize(
    "sighted",
    [
        pytest.param(Round(), id="everything was scanned"),
        pytest.param(Round(state=ScanState.INCOMPLETE), id="the scan is incomplete elsewhere"),
        pytest.param(Round(scope=Scope(namespaces=("bank", "shop"))), id="its namespace was asked for"),
        pytest.param(Round(scope=Scope(exclude_namespaces=("kube-*",))), id="other namespaces were left out"),
        pytest.param(Round(scope=Scope(policies=("replicas",))), id="its policy was asked for"),
        pytest.param(Round(scope=Scope(bindings=("replicas-*",))), id="its binding was asked for by a pattern"),
        pytest.param(Round(coverage=(OTHER_VERSION,)), id="its kind was listed in another version"),
        pytest.param(Round(gaps=(replace(GAP, where="v1/Pod shop/web"),)), id="the gap is about another kind"),
        pytest.param(
            Round(gaps=(replace(GAP, where="apps/v1/DeploymentConfig"),)), id="the gap is about a longer name"
        ),
    ],
)
def test_a_missing_finding_within_reach_is_resolved(store: SqlStore, sighted: Round) -> None:
    """The scan would have found the finding again."""
    Round((OPEN,)).record(store, 1)
    scan = sighted.record(store, 2)

    assert (1, 0) == (scan.resolved, store.read_scan("scan-2").unchecked)


def test_cluster_scoped_objects_lie_in_no_namespace(store: SqlStore) -> None:
    """A scan of some namespaces does not reach cluster-scoped objects."""
    Round((NAMESPACE._replace(kind="ClusterThing"),)).record(store, 1)
    scan = Round(coverage=(listed("Namespace"),), scope=Scope(namespaces=("shop",))).record(store, 2)

    assert 0 == scan.resolved


def test_leaving_out_a_namespace_leaves_out_the_object_of_that_name(store: SqlStore) -> None:
    """The findings of the Namespace object stay open too."""
    Round((NAMESPACE,)).record(store, 1)
    scan = Round(coverage=(listed("Namespace"),), scope=Scope(exclude_namespaces=("shop",))).record(store, 2)

    assert 0 == scan.resolved


def test_another_binding_of_the_policy_resolves_nothing(store: SqlStore) -> None:
    """The policy was evaluated, but not with the binding of the finding."""
    Round((OPEN,)).record(store, 1)
    store.begin(replace(Round().start(2), bindings=(binding("replicas", name="replicas-elsewhere"),)))
    scan = store.finish("scan-2", Round().end(2))

    assert 0 == scan.resolved


def test_a_scan_resolves_no_finding_of_a_concurrent_scan(store: SqlStore) -> None:
    """It began before the other scan ended, so the object may be newer than its list."""
    old = finding("old")
    Round((old,)).record(store, 1)
    store.begin(Round().start(2))
    Round((OPEN,)).record(store, 3)
    late = store.finish("scan-2", Round().end(2))

    assert (0, 1) == (late.resolved, store.read_scan("scan-2").unchecked)
    assert {"old": "resolved"} == statuses(store.read_scan("scan-3").resolved_findings())


def test_concurrent_scans_of_different_namespaces_resolve_findings(store: SqlStore) -> None:
    """Each scan resolves the findings of its own namespace."""
    Round((OPEN,)).record(store, 1)
    store.begin(Round().start(2))
    Round((), scope=Scope(namespaces=("bank",))).record(store, 3)
    late = store.finish("scan-2", Round().end(2))

    assert 1 == late.resolved


POLICIES = ("replicas", "labels")
SPACES = ("shop", "bank")
UNIVERSE = tuple(
    finding(name, kind=kind, namespace=namespace, policy=policy)
    for kind in ("Deployment", "Pod")
    for policy in POLICIES
    for namespace in SPACES
    for name in ("a", "b")
)
STATES = st.sampled_from((ScanState.COMPLETE, ScanState.INCOMPLETE, ScanState.COMPLETE, ScanState.FAILED))


sightings = st.dictionaries(st.sampled_from(UNIVERSE), st.sampled_from(("bad", "worse")), max_size=10).map(
    lambda chosen: tuple(item._replace(outcome=Violated(message)) for item, message in chosen.items())
)
coverages = st.tuples(
    *(st.builds(listed, st.just(kind), st.sampled_from(CoverageState)) for kind in ("Deployment", "Pod"))
) | st.just((listed("Deployment"), listed("Pod")))
scopes = st.builds(
    Scope,
    namespaces=st.sampled_from(((), (), ("shop",))),
    exclude_namespaces=st.sampled_from(((), (), ("ba*",))),
    policies=st.sampled_from(((), (), ("replicas",))),
    selector=st.sampled_from(("", "", "", "app=web")),
)
rounds = st.builds(
    Round,
    findings=sightings,
    scope=scopes,
    policies=st.sampled_from((POLICIES, POLICIES, ("replicas",))),
    bound=st.sampled_from((POLICIES, POLICIES, ("labels",))),
    coverage=coverages,
    gaps=st.sampled_from(((), (), (GAP,))),
    state=STATES,
)
SETTINGS = settings(
    max_examples=examples(30),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


class Ledger:
    """A simple model of history: the open findings, and all findings that ever were."""

    def __init__(self) -> None:
        self.open: set[Finding] = set()
        self.ever: set[str] = set()

    def merge(self, each: Round) -> tuple[dict[Finding, str], set[str], int]:
        """The expected result of a scan: the status of its findings, the resolved ones, and the number of unchecked ones."""
        seen = {item.fingerprint: item for item in each.findings}
        missing = {item for item in self.open if item.fingerprint not in seen}
        fixed = {item for item in missing if reaches(each, item)}
        if each.state is ScanState.FAILED:
            return {}, set(), len(self.open)
        before = {item.fingerprint for item in self.open}
        status = {item: self._status(item.fingerprint, before) for item in each.findings}
        self.open = (missing - fixed) | set(each.findings)
        self.ever |= set(seen)
        return status, {item.fingerprint for item in fixed}, len(missing - fixed)

    def _status(self, fingerprint: str, before: set[str]) -> str:
        if fingerprint in before:
            return "open"
        return "reopened" if fingerprint in self.ever else "new"


def reaches(each: Round, item: Finding) -> bool:
    """Return whether a scan would have found a finding, in the words of the promise."""
    lines = [line for line in each.coverage if line.kind == item.kind]
    return (
        each.state is not ScanState.FAILED
        and not each.scope.selector
        and bool(lines)
        and all(line.state is CoverageState.LISTED for line in lines)
        and not (each.gaps and item.kind == "Deployment")
        and item.policy in each.policies
        and item.policy in each.bound
        and item.policy in (each.scope.policies or POLICIES)
        and item.namespace in (each.scope.namespaces or SPACES)
        and not (each.scope.exclude_namespaces and item.namespace == "bank")
    )


NUMBERS = count()


@pytest.mark.long
@given(history=st.lists(rounds, min_size=1, max_size=6))
@SETTINGS
def test_any_history_keeps_the_promises(store: SqlStore, history: list[Round]) -> None:
    """In any sequence of scans no finding is lost, and only fixed findings are resolved.

    The record of an old scan never changes. Every history is that of a cluster of its own, in the same database.
    """
    ledger = Ledger()
    on_the_day: dict[int, tuple[Any, ...]] = {}
    first = next(NUMBERS)
    for number, each in zip(chain([first], NUMBERS), history, strict=False):
        record_in_two_pages(store, number, replace(each, cluster=ClusterIdentity(f"cluster-{first}")))
        on_the_day[number] = snapshot(store, number)
        *_, counted, unchecked, seen, fixed = on_the_day[number]
        expected = {item.finding: item.status for item in seen}, {item.finding.fingerprint for item in fixed}, unchecked
        assert ledger.merge(each) == expected
        assert tallies(each) == counted
    assert on_the_day == {number: snapshot(store, number) for number in on_the_day}


def record_in_two_pages(store: SqlStore, number: int, each: Round) -> None:
    """Store a scan whose findings are on two pages."""
    store.begin(each.start(number))
    for portion in (each.findings[::2], each.findings[1::2]):
        for page in replace(each, findings=portion).pages():
            store.write_page(f"scan-{number}", page)
    store.finish(f"scan-{number}", each.end(number))


def tallies(each: Round) -> dict[TallyKey, int]:
    """The counts of a scan."""
    counted: dict[TallyKey, int] = {}
    for item in each.findings:
        counted[tally(item)] = counted.get(tally(item), 0) + 1
    return counted
