"""A whole scan by Kyverno's policies: what is listed, what is counted, what is said of policies and exceptions."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from scanner.model.outcome import Gap, GapKind
from scanner.model.resource import Kind
from scanner.model.scan import HealthKind, OutcomeName, OutOfScope, Scope
from scanner.policies.kyverno.configuration import DEFAULT, NOTHING
from scanner.policies.kyverno.language import Kyverno
from scanner.policies.kyverno.own_configuration import ConfigurationSource
from scanner.policies.language import with_options
from scanner.rbac import needs
from scanner.scan.documents import Manifest
from scanner.scan.options import Options
from tests.documents import KINDS
from tests.policies.kyverno.made import deployment, exception, pod, policy
from tests.scan.fakes import FakeCluster, Recorded, forbidden, scanned
from tests.scan.test_needs import text_of, used, without_redundant

GROUP = "policies.kyverno.io"
KYVERNO = (
    Kind(GROUP, "v1", "ValidatingPolicy", "validatingpolicies", namespaced=False),
    Kind(GROUP, "v1beta1", "ValidatingPolicy", "validatingpolicies", namespaced=False),
    Kind(GROUP, "v1", "NamespacedValidatingPolicy", "namespacedvalidatingpolicies", namespaced=True),
    Kind(GROUP, "v1", "PolicyException", "policyexceptions", namespaced=True),
    Kind("kyverno.io", "v2", "GlobalContextEntry", "globalcontextentries", namespaced=False),
)
TEAM = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
SETTINGS = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "settings", "namespace": "team", "labels": {"a": "b"}},
    "data": {"mode": "strict"},
}


def _scanned(*documents: Any, refused: Any = None, manifests: tuple[Manifest, ...] = (), **options: Any) -> Recorded:
    """A scan of a cluster that has Kyverno in it, with Kyverno's options. Policies are listed in the preferred version."""
    cluster = FakeCluster([TEAM, *documents], kinds=(*KINDS, *KYVERNO), refused=refused or {})
    return scanned(cluster, Options(manifests=manifests, languages=with_options(Kyverno(**options))))


def test_the_clusters_own_policies_judge_it() -> None:
    """Policies are found by themselves, and no kind that none of them is about is listed."""
    told = _scanned(policy("object.metadata.name == 'web'"), pod(), pod("other"))
    assert ["team/other: CEL expression validation failed at index 0"] == told.messages
    assert {"Pod", "Deployment"} <= {line.kind for line in told.end.coverage}
    assert "ConfigMap" not in {line.kind for line in told.end.coverage}


def test_each_form_of_a_policy_is_counted() -> None:
    """The tallies say which form spoke; the policy is recorded once."""
    told = _scanned(policy("false"), pod(), deployment())
    assert {("checks", "as-written"): 1, ("checks", "autogen-defaults"): 1} == {
        (key.policy, key.binding): number for key, number in told.tallies.items()
    }
    assert ["checks"] == [one.name for one in told.start.policies]


def test_excepted_checks_are_counted_apart() -> None:
    """The finding is there with the exception's name, refuses nothing, and is neither passed nor violated."""
    by_name = [{"name": "n", "expression": "object.metadata.name == 'web'"}]
    told = _scanned(policy("false"), exception(matchConditions=by_name), pod(), pod("other"))
    assert {"web": ("team/let-be", False), "other": ("", True)} == {
        one.name: (one.excepted_by, one.denies) for one in told.findings
    }
    assert (1, 1, 2) == (told.counted(OutcomeName.EXCEPTED), told.counted(OutcomeName.VIOLATED), told.counted())


def test_in_kyvernos_manner_an_exempted_object_is_skipped() -> None:
    """Nothing is found on it."""
    told = _scanned(policy("false"), exception(), pod(), compat="controller")
    assert ([], 1) == (told.messages, told.counted(OutcomeName.SKIPPED))


def test_in_kyvernos_manner_nothing_counts_as_fixed() -> None:
    """What was not reached may still be there: the scan does not say that it evaluated the policy."""
    mode = _scanned(policy("false"), pod(), compat="cli")
    admission = _scanned(policy("false"), pod())
    assert (set(), {("ValidatingPolicy", "checks")}) == (
        set(mode.end.evaluated_policies),
        set(admission.end.evaluated_policies),
    )


READING = policy(
    "resource.Get('v1', 'configmaps', 'team', 'settings').data.mode == 'strict'",
    "resource.List('v1', 'configmaps', 'team', {'a': 'b'}).items.size() == 1",
    "resource.Get('v1', 'configmaps', 'team', 'none') == {}",
    "resource.List(resource.ToGVR('v1', 'ConfigMap'), '').items.all(one, one.kind == 'ConfigMap')",
)


