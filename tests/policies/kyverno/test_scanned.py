"""A whole scan with Kyverno's policies: lists, tallies, and the health of policies and exceptions."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from scanner.model.outcome import Gap, GapKind
from scanner.model.resource import Kind
from scanner.model.scans.health import HealthKind
from scanner.model.scans.out_of_scope import OutOfScope
from scanner.model.scans.scan import Scope
from scanner.model.scans.tally import OutcomeName
from scanner.policies.kyverno.configuration import DEFAULT, NOTHING
from scanner.policies.kyverno.family import KyvernoOptions
from scanner.policies.kyverno.own_configuration import ConfigurationSource
from scanner.policies.language import with_options
from scanner.rbac import list_permissions
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
    """A scan of a cluster with Kyverno and its options. Policies are listed in the preferred version."""
    cluster = FakeCluster([TEAM, *documents], kinds=(*KINDS, *KYVERNO), refused=refused or {})
    return scanned(cluster, Options(manifests=manifests, languages=with_options(KyvernoOptions(**options))))


def test_the_clusters_own_policies_evaluate_its_objects() -> None:
    """A scan finds the policies, and lists only the kinds that they match."""
    scan = _scanned(policy("object.metadata.name == 'web'"), pod(), pod("other"))
    assert ["team/other: CEL expression validation failed at index 0"] == scan.messages
    assert {"Pod", "Deployment"} <= {line.kind for line in scan.end.coverage}
    assert "ConfigMap" not in {line.kind for line in scan.end.coverage}


def test_each_form_of_a_policy_is_counted() -> None:
    """The tallies name the form of the policy; the policy is recorded once."""
    scan = _scanned(policy("false"), pod(), deployment())
    assert {("checks", "as-written"): 1, ("checks", "autogen-defaults"): 1} == {
        (key.policy, key.binding): number for key, number in scan.tallies.items()
    }
    assert ["checks"] == [policy_record.name for policy_record in scan.start.policies]


def test_excepted_checks_are_counted_apart() -> None:
    """The finding has the exception's name, denies nothing, and is neither passed nor violated."""
    by_name = [{"name": "n", "expression": "object.metadata.name == 'web'"}]
    scan = _scanned(policy("false"), exception(matchConditions=by_name), pod(), pod("other"))
    assert {"web": ("team/let-be", False), "other": ("", True)} == {
        finding.name: (finding.excepted_by, finding.denies) for finding in scan.findings
    }
    assert (1, 1, 2) == (scan.counted(OutcomeName.EXCEPTED), scan.counted(OutcomeName.VIOLATED), scan.counted())


def test_in_kyvernos_mode_an_exempted_object_is_skipped() -> None:
    """An exempted object has no finding."""
    scan = _scanned(policy("false"), exception(), pod(), compat="controller")
    assert ([], 1) == (scan.messages, scan.counted(OutcomeName.SKIPPED))


def test_a_variant_without_a_webhook_is_recorded_as_not_enforced() -> None:
    """The finding denies nothing, its binding has the action Audit, and policy health has an entry."""
    manifest = policy("false", kind="NamespacedValidatingPolicy", metadata={"namespace": "team"})
    scan = _scanned(manifest, pod(), deployment(), version="1.18")
    assert {"as-written": True, "autogen-defaults": False} == {
        finding.binding: finding.denies for finding in scan.findings
    }
    entries = {entry.binding for entry in scan.end.health if entry.kind is HealthKind.NOT_ENFORCED}
    assert {"autogen-cronjobs", "autogen-defaults"} == entries


def test_an_error_in_the_webhook_is_recorded_as_a_denial() -> None:
    """It denies although the policy only audits."""
    conditions = [{"name": "e", "expression": "object.spec.none == 1"}]
    scan = _scanned(policy("true", matchConditions=conditions, validationActions=["Audit"]), pod())
    assert [True] == [finding.denies for finding in scan.findings]


def test_in_kyvernos_mode_nothing_counts_as_fixed() -> None:
    """Checks after a failure are not evaluated, so the scan does not record the policy as evaluated."""
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
    "resource.List(resource.ToGVR('v1', 'ConfigMap'), '').items.orValue([]).all(one, one.kind == 'ConfigMap')",
)


def test_what_expressions_read_is_listed_before() -> None:
    """Objects are read by name, by namespace and by label; a missing object is null."""
    scan = _scanned(READING, SETTINGS, pod())
    assert {"passed": 3, "violated": 1} == {str(key.outcome): _sum(scan, key.outcome) for key in scan.tallies}


def _sum(scan: Recorded, name: OutcomeName) -> int:
    return scan.counted(name)


