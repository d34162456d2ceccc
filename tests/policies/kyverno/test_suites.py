"""Test suites of policy authors: both forms are read from files and evaluated, and differences are reported."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from scanner.cli import main
from scanner.cluster.definitions import builtin_kinds
from scanner.cluster.files.suites import read_suites
from scanner.cluster.schemas import KnownSchemas, builtin_schemas
from scanner.cluster.yaml import load
from scanner.errors import UsageError
from scanner.suite import BrokenSuite, Checked, Suite, check
from tests.policies.kyverno.made import deployment, exception, pod, policy, write_documents

NOW = datetime(2026, 7, 1, tzinfo=UTC)
READING = policy(
    "resource.Get('v1', 'configmaps', 'team', 'settings').data.mode == 'strict'",
    "image.GetMetadata('nginx').config.User == 'app'",
    name="reads",
)
CONTEXT = {
    "apiVersion": "cli.kyverno.io/v1alpha1",
    "kind": "Context",
    "spec": {
        "resources": [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "settings", "namespace": "team"},
                "data": {"mode": "strict"},
            }
        ],
        "images": [{"image": "nginx", "config": {"User": "app"}}],
    },
}
VALUES = {"kind": "Values", "namespaceSelector": [{"name": "team", "labels": {"tier": "gold"}}]}


def _checked(path: Path) -> list[Checked]:
    schemas = KnownSchemas(builtin_schemas())
    suites = [suite for suite in read_suites(path) if isinstance(suite, Suite)]
    return [checked for suite in suites for checked in check(suite, builtin_kinds(), schemas, NOW, load)]


def _broken(path: Path) -> list[str]:
    """The errors of the suites that cannot be read."""
    return [suite.error for suite in read_suites(path) if isinstance(suite, BrokenSuite)]


def _kyverno(folder: Path, *results: Any, **fields: Any) -> Path:
    """A suite in Kyverno's form, in a hidden folder as in policy libraries."""
    body = {"kind": "Test", "metadata": {"name": "t"}, "results": list(results), **fields}
    return write_documents(folder, ".kyverno-test/kyverno-test.yaml", body)


def _entry(name: str, result: str, *resources: str) -> Any:
    return {"policy": name, "kind": "Pod", "resources": list(resources), "result": result}


def test_a_suite_of_kyvernos_form(tmp_path: Path) -> None:
    """Files are relative to the suite, its context has the data that expressions read, and false conditions are a skip."""
    unmet = policy("true", name="unmet", matchConditions=[{"name": "no", "expression": "false"}])
    write_documents(tmp_path, "policies.yaml", READING, unmet)
    write_documents(tmp_path, "pods.yaml", pod(), {**pod("bare"), "metadata": {"name": "bare"}})
    write_documents(tmp_path, ".kyverno-test/context.yaml", CONTEXT)
    _kyverno(
        tmp_path,
        _entry("reads", "pass", "web", "default/bare"),
        _entry("unmet", "skip", "web"),
        policies=["../policies.yaml"],
        resources=["../pods.yaml"],
        context="context.yaml",
    )
    assert [True, True, True] == [checked.right for checked in _checked(tmp_path)]


def test_values_and_exceptions_of_a_suite(tmp_path: Path) -> None:
    """The values have the labels of namespaces, and exempted objects are skipped."""
    gold = policy("true", name="gold", match={"namespaceSelector": {"matchLabels": {"tier": "gold"}}})
    by_name = [{"name": "n", "expression": "object.metadata.name == 'excused'"}]
    write_documents(tmp_path, ".kyverno-test/p.yaml", gold, policy("false"))
    write_documents(tmp_path, ".kyverno-test/r.yaml", pod(), pod("excused"), pod("away", namespace="other"))
    write_documents(tmp_path, ".kyverno-test/e.yaml", exception(matchConditions=by_name))
    write_documents(tmp_path, ".kyverno-test/v.yaml", VALUES)
    _kyverno(
        tmp_path,
        _entry("gold", "pass", "web"),
        _entry("gold", "skip", "away"),
        _entry("checks", "skip", "excused"),
        _entry("checks", "fail", "web"),
        policies=["p.yaml"],
        resources=["r.yaml"],
        exceptions=["e.yaml"],
        variables="v.yaml",
    )
    assert [True] * 4 == [checked.right for checked in _checked(tmp_path)]


