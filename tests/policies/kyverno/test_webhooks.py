"""The webhooks that Kyverno registers: match conditions that the API server evaluates, versions, variants, and refused webhooks."""

from __future__ import annotations

from typing import Any, Final

import pytest

from scanner.admission.context import EvaluationContext
from scanner.audit.fast_path import FastPath
from scanner.audit.findings import denies
from scanner.audit.page import PageEvaluator
from scanner.cluster.definitions import builtin_kinds
from scanner.model.outcome import CheckKind, Errored, Skipped, SkipReason, Violated
from scanner.model.release import Minor
from scanner.model.resource import Kind, resource_of
from scanner.model.scans.health import HealthKind
from scanner.model.selector import parse_selector
from scanner.policies.kyverno import health
from scanner.policies.kyverno.bind import KyvernoContext, bind, bind_forms
from scanner.policies.kyverno.configuration import Configuration, parse_filters
from scanner.policies.kyverno.modes import CLI, CONTROLLER
from scanner.policies.kyverno.releases import NEWEST
from scanner.policies.kyverno.spec import read_policy
from scanner.policies.plan import plan
from scanner.scan.param_table import ParamTable
from tests.audit.test_fast_path import NoFastPath, facts, page
from tests.documents import KINDS
from tests.policies.kyverno.made import (
    NOW,
    check_results,
    deployment,
    exception,
    invocation_results,
    outcomes,
    pod,
    policy,
)

ERRS: Final = "size(oldObject) == 0"
"""A condition that is an error for null, and true for an empty map."""


def condition(expression: str, name: str = "m") -> Any:
    """The only match condition of a policy."""
    return [{"name": name, "expression": expression}]


def on_config_maps(expression: str, **spec: Any) -> Any:
    """A policy for ConfigMaps that denies every one that its only match condition admits."""
    return policy("false", resources=("configmaps",), matchConditions=condition(expression), **spec)


def config_map(namespace: str = "team", **metadata: Any) -> Any:
    """A ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": namespace, **metadata}}


def problems(*policies: Any, release: Minor = NEWEST) -> list[tuple[str, str]]:
    """The policies and details of health entries about enforcement."""
    forms = bind_forms(map(read_policy, policies), (), KyvernoContext(NOW, release=release))
    entries = health.of_policies(forms, builtin_kinds())
    return [(entry.policy, entry.detail) for entry in entries if entry.kind is HealthKind.NOT_ENFORCED]


def enforced(document: Any, *policies: Any, release: Minor = NEWEST) -> list[tuple[str, bool]]:
    """Pairs of a policy with a violation, and whether admission denies the object for it."""
    return [
        (result.invocation.policy.name, denies(check_result.outcome, result.invocation))
        for result in invocation_results(document, *policies, release=release)
        for check_result in result.check_results
        if isinstance(check_result.outcome, Violated | Errored)
    ]


@pytest.mark.parametrize(
    ("expected", "expression"),
    [
        ("m", "oldObject != null"),
        ("m", "has(oldObject.metadata)"),
        ("m", "oldObject == null"),
        ("", "request.operation == 'CREATE'"),
    ],
)
def test_the_old_object_of_a_create_is_null_in_the_webhook(expected: str, expression: str) -> None:
    """For Kyverno it is an empty map: a condition has to be true in the API server, and then in Kyverno."""
    (result,) = check_results(config_map(), on_config_maps(expression), operation="CREATE")
    skipped = Skipped(SkipReason.CONDITION_FALSE, expected)
    assert (skipped if expected else Violated("CEL expression validation failed at index 0", "", 400)) == result.outcome


def test_an_update_has_the_old_object_in_the_webhook() -> None:
    """The API server and Kyverno have the same values."""
    manifest = on_config_maps("oldObject.metadata.name == 'web'")
    manifest["spec"]["matchConstraints"]["resourceRules"][0]["operations"] = ["UPDATE"]
    assert ["Violated"] == outcomes(config_map(), manifest)


@pytest.mark.parametrize("actions", [["Deny"], ["Audit"], ["Warn"]])
def test_an_error_in_the_webhook_refuses_with_any_actions(actions: list[str]) -> None:
    """The API server has no actions, and its message names the expression."""
    (result,) = invocation_results(config_map(), on_config_maps(ERRS, validationActions=actions))
    text = f"expression '{ERRS}' resulted in error: no such overload: size"
    expected = Errored(text, would_deny=True, always=True, reason="Forbidden", code=403)
    (check_result,) = result.check_results
    assert (expected, CheckKind.CONDITIONS) == (check_result.outcome, check_result.check.kind)


def test_an_error_in_the_webhook_with_ignore_admits() -> None:
    """The API server does not call the webhook."""
    (result,) = check_results(config_map(), on_config_maps(ERRS, failurePolicy="Ignore"))
    assert (True, False) == (isinstance(result.outcome, Errored), getattr(result.outcome, "would_deny", None))


def test_several_errors_in_the_webhook_are_one_message() -> None:
    """They are joined as the API server joins them."""
    conditions = [{"name": str(index), "expression": f"object.{index} == 1"} for index in ("a", "b")]
    (result,) = check_results(config_map(), policy("false", resources=("configmaps",), matchConditions=conditions))
    texts = [f"expression 'object.{index} == 1' resulted in error: no such key: {index}" for index in ("a", "b")]
    assert f"[{', '.join(texts)}]" == getattr(result.outcome, "message", "")


def test_a_false_condition_in_the_webhook_overrides_an_error() -> None:
    """The API server calls no webhook of which a condition is false."""
    conditions = [*condition(ERRS, "e"), *condition("false", "no")]
    (result,) = check_results(config_map(), policy("false", resources=("configmaps",), matchConditions=conditions))
    assert Skipped(SkipReason.CONDITION_FALSE, "no") == result.outcome


def test_no_exception_exempts_from_an_error_in_the_webhook() -> None:
    """Exceptions are Kyverno's, which is not called."""
    (result,) = check_results(config_map(), on_config_maps(ERRS), exceptions=(exception(),))
    assert ("", CheckKind.CONDITIONS) == (result.excepted_by, result.check.kind)


