"""What a scan record shows about its policies: outcomes in force, lists, gaps and limits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from scanner.model.outcome import CheckKind, Gap, GapKind
from scanner.model.policy import MatchResources, Policy, PolicyKey, Rule
from scanner.model.reading import Reading
from scanner.model.scans.health import Health, HealthKind
from scanner.model.scans.method import Method
from scanner.model.scans.scan import Coverage, CoverageState, PolicyRecord, ScanState, Scope
from scanner.model.scans.tally import OutcomeName, TallyKey
from scanner.model.selector import EVERYTHING
from scanner.posture.control_facts import facts_of, needs_of
from scanner.posture.controls import PolicyFacts, ScanFacts
from tests.report.in_memory import ScanInMemory
from tests.report.records import binding, check, policy, scan

PODS, SECRETS = "pods", "secrets"
LISTED, FORBIDDEN = CoverageState.LISTED, CoverageState.FORBIDDEN


def key(name: str) -> PolicyKey:
    """The key of a policy."""
    return "ValidatingAdmissionPolicy", name


def on(plural: str, *, assumed: bool = False, bound: bool = True) -> PolicyRecord:
    """A policy of the name of a resource, about that resource."""
    match = MatchResources((Rule(("CREATE",), ("",), ("v1",), (plural,)),), (), EVERYTHING, EVERYTHING)
    bindings = (binding(plural, plural, "Deny", assumed=assumed),) if bound else ()
    return PolicyRecord(replace(policy(plural, "true"), match=match), bindings, 1)


def forms(used: Policy) -> Iterable[MatchResources]:
    """The constraints of a policy of one form."""
    return (used.match,) if used.match else ()


def tally(name: str, outcome: OutcomeName, kind: str = "Pod", *, requester: bool = False) -> TallyKey:
    """The key of an outcome of a policy."""
    return TallyKey(name, name, "", "", check("true"), "v1", kind, "shop", outcome, requester)


def record(*gaps: Gap, pods: CoverageState = LISTED, secrets: CoverageState = LISTED) -> ScanInMemory:
    """A scan with a policy on Pods and one on Secrets, each with one pass."""
    return ScanInMemory(
        scan=scan(ScanState.INCOMPLETE if gaps else ScanState.COMPLETE),
        previous=None,
        policies=(on(PODS), on(SECRETS)),
        coverage=(Coverage("v1", "Pod", pods, 1), Coverage("v1", "Secret", secrets, 1)),
        health=(),
        gaps=gaps,
        tallies={tally(PODS, OutcomeName.PASSED): 1, tally(SECRETS, OutcomeName.PASSED, "Secret"): 1},
        found=lambda: (()),
        ended=lambda: (()),
    )


def facts(of: ScanInMemory) -> ScanFacts:
    """What the scan shows about whole policies."""
    shown = facts_of(of, needs_of(of, forms), {})
    return replace(shown, policies={name: replace(each, checks={}) for name, each in shown.policies.items()})


def pods(of: ScanInMemory) -> PolicyFacts:
    """What the scan shows about the policy on Pods."""
    return facts(of).policies[key(PODS)]


def test_a_complete_scan_has_no_obstacle() -> None:
    """One pass for each policy."""
    shown = PolicyFacts(bound=True, outcomes={OutcomeName.PASSED: 1}, passed=1)
    assert ScanFacts({key(PODS): shown, key(SECRETS): shown}) == facts(record())


@pytest.mark.parametrize("state", [state for state in CoverageState if state is not LISTED])
def test_only_the_kinds_of_a_policy_count(state: CoverageState) -> None:
    """A list that is missing is an obstacle for the policies that need the list, and for no others."""
    assert () == pods(record(secrets=state)).obstacles
    assert 1 == len(pods(record(pods=state)).obstacles)


@pytest.mark.parametrize(
    ("gap", "concerns"),
    [
        (Gap(GapKind.LIST, "v1/Secret", "forbidden"), False),
        (Gap(GapKind.OBJECT, "v1/Secret shop/a", "broken"), False),
        (Gap(GapKind.OBJECT, "v1/Pod shop/a", "broken"), True),
        (Gap(GapKind.EVALUATION, "v1/Pod", "policy x: broken"), True),
        (Gap(GapKind.EVALUATION, "policy pods", "broken"), True),
        (Gap(GapKind.EVALUATION, "policy secrets", "broken"), False),
        (Gap(GapKind.EVALUATION, "policy pods (ValidatingPolicy)", "broken"), False),
        (Gap(GapKind.DISCOVERY, "metrics.k8s.io/v1beta1", "down"), False),
        (Gap(GapKind.DISCOVERY, "/apis", "down"), True),
        (Gap(GapKind.DISCOVERY, "v1", "down"), True),
        (Gap(GapKind.DISCOVERY, "v1/Namespace", "not served"), True),
        (Gap(GapKind.LIST, "v1/Namespace", "forbidden"), True),
        (Gap(GapKind.LIST, "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding", "forbidden"), True),
        (Gap(GapKind.LIST, "ConfigMap kyverno/kyverno", "forbidden"), True),
        (Gap(GapKind.LIST, "scan", "interrupted"), True),
        (Gap(GapKind.DOCUMENT, "a.yaml, document 1", "tabs"), True),
    ],
)
def test_a_gap_concerns_a_policy_unless_it_is_elsewhere(gap: Gap, *, concerns: bool) -> None:
    """A gap in a listed kind that the policy cannot match, another policy, and a group that no rule names are elsewhere."""
    assert concerns is bool(pods(record(gap)).obstacles)


def test_the_gap_of_a_list_is_stated_once() -> None:
    """The state of the list states the gap already."""
    assert ("Pod (v1) was not listed: no permission",) == pods(
        record(Gap(GapKind.LIST, "v1/Pod", "forbidden"), pods=FORBIDDEN)
    ).obstacles


def test_many_gaps_are_one_obstacle() -> None:
    """Their number, and the first of them."""
    gaps = (Gap(GapKind.OBJECT, f"v1/Pod shop/{name}", "broken") for name in "cab")
    assert ("3 gaps, first v1/Pod shop/a: broken",) == pods(record(*gaps)).obstacles


def test_previews_never_count() -> None:
    """A policy that only `--assume-bound` binds is not bound, and has no outcomes."""
    assumed = replace(record(), policies=(on(PODS, assumed=True),))
    assert PolicyFacts() == pods(assumed)


def test_a_pass_that_depends_on_the_user_is_no_evidence() -> None:
    """Neither is a skip: the match condition may exempt the scanner alone."""
    tallies = {
        tally(PODS, OutcomeName.PASSED, requester=True): 2,
        tally(PODS, OutcomeName.SKIPPED, requester=True): 3,
        tally(PODS, OutcomeName.VIOLATED, requester=True): 1,
    }
    shown = pods(replace(record(), tallies=tallies))
    assert (0, 5) == (shown.passed, shown.requester)


def test_a_passed_annotation_is_no_evidence() -> None:
    """Only validations and mutations show something."""
    annotation = tally(PODS, OutcomeName.PASSED)._replace(check=replace(check("true"), kind=CheckKind.AUDIT_ANNOTATION))
    mutation = tally(PODS, OutcomeName.PASSED)._replace(check=replace(check("true"), kind=CheckKind.MUTATION))
    assert 2 == pods(replace(record(), tallies={annotation: 1, mutation: 2})).passed


@pytest.mark.parametrize("kind", [HealthKind.COMPILE, HealthKind.PARAM_KIND, HealthKind.PARAM_MISSING])
def test_a_policy_that_is_not_evaluated_everywhere_has_an_obstacle(kind: HealthKind) -> None:
    """Its health says so, even if no outcome does."""
    assert 1 == len(pods(replace(record(), health=(Health(kind, PODS, PODS, "why"),))).obstacles)
    assert () == pods(replace(record(), health=(Health(kind, SECRETS, SECRETS, "why"),))).obstacles


def test_a_policy_that_cannot_be_audited_has_an_obstacle() -> None:
    """The reading of the policy has the reason."""
    used = replace(on(PODS), reading=Reading((), reason="it matches only deletions"))
    assert ("policy pods cannot be audited",) == pods(replace(record(), policies=(used,))).obstacles


@pytest.mark.parametrize(
    ("scope", "limit"),
    [
        (Scope(), ()),
        (Scope(skip_kinds=("secrets",), kinds=("pods",)), ()),
        (Scope(namespaces=("a", "b")), ("the scan was limited to namespaces a, b",)),
        (Scope(exclude_namespaces=("kube-*",)), ("the scan was limited to namespaces other than kube-*",)),
        (Scope(selector="app=web"), ("the scan was limited to objects with the labels app=web",)),
        (Scope(policies=("x",)), ("the scan was limited to policies x",)),
        (Scope(bindings=("x",)), ("the scan was limited to bindings x",)),
        (Scope(operation="update"), ("the scan was limited to requests to update",)),
    ],
)
def test_a_narrowed_scan_shows_no_control_as_met(scope: Scope, limit: tuple[str, ...]) -> None:
    """The limit is named; kinds that the user left out count for the policies that need these kinds."""
    assert limit == facts(replace(record(), scan=scan(scope=scope))).obstacles


def test_scans_that_did_not_end_and_reports_of_kyverno_show_no_control_as_met() -> None:
    """A failed scan saw a part; Kyverno's reports count excepted objects as passed."""
    failed = facts(replace(record(), scan=scan(ScanState.FAILED)))
    reports = facts(replace(record(), method=Method(kyverno_compat="controller")))
    assert (("the scan did not end",), ("the scan did not end",)) == (failed.obstacles, failed.unread)
    assert ("the scan reproduces the reports of Kyverno's controller, which hide exceptions",) == reports.obstacles


@pytest.mark.parametrize(
    ("gap", "unread"),
    [
        (Gap(GapKind.LIST, "v1/Secret", "forbidden"), False),
        (Gap(GapKind.LIST, "v1/Namespace", "forbidden"), False),
        (Gap(GapKind.EVALUATION, "policy pods", "broken"), False),
        (Gap(GapKind.LIST, "policies.kyverno.io/v1/ValidatingPolicy", "forbidden"), True),
        (Gap(GapKind.DOCUMENT, "a.yaml, document 1", "tabs"), True),
    ],
)
def test_policies_may_be_missing_from_a_scan(gap: Gap, *, unread: bool) -> None:
    """A list of policies that failed, or a document that may have been a policy."""
    assert unread is bool(facts(record(gap)).unread)


def test_waived_tallies_are_accepted_by_policy_and_outcome() -> None:
    """The keys of a policy are added up."""
    own = record()
    waived = {tally(PODS, OutcomeName.VIOLATED): 2, tally(PODS, OutcomeName.VIOLATED, "Job"): 1}
    shown = facts_of(own, needs_of(own, forms), waived).policies
    assert [{OutcomeName.VIOLATED: 3}, {}] == [dict(shown[key(name)].accepted) for name in (PODS, SECRETS)]