def test_a_policy_that_reads_what_may_not_be_listed_is_a_gap() -> None:
    """A policy without the objects that it reads would have wrong results."""
    none = ConfigurationSource(given=NOTHING)
    scan = _scanned(READING, pod(), refused={"configmaps": forbidden("configmaps")}, configuration=none)
    (gap,) = scan.gaps
    assert ("policy checks (ValidatingPolicy)", []) == (gap.where, scan.messages)
    assert gap.why == "it reads configmaps, which could not be listed: cannot list configmaps: forbidden"


def test_what_only_evaluation_names_is_not_auditable() -> None:
    """A scan cannot list a resource that only the evaluation names."""
    scan = _scanned(policy("resource.List('v1', object.metadata.name + 's', 'team').items.size() == 0"), pod("secret"))
    assert 1 == scan.counted(OutcomeName.NOT_AUDITABLE)


def _entry(name: str, **spec: Any) -> Any:
    return {"apiVersion": "kyverno.io/v2", "kind": "GlobalContextEntry", "metadata": {"name": name}, "spec": spec}


def test_global_context_entries_project_the_cluster() -> None:
    """An entry of a resource is its list, an entry of another API call is not auditable, and a missing entry is null."""
    resources = {"group": "", "version": "v1", "resource": "configmaps", "namespace": "team"}
    scan = _scanned(
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
    assert (2, 1) == (scan.counted(OutcomeName.PASSED), scan.counted(OutcomeName.NOT_AUDITABLE))


def _health(scan: Recorded) -> set[tuple[str, str]]:
    return {(str(problem.kind), problem.detail) for problem in scan.end.health}


def test_health_names_fields_without_effect() -> None:
    """Unknown fields, fields without effect and policies for other uses have one health entry each."""
    scan = _scanned(
        policy(
            "true", later=1, webhookConfiguration={"timeoutSeconds": 5}, evaluation={"background": {"enabled": False}}
        ),
        pod(),
    )
    assert {
        ("note", "unknown fields are ignored: spec.later"),
        ("note", "spec.webhookConfiguration limits the time of the webhook, which a scan does not measure"),
        ("notAuditable", "it is not meant for stored objects: evaluation.background.enabled is false"),
    } == _health(scan)


def test_a_policy_that_does_not_compile_is_reported_once() -> None:
    """All forms of the policy have the same fault; every matched object has an error."""
    scan = _scanned(policy("object.nothing +"), pod())
    assert [HealthKind.COMPILE] == [problem.kind for problem in scan.end.health]
    assert 1 == scan.counted(OutcomeName.ERRORED_ADMIT)


def test_an_expired_exception_is_reported() -> None:
    """An expired exception has a health entry, because it exempts nothing."""
    scan = _scanned(policy("false"), exception(expiresAt="2020-01-01T00:00:00Z"), pod())
    assert ("note", "policy exception team/let-be has expired and no longer exempts any object") in _health(scan)


def test_a_policy_that_matches_nothing_is_reported_once() -> None:
    """The health entry is not repeated for every form."""
    scan = _scanned(policy("true"))
    assert [("matchedNoObject", "checks", "")] == scan.health


def test_a_generated_copy_has_no_findings() -> None:
    """A scan leaves out the admission policy that Kyverno generated, and health has a note about it."""
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
    scan = _scanned(policy("false"), copy, binding, pod())
    detail = "Kyverno generated ValidatingAdmissionPolicy vpol-checks from it; only this policy is evaluated, so that each object has one outcome"
    assert (["checks"], True) == ([finding.policy for finding in scan.findings], ("note", detail) in _health(scan))


def test_policies_of_one_name_are_counted_separately() -> None:
    """Policies of two languages, and of two namespaces, have their own findings, counts and health."""
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
    scan = _scanned(policy("false"), other, binding, *theirs, pod(), pod("other"))
    assert {
        ("ValidatingAdmissionPolicy", "checks"): 2,
        ("ValidatingPolicy", "checks"): 2,
        ("NamespacedValidatingPolicy", "team/checks"): 1,
    } == Counter(finding.policy_key for finding in scan.findings)
    assert {("NamespacedValidatingPolicy", "elsewhere/checks")} == {
        problem.policy_key for problem in scan.end.health if problem.kind is HealthKind.NO_OBJECT
    }


@pytest.mark.parametrize("scope", [Scope(), Scope(skip_kinds=("jobs",))], ids=str)
def test_the_rights_that_are_named_are_those_that_are_used(scope: Scope) -> None:
    """The permissions include those for the objects that expressions read, and no others but those for workloads."""
    shown = [TEAM, READING, SETTINGS, pod()]
    cluster = FakeCluster(shown, kinds=(*KINDS, *KYVERNO))
    scanned(cluster, Options(scope))
    wanted = list_permissions(FakeCluster(shown, kinds=(*KINDS, *KYVERNO)), Options(scope)).rights
    rights = {text_of(need) for need in wanted if need.why != "workloads (metadata only)"}
    assert rights - {"namespaces kube-system", "/metrics"} == without_redundant(used(cluster))
    assert "configmaps" in rights


def test_a_policy_without_admission_denies_nothing() -> None:
    """The findings of a policy without admission are reported, deny nothing, and health has a note."""
    scan = _scanned(policy("false", evaluation={"admission": {"enabled": False}}), pod())
    detail = (
        "evaluation.admission.enabled is false: Kyverno's webhook does not evaluate the policy, and denies no request"
    )
    assert ([(("Audit",), False)], True) == (
        [(finding.actions, finding.denies) for finding in scan.findings],
        ("note", detail) in _health(scan),
    )


OTHER = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}


