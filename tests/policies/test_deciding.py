"""The parts of a spec that decide, as each policy language names them."""

from __future__ import annotations

import pytest

from scanner.model.json import JsonObject
from scanner.model.outcome import CheckKind
from scanner.policies.language import LANGUAGES, patch_decides, select_deciding

VALIDATION: JsonObject = {"expression": "false", "message": "no", "messageExpression": "'no'", "reason": "Forbidden"}
SPEC: JsonObject = {
    "failurePolicy": "Fail",
    "validations": [VALIDATION, {"expression": "true"}],
    "auditAnnotations": [{"key": "k", "valueExpression": "'v'"}],
    "validationActions": ["Deny"],
}
NAMES = [name for language in LANGUAGES for name in language.names]


@pytest.mark.parametrize("check", [CheckKind.VALIDATION, CheckKind.CONDITIONS])
def test_validating_policies_have_texts(check: CheckKind) -> None:
    """Messages, reasons, actions and annotations; the expression of a message may exhaust a budget, so it decides."""
    kept = [{"expression": "false", "messageExpression": "'no'"}, {"expression": "true"}]
    assert {"failurePolicy": "Fail", "validations": kept} == select_deciding("ValidatingAdmissionPolicy", SPEC, check)


@pytest.mark.parametrize("check", [CheckKind.AUDIT_ANNOTATION, CheckKind.CONFIGURATION])
def test_annotations_decide_about_checks_that_evaluate_them(check: CheckKind) -> None:
    """Their own, and an error about the whole invocation."""
    assert SPEC["auditAnnotations"] == select_deciding("ValidatingAdmissionPolicy", SPEC, check)["auditAnnotations"]


@pytest.mark.parametrize("check", CheckKind)
def test_of_mutating_policies_the_whole_spec_decides(check: CheckKind) -> None:
    """What an object would become depends on each part."""
    assert SPEC == select_deciding("MutatingAdmissionPolicy", SPEC, check)


@pytest.mark.parametrize("language", ["ValidatingPolicy", "NamespacedValidatingPolicy"])
def test_of_policies_of_kyverno_only_messages_are_texts(language: str) -> None:
    """Both fields of a validation."""
    kept = [{"expression": "false", "reason": "Forbidden"}, {"expression": "true"}]
    assert {**SPEC, "validations": kept} == select_deciding(language, SPEC, CheckKind.VALIDATION)


def test_an_unknown_language_has_no_texts() -> None:
    """A newer version of Assay may have recorded the scan."""
    assert (SPEC, True) == (select_deciding("Unknown", SPEC, CheckKind.VALIDATION), patch_decides("Unknown"))


def test_patch_releases_of_the_server_decide_about_other_languages() -> None:
    """For validating policies and Pod Security it is known that they do not."""
    assert {"PodSecurity", "ValidatingAdmissionPolicy"} == {name for name in NAMES if not patch_decides(name)}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("malformed", [{"validations": None}, {"validations": "none"}, {"validations": ["none", 1]}])
def test_a_malformed_spec_has_its_parts(name: str, malformed: JsonObject) -> None:
    """The API server stored it, or a file has it."""
    assert select_deciding(name, malformed, CheckKind.VALIDATION).keys() == malformed.keys()