def test_a_policy_that_does_not_compile_has_its_webhook_all_the_same() -> None:
    """Kyverno registers the conditions of a policy that it cannot evaluate."""
    manifest = {**on_config_maps(ERRS)}
    manifest["spec"]["validations"] = [{"expression": "object.data.nothing"}]
    (result,) = check_results(config_map(), manifest)
    assert (CheckKind.CONDITIONS, 403) == (result.check.kind, getattr(result.outcome, "code", 0))


@pytest.mark.parametrize(
    "kept",
    [
        {"name": "kept", "expression": "size(exceptions.allowedImages) == 0"},
        {"name": "kept", "expression": "image('nginx').registry() != ''"},
        {"name": "kept", "expression": "request.object.metadata.name == 'web'"},
        {"name": "with blanks", "expression": "true"},
    ],
    ids=["variable", "function", "request.object", "name"],
)
def test_a_condition_that_the_api_server_refuses_keeps_all_conditions_in_kyverno(kept: Any) -> None:
    """Kyverno moves all conditions of a policy or none."""
    manifest = policy("false", resources=("configmaps",), matchConditions=[kept, *condition(ERRS)])
    assert ["Violated"] == outcomes(config_map(), manifest)


@pytest.mark.parametrize("mode", [CONTROLLER, CLI], ids=["controller", "cli"])
def test_kyvernos_reports_know_no_webhook(mode: Any) -> None:
    """In its reports Kyverno alone evaluates the conditions."""
    assert ["Violated"] == outcomes(config_map(), on_config_maps(ERRS), mode=mode)


def test_a_policy_without_admission_has_no_webhook() -> None:
    """Only Kyverno's background scan evaluates it."""
    manifest = on_config_maps(ERRS, evaluation={"admission": {"enabled": False}})
    assert [("checks", False)] == enforced(config_map(), manifest)