@pytest.mark.parametrize(
    ("compat", "expected"),
    [
        ("", ["/team", "team/web"]),
        ("controller", ["/other", "/team", "team/web"]),
        ("cli", ["/other", "/team", "other/web", "team/web"]),
    ],
)
def test_the_mode_decides_where_a_namespaced_policy_applies(compat: str, expected: list[str]) -> None:
    """Admission: in its namespace, and for that Namespace. Kyverno's scan: all cluster-scoped objects too; its CLI: everywhere."""
    own = policy("false", resources=("namespaces", "pods"), kind="NamespacedValidatingPolicy")
    own["metadata"]["namespace"] = "team"
    scan = _scanned(own, OTHER, pod(), pod(namespace="other"), compat=compat)
    assert expected == sorted(f"{finding.namespace}/{finding.name}" for finding in scan.findings)


def test_a_namespaced_policy_reads_its_own_namespace_where_the_kyverno_cli_evaluates_it() -> None:
    """Its functions read the objects in the namespace of the policy, also for an object elsewhere."""
    own = policy("resource.Get('v1', 'configmaps', 'settings').data.mode == 'lax'", kind="NamespacedValidatingPolicy")
    own["metadata"]["namespace"] = "team"
    scan = _scanned(own, OTHER, SETTINGS, pod(namespace="other"), compat="cli")
    assert ["other/web: CEL expression validation failed at index 0"] == scan.messages


