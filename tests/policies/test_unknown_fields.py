"""Unknown fields of manifests: the field at any depth, with the most similar name."""

from __future__ import annotations

from typing import Any

import pytest

from scanner.policies.language import LANGUAGES
from scanner.policies.manifest import UnknownField, write_unknown_fields

GROUP = "admissionregistration.k8s.io/v1"
KYVERNO = "policies.kyverno.io/v1"


def unknown(kind: str, *, api_version: str = GROUP, **fields: Any) -> list[str]:
    """The unknown fields of a manifest, as text."""
    document = {"apiVersion": api_version, "kind": kind, **fields}
    language = next(language for language in LANGUAGES if language.reads(document))
    return [*map(str, language.unknown_fields(document))]


@pytest.mark.parametrize("kind", ["ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding"])
def test_a_misspelt_field_of_a_binding(kind: str) -> None:
    """The nearest field is that of the same object."""
    assert ["spec.matchResource (did you mean matchResources?)"] == unknown(kind, spec={"matchResource": {}})


@pytest.mark.parametrize(
    ("kind", "api_version"),
    [("ValidatingAdmissionPolicy", GROUP), ("MutatingAdmissionPolicy", GROUP), ("ValidatingPolicy", KYVERNO)],
)
def test_a_misspelt_field_at_any_depth(kind: str, api_version: str) -> None:
    """Fields are found beside the spec, in the metadata, in lists and in selectors."""
    constraints = {
        "resourceRules": [{}, {"operation": ["CREATE"]}],
        "namespaceSelector": {"matchExpressions": [{"operators": "In"}]},
    }
    found = unknown(
        kind, api_version=api_version, Spec={}, metadata={"lables": {}}, spec={"matchConstraints": constraints}
    )
    assert [
        "Spec (did you mean spec?)",
        "metadata.lables (did you mean labels?)",
        "spec.matchConstraints.resourceRules[1].operation (did you mean operations?)",
        "spec.matchConstraints.namespaceSelector.matchExpressions[0].operators (did you mean operator?)",
    ] == found


def test_a_name_like_no_other_has_no_proposal() -> None:
    """A field of another kind has no similar name."""
    assert ["spec.zzz"] == unknown("ValidatingAdmissionPolicy", spec={"zzz": 1})


def test_keys_of_users_are_no_fields() -> None:
    """Labels, annotations and selectors have keys that users choose."""
    spec = {"matchResources": {"objectSelector": {"matchLabels": {"lables": "x"}}}}
    assert [] == unknown("ValidatingAdmissionPolicyBinding", metadata={"annotations": {"spec": "x"}}, spec=spec)


def test_many_unknown_fields_are_counted() -> None:
    """The list has ten of them, each cut at 100 characters."""
    fields = [UnknownField(f"spec.{number}{'x' * 200}") for number in range(12)]

    assert (" and 2 more", 10) == (write_unknown_fields(fields)[-11:], write_unknown_fields(fields).count("…"))