def test_a_policy_with_a_generated_admission_policy_has_no_webhook() -> None:
    """The API server evaluates the generated policy, and Kyverno is not called."""
    manifest = {**on_config_maps(ERRS), "status": {"generated": True}}
    assert ["Violated"] == outcomes(config_map(), manifest)


def test_the_conditions_of_a_variant_are_about_its_kinds() -> None:
    """All forms of a policy share a webhook, whose conditions name the kinds that they are about."""
    manifest = policy("false", matchConditions=condition("object.spec.hostNetwork == true"))
    (result,) = check_results(deployment(), manifest)
    message = getattr(result.outcome, "message", "")
    assert (True, True) == (
        "object.kind =='Deployment'" in message,
        message.endswith(
            "(object.spec.template.spec.hostNetwork == true)' resulted in error: no such key: hostNetwork"
        ),
    )


def test_the_conditions_of_extracted_templates_are_not_moved() -> None:
    """They are about Pods, and the API server has none."""
    controllers = {"podControllers": {"controllers": ["replicationcontrollers"]}}
    workload = {**deployment(), "apiVersion": "v1", "kind": "ReplicationController"}
    manifest = policy("false", autogen=controllers, matchConditions=condition("object.spec.containers.size() == 1"))
    assert ["Violated"] == outcomes(workload, manifest)


EXCLUDE: Final = {
    "excludeResourceRules": [
        {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["*"],
            "resources": ["configmaps"],
            "resourceNames": ["web"],
        }
    ]
}


@pytest.mark.parametrize(("expected", "expression"), [(1, ERRS), (0, "true"), (0, "false")])
def test_an_excluded_object_is_refused_for_an_error_in_the_webhook(expected: int, expression: str) -> None:
    """A webhook has no rules that exclude; Kyverno has them."""
    assert expected == len(invocation_results(config_map(), on_config_maps(expression, match=EXCLUDE)))


@pytest.mark.parametrize(("expected", "expression"), [(1, ERRS), (0, "true")])
def test_an_object_of_another_name_is_refused_for_an_error_in_the_webhook(expected: int, expression: str) -> None:
    """The rules of a webhook name no objects."""
    manifest = on_config_maps(expression)
    manifest["spec"]["matchConstraints"]["resourceRules"][0]["resourceNames"] = ["other"]
    assert expected == len(invocation_results(config_map(), manifest))


@pytest.mark.parametrize(
    ("expected", "configuration"),
    [
        ("", Configuration(filters=tuple(parse_filters("[ConfigMap,*,*]")))),
        (
            "the objectSelector of Kyverno's webhooks",
            Configuration(object_selector=parse_selector({"matchLabels": {"app": "none"}})),
        ),
    ],
    ids=["filter", "selector"],
)
def test_only_selectors_exempt_from_an_error_in_the_webhook(expected: str, configuration: Configuration) -> None:
    """Kyverno has the filters, and the API server the selectors."""
    (bound,) = bind([read_policy(on_config_maps(ERRS))], (), KyvernoContext(NOW, configuration=configuration))
    results = tuple(check_results(config_map(), on_config_maps(ERRS)))
    resource = resource_of(Kind("", "v1", "ConfigMap", "configmaps", namespaced=True), config_map())
    assert [expected] == [result.excepted_by for result in bound.add_exemptions(results, resource, None)]


def autoscalers(version: str, name: str = "checks", **spec: Any) -> Any:
    """A policy for HorizontalPodAutoscalers in one version."""
    manifest = policy("false", resources=("horizontalpodautoscalers",), group="autoscaling", name=name, **spec)
    manifest["spec"]["matchConstraints"]["resourceRules"][0]["apiVersions"] = [version]
    return manifest


AUTOSCALER: Final = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web", "namespace": "team"},
    "spec": {"maxReplicas": 2, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
}


def test_a_webhook_is_called_in_the_version_of_its_rules() -> None:
    """The API server converts the object, and Kyverno evaluates it in that version."""
    (result,) = invocation_results(AUTOSCALER, autoscalers("v1"))
    assert "autoscaling/v1" == result.resource.kind.api_version


