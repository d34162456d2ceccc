"""The simulated request is the one that a server would see from that user, and the authorizer is the server's own.

Each test has a policy of its own on the shared server, and compares a scan as some user with the warnings that a dry-run
create of that user brings.
"""

from __future__ import annotations

import re

import pytest

from scanner.model.json import Json, JsonObject, as_list, as_text, dig
from tests.cli.conftest import Assay
from tests.command import Ran
from tests.integration.apiserver import ApiServer
from tests.integration.made import LABEL, binding, bound, labelled, namespace, policy
from tests.integration.manifests import apply, dry_run, dry_run_create, violations, wait_until_enforced

HERE, BOB, GROUP = "requested", "guest", "guests"
AS_BOB = ("--as-user", BOB, "--as-user-group", GROUP)


@pytest.fixture
def name(api_server: ApiServer, request: pytest.FixtureRequest) -> str:
    """A policy name for the test, on a server where Bob may create ConfigMaps and read Secrets."""
    rules: Json = [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": ["his"]},
        {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
    ]
    role: JsonObject = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": BOB},
        "rules": rules,
    }
    apply(api_server, [namespace(HERE), role, bound(BOB, BOB)])
    return re.sub("[^a-z0-9]+", "-", request.node.name.lower()).removeprefix("test-")[:50].strip("-")


def scan(server: ApiServer, policy_name: str, assay: Assay, *flags: str, user: str = "admin") -> Ran:
    """Scan with one policy alone, into a database of the test's own."""
    config = server.kubeconfig_for(user)
    return assay("scan", "--kubeconfig", config, "--policy", policy_name, "-o", "json", *flags)


def messages(ran: Ran) -> list[str]:
    """The messages of the findings, sorted."""
    return sorted(as_text(dig(finding, "message")) for finding in as_list(ran.report["findings"]))


def counts(ran: Ran) -> tuple[Json, Json]:
    """The number of outcomes that are not auditable, and of passed ones that depend on the requester."""
    return dig(ran.report, "totals", "notAuditable"), dig(ran.report, "requester", "passed")


def warned(server: ApiServer, document: JsonObject) -> list[str]:
    """The server's warnings to Bob, sorted."""
    return sorted(
        violation.message for violation in violations(dry_run_create(server, document, token=server.tokens[BOB]))
    )


def test_another_user_can_make_the_requests(api_server: ApiServer, name: str, assay: Assay) -> None:
    """A policy reads the same of Bob in the scan as on the server: his name and all his groups."""
    message = "request.userInfo.username + ' of ' + request.userInfo.groups.join(' and ')"
    config_map = labelled("ConfigMap", name, name, namespace=HERE)
    validations: Json = [
        {"expression": "false", "messageExpression": message},
        {"expression": "request.userInfo.username != 'guest'", "message": "no guests"},
    ]
    apply(api_server, [config_map, policy(name, "configmaps", validations=validations), binding(name)])
    wait_until_enforced(api_server)
    ran = scan(api_server, name, assay, *AS_BOB)

    assert ["guest of guests and system:authenticated", "no guests"] == messages(ran)
    assert warned(api_server, config_map) == messages(ran)


QUESTIONS = (
    "authorizer.group('').resource('secrets').namespace('requested').check('list').allowed()",
    "authorizer.group('').resource('secrets').namespace('requested').name('his').check('get').allowed()",
    "authorizer.group('').resource('secrets').namespace('requested').name('hers').check('get').allowed()",
    "authorizer.path('/metrics').check('get').allowed()",
    "authorizer.path('/debug').check('get').allowed()",
    "authorizer.requestResource.check('create').allowed()",
    "authorizer.requestResource.check('delete').allowed()",
    "authorizer.serviceAccount('kube-system', 'default').group('').resource('pods').check('get').allowed()",
    "authorizer.group('').resource('pods').fieldSelector('spec.nodeName=a').check('list').allowed()",
    "authorizer.group('').resource('pods').check('get').reason() == 'never so'",
    "authorizer.group('').resource('pods').check('get').errored()",
)