def _configured(**data: Any) -> Any:
    metadata = {"name": "kyverno", "namespace": "kyverno"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


PODS_OF_TEAM = _configured(resourceFilters="[Node,*,*] [Pod,team,we*]")
FILTERED = "Kyverno's resourceFilters [Pod,team,we*]"


def test_what_a_filter_exempts_is_evaluated_and_refuses_nothing() -> None:
    """The finding names the filter, and is counted apart; a pass stays a pass."""
    scan = _scanned(policy("object.metadata.name == 'web2'"), PODS_OF_TEAM, pod(), pod("web2"), pod("other"))
    assert {"web": (FILTERED, False), "other": ("", True)} == {
        finding.name: (finding.excepted_by, finding.denies) for finding in scan.findings
    }
    counted = {name: scan.counted(name) for name in (OutcomeName.EXCEPTED, OutcomeName.VIOLATED, OutcomeName.PASSED)}
    assert {OutcomeName.EXCEPTED: 1, OutcomeName.VIOLATED: 1, OutcomeName.PASSED: 1} == counted


def test_filters_apply_in_every_mode_of_evaluation() -> None:
    """Filters apply with exceptions, conditions and errors; the finding names the exception after the filter."""
    broken = policy("object.spec.none == 1", "false", matchConditions=[{"name": "c", "expression": "true"}])
    scan = _scanned(broken, PODS_OF_TEAM, exception(), pod())
    assert [(f"{FILTERED}, team/let-be", False)] * 2 == [
        (finding.excepted_by, finding.denies) for finding in scan.findings
    ]


def test_a_policy_that_does_not_compile_is_no_matter_of_a_filter() -> None:
    """The fault belongs to the policy, for every object."""
    scan = _scanned(policy("1"), PODS_OF_TEAM, pod())
    assert [""] == [finding.excepted_by for finding in scan.findings]


@pytest.mark.parametrize("options", [{"compat": "controller"}, {"compat": "cli"}])
def test_kyvernos_reports_know_no_filters(options: Any) -> None:
    """Kyverno's scan skips filters by default, so the ConfigMap is not read."""
    cluster = FakeCluster([TEAM, PODS_OF_TEAM, policy("false"), pod()], kinds=(*KINDS, *KYVERNO))
    scan = scanned(cluster, Options(languages=with_options(KyvernoOptions(**options))))
    assert ([""], []) == (
        [finding.excepted_by for finding in scan.findings],
        [finding for finding in cluster.listed if "configmaps" in finding],
    )


def test_a_policy_without_admission_has_no_filters() -> None:
    """Findings that are only reported have no filters."""
    scan = _scanned(policy("false", evaluation={"admission": {"enabled": False}}), PODS_OF_TEAM, pod())
    assert [("", ("Audit",))] == [(finding.excepted_by, finding.actions) for finding in scan.findings]


def test_filters_that_may_not_be_read_are_a_gap() -> None:
    """Without the filters, findings could count objects that admission exempts."""
    scan = _scanned(policy("false"), pod(), refused={"kyverno/configmaps": forbidden("configmaps")})
    why = (
        "Kyverno's resource filters are not known, and objects that they exempt count like all others: "
        "cannot list configmaps: forbidden. Name the filters with --kyverno-resource-filters"
    )
    assert ([Gap(GapKind.LIST, "ConfigMap kyverno/kyverno", why)], [""]) == (
        [*scan.gaps],
        [finding.excepted_by for finding in scan.findings],
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
def test_the_users_filters_replace_the_clusters(expected: str, configuration: ConfigurationSource) -> None:
    """The user's filters replace those of the cluster, and a named ConfigMap replaces the default one."""
    everything = _configured(resourceFilters="[*/*,*,*]")
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kyverno", "labels": HOME_LABELS}}
    objects = (home, everything, pod(namespace="kyverno"))
    scan = _scanned(policy("false"), *objects, configuration=configuration)
    assert ([expected], ()) == ([finding.excepted_by for finding in scan.findings], scan.gaps)


def test_a_config_map_among_the_policy_files_stands_in_for_the_clusters() -> None:
    """A document in a file replaces that of the cluster."""
    files = (Manifest("f.yaml", PODS_OF_TEAM),)
    scan = _scanned(policy("false"), pod(), _configured(resourceFilters=""), manifests=files)
    assert [FILTERED] == [finding.excepted_by for finding in scan.findings]


def test_without_a_config_map_the_report_says_so() -> None:
    """Without a ConfigMap no object is exempted, and the report has a note."""
    scan = _scanned(policy("false"), pod())
    why = (
        "there is no such ConfigMap: Kyverno's resource filters are not known, and objects that they exempt count like "
        "all others. Name the filters with --kyverno-resource-filters"
    )
    assert ([""], (OutOfScope("KyvernoConfiguration", "kyverno/kyverno", why),)) == (
        [finding.excepted_by for finding in scan.findings],
        scan.end.outside,
    )


def test_a_requester_whom_kyverno_excludes_makes_nothing_look_clean() -> None:
    """Policies are evaluated as for other users, and the report has a note."""
    scan = _scanned(policy("false"), pod(), _configured(excludeUsernames="audit*"))
    why = "excludeUsernames audit*: Kyverno admits every request of auditor; its policies are evaluated as for other users"
    assert ([("", True)], (OutOfScope("KyvernoConfiguration", "kyverno/kyverno", why),)) == (
        [(finding.excepted_by, finding.denies) for finding in scan.findings],
        scan.end.outside,
    )


def test_the_labels_of_the_namespace_decide_for_the_webhooks_selector() -> None:
    """The labels are those of the cluster, even if no policy reads them."""
    selector = json.dumps({"namespaceSelector": {"matchLabels": {"kyverno": "on"}}})
    on = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "on", "labels": {"kyverno": "on"}}}
    scan = _scanned(policy("false"), on, pod(), pod(namespace="on"), _configured(webhooks=selector))
    assert {"team": "the namespaceSelector of Kyverno's webhooks", "on": ""} == {
        finding.namespace: finding.excepted_by for finding in scan.findings
    }


def test_the_config_map_is_among_the_rights_of_a_scan() -> None:
    """The permission is needed only if a Kyverno policy is evaluated as in the webhook."""
    cluster = FakeCluster([TEAM, policy("false"), pod()], kinds=(*KINDS, *KYVERNO))
    given = Options(languages=with_options(KyvernoOptions(configuration=ConfigurationSource(given=NOTHING))))
    assert ("kyverno/configmaps" in _rights(cluster, Options()), "kyverno/configmaps" in _rights(cluster, given)) == (
        True,
        False,
    )


def _rights(cluster: FakeCluster, options: Options) -> set[str]:
    return {text_of(need) for need in list_permissions(cluster, options).rights if not need.optional}
