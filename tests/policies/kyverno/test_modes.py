"""The results of the modes: admission, Kyverno's background scan, and its command line, on every release."""

from __future__ import annotations

from typing import Any, Final

import pytest

from scanner.model.outcome import CheckKind, CheckResult, Errored, Passed, Skipped, SkipReason, Violated
from scanner.model.release import Minor, format_minor
from scanner.policies.kyverno.modes import ADMISSION, CLI, CONTROLLER, KyvernoMode
from scanner.policies.kyverno.releases import NEWEST, OLDEST
from scanner.policies.kyverno.result import Result, engine_result
from tests.policies.kyverno.made import MODES, check_results, invocation_results, pod, policy

RELEASES: Final = tuple((1, minor) for minor in range(OLDEST[1], NEWEST[1] + 1))
REPORTS: Final = {"controller": CONTROLLER, "cli": CLI}
on_every_release = pytest.mark.parametrize("release", RELEASES, ids=format_minor)
in_reports = pytest.mark.parametrize("mode", REPORTS.values(), ids=REPORTS)
in_every_mode = pytest.mark.parametrize("mode", MODES.values(), ids=MODES)

NODE: Final = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "team"}}


def a_namespace(name: str, **labels: str) -> Any:
    """A Namespace."""
    named = {"kubernetes.io/metadata.name": name, **labels}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": named}}


def of_team(*validations: Any, resources: tuple[str, ...] = ("namespaces",), **spec: Any) -> Any:
    """A policy in the namespace `team`."""
    manifest = policy(*validations, resources=resources, kind="NamespacedValidatingPolicy", **spec)
    manifest["metadata"]["namespace"] = "team"
    return manifest


def evaluates(document: Any, manifest: Any, mode: KyvernoMode, release: Minor = NEWEST, **context: Any) -> bool:
    """Whether a policy has results for an object."""
    known = (a_namespace("team"), a_namespace("other"))
    return bool(invocation_results(document, manifest, mode=mode, release=release, namespaces=known, **context))


@on_every_release
@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
def test_a_namespaced_policy_evaluates_the_namespace_of_its_name(operation: str, release: Minor) -> None:
    """The request on a Namespace carries its name as namespace, and Kyverno compares that with the policy's."""
    manifest = of_team("false")
    manifest["spec"]["matchConstraints"]["resourceRules"][0]["operations"] = [operation]
    own, other = (
        evaluates(a_namespace(name), manifest, ADMISSION, release, operation=operation) for name in ("team", "other")
    )
    assert (True, False) == (own, other)


@in_every_mode
def test_an_object_of_the_name_of_a_namespace_is_no_namespace(mode: KyvernoMode) -> None:
    """Admission evaluates no other cluster-scoped object by a namespaced policy; Kyverno's reports do."""
    assert (mode is not ADMISSION) == evaluates(NODE, of_team("false", resources=("nodes",)), mode)


@pytest.mark.parametrize(("expected", "labels"), [(True, {"env": "prod"}), (False, {"env": "test"}), (False, {})])
def test_a_namespace_selector_of_a_namespaced_policy_selects_the_namespace_by_its_labels(
    labels: dict[str, str], *, expected: bool
) -> None:
    """A Namespace is selected by its own labels, as every policy selects it."""
    manifest = of_team("false", match={"namespaceSelector": {"matchLabels": {"env": "prod"}}})
    assert expected == evaluates(a_namespace("team", **labels), manifest, ADMISSION)


@on_every_release
@pytest.mark.parametrize(
    "document",
    [pod(), pod(namespace="other"), a_namespace("team"), a_namespace("other"), NODE],
    ids=["own", "elsewhere", "own Namespace", "another Namespace", "cluster-scoped"],
)
def test_the_kyverno_cli_evaluates_a_namespaced_policy_everywhere(document: Any, release: Minor) -> None:
    """`kyverno apply` hands every object to every policy."""
    assert evaluates(document, of_team("false", resources=("pods", "namespaces", "nodes")), CLI, release)


@on_every_release
def test_the_background_scan_evaluates_namespaced_policies_since_1_17(release: Minor) -> None:
    """Before, it has no result of them."""
    manifest = of_team("false", resources=("pods",))
    assert (release >= (1, 17)) == evaluates(pod(), manifest, CONTROLLER, release)


BROKEN: Final = {"key": "broken", "valueExpression": "string(object.none)"}
NULL: Final = {"key": "nothing", "valueExpression": "null"}
TEXT: Final = {"key": "text", "valueExpression": "'a'"}
ERRORS: Final = {
    "broken": "failed to evaluate auditAnnotation 'broken': no such key: none",
    "nothing": "failed to convert auditAnnotation 'nothing' expression: "
    "type conversion error from 'null_type' to 'string'",
}


def annotated(*annotations: Any, validations: tuple[str, ...] = ("false",)) -> Any:
    """A policy with audit annotations."""
    return policy(*validations, auditAnnotations=[*annotations])


def not_skipped(results: tuple[CheckResult, ...]) -> list[CheckResult]:
    """The check results that decide something."""
    return [result for result in results if not isinstance(result.outcome, Skipped)]


