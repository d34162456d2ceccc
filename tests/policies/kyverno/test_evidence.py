"""The evidence of a violated Kyverno policy: paths of the real object, and no secrets."""

from __future__ import annotations

from typing import Any

import pytest

from scanner.audit.evidence.redaction import WITHHELD
from tests.policies.kyverno.made import deployment, pod, policy
from tests.policies.kyverno.test_scanned import _scanned

SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "token", "namespace": "team"},
    "data": {"key": "aHVzaC1odXNo"},
}
SETTINGS = {**SECRET, "kind": "ConfigMap", "data": {"key": "open"}}
READS = "resource.Get('v1', 'secrets', 'team', 'token').data.key"


def why(manifest: Any, *documents: Any) -> list[tuple[str, str, str]]:
    """Part, value and path of each reason of all findings."""
    scan = _scanned(manifest, *documents)
    return [
        (reason.expression, reason.value, reason.path)
        for finding in scan.findings
        for reason in finding.evidence.reasons
    ]


def test_a_policy_about_pods_is_explained_in_what_creates_them() -> None:
    """Autogen rewrites the policy; the path is that of the existing object."""
    manifest = policy("object.spec.containers.all(c, c.image.contains('/'))")
    expected = [("c.image", '"nginx"', "spec.template.spec.containers[0].image")]
    assert expected == why(manifest, deployment())


def test_variables_are_followed() -> None:
    """Evidence names the values behind variables, as for admission policies."""
    variables = [{"name": "images", "expression": "object.spec.containers.map(c, c.image)"}]
    manifest = policy("variables.images.all(i, i.contains('/'))", variables=variables)
    assert [("i", '"nginx"', "spec.containers[0].image")] == why(manifest, pod())


def test_an_object_within_the_request_is_named_by_the_request() -> None:
    """`request.object` is a document of its own."""
    manifest = policy("dyn(request).object.metadata.name == 'other'")
    assert [("dyn(request).object.metadata.name", '"web"', "request.object.metadata.name")] == why(manifest, pod())


@pytest.mark.parametrize(
    ("expression", "about"),
    [
        ("string(base64.decode(object.data.key)) == ''", "secrets"),
        ("json.marshal(object) == ''", "secrets"),
        ("dyn(request).object.data.key == ''", "secrets"),
        ("variables.plain == ''", "secrets"),
        ("md5(object.data.key) == ''", "secrets"),
        (f"{READS} == ''", "pods"),
        (f"string(base64.decode({READS})) == ''", "pods"),
        ("variables.secret == ''", "pods"),
        ("resource.List('v1', 'secrets', 'team').items.orValue([]).all(s, s.data.key == '')", "pods"),
        ("resource.List('v1', 'secrets', 'team').items.orValue([]).map(s, s.data.key).all(k, k == '')", "pods"),
        (f"int({READS}) > 3", "pods"),
    ],
)
def test_evidence_has_no_value_of_a_secret(expression: str, about: str) -> None:
    """No expression shows the data of a Secret in evidence."""
    reads = READS if about == "pods" else "object.data.key"
    variables = [
        {"name": "secret", "expression": reads},
        {"name": "plain", "expression": f"string(base64.decode({reads}))"},
    ]
    manifest = policy(expression, resources=(about,), variables=variables)
    scan = _scanned(manifest, *([] if about == "secrets" else [pod()]), SECRET)
    reasons = [reason for finding in scan.findings for reason in finding.evidence.reasons]
    assert reasons
    assert not any(part in repr(scan.findings) for part in ("aHVzaC1odXNo", "hush", "aHVz"))
    assert WITHHELD in {reason.value for reason in reasons}


def test_evidence_has_no_values_of_other_objects() -> None:
    """A value of a ConfigMap may be a secret, too."""
    reads = "resource.Get('v1', 'configmaps', 'team', 'token').data.key"
    manifest = policy(f"{reads} == 'closed'")
    assert [(reads, WITHHELD, "")] == why(manifest, pod(), SETTINGS)


def test_evidence_has_the_values_that_exceptions_allow() -> None:
    """Evidence shows `exceptions`, whose values no exception offers here."""
    manifest = policy("'busybox' in exceptions.allowedImages")
    assert [("exceptions.allowedImages", "[]", "exceptions.allowedImages")] == why(manifest, pod())