def test_a_webhook_of_exact_rules_is_called_in_no_other_version() -> None:
    """Kyverno copies matchPolicy Exact."""
    assert [] == enforced(AUTOSCALER, autoscalers("v1", match={"matchPolicy": "Exact"}))


def test_policies_that_share_a_webhook_share_the_version() -> None:
    """A webhook with a rule for the version of the request is called in it, and Kyverno matches versions exactly."""
    assert [("other", True)] == enforced(AUTOSCALER, autoscalers("v1"), autoscalers("v2", name="other"))


@pytest.mark.parametrize(
    "apart",
    [
        {"webhookConfiguration": {"timeoutSeconds": 5}},
        {"failurePolicy": "Ignore"},
        {"matchConditions": condition("true")},
        {"matchConditions": []},
        {"match": {"objectSelector": {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}}},
    ],
    ids=["timeout", "failure policy", "conditions", "no conditions", "selectors"],
)
def test_policies_with_separate_webhooks_have_separate_versions(apart: Any) -> None:
    """A timeout, a list of conditions, another failurePolicy and other selectors separate the webhooks."""
    results = enforced(AUTOSCALER, autoscalers("v1"), autoscalers("v2", name="other", **apart))
    assert [("checks", True), ("other", True)] == results


def namespaced(namespace: str = "team", name: str = "checks", **spec: Any) -> Any:
    """A policy of a namespace that denies every object."""
    return policy("false", kind="NamespacedValidatingPolicy", name=name, metadata={"namespace": namespace}, **spec)


UNREACHED: Final = "admission does not evaluate the policy for"


@pytest.mark.parametrize("release", [(1, 16), (1, 17), (1, 18)])
def test_a_variant_without_a_webhook_is_not_enforced(release: Minor) -> None:
    """Its findings deny nothing, and the health of the policy names the kinds."""
    expected = [
        (
            "team/checks",
            f"Kyverno 1.{release[1]} registers no webhook for this variant of a namespaced policy: {UNREACHED} {plurals}",
        )
        for plurals in ("cronjobs", "daemonsets, deployments, jobs, replicasets, statefulsets")
    ]
    assert ([("team/checks", False)], expected) == (
        enforced(deployment(), namespaced(), release=release),
        problems(namespaced(), release=release),
    )


@pytest.mark.parametrize(
    "spec",
    [
        {"webhookConfiguration": {"timeoutSeconds": 5}},
        {"match": {"matchPolicy": "Exact"}},
        {"matchConditions": condition("true")},
    ],
    ids=["timeout", "exact", "conditions"],
)
def test_a_policy_with_a_webhook_of_its_own_has_all_variants_in_it(spec: Any) -> None:
    """In every release Kyverno registers the rules of the variants there."""
    assert [("team/checks", True)] == enforced(deployment(), namespaced(**spec), release=(1, 18))


def test_the_rule_of_another_policy_enforces_a_variant() -> None:
    """Kyverno evaluates all policies of a webhook, for any rule that it was called for."""
    other = policy(
        "true",
        kind="NamespacedValidatingPolicy",
        name="other",
        metadata={"namespace": "elsewhere"},
        resources=("deployments",),
        group="apps",
    )
    assert [("team/checks", True)] == enforced(deployment(), namespaced(), other, release=(1, 18))


def test_a_variant_is_enforced_for_the_kinds_of_other_rules_alone() -> None:
    """The other kinds of the variant are a form of their own."""
    other = policy(
        "true",
        kind="NamespacedValidatingPolicy",
        name="other",
        metadata={"namespace": "elsewhere"},
        resources=("deployments",),
        group="apps",
    )
    stateful = {**deployment(), "kind": "StatefulSet"}
    results = invocation_results(stateful, namespaced(), other, release=(1, 18))
    expected = [("autogen-defaults-not-enforced", ("Audit",))]
    assert expected == [(result.invocation.binding.name, result.invocation.binding.actions) for result in results]


@pytest.mark.parametrize(("expected", "release"), [(1, (1, 18)), (0, (1, 19))])
def test_an_error_of_a_namespaced_policy_reaches_other_namespaces(expected: int, release: Minor) -> None:
    """Before 1.19 its webhook selects no namespace."""
    results = enforced(pod(namespace="other"), namespaced(matchConditions=condition(ERRS)), release=release)
    assert [("team/checks", True)] * expected == results


