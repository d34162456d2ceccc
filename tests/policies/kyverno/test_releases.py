"""The differences between Kyverno's releases: a test for each row of the table, on every release."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from scanner.audit.findings import denies
from scanner.model.outcome import CheckKind, Errored, Passed, Skipped, Violated
from scanner.model.release import Minor, Release, format_minor
from scanner.policies.kyverno.bind import KyvernoContext, bind_forms
from scanner.policies.kyverno.health import of_policies
from scanner.policies.kyverno.libraries import NoClusterData
from scanner.policies.kyverno.libraries.cluster_data import Call, Collection
from scanner.policies.kyverno.modes import CONTROLLER
from scanner.policies.kyverno.releases import CHANGES, NEWEST, OLDEST, release_of
from scanner.policies.kyverno.spec import read_policy
from tests.policies.kyverno import test_modes
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

RELEASES: Final = tuple((1, minor) for minor in range(OLDEST[1], NEWEST[1] + 1))
PAGE: Final = Path(__file__).parents[3] / "docs" / "kyverno.md"
ROW: Final = re.compile(r"^\| (?P<since>1\.\d+) \| (?P<what>.+?)\. \| `(?P<test>test_\w+)` \|$", re.MULTILINE)
on_every_release = pytest.mark.parametrize("release", RELEASES, ids=format_minor)


class Answers(NoClusterData):
    """A server that answers every request, and a global context with one entry."""

    def request(self, _call: Call, /) -> Any:
        """Answer."""
        return {"statusCode": 200.0}

    def entry(self, _name: str, _projection: str, /) -> Any:
        """Return the value of the entry."""
        return "value"


def namespaced(expression: str) -> Any:
    """A policy of the namespace `team`."""
    manifest = policy(expression, kind="NamespacedValidatingPolicy")
    manifest["metadata"]["namespace"] = "team"
    return manifest


@on_every_release
def test_a_policy_with_a_namespace_selector_has_variants_since_1_19(release: Minor) -> None:
    """Before, its Deployments are not evaluated."""
    selector = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "team"}}}
    results = invocation_results(deployment(), policy("false", match=selector), release=release)
    assert ([] if release < (1, 19) else ["autogen-defaults"]) == [each.invocation.binding.name for each in results]


@on_every_release
def test_an_empty_namespace_selector_prevents_no_variants(release: Minor) -> None:
    """A selector without a label selects every namespace."""
    manifest = policy("false", match={"namespaceSelector": {}})
    assert ["Violated"] == outcomes(deployment(), manifest, release=release)


@on_every_release
def test_variants_read_the_namespace_of_the_object_since_1_19(release: Minor) -> None:
    """Before, they read that of the template, which has none."""
    missing = Errored("failed to load context: no such key: namespace", would_deny=True, reason="", code=400)
    (result,) = check_results(deployment(), policy("object.metadata.namespace == 'team'"), release=release)
    assert (missing if release < (1, 19) else Passed()) == result.outcome


@on_every_release
def test_pod_templates_of_other_workloads_are_evaluated_since_1_19(release: Minor) -> None:
    """Before, the name of another controller means none."""
    controllers = {"podControllers": {"controllers": ["replicationcontrollers"]}}
    workload = {**deployment(), "apiVersion": "v1", "kind": "ReplicationController"}
    workload["spec"]["template"]["spec"]["containers"] = [{"name": "main", "image": "nginx"}]
    results = invocation_results(workload, policy("false", autogen=controllers), release=release)
    assert ([] if release < (1, 19) else ["autogen-extract"]) == [each.invocation.binding.name for each in results]


ALL: Final = exception("all")
SOME: Final = exception("some", images=["nginx"])


@on_every_release
@pytest.mark.parametrize("exceptions", [(ALL, SOME), (SOME, ALL)], ids=["full first", "partial first"])
def test_a_full_exception_decides_beside_a_partial_one_since_1_19(exceptions: Any, release: Minor) -> None:
    """Before, an exception with images takes the effect of every other one."""
    (result,) = check_results(pod(), policy("false"), exceptions=exceptions, release=release)
    assert ("" if release < (1, 19) else "team/all, team/some") == result.excepted_by


@on_every_release
def test_an_error_after_a_full_exception_has_no_effect_since_1_19(release: Minor) -> None:
    """Before, an exception that errs is an error of the policy in any place."""
    broken = exception("broken", matchConditions=[{"name": "broken", "expression": "object.spec.none == 1"}])
    (result,) = check_results(pod(), policy("false"), exceptions=(ALL, broken), release=release)
    expected = (CheckKind.CONDITIONS, "") if release < (1, 19) else (CheckKind.VALIDATION, "team/all")
    assert expected == (result.check.kind, result.excepted_by)


@on_every_release
def test_exceptions_end_since_1_19(release: Minor) -> None:
    """Before, `expiresAt` is no field of an exception."""
    ended = exception(expiresAt="2026-06-30T23:59:59Z")
    (result,) = check_results(pod(), policy("false"), exceptions=(ended,), release=release)
    assert ("team/let-be" if release < (1, 19) else "") == result.excepted_by


@on_every_release
def test_a_failed_validation_always_has_a_message_since_1_17(release: Minor) -> None:
    """Before, the message is empty if the policy has none."""
    text = "" if release < (1, 17) else "CEL expression validation failed at index 0"
    (result,) = check_results(pod(), policy("false"), release=release)
    assert Violated(text, "", 400) == result.outcome


@on_every_release
def test_audit_annotations_of_an_object_that_passes_are_evaluated_since_1_18(release: Minor) -> None:
    """Before, they are evaluated only after a validation that fails."""
    manifest = policy("true", auditAnnotations=[{"key": "name", "valueExpression": "'web'"}])
    passed, annotation = check_results(pod(), manifest, release=release)
    assert (Passed(), release < (1, 18)) == (passed.outcome, isinstance(annotation.outcome, Skipped))


@on_every_release
@pytest.mark.parametrize("mode", [CONTROLLER, None], ids=["controller", "admission"])
def test_audit_annotations_of_an_object_that_fails_are_evaluated(mode: Any, release: Minor) -> None:
    """Every release evaluates them after a validation that fails."""
    manifest = policy("false", auditAnnotations=[{"key": "name", "valueExpression": "'web'"}])
    modes = {"mode": mode} if mode else {}
    _, annotation = check_results(pod(), manifest, release=release, **modes)
    assert Passed(annotation="web") == annotation.outcome


@on_every_release
def test_an_error_of_a_validation_is_named_as_one_since_1_19(release: Minor) -> None:
    """Before, it has the words for an error of match conditions. It denies in every release."""
    before = "failed to load context: " if release < (1, 19) else "error: "
    (result,) = check_results(pod(), policy("object.spec.none == 1"), release=release)
    assert Errored(f"{before}no such key: none", would_deny=True, reason="", code=400) == result.outcome


def enforced(document: Any, *policies: Any, release: Minor) -> list[bool]:
    """Tell of each invocation whether admission denies the object for it."""
    return [
        any(
            denies(check.outcome, result.invocation)
            for check in result.check_results
            if isinstance(check.outcome, Violated | Errored)
        )
        for result in invocation_results(document, *policies, release=release)
    ]


@on_every_release
def test_variants_of_a_namespaced_policy_are_enforced_since_1_19(release: Minor) -> None:
    """Before, the webhook that policies share has no rules for them. Findings deny nothing."""
    assert [release >= (1, 19)] == enforced(deployment(), namespaced("false"), release=release)


@on_every_release
def test_a_condition_that_reads_the_namespace_is_kyvernos_since_1_19(release: Minor) -> None:
    """Before, the API server evaluates it, too, and has no Namespace. Other conditions of the policy are moved all the same."""
    reads = [{"name": "n", "expression": "namespaceObject.metadata.name == 'team'"}]
    (result,) = check_results(pod(), policy("true", matchConditions=reads), release=release)
    assert isinstance(result.outcome, Errored if release < (1, 19) else Passed)


@on_every_release
def test_conditions_of_a_namespaced_policy_refuse_no_other_namespace_since_1_19(release: Minor) -> None:
    """Before, its webhook is called for every namespace, and an error of its conditions refuses requests there."""
    manifest = namespaced("false")
    manifest["spec"]["matchConditions"] = [{"name": "e", "expression": "object.spec.none == 1"}]
    assert ([True] if release < (1, 19) else []) == enforced(pod(namespace="other"), manifest, release=release)


@on_every_release
def test_policies_with_different_selectors_share_no_webhook_since_1_19(release: Minor) -> None:
    """Before, all of them have the selectors of one of them, by chance, and a note tells it."""
    narrow = policy("true", name="narrow", match={"objectSelector": {"matchLabels": {"app": "web"}}})
    forms = bind_forms(map(read_policy, (policy("true"), narrow)), (), KyvernoContext(NOW, release=release))
    notes = [entry for entry in of_policies(forms, ()) if "by chance" in entry.detail]
    assert (["checks"] if release < (1, 19) else []) == [entry.policy for entry in notes]


@on_every_release
def test_namespaced_policies_of_one_name_have_webhooks_since_1_17(release: Minor) -> None:
    """Before, their webhooks have one name, and the API server refuses all."""
    manifests = [namespaced("false"), namespaced("false")]
    for manifest, namespace in zip(manifests, ("team", "other"), strict=True):
        manifest["metadata"]["namespace"] = namespace
        manifest["spec"]["matchConditions"] = [{"name": "yes", "expression": "true"}]
    assert [release >= (1, 17)] == enforced(pod(), *manifests, release=release)


@on_every_release
def test_a_namespaced_policy_makes_no_http_request_since_1_18(release: Minor) -> None:
    """A setting of Kyverno, which a scan does not read, allows requests."""
    manifest = namespaced("http.Get('https://example.com').statusCode == 200")
    (result,) = check_results(pod(), manifest, cluster_data=Answers(), release=release)
    assert (release >= (1, 18)) == isinstance(result.outcome, Skipped)


@on_every_release
def test_a_namespaced_policy_reads_no_global_context_since_1_19(release: Minor) -> None:
    """The read is an error."""
    manifest = namespaced("globalContext.Get('entry', '') == 'value'")
    refused = Errored(
        "error: failed to get global reference: globalContext.* is not allowed in namespaced policies",
        would_deny=True,
        reason="",
        code=400,
    )
    (result,) = check_results(pod(), manifest, cluster_data=Answers(), release=release)
    assert (Passed() if release < (1, 19) else refused) == result.outcome


@on_every_release
def test_an_image_with_a_digest_has_its_tag_since_1_19(release: Minor) -> None:
    """Before, a digest hides the tag."""
    manifest = policy(f"image('nginx:1.25@sha256:{'a' * 64}').tag() == '1.25'")
    (result,) = check_results(pod(), manifest, release=release)
    assert isinstance(result.outcome, Violated if release < (1, 19) else Passed)


@on_every_release
@pytest.mark.parametrize("text", ["null", "object.spec.none", "optional.of(null)"])
def test_json_marshal_writes_null_since_1_19(text: str, release: Minor) -> None:
    """1.18 writes the zero that is Go's null; earlier releases have no such function."""
    if release < (1, 18):
        return
    expected = "null" if release >= (1, 19) else "0"
    assert ["Passed"] == outcomes(pod(none=None), policy(f"json.marshal({text}) == '{expected}'"), release=release)