@on_every_release
@in_reports
@pytest.mark.parametrize("validations", [("false",), ("true", "false"), ("false", "true"), ("false", "false")], ids=str)
@pytest.mark.parametrize("annotations", [(BROKEN,), (NULL,), (TEXT, BROKEN), (BROKEN, TEXT), (NULL, BROKEN)], ids=str)
def test_in_reports_the_error_of_an_audit_annotation_is_the_only_result(
    annotations: Any, validations: Any, mode: KyvernoMode, release: Minor
) -> None:
    """The failure before has no result; since 1.19 the error has its own words, before those of match conditions."""
    first = next(each["key"] for each in annotations if each is not TEXT)
    before = "error: " if release >= (1, 19) else "failed to load context: "
    (result,) = not_skipped(
        check_results(pod(), annotated(*annotations, validations=validations), mode=mode, release=release)
    )
    assert (CheckKind.AUDIT_ANNOTATION, f"{before}{ERRORS[first]}") == (
        result.check.kind,
        result.outcome.message if isinstance(result.outcome, Errored) else result.outcome,
    )


@on_every_release
@in_reports
@pytest.mark.parametrize("annotation", [BROKEN, NULL], ids=str)
def test_in_reports_the_error_of_an_audit_annotation_replaces_a_pass_since_1_18(
    annotation: Any, mode: KyvernoMode, release: Minor
) -> None:
    """Before, the annotations of an object that passes are not evaluated."""
    (result,) = not_skipped(
        check_results(pod(), annotated(annotation, validations=("true",)), mode=mode, release=release)
    )
    text = f"failed to load context: {ERRORS[annotation['key']]}"
    error = Errored(text, would_deny=True, reason="", code=400)
    assert (Passed() if release < (1, 18) else error) == result.outcome


@on_every_release
@in_reports
def test_in_reports_the_error_of_a_validation_comes_before_audit_annotations(mode: KyvernoMode, release: Minor) -> None:
    """Kyverno ends with the validation."""
    manifest = annotated(BROKEN, validations=("object.none == 1", "false"))
    (result,) = not_skipped(check_results(pod(), manifest, mode=mode, release=release))
    assert CheckKind.VALIDATION == result.check.kind


@on_every_release
def test_in_admission_every_check_has_its_result(release: Minor) -> None:
    """The failure stays, and the error of the annotation denies as well, with the words of the release."""
    before = "error: " if release >= (1, 19) else "failed to load context: "
    failed, broken = check_results(pod(), annotated(BROKEN), release=release)
    assert isinstance(failed.outcome, Violated)
    assert Errored(f"{before}{ERRORS['broken']}", would_deny=True, reason="", code=400) == broken.outcome


@on_every_release
@pytest.mark.parametrize("validations", [("true", "false"), ("true",)], ids=["failed", "passed"])
def test_the_report_has_the_rule_and_the_properties_of_the_release(validations: Any, release: Minor) -> None:
    """An error after a failure has, since 1.19, the index of the validation; any other is one of the rule `evaluation`."""
    (result,) = invocation_results(
        pod(), annotated(TEXT, BROKEN, validations=validations), mode=CONTROLLER, release=release
    )
    written = engine_result(result.invocation.policy, result.check_results, release)
    evaluation = Result("error", f"failed to load context: {ERRORS['broken']}", "evaluation")
    indexed = Result("error", f"error: {ERRORS['broken']}", properties={"cel.validationIndex": "1"})
    passed = Result("pass", "success")
    failed = indexed if release >= (1, 19) else evaluation
    expected = failed if "false" in validations else passed if release < (1, 18) else evaluation
    assert expected == written


@on_every_release
def test_a_failure_in_a_report_has_the_index_of_its_validation_since_1_19(release: Minor) -> None:
    """Before, its properties are the audit annotations alone."""
    (result,) = invocation_results(pod(), annotated(TEXT), mode=CONTROLLER, release=release)
    index = {"cel.validationIndex": "0"} if release >= (1, 19) else {}
    assert {**index, "text": "a"} == engine_result(result.invocation.policy, result.check_results, release).properties


@on_every_release
@in_reports
@pytest.mark.parametrize(
    ("expected", "condition"),
    [
        (Violated, "oldObject != null"),
        (Violated, "size(oldObject) == 0"),
        (SkipReason.CONDITION_FALSE, "oldObject == null"),
        (SkipReason.CONDITION_FALSE, "has(oldObject.metadata)"),
    ],
)
def test_in_reports_the_engine_alone_evaluates_match_conditions(
    expected: Any, condition: str, mode: KyvernoMode, release: Minor
) -> None:
    """No webhook is called: the old object of a CREATE is an empty map, never null, and no condition errs for it."""
    manifest = policy("false", matchConditions=[{"name": "m", "expression": condition}])
    (result,) = check_results(pod(), manifest, mode=mode, release=release)
    outcome = result.outcome
    assert expected == (outcome.reason if isinstance(outcome, Skipped) else type(outcome))
