"""The labels of namespaces that a policy reads are found in its manifest; in doubt, every one."""

from __future__ import annotations

import pytest

from scanner.model.json import JsonObject
from scanner.posture.history.namespace_keys import EVERY, namespace_keys

VALIDATING = "ValidatingAdmissionPolicy"


@pytest.mark.parametrize(
    ("expression", "keys"),
    [
        ("object.metadata.labels.env == 'prod'", set()),
        ("namespaceObject.metadata.name.startsWith('kube-')", set()),
        ("namespaceObject.metadata.labels.env == 'prod'", {"labels/env"}),
        ("has(namespaceObject.metadata.labels.env)", {"labels/env"}),
        ("namespaceObject.metadata.annotations['example.com/env'] == 'prod'", {"annotations/example.com/env"}),
        (
            'namespaceObject.metadata.labels["env"] == namespaceObject.metadata.labels.tier',
            {"labels/env", "labels/tier"},
        ),
        ("namespaceObject.metadata.labels['\\x65nv'] == 'prod'", {EVERY}),
        ("namespaceObject.metadata.labels.size() > 0", {EVERY}),
        ("namespaceObject.metadata.labels.exists(key, key == 'env')", {EVERY}),
        ("'env' in namespaceObject.metadata.labels", {EVERY}),
        ("namespaceObject.metadata.labels[variables.key] == 'prod'", {EVERY}),
        ("namespaceObject.metadata.?labels.env.orValue('') == 'prod'", {EVERY}),
        ("namespaceObject.metadata['labels'].env == 'prod'", {EVERY}),
        ("namespaceObject .metadata.labels.env == 'prod'", {EVERY}),
        ("[namespaceObject].all(each, each.metadata.labels.env == 'prod')", {EVERY}),
    ],
)
def test_an_expression_names_keys_or_reads_every_one(expression: str, keys: set[str]) -> None:
    """A form that is not known reads every key."""
    assert keys == namespace_keys(VALIDATING, {"spec": {"validations": [{"expression": expression}]}})


SELECTOR: JsonObject = {
    "matchLabels": {"team": "web"},
    "matchExpressions": [{"key": "env", "operator": "In", "values": ["prod"]}],
}


def test_selectors_of_policies_and_bindings_name_keys() -> None:
    """Those of namespaces; labels of objects are none."""
    policy: JsonObject = {"spec": {"matchConstraints": {"objectSelector": {"matchLabels": {"app": "web"}}}}}
    binding: JsonObject = {"spec": {"matchResources": {"namespaceSelector": SELECTOR}}}
    assert {"labels/team", "labels/env"} == namespace_keys(VALIDATING, policy, binding)
    assert {"labels/team", "labels/env"} == namespace_keys(
        VALIDATING, {"spec": {"matchConstraints": {"namespaceSelector": SELECTOR}}}
    )


def test_webhooks_of_kyverno_may_select_by_any_label() -> None:
    """Their configuration is no part of the policy."""
    assert {EVERY} == namespace_keys("kyverno", {"spec": {}})