def test_what_expressions_read_is_listed_before() -> None:
    """Objects are found by name, by namespace and by label; one that is not there is null."""
    told = _scanned(READING, SETTINGS, pod())
    assert {"passed": 3, "violated": 1} == {str(key.outcome): _sum(told, key.outcome) for key in told.tallies}


def _sum(told: Recorded, name: OutcomeName) -> int:
    return told.counted(name)


def test_a_policy_that_reads_what_may_not_be_listed_is_a_gap() -> None:
    """It could only be judged wrongly."""
    none = ConfigurationSource(given=NOTHING)
    told = _scanned(READING, pod(), refused={"configmaps": forbidden("configmaps")}, configuration=none)
    (gap,) = told.gaps
    assert ("policy checks (ValidatingPolicy)", []) == (gap.where, told.messages)
    assert gap.why == "it reads configmaps, which could not be listed: cannot list configmaps: forbidden"


def test_what_only_evaluation_names_is_not_auditable() -> None:
    """Nobody could list it beforehand."""
    told = _scanned(policy("resource.List('v1', object.metadata.name + 's', 'team').items.size() == 0"), pod("secret"))
    assert 1 == told.counted(OutcomeName.NOT_AUDITABLE)


def _entry(name: str, **spec: Any) -> Any:
    return {"apiVersion": "kyverno.io/v2", "kind": "GlobalContextEntry", "metadata": {"name": name}, "spec": spec}


def test_global_context_entries_project_the_cluster() -> None:
    """An entry of a resource is its list; one of an API call is not auditable; one that is not there is null."""
    resources = {"group": "", "version": "v1", "resource": "configmaps", "namespace": "team"}
    told = _scanned(
        policy(
            "globalContext.Get('maps', '').exists(one, one.metadata.name == 'settings')",
            "globalContext.Get('calls') == null",
            "globalContext.Get('none') == null",
        ),
        _entry("maps", kubernetesResource=resources),
        _entry("calls", apiCall={"urlPath": "/version"}),
        SETTINGS,
        pod(),
    )
    assert (2, 1) == (told.counted(OutcomeName.PASSED), told.counted(OutcomeName.NOT_AUDITABLE))


def _health(told: Recorded) -> set[tuple[str, str]]:
    return {(str(one.kind), one.detail) for one in told.end.health}


def test_health_tells_what_a_policy_is_not() -> None:
    """Unknown fields, what has no effect, what is not for stored objects: each is said once."""
    told = _scanned(
        policy(
            "true", later=1, webhookConfiguration={"timeoutSeconds": 5}, evaluation={"background": {"enabled": False}}
        ),
        pod(),
    )
    assert {
        ("note", "unknown fields, which nobody looks at: spec.later"),
        ("note", "spec.webhookConfiguration has no effect on a scan: it is about the webhook alone"),
        ("notAuditable", "it is not meant for stored objects: evaluation.background.enabled is false"),
    } == _health(told)


def test_a_policy_that_does_not_compile_is_said_once() -> None:
    """Its forms fail alike; every object that it matches is told."""
    told = _scanned(policy("object.nothing +"), pod())
    assert [HealthKind.COMPILE] == [one.kind for one in told.end.health]
    assert 1 == told.counted(OutcomeName.ERRORED_ADMIT)


def test_an_expired_exception_is_said() -> None:
    """It excepts nothing."""
    told = _scanned(policy("false"), exception(expiresAt="2020-01-01T00:00:00Z"), pod())
    assert ("note", "policy exception team/let-be has expired, and excepts nothing any more") in _health(told)


def test_a_policy_that_matches_nothing_is_said_once() -> None:
    """Not for every form of it."""
    told = _scanned(policy("true"))
    assert [("matchedNoObject", "checks", "")] == told.health


def test_a_generated_copy_does_not_speak_twice() -> None:
    """The admission policy that Kyverno made of a policy is left out, and that is said."""
    owner = {"apiVersion": f"{GROUP}/v1beta1", "kind": "ValidatingPolicy", "name": "checks"}
    spec = policy("false")["spec"]
    copy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "vpol-checks", "ownerReferences": [owner]},
        "spec": spec,
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "vpol-checks-binding"},
        "spec": {"policyName": "vpol-checks", "validationActions": ["Deny"]},
    }
    told = _scanned(policy("false"), copy, binding, pod())
    detail = "Kyverno generated ValidatingAdmissionPolicy vpol-checks from it; objects are judged by this one, once"
    assert (["checks"], True) == ([one.policy for one in told.findings], ("note", detail) in _health(told))


