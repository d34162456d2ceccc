"""Every binding and every param of a policy is an invocation of its own, for the server as for a scan.

Each test has a policy of its own on the shared server, and compares a scan of that policy with the warnings of a
dry-run create.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scanner.cluster.files.manifests import read_documents
from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig
from tests.cli.conftest import Assay
from tests.command import Ran
from tests.integration.apiserver import ApiServer
from tests.integration.examples import FOLDER
from tests.integration.made import LABEL, binding, labelled, namespace, policy
from tests.integration.manifests import Violation, apply, dry_run, dry_run_create, violations, wait_until_enforced

HERE, THERE = "invoked", "elsewhere"
CONFIG_MAPS: Json = {"apiVersion": "v1", "kind": "ConfigMap"}


@pytest.fixture
def name(api_server: ApiServer, request: pytest.FixtureRequest) -> str:
    """A policy name for the test, on a server with two namespaces."""
    apply(api_server, [namespace(HERE), namespace(THERE)])
    return re.sub("[^a-z0-9]+", "-", request.node.name.lower()).removeprefix("test-")[:50].strip("-")


def scan(server: ApiServer, policy_name: str, assay: Assay, *flags: str | Path) -> Ran:
    """Scan with one policy alone, into a database of the test's own."""
    return assay("scan", "--kubeconfig", server.kubeconfig, "--policy", policy_name, "-o", "json", *flags)


def reported(ran: Ran) -> list[Violation]:
    """The findings of a scan, as a server would warn of them."""
    findings = [as_object(finding) for finding in as_list(ran.report["findings"])]
    return sorted(
        Violation(*(as_text(finding[key]) for key in ("policy", "binding", "message"))) for finding in findings
    )


def param(name: str, by: str, *, within: str, limit: str) -> JsonObject:
    """A ConfigMap that bindings of a policy can refer to, which the policy itself does not match."""
    metadata: JsonObject = {"name": f"{by}-{name}", "namespace": within, "labels": {"param-of": by}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"limit": limit}}


def parametrized(name: str) -> JsonObject:
    """A policy whose message names the param of the invocation."""
    message = "'more than ' + params.data.limit + ' says ' + params.metadata.namespace + '/' + params.metadata.name"
    validation: Json = {"expression": "object.data.size() > int(params.data.limit)", "messageExpression": message}
    return policy(name, "configmaps", paramKind=CONFIG_MAPS, validations=[validation])


def test_every_param_is_evaluated_by_itself(api_server: ApiServer, name: str, assay: Assay) -> None:
    """A selector that means several params fails once for each that objects, and names it."""
    reference: Json = {"selector": {"matchLabels": {"param-of": name}}, "parameterNotFoundAction": "Deny"}
    params = [param(f"p{limit}", name, within=HERE, limit=str(limit)) for limit in (0, 1, 2, 3)]
    config_map = labelled("ConfigMap", name, name, namespace=HERE, data={"one": "1", "two": "2"})
    apply(api_server, [*params, config_map, parametrized(name), binding(name, paramRef=reference)])
    wait_until_enforced(api_server)

    warned = violations(dry_run_create(api_server, config_map))
    ran = scan(api_server, name, assay)

    assert 2 == len(warned)
    assert warned == reported(ran)
    assert [(HERE, f"{name}-p2"), (HERE, f"{name}-p3")] == [
        (dig(finding, "param", "namespace"), dig(finding, "param", "name"))
        for finding in as_list(ran.report["findings"])
    ]


def test_params_of_the_objects_own_namespace(api_server: ApiServer, name: str, assay: Assay) -> None:
    """Without a namespace in the reference, each object is evaluated with the param of its namespace, and denied without a param."""
    reference: Json = {"name": f"{name}-own", "parameterNotFoundAction": "Deny"}
    objects = [labelled("ConfigMap", name, name, namespace=where, data={"one": "1"}) for where in (HERE, THERE)]
    own = param("own", name, within=HERE, limit="5")
    apply(api_server, [own, *objects, parametrized(name), binding(name, paramRef=reference)])
    wait_until_enforced(api_server)

    warned = violations(dry_run_create(api_server, objects[0]))
    refusal = as_text(dig(dry_run(api_server, objects[1]).body, "message"))
    ran = scan(api_server, name, assay)

    [missing, violated] = sorted(as_list(ran.report["findings"]), key=lambda finding: as_text(dig(finding, "outcome")))
    assert warned == [Violation(name, name, as_text(dig(violated, "message")))]
    assert refusal.endswith(f"denied request: {dig(missing, 'message')}")
    assert (THERE, True) == (dig(missing, "object", "namespace"), dig(missing, "wouldDeny"))


