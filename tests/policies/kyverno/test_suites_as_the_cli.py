"""Suites as the Kyverno CLI counts them: custom kinds, excluded objects, policies that Assay does not evaluate, broken suites."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from scanner.cluster.definitions import builtin_kinds
from scanner.cluster.files.suites import read_suites
from scanner.cluster.schemas import KnownSchemas, builtin_schemas
from scanner.model.release import Minor
from scanner.policies.kyverno.releases import NEWEST
from scanner.suite import Checked, Suite, check
from tests.command import assay_here
from tests.policies.kyverno.made import exception, pod, policy, write_documents

NOW = datetime(2026, 7, 1, tzinfo=UTC)
CLASS = {"apiVersion": "example.com/v1", "kind": "ShipClass", "metadata": {"name": "gold"}, "spec": {"cheap": False}}
"""An object of a custom kind whose plural is not regular."""
MOUSE = {"apiVersion": "example.com/v1", "kind": "Mouse", "metadata": {"name": "grey"}, "spec": {}}


def _definition(kind: str, plural: str, *, scope: str = "Cluster") -> Any:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": scope,
            "names": {"kind": kind, "plural": plural},
            "versions": [version],
        },
    }


def _custom(plural: str, expression: str = "false", **fields: Any) -> Any:
    """A policy about the custom resources of a plural."""
    made = policy(expression, name="custom", **fields)
    made["spec"]["matchConstraints"]["resourceRules"] = [
        {"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [plural]}
    ]
    return made


def _legacy(kind: str = "ClusterPolicy", api_version: str = "kyverno.io/v1", name: str = "classic") -> Any:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": {}}


def _entry(name: str, result: str, *resources: str) -> Any:
    return {"policy": name, "kind": "Pod", "resources": list(resources), "result": result}


def _suite(folder: Path, *results: Any, policies: Any = (), resources: Any = (), **fields: Any) -> Path:
    write_documents(folder, "policies.yaml", *policies)
    write_documents(folder, "resources.yaml", *resources)
    files = {"policies": ["policies.yaml"], "resources": ["resources.yaml"]}
    return write_documents(folder, "kyverno-test.yaml", {"kind": "Test", "results": list(results), **files, **fields})


def _checked(path: Path, release: Minor = NEWEST) -> list[Checked]:
    schemas = KnownSchemas(builtin_schemas())
    suites = [suite for suite in read_suites(path) if isinstance(suite, Suite)]
    return [checked for suite in suites for checked in check(suite, builtin_kinds(), schemas, NOW, release=release)]


def test_a_definition_of_spec_crds_names_the_plural_and_the_scope(tmp_path: Path) -> None:
    """An irregular plural is that of the definition, and a cluster-wide object gets no namespace."""
    write_documents(tmp_path, "crd.yaml", _definition("Mouse", "mice"))
    write_documents(tmp_path, "cluster.yaml", {"kind": "ClusterResource", "spec": {"crds": ["crd.yaml"]}})
    suite = _suite(
        tmp_path,
        _entry("custom", "pass", "grey"),
        policies=[_custom("mice", "!has(object.metadata.namespace)")],
        resources=[MOUSE],
        clusterResources=["cluster.yaml"],
    )
    assert [("pass", "success")] == [(each.status, each.message) for each in _checked(suite)[0].results]


def test_expressions_read_an_object_of_a_kind_by_the_plural_of_its_definition(tmp_path: Path) -> None:
    """So do they for an object of the cluster of a suite."""
    write_documents(tmp_path, "crd.yaml", _definition("ShipClass", "shipclasses"))
    write_documents(
        tmp_path, "cluster.yaml", {"kind": "ClusterResource", "spec": {"crds": ["crd.yaml"], "resources": [CLASS]}}
    )
    reading = policy("resource.Get('example.com/v1', 'shipclasses', '', 'gold').spec.cheap == true")
    suite = _suite(
        tmp_path,
        _entry("checks", "fail", "web"),
        policies=[reading],
        resources=[pod()],
        clusterResources=["cluster.yaml"],
    )
    assert [True] == [each.right for each in _checked(suite)]


def test_a_definition_among_the_files_of_a_suite_names_the_plural(tmp_path: Path) -> None:
    """It may be among the resources, in either format."""
    entries = [_entry("custom", "fail", "grey")]
    documents = {"policies": [_custom("mice")], "resources": [_definition("Mouse", "mice"), MOUSE]}
    path = _suite(tmp_path, *entries, **documents)
    own = {"kind": "PolicyTest", "policies": ["policies.yaml"], "resources": ["resources.yaml"], "results": entries}
    assert [True, True] == [
        each.right for file in (path, write_documents(tmp_path, "assay-test.yaml", own)) for each in _checked(file)
    ]


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        ("ShipClass", "shipclasses"),
        ("Policy", "policies"),
        ("Gateway", "gateways"),
        ("Box", "boxes"),
        ("Branch", "branches"),
        ("Widget", "widgets"),
    ],
)
def test_a_kind_without_a_definition_has_the_regular_plural(tmp_path: Path, kind: str, plural: str) -> None:
    """It is not the kind with an `s`."""
    resource = {"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": "a"}}
    suite = _suite(tmp_path, _entry("custom", "fail", "a"), policies=[_custom(plural)], resources=[resource])
    assert [True] == [each.right for each in _checked(suite)]


def test_an_invalid_definition_breaks_its_suite(tmp_path: Path) -> None:
    """The error names the field."""
    broken = _definition("Mouse", "")
    ran = assay_here("test", _suite(tmp_path, resources=[broken]), home=tmp_path)
    assert ran.code == 2
    assert "a CustomResourceDefinition defines no kind: spec.names.plural: Required value" in ran.stdout.decode()


@pytest.mark.parametrize(
    ("kind", "api_version", "sentence"),
    [
        ("ClusterPolicy", "kyverno.io/v1", "classic is a ClusterPolicy of kyverno.io, which Assay does not evaluate"),
        ("Policy", "kyverno.io/v2beta1", "classic is a Policy of kyverno.io, which"),
        (
            "ImageValidatingPolicy",
            "policies.kyverno.io/v1",
            "classic is an ImageValidatingPolicy of policies.kyverno.io",
        ),
        ("MutatingPolicy", "policies.kyverno.io/v1beta1", "classic is a MutatingPolicy of policies.kyverno.io"),
        ("GeneratingPolicy", "policies.kyverno.io/v1alpha1", "classic is a GeneratingPolicy of policies.kyverno.io"),
        ("NamespacedDeletingPolicy", "policies.kyverno.io/v1", "classic is a NamespacedDeletingPolicy of"),
        ("ClusterCleanupPolicy", "kyverno.io/v2", "classic is a ClusterCleanupPolicy of kyverno.io"),
        ("K8sRequiredLabels", "constraints.gatekeeper.sh/v1beta1", "classic is a K8sRequiredLabels of constraints"),
    ],
)
def test_a_policy_of_a_kind_that_is_not_evaluated_is_not_supported(
    tmp_path: Path, kind: str, api_version: str, sentence: str
) -> None:
    """The sentence names the kind; it is no difference, and the exit code is 0."""
    suite = _suite(
        tmp_path,
        _entry("classic", "fail", "web"),
        _entry("team/classic", "pass", "web"),
        policies=[_legacy(kind, api_version)],
        resources=[pod()],
    )
    ran = assay_here("test", suite, home=tmp_path)
    out = ran.stdout.decode()
    assert ran.code == 0
    assert f"not supported  {suite}\n  {sentence}" in out
    assert ": 2 expectations\n2 expectations in 1 suite: 0 as expected, 0 different, 2 not supported\n" in out


def test_a_policy_that_is_not_evaluated_hides_no_difference(tmp_path: Path) -> None:
    """Of two policies with one name, a difference of the evaluated one is certain, and agreement is not."""
    suite = _suite(
        tmp_path,
        _entry("checks", "pass", "web"),
        _entry("checks", "fail", "web"),
        policies=[_legacy(name="checks"), policy("false")],
        resources=[pod()],
    )
    assert [(False, False), (False, True)] == [(each.right, bool(each.unsupported)) for each in _checked(suite)]


def test_a_policy_that_is_not_evaluated_is_not_supported_in_the_short_format(tmp_path: Path) -> None:
    """The other policies of the suite are evaluated."""
    write_documents(tmp_path, "p.yaml", _legacy(), policy("false"))
    write_documents(tmp_path, "r.yaml", pod())
    entries = [{"policy": name, "resources": ["web"], "result": "fail"} for name in ("classic", "checks")]
    body = {"kind": "PolicyTest", "policies": ["p.yaml"], "resources": ["r.yaml"], "results": entries}
    checked = _checked(write_documents(tmp_path, "assay-test.yaml", body))
    assert [(True, False), (False, True)] == [(bool(each.unsupported), each.right) for each in checked]


@pytest.mark.parametrize("mode", ["JSON", "HTTP", "Envoy"])
def test_a_policy_that_evaluates_no_objects_is_not_supported(tmp_path: Path, mode: str) -> None:
    """The sentence has the mode."""
    other = policy("true", evaluation={"mode": mode})
    (checked,) = _checked(_suite(tmp_path, _entry("checks", "pass", "web"), policies=[other], resources=[pod()]))
    assert f"evaluation.mode {mode}" in checked.unsupported


@pytest.mark.parametrize("field", ["jsonPayload", "jsonPayloads", "httpPayloads", "envoyPayloads"])
def test_a_suite_with_payloads_is_not_supported(tmp_path: Path, field: str) -> None:
    """Payloads are not objects of a cluster."""
    suite = _suite(tmp_path, _entry("checks", "pass", "web"), policies=[policy("true")], **{field: ["x.json"]})
    assert [f"{field}: payloads are not objects of a cluster"] == [each.unsupported for each in _checked(suite)]


def test_a_policy_that_the_suite_does_not_have_is_a_difference(tmp_path: Path) -> None:
    """No result is expected of a misspelt policy."""
    suite = _suite(tmp_path, _entry("cheks", "skip", "web"), policies=[policy("true")], resources=[pod()])
    (checked,) = _checked(suite)
    assert (False, "", "not found") == (checked.right, checked.unsupported, checked.results[0].status)


ELSEWHERE = {"operator": "NotIn", "key": "kubernetes.io/metadata.name", "values": ["team"]}
SERVICES = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["services"]}
PODS = {**SERVICES, "resources": ["pods"]}


@pytest.mark.parametrize("result", ["pass", "skip", "fail"])
@pytest.mark.parametrize(
    "match",
    [
        {"namespaceSelector": {"matchLabels": {"tier": "gold"}}},
        {"namespaceSelector": {"matchExpressions": [ELSEWHERE]}},
        {"objectSelector": {"matchLabels": {"tier": "gold"}}},
        {"excludeResourceRules": [PODS]},
        {"resourceRules": [{**PODS, "resourceNames": ["other"]}]},
        {"resourceRules": [SERVICES, {**PODS, "operations": ["UPDATE"]}]},
    ],
)
def test_an_excluded_object_meets_every_expectation(tmp_path: Path, match: Any, result: str) -> None:
    """The CLI counts an object that selectors, exclusions or several rules leave out as excluded, for every expected result."""
    suite = _suite(
        tmp_path, _entry("checks", result, "web"), policies=[policy("false", match=match)], resources=[pod()]
    )
    (checked,) = _checked(suite)
    assert (True, {"excluded"}) == (checked.right, {each.status for each in checked.results})


@pytest.mark.parametrize(
    ("expected", "release"), [("excluded", (1, 17)), ("not found", (1, 18)), ("not found", NEWEST)]
)
def test_an_object_that_one_plain_rule_does_not_match_is_not_found(
    tmp_path: Path, expected: str, release: Minor
) -> None:
    """The CLI of 1.18 and newer has no response for it, which meets no expectation; an older one counts it as excluded."""
    about_services = policy("true", match={"resourceRules": [SERVICES]})
    suite = _suite(tmp_path, _entry("checks", "skip", "web"), policies=[about_services], resources=[pod()])
    (checked,) = _checked(suite, release)
    assert (expected == "excluded", expected) == (checked.right, checked.results[0].status)


@pytest.mark.parametrize(("result", "expected"), [("skip", True), ("pass", False)])
def test_an_exempted_object_has_the_result_of_its_exception(tmp_path: Path, result: str, expected: bool) -> None:  # noqa: FBT001
    """It is no excluded object."""
    write_documents(tmp_path, "e.yaml", exception())
    suite = _suite(
        tmp_path,
        _entry("checks", result, "web"),
        policies=[policy("false")],
        resources=[pod()],
        exceptions=["e.yaml"],
    )
    assert [expected] == [each.right for each in _checked(suite)]


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("kyverno-test.yaml", "kind: Test\npolicies: [", "document 1"),
        ("kyverno-test.yaml", "kind: Test\npolicies: [none.yaml]", "none.yaml, which does not exist"),
        ("kyverno-test.yaml", "kind: Test\npolicies: [bad.yaml]", "bad.yaml, document 1"),
        ("kyverno-test.yaml", "kind: Test\npolicies: [odd.yaml]", "spec.validations"),
        ("assay-test.yaml", "kind: Pod", "kind Pod is no suite"),
    ],
)
def test_a_broken_suite_ends_no_other_suite(tmp_path: Path, name: str, text: str, error: str) -> None:
    """Its error is printed and the others are evaluated; the exit code is 2."""
    odd = {**policy("true"), "spec": {"validations": "none"}}
    for file, content in (("bad.yaml", "a: ["), ("odd.yaml", json.dumps(odd)), (name, text)):
        (tmp_path / "a").mkdir(exist_ok=True)
        (tmp_path / "a" / file).write_text(content)
    _suite(tmp_path / "b", _entry("checks", "pass", "web"), policies=[policy("true")], resources=[pod()])
    ran = assay_here("test", tmp_path, home=tmp_path)
    out = ran.stdout.decode()
    assert ran.code == 2
    assert f"ERROR  {tmp_path / 'a' / name}\n" in out
    assert error in out
    assert "1 expectation in 2 suites: 1 as expected, 0 different, 1 suite with an error\n" in out


def test_a_broken_document_ends_no_other_suite_of_its_file(tmp_path: Path) -> None:
    """Each document of a file is a suite of its own."""
    _suite(tmp_path, _entry("checks", "pass", "web"), policies=[policy("true")], resources=[pod()])
    file = tmp_path / "kyverno-test.yaml"
    file.write_text(f"kind: Pod\n---\n{file.read_text()}")
    assert [True] == [each.right for each in _checked(file)]