def test_policies_of_one_name_are_told_apart() -> None:
    """An admission policy and one of Kyverno's, and Kyverno's of two namespaces, have findings, counts and health of their own."""
    spec = policy("false")["spec"]
    other = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "checks"},
        "spec": spec,
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "checks"},
        "spec": {"policyName": "checks", "validationActions": ["Deny"]},
    }
    own = {**policy("object.metadata.name == 'web'"), "kind": "NamespacedValidatingPolicy"}
    theirs = [{**own, "metadata": {"name": "checks", "namespace": place}} for place in ("team", "elsewhere")]
    told = _scanned(policy("false"), other, binding, *theirs, pod(), pod("other"))
    assert {
        ("ValidatingAdmissionPolicy", "checks"): 2,
        ("ValidatingPolicy", "checks"): 2,
        ("NamespacedValidatingPolicy", "team/checks"): 1,
    } == Counter(one.policy_key for one in told.findings)
    assert {("NamespacedValidatingPolicy", "elsewhere/checks")} == {
        one.policy_key for one in told.end.health if one.kind is HealthKind.NO_OBJECT
    }


@pytest.mark.parametrize("scope", [Scope(), Scope(skip_kinds=("jobs",))], ids=str)
def test_the_rights_that_are_named_are_those_that_are_used(scope: Scope) -> None:
    """What expressions read is among them, and nothing beyond."""
    shown = [TEAM, READING, SETTINGS, pod()]
    cluster = FakeCluster(shown, kinds=(*KINDS, *KYVERNO))
    scanned(cluster, Options(scope))
    rights = {text_of(need) for need in needs(FakeCluster(shown, kinds=(*KINDS, *KYVERNO)), Options(scope)).rights}
    assert rights - {"namespaces kube-system"} == without_redundant(used(cluster))
    assert "configmaps" in rights


def test_what_the_webhook_does_not_ask_refuses_nothing() -> None:
    """Its findings are reported, as its background scan would, and that is said."""
    told = _scanned(policy("false", evaluation={"admission": {"enabled": False}}), pod())
    detail = "evaluation.admission.enabled is false: Kyverno's webhook does not ask it, and no request is refused"
    assert ([(("Audit",), False)], True) == (
        [(one.actions, one.denies) for one in told.findings],
        ("note", detail) in _health(told),
    )


@pytest.mark.parametrize(("compat", "expected"), [("", []), ("controller", ["team/checks"]), ("cli", [])])
def test_in_the_controllers_manner_a_namespaced_policy_sees_what_is_in_no_namespace(
    compat: str, expected: list[str]
) -> None:
    """Kyverno's scan asks the policies of all namespaces about it; no admission request ever would."""
    own = {**policy("false", resources=("namespaces",)), "kind": "NamespacedValidatingPolicy"}
    own["metadata"] = {"name": "checks", "namespace": "team"}
    told = _scanned(own, compat=compat)
    assert expected == [one.policy for one in told.findings]