LIMIT = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicy",
    "metadata": {"name": "replicas"},
    "spec": {
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]}
            ]
        },
        "validations": [{"expression": "object.spec.replicas <= int(params.data.most)", "message": "too many"}],
    },
}
BINDING = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicyBinding",
    "metadata": {"name": "replicas"},
    "spec": {
        "policyName": "replicas",
        "paramRef": {"name": "limits", "namespace": "team", "parameterNotFoundAction": "Deny"},
        "validationActions": ["Deny"],
    },
}
LIMITS = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "limits", "namespace": "team"},
    "data": {"most": "0"},
}


def _plain(folder: Path, *results: Any) -> Path:
    write_documents(folder, "policy.yaml", LIMIT, BINDING)
    write_documents(folder, "params.yaml", LIMITS)
    write_documents(folder, "objects.yaml", deployment(), pod())
    body = {
        "kind": "PolicyTest",
        "policies": ["policy.yaml"],
        "params": ["params.yaml"],
        "resources": ["objects.yaml"],
        "results": list(results),
    }
    return write_documents(folder, "assay-test.yaml", body)


@pytest.mark.parametrize(
    ("expected", "fields"),
    [
        (True, {"policy": "replicas", "resources": ["team/web"], "result": "fail", "message": "too many"}),
        (False, {"policy": "replicas", "resources": ["team/web"], "result": "fail", "message": "other words"}),
        (False, {"policy": "replicas", "result": "pass"}),
    ],
)
def test_the_short_form_evaluates_as_admission_does(tmp_path: Path, expected: bool, fields: Any) -> None:  # noqa: FBT001
    """Policies have bindings and params, messages can be expected, and of objects with one name only matched ones count."""
    (checked,) = _checked(_plain(tmp_path, fields))
    assert expected is checked.right


def test_an_object_that_is_not_matched_is_skipped(tmp_path: Path) -> None:
    """An object that is not matched meets no other expectation."""
    write_documents(tmp_path, "p.yaml", policy("true", resources=("services",)))
    write_documents(tmp_path, "r.yaml", pod())
    entries = [{"policy": "checks", "resources": ["web"], "result": result} for result in ("skip", "pass")]
    body = {"kind": "PolicyTest", "policies": ["p.yaml"], "resources": ["r.yaml"], "results": entries}
    assert [True, False] == [checked.right for checked in _checked(write_documents(tmp_path, "assay-test.yaml", body))]