def test_the_authorizer_answers_as_it_answers_the_server(api_server: ApiServer, name: str, assay: Assay) -> None:
    """Every question about Bob has the answer that admission of his request has."""
    config_map = labelled("ConfigMap", name, name, namespace=HERE)
    validations: Json = [{"expression": question} for question in QUESTIONS]
    apply(api_server, [config_map, policy(name, "configmaps", validations=validations), binding(name)])
    wait_until_enforced(api_server)
    ran = scan(api_server, name, assay, *AS_BOB)

    assert warned(api_server, config_map) == messages(ran)
    assert (0, 3) == counts(ran)


def test_who_may_not_ask_the_authorizer_does_not_guess(api_server: ApiServer, name: str, assay: Assay) -> None:
    """The checks that ask it are not auditable, the others are evaluated, and policy health names the missing right."""
    config_map = labelled("ConfigMap", name, name, namespace=HERE)
    validations: Json = [{"expression": QUESTIONS[0]}, {"expression": "false", "message": "no"}]
    reading: list[JsonObject] = [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "reader"},
            "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]}],
        },
        bound("auditor", "reader"),
    ]
    apply(api_server, [*reading, config_map, policy(name, "configmaps", validations=validations), binding(name)])
    wait_until_enforced(api_server)
    ran = scan(api_server, name, assay, user="auditor")

    assert (0, ["no"], (1, 0)) == (ran.code, messages(ran), counts(ran))
    (health,) = [problem for problem in as_list(ran.report["health"]) if dig(problem, "kind") == "notAuditable"]
    assert "grant create on subjectaccessreviews.authorization.k8s.io" in as_text(dig(health, "detail"))


@pytest.mark.parametrize("operation", ["create", "update"])
def test_the_operation_can_be_chosen(api_server: ApiServer, name: str, assay: Assay, operation: str) -> None:
    """A policy sees the operation, the options that go with it, and the old object where there is one."""
    message = "request.operation + ' ' + request.options.kind + (oldObject == null ? ' new' : ' old')"
    validation: Json = {"expression": "false", "messageExpression": message}
    config_map = labelled("ConfigMap", name, name, namespace=HERE)
    apply(api_server, [config_map, policy(name, "configmaps", validations=[validation]), binding(name)])
    wait_until_enforced(api_server)
    ran = scan(api_server, name, assay, "--operation", operation)

    expected = {"create": "CREATE CreateOptions new", "update": "UPDATE UpdateOptions old"}[operation]
    assert [expected] == messages(ran) == _warnings(api_server, config_map, operation)


def _warnings(server: ApiServer, document: JsonObject, operation: str) -> list[str]:
    """The server's warnings about such a request."""
    if operation == "create":
        return [violation.message for violation in violations(dry_run(server, document).warnings())]
    path = f"/api/v1/namespaces/{HERE}/configmaps/{as_text(dig(document, 'metadata', 'name'))}"
    stored = server.request("GET", path).body
    assert isinstance(stored, dict)
    return [
        violation.message for violation in violations(server.request("PUT", path, stored, {"dryRun": "All"}).warnings())
    ]


def test_an_object_that_waits_for_its_finalizers_is_evaluated(api_server: ApiServer, name: str, assay: Assay) -> None:
    """The server still accepts updates of the object, and evaluates its policies."""
    metadata: JsonObject = {
        "name": name,
        "namespace": HERE,
        "labels": {LABEL: name},
        "finalizers": ["example.com/wait"],
    }
    config_map: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    apply(api_server, [config_map, policy(name, "configmaps"), binding(name)])
    path = f"/api/v1/namespaces/{HERE}/configmaps/{name}"
    api_server.request("DELETE", path)
    wait_until_enforced(api_server)
    ran = scan(api_server, name, assay, "--operation", "update")

    assert ["no"] == messages(ran) == _warnings(api_server, config_map, "update")