class NoObjects(NoClusterData):
    """A server without objects."""

    def get(self, _collection: Collection, _namespace: str, _name: str, /) -> Any:
        """Find none."""
        return None


@on_every_release
def test_an_object_that_does_not_exist_is_null_since_1_18(release: Minor) -> None:
    """Before, the read is an error."""
    manifest = policy("resource.Get('apps/v1', 'deployments', 'team', 'web') == dyn(null)")
    (result,) = check_results(pod(), manifest, cluster_data=NoObjects(), release=release)
    assert isinstance(result.outcome, Errored if release < (1, 18) else Passed)


def test_the_page_has_every_difference_with_its_test() -> None:
    """The table names the release, the difference and a test of this folder, in the order of the rows."""
    rows = [*ROW.finditer(PAGE.read_text())]
    known = [(format_minor((1, change.since[1])), change.description.rpartition(":")[0]) for change in CHANGES]
    assert (known, []) == (
        [(row["since"], row["what"]) for row in rows],
        [
            row["test"]
            for row in rows
            if not any(row["test"] in vars(module) for module in (sys.modules[__name__], test_modes))
        ],
    )


@pytest.mark.parametrize(
    ("expected", "version"),
    [
        (Release((1, 18)), "v1.18.2"),
        (Release((1, 19)), "1.19"),
        (Release((1, 17)), "v1.17.0-rc.1"),
        (
            Release((1, 19), "Kyverno 1.20 is newer than Assay supports. Assay applied the rules of Kyverno 1.19."),
            "v1.20.0",
        ),
        (
            Release((1, 16), "Kyverno 1.15 is older than Assay supports. Assay applied the rules of Kyverno 1.16."),
            "v1.15.2",
        ),
    ],
)
def test_the_nearest_release_decides(expected: Release, version: str) -> None:
    """A release that is not supported has a note."""
    assert expected == release_of(version)