def test_the_command_prints_differences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is 1; the output has the expected and the actual result."""
    _plain(
        tmp_path,
        {"policy": "replicas", "resources": ["team/web"], "result": "pass"},
        {"policy": "replicas", "resources": ["team/web"], "result": "fail"},
    )
    with pytest.raises(SystemExit) as end:
        main(["test", str(tmp_path)])
    out = capsys.readouterr().out
    expected = "replicas on team/web: expected pass, got fail: too many; not matched"
    assert (1, True, True) == (end.value.code, expected in out, "1 as expected, 1 different" in out)


@pytest.mark.parametrize(
    ("expected", "body"),
    [
        ("kind Pod is no suite: it must be Test or PolicyTest", {"kind": "Pod"}),
        ("which does not exist", {"kind": "Test", "policies": ["none.yaml"]}),
        (
            "result 1: maybe must be one of pass, fail, warn, error, skip",
            {"kind": "Test", "results": [{"result": "maybe"}]},
        ),
    ],
)
def test_an_invalid_suite_is_an_error(tmp_path: Path, expected: str, body: Any) -> None:
    """The error names the file and the problem."""
    (error,) = _broken(write_documents(tmp_path, "kyverno-test.yaml", body))
    assert expected in error


def test_a_folder_without_a_suite_is_an_error(tmp_path: Path) -> None:
    """A run without a suite is an error."""
    with pytest.raises(UsageError) as caught:
        read_suites(tmp_path)
    assert "has no suite" in str(caught.value)


@pytest.mark.parametrize(
    ("operation", "expression"),
    [
        ("CREATE", "oldObject == {} && object.metadata.name == 'web'"),
        ("UPDATE", "oldObject.metadata.name == 'web' && object.metadata.name == 'web'"),
        ("DELETE", "oldObject.metadata.name == 'web' && !has(object.metadata)"),
    ],
)
def test_a_suite_can_name_another_operation(tmp_path: Path, operation: str, expression: str) -> None:
    """The operation is that of one expectation, or of all expectations by the values."""
    manifest = policy(expression)
    manifest["spec"]["matchConstraints"]["resourceRules"][0]["operations"] = [operation]
    write_documents(tmp_path, ".kyverno-test/p.yaml", manifest)
    write_documents(tmp_path, ".kyverno-test/r.yaml", pod())
    expectation = _entry("checks", "pass", "web")
    files = {"policies": ["p.yaml"], "resources": ["r.yaml"]}
    (own,) = _checked(_kyverno(tmp_path, {**expectation, "operation": operation}, **files))
    values = {"globalValues": {"request.operation": operation}}
    (usual,) = _checked(_kyverno(tmp_path, expectation, **files, values=values))
    assert (True, True) == (own.right, usual.right)


ASKING = policy(
    "http.Get('https://config.example.com/a').body.mode == 'strict'",
    "http.Post('https://authz.example.com/v', {'name': object.metadata.name}).body.allowed == true",
    "http.Post('https://authz.example.com/v', {'name': object.metadata.name}).statusCode == 201",
    name="asking",
)
REMEMBERING = policy(
    "size(globalContext.Get('pods', '')) == 2",
    "globalContext.Get('limits').cpu == 2.0",
    "globalContext.Get('names', 'first') == 'one' && globalContext.Get('names').all == ['one', 'two']",
    "globalContext.Get('unknown') == null",
    name="remembering",
)


def test_mock_answers_and_entries_of_a_suite(tmp_path: Path) -> None:
    """Responses and global context entries are inline, in files, partial, or projected."""
    named = [{"metadata": {"name": name}} for name in ("one", "two")]
    write_documents(tmp_path, "policies.yaml", ASKING, REMEMBERING)
    write_documents(tmp_path, "pods.yaml", pod())
    write_documents(tmp_path, ".kyverno-test/two.yaml", named[1])
    _kyverno(
        tmp_path,
        _entry("asking", "pass", "web"),
        _entry("remembering", "pass", "web"),
        policies=["../policies.yaml"],
        resources=["../pods.yaml"],
        apiCallResponses=[
            {"url": "https://config.example.com/a", "response": {"body": {"mode": "strict"}}},
            {
                "url": "https://authz.example.com/v",
                "method": "POST",
                "response": {"statusCode": 201, "body": {"allowed": True}},
            },
        ],
        globalContextEntries=[
            {"name": "pods", "resources": named[:1], "resourceFiles": ["two.yaml"]},
            {"name": "limits", "data": {"deep": {"cpu": 2}}, "fieldPath": "deep"},
            {
                "name": "names",
                "resources": named,
                "projections": [
                    {"name": "first", "path": "[0].metadata.name"},
                    {"name": "all", "path": "[].metadata.name"},
                ],
            },
        ],
    )
    assert [("pass", "success")] * 2 == [
        (result.status, result.message) for checked in _checked(tmp_path) for result in checked.results
    ]


def test_an_answer_that_a_suite_does_not_describe_is_an_error(tmp_path: Path) -> None:
    """A test sends no request."""
    write_documents(tmp_path, "policies.yaml", ASKING)
    write_documents(tmp_path, "pods.yaml", pod())
    _kyverno(tmp_path, _entry("asking", "error", "web"), policies=["../policies.yaml"], resources=["../pods.yaml"])
    (checked,) = _checked(tmp_path)
    assert checked.right
    assert "the suite describes no answer to GET https://config.example.com/a" in checked.results[0].message


def test_an_invalid_projection_is_an_error(tmp_path: Path) -> None:
    """An invalid projection is an error before any evaluation."""
    entries = [{"name": "e", "data": {}, "projections": [{"name": "p", "path": "["}]}]
    (error,) = _broken(_kyverno(tmp_path, globalContextEntries=entries))
    assert "globalContextEntries" in error