def _configured(**data: Any) -> Any:
    metadata = {"name": "kyverno", "namespace": "kyverno"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


PODS_OF_TEAM = _configured(resourceFilters="[Node,*,*] [Pod,team,we*]")
FILTERED = "Kyverno's resourceFilters [Pod,team,we*]"


def test_what_a_filter_exempts_is_evaluated_and_refuses_nothing() -> None:
    """The finding names the filter, and is counted apart; what passes passes."""
    told = _scanned(policy("object.metadata.name == 'web2'"), PODS_OF_TEAM, pod(), pod("web2"), pod("other"))
    assert {"web": (FILTERED, False), "other": ("", True)} == {
        it.name: (it.excepted_by, it.denies) for it in told.findings
    }
    counted = {name: told.counted(name) for name in (OutcomeName.EXCEPTED, OutcomeName.VIOLATED, OutcomeName.PASSED)}
    assert {OutcomeName.EXCEPTED: 1, OutcomeName.VIOLATED: 1, OutcomeName.PASSED: 1} == counted


def test_filters_apply_whatever_way_a_policy_is_evaluated() -> None:
    """With exceptions, conditions and errors as well; an exception is named behind the filter."""
    broken = policy("object.spec.none == 1", "false", matchConditions=[{"name": "c", "expression": "true"}])
    told = _scanned(broken, PODS_OF_TEAM, exception(), pod())
    assert [(f"{FILTERED}, team/let-be", False)] * 2 == [(it.excepted_by, it.denies) for it in told.findings]


def test_a_policy_that_does_not_compile_is_no_matter_of_a_filter() -> None:
    """Its fault is the policy's, on whatever object."""
    told = _scanned(policy("1"), PODS_OF_TEAM, pod())
    assert [""] == [it.excepted_by for it in told.findings]


@pytest.mark.parametrize("options", [{"compat": "controller"}, {"compat": "cli"}])
def test_kyvernos_reports_know_no_filters(options: Any) -> None:
    """Its scan skips them by default: the ConfigMap is not even read."""
    cluster = FakeCluster([TEAM, PODS_OF_TEAM, policy("false"), pod()], kinds=(*KINDS, *KYVERNO))
    told = scanned(cluster, Options(languages=with_options(Kyverno(**options))))
    assert ([""], []) == ([it.excepted_by for it in told.findings], [it for it in cluster.listed if "configmaps" in it])


def test_a_policy_that_the_webhook_does_not_ask_is_not_filtered() -> None:
    """What it finds is only reported, and reports are not filtered."""
    told = _scanned(policy("false", evaluation={"admission": {"enabled": False}}), PODS_OF_TEAM, pod())
    assert [("", ("Audit",))] == [(it.excepted_by, it.actions) for it in told.findings]


def test_filters_that_may_not_be_read_are_a_gap() -> None:
    """Findings could count that admission would never make."""
    told = _scanned(policy("false"), pod(), refused={"kyverno/configmaps": forbidden("configmaps")})
    why = (
        "Kyverno's resource filters are not known, and objects that they exempt count like all others: "
        "cannot list configmaps: forbidden. Name the filters with --kyverno-resource-filters"
    )
    assert ([Gap(GapKind.LIST, "ConfigMap kyverno/kyverno", why)], [""]) == (
        [*told.gaps],
        [it.excepted_by for it in told.findings],
    )


HOME_LABELS = {"kubernetes.io/metadata.name": "kyverno"}


@pytest.mark.parametrize(
    ("expected", "configuration"),
    [
        ("", ConfigurationSource(given=NOTHING)),
        ("the namespaceSelector of Kyverno's webhooks", ConfigurationSource(given=DEFAULT)),
        ("", ConfigurationSource(("team", "other"))),
    ],
)
def test_the_user_knows_better(expected: str, configuration: ConfigurationSource) -> None:
    """Filters that are given are used instead of the cluster's, and another ConfigMap if it is named."""
    everything = _configured(resourceFilters="[*/*,*,*]")
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kyverno", "labels": HOME_LABELS}}
    objects = (home, everything, pod(namespace="kyverno"))
    told = _scanned(policy("false"), *objects, configuration=configuration)
    assert ([expected], ()) == ([it.excepted_by for it in told.findings], told.gaps)


def test_a_config_map_among_the_policy_files_stands_in_for_the_clusters() -> None:
    """As every document of a file does."""
    files = (Manifest("f.yaml", PODS_OF_TEAM),)
    told = _scanned(policy("false"), pod(), _configured(resourceFilters=""), manifests=files)
    assert [FILTERED] == [it.excepted_by for it in told.findings]


def test_without_a_config_map_the_report_says_so() -> None:
    """Nothing is exempted then."""
    told = _scanned(policy("false"), pod())
    why = (
        "there is no such ConfigMap: Kyverno's resource filters are not known, and objects that they exempt count like "
        "all others. Name the filters with --kyverno-resource-filters"
    )
    assert ([""], (OutOfScope("KyvernoConfiguration", "kyverno/kyverno", why),)) == (
        [it.excepted_by for it in told.findings],
        told.end.outside,
    )


def test_a_requester_whom_kyverno_excludes_makes_nothing_look_clean() -> None:
    """Its policies are evaluated as for other users, and the report says so."""
    told = _scanned(policy("false"), pod(), _configured(excludeUsernames="audit*"))
    why = "excludeUsernames audit*: Kyverno admits every request of auditor; its policies are evaluated as for other users"
    assert ([("", True)], (OutOfScope("KyvernoConfiguration", "kyverno/kyverno", why),)) == (
        [(it.excepted_by, it.denies) for it in told.findings],
        told.end.outside,
    )


def test_the_labels_of_the_namespace_decide_for_the_webhooks_selector() -> None:
    """They are the cluster's, whether or not a policy reads them."""
    selector = json.dumps({"namespaceSelector": {"matchLabels": {"kyverno": "on"}}})
    on = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "on", "labels": {"kyverno": "on"}}}
    told = _scanned(policy("false"), on, pod(), pod(namespace="on"), _configured(webhooks=selector))
    assert {"team": "the namespaceSelector of Kyverno's webhooks", "on": ""} == {
        it.namespace: it.excepted_by for it in told.findings
    }


def test_the_config_map_is_among_the_rights_of_a_scan() -> None:
    """Only where some policy of Kyverno's is evaluated as its webhook would."""
    cluster = FakeCluster([TEAM, policy("false"), pod()], kinds=(*KINDS, *KYVERNO))
    given = Options(languages=with_options(Kyverno(configuration=ConfigurationSource(given=NOTHING))))
    assert ("kyverno/configmaps" in _rights(cluster, Options()), "kyverno/configmaps" in _rights(cluster, given)) == (
        True,
        False,
    )


def _rights(cluster: FakeCluster, options: Options) -> set[str]:
    return {text_of(need) for need in needs(cluster, options).rights if not need.optional}