def test_every_binding_is_evaluated_by_itself(api_server: ApiServer, name: str, assay: Assay) -> None:
    """Two bindings of a policy that both match warn twice; the third matches another namespace."""
    selector: Json = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": THERE}}}
    bindings = [
        {
            **binding(name),
            "metadata": {"name": f"{name}-{suffix}"},
            "spec": {**as_object(binding(name)["spec"]), **more},
        }
        for suffix, more in (("a", {}), ("b", {}), ("c", {"matchResources": selector}))
    ]
    config_map = labelled("ConfigMap", name, name, namespace=HERE)
    apply(api_server, [config_map, policy(name, "configmaps"), *bindings])
    wait_until_enforced(api_server)

    warned = violations(dry_run_create(api_server, config_map))
    ran = scan(api_server, name, assay)

    assert [f"{name}-a", f"{name}-b"] == [violation.binding for violation in warned]
    assert warned == reported(ran)


def test_errors_have_the_servers_words(api_server: ApiServer, name: str, assay: Assay) -> None:
    """An expression that fails is a finding when failurePolicy is Fail, with the message of the server."""
    expressions = ("object.data.missing == '1'", "int(object.data.one + 'x') == 1", "1 / (object.data.size() - 1) == 1")
    validations: list[Json] = [{"expression": expression} for expression in expressions]
    config_map = labelled("ConfigMap", name, name, namespace=HERE, data={"one": "1"})
    apply(api_server, [config_map, policy(name, "configmaps", validations=validations), binding(name)])
    wait_until_enforced(api_server)

    warned = violations(dry_run_create(api_server, config_map))
    ran = scan(api_server, name, assay)

    assert len(expressions) == len(warned)
    assert warned == reported(ran)


def test_the_user_of_the_scan_is_the_requester(api_server: ApiServer, name: str, assay: Assay) -> None:
    """An expression that reads the requester sees the user who scans, with the groups that the server knows."""
    message = "request.userInfo.username + ' of ' + request.userInfo.groups.join(' and ')"
    validation: Json = {"expression": "false", "messageExpression": message}
    config_map = labelled("ConfigMap", name, name, namespace=HERE)
    apply(api_server, [config_map, policy(name, "configmaps", validations=[validation]), binding(name)])
    wait_until_enforced(api_server)

    warned = violations(dry_run_create(api_server, config_map))
    ran = scan(api_server, name, assay)

    assert ["admin of system:masters and system:authenticated"] == [violation.message for violation in warned]
    assert warned == reported(ran)


def test_objects_are_evaluated_in_the_version_that_the_policy_names(
    api_server: ApiServer, name: str, assay: Assay
) -> None:
    """A rule for autoscaling/v1 sees an autoscaler that is stored as v2 converted to v1."""
    rule: Json = {"apiGroups": ["autoscaling"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["*"]}
    constraints: Json = {"resourceRules": [rule], "objectSelector": {"matchLabels": {LABEL: name}}}
    message = "object.apiVersion + ' aims at ' + string(object.spec.targetCPUUtilizationPercentage)"
    validation: Json = {"expression": "false", "messageExpression": message}
    metric: Json = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}},
    }
    target: Json = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"}
    spec: Json = {"maxReplicas": 3, "scaleTargetRef": target, "metrics": [metric]}
    scaler = {
        **labelled("HorizontalPodAutoscaler", name, name, namespace=HERE, spec=spec),
        "apiVersion": "autoscaling/v2",
    }
    apply(api_server, [scaler, policy(name, matchConstraints=constraints, validations=[validation]), binding(name)])
    wait_until_enforced(api_server)

    warned = violations(dry_run_create(api_server, scaler))
    ran = scan(api_server, name, assay)

    assert ["autoscaling/v1 aims at 70"] == [violation.message for violation in warned]
    assert warned == reported(ran)


def test_a_preview_says_what_the_server_will_say(api_server: ApiServer, name: str, assay: Assay) -> None:
    """--assume-bound with a policy from a file finds what admission warns of once the policy is stored and bound."""
    [document] = FOLDER.joinpath("policies-unbound").iterdir()
    container: Json = {"name": "app", "image": "registry.example.com/app:1"}
    template: Json = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    spec: Json = {"selector": {"matchLabels": {"app": name}}, "template": template}
    deployment = {**labelled("Deployment", name, name, namespace=HERE, spec=spec), "apiVersion": "apps/v1"}
    apply(api_server, [deployment])

    here = "--namespace", HERE  # The policy matches the Deployments of every test.
    ran = scan(api_server, document.stem, assay, "-f", document, "--assume-bound", f"{document.stem}=Warn", *here)
    [stored], _ = read_documents(document)
    apply(api_server, [stored.body, binding(document.stem)])
    wait_until_enforced(api_server)
    warned = violations(dry_run_create(api_server, deployment))

    assert ["no readiness probe: app"] == [violation.message for violation in warned]
    assert [violation.message for violation in warned] == [violation.message for violation in reported(ran)]