def test_an_error_of_a_namespaced_policy_reaches_cluster_scoped_objects() -> None:
    """A namespace selector selects every object without a namespace."""
    manifest = namespaced(matchConditions=condition(ERRS), resources=("nodes",))
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "one"}}
    assert [("team/checks", True)] == enforced(node, manifest)


def test_a_namespaced_policy_evaluates_only_objects_of_its_namespace() -> None:
    """Kyverno chooses the policies of the namespace of the request."""
    manifest = namespaced(matchConditions=condition("true"))
    assert [] == enforced(pod(namespace="other"), manifest, release=(1, 18))


@pytest.mark.parametrize(
    ("expected", "spec"),
    [
        (
            'webhook.matchConditions[0].name: Invalid value: "autogen-'
            + "n" * 60
            + '": name part must be no more than 63 bytes',
            {"matchConditions": condition("true", "n" * 60)},
        ),
        (
            "webhook.matchConditions: Too many: 66: must have at most 64 items",
            {"matchConditions": [*(condition("true", f"c{number}")[0] for number in range(22))]},
        ),
        (
            'webhook.matchConditions[2].name: Duplicate value: "autogen-cronjobs-a"',
            {"matchConditions": [*condition("true", "a"), *condition("true", "cronjobs-a")]},
        ),
    ],
    ids=["name", "number", "duplicate"],
)
def test_a_policy_whose_webhook_is_refused_is_not_enforced(expected: str, spec: Any) -> None:
    """The write of all webhooks fails, and the health of the policy states the reason."""
    manifest = policy("false", **spec)
    ((_, detail),) = problems(manifest)
    assert ([("checks", False)], True) == (
        enforced(pod(), manifest),
        detail.endswith(f"created or changed: {expected}"),
    )


def test_a_policy_whose_webhook_is_refused_counts_for_no_other_one() -> None:
    """The shared webhook has none of its rules."""
    refused = autoscalers("v2", name="other")
    refused["spec"]["matchConstraints"]["resourceRules"][0]["operations"] = ["CREATE", "*"]
    assert [("checks", True), ("other", False)] == enforced(AUTOSCALER, autoscalers("v1"), refused)


def test_a_comment_at_the_end_of_a_condition_makes_its_webhook_invalid() -> None:
    """Kyverno writes the condition between parentheses, of which the comment hides one."""
    manifest = policy("false", matchConditions=condition("true // always"))
    assert [("checks", False)] == enforced(pod(), manifest)


@pytest.mark.parametrize(
    ("decides", "expression"),
    [(True, "object.data.a == 'x'"), (True, "object.data.b == 'x'"), (False, ERRS), (False, "request.name == 'p0'")],
)
def test_the_fast_path_decides_as_the_evaluation_does(*, decides: bool, expression: str) -> None:
    """It evaluates policies whose moved conditions read only the object, with the same findings."""
    manifest = on_config_maps(expression)
    manifest["spec"]["validations"] = [{"expression": "object.data.c == 'x'"}]
    bound = bind([read_policy(manifest)], (), KyvernoContext(NOW))
    context = EvaluationContext(ParamTable(KINDS), {"team": {"metadata": {"name": "team"}}})
    (kind_plan,) = plan(KINDS, bound)
    items = [
        {"metadata": {"name": f"p{number}", "namespace": "team", "uid": f"{number}"}, "data": data}
        for number, data in enumerate([{"a": "x", "b": "x", "c": "x"}, {"a": "x", "c": "y"}, {"a": "y"}, {}])
    ]
    fast_path = FastPath(context, kind_plan)
    found = [
        PageEvaluator(context, fast_paths={kind_plan.kind: path}).evaluate(page(kind_plan.kind, items), kind_plan)
        for path in (fast_path, NoFastPath(context, kind_plan))
    ]
    assert decides is bool(fast_path.get_tally("team").policies.fast_policies)
    assert facts(found[0]) == facts(found[1])
