"""The API server of the integration tests answers as a real one does, and leaves nothing behind."""

from __future__ import annotations

import stat
from pathlib import Path

import orjson
import pytest

from scanner.model.json import JsonObject, dig
from tests.integration.apiserver import ApiServer, running
from tests.integration.manifests import (
    RefusedError,
    Violation,
    apply,
    collection_path,
    delete,
    dry_run_create,
    violations,
    wait_until_enforced,
)
from tests.integration.processes import NotStartedError

ADMISSION = "admissionregistration.k8s.io/v1"


def manifest(kind: str, name: str, api_version: str = "v1", **rest: JsonObject) -> JsonObject:
    """A manifest with a name and the further fields of its kind."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **rest}


def config_map(name: str, *, label: str) -> JsonObject:
    """A ConfigMap that only the policy for its label matches."""
    return {**manifest("ConfigMap", name), "metadata": {"name": name, "labels": {"about": label}}}


def policy_about(label: str, expression: str, message: str) -> JsonObject:
    """A policy for the ConfigMaps with that label."""
    rule: JsonObject = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    constraints: JsonObject = {"resourceRules": [rule], "objectSelector": {"matchLabels": {"about": label}}}
    spec: JsonObject = {
        "matchConstraints": constraints,
        "validations": [{"expression": expression, "message": message}],
    }
    return manifest("ValidatingAdmissionPolicy", label, ADMISSION, spec=spec)


def binding_of(policy: str, action: str) -> JsonObject:
    """A binding without limits."""
    spec: JsonObject = {"policyName": policy, "validationActions": [action]}
    return manifest("ValidatingAdmissionPolicyBinding", policy, ADMISSION, spec=spec)


def test_the_server_is_ready(api_server: ApiServer) -> None:
    """A test can send requests as soon as it has the fixture."""
    answer = api_server.request("GET", "/readyz")

    assert answer.status == 200


def test_the_server_is_the_release_whose_rules_assay_follows(api_server: ApiServer) -> None:
    """The version is 1.36, in the fields that clients read."""
    version = api_server.request("GET", "/version").body

    assert ("1", "36", "v1.36.0") == (dig(version, "major"), dig(version, "minor"), dig(version, "gitVersion"))


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("v1", "ValidatingAdmissionPolicy"),
        ("v1", "MutatingAdmissionPolicy"),
        ("v1beta1", "MutatingAdmissionPolicy"),
        ("v1alpha1", "MutatingAdmissionPolicy"),
    ],
)
def test_policies_are_served(api_server: ApiServer, version: str, kind: str) -> None:
    """Every version of the policies that 1.36 still has is switched on."""
    document = manifest(kind, "any", f"admissionregistration.k8s.io/{version}")

    path = collection_path(api_server, document)

    assert path == f"/apis/admissionregistration.k8s.io/{version}/{kind.lower().replace('policy', 'policies')}"


@pytest.mark.parametrize("version", ["v1beta1", "v1alpha1"])
def test_a_kind_that_is_not_served_is_named(api_server: ApiServer, version: str) -> None:
    """Validating policies of the versions before v1 are gone in 1.36, so no test can store one."""
    document = manifest("ValidatingAdmissionPolicy", "old", f"admissionregistration.k8s.io/{version}")

    with pytest.raises(RefusedError, match=f"{version} does not serve ValidatingAdmissionPolicy"):
        apply(api_server, [document])


def test_a_warn_binding_shows_in_a_dry_run_create(api_server: ApiServer) -> None:
    """The oracle: what a policy finds wrong comes back as a warning, and nothing is stored."""
    label = "shown-in-dry-run"
    apply(api_server, [binding_of(label, "Warn"), policy_about(label, "false", 'says "no" … with a \\ in it')])
    wait_until_enforced(api_server)

    warnings = dry_run_create(api_server, config_map("refused", label=label))

    assert [Violation(label, label, 'says "no" … with a \\ in it')] == violations(warnings)
    assert api_server.request("GET", "/api/v1/namespaces/default/configmaps/refused").status == 404


def test_an_object_that_satisfies_the_policy_gets_no_warning(api_server: ApiServer) -> None:
    """The oracle can also say that nothing is wrong."""
    label = "satisfied"
    apply(api_server, [policy_about(label, "true", "never"), binding_of(label, "Warn")])
    wait_until_enforced(api_server)

    warnings = dry_run_create(api_server, config_map("fine", label=label))

    assert [] == warnings


def test_a_stored_object_can_be_asked_about_as_it_was_read(api_server: ApiServer) -> None:
    """Admission of a create comes before the server finds the object there already."""
    label = "already-stored"
    (stored,) = apply(api_server, [config_map("stored", label=label)])
    apply(api_server, [policy_about(label, "false", "still evaluated"), binding_of(label, "Warn")])
    wait_until_enforced(api_server)
    assert isinstance(stored, dict)

    warnings = dry_run_create(api_server, stored)

    assert [Violation(label, label, "still evaluated")] == violations(warnings)


def test_a_denied_dry_run_is_no_list_of_warnings(api_server: ApiServer) -> None:
    """A binding that denies would hide the other policies' warnings: the test that meets one must hear of it."""
    label = "denied"
    apply(api_server, [policy_about(label, "false", "not here"), binding_of(label, "Deny")])
    wait_until_enforced(api_server)

    with pytest.raises(RefusedError, match=r"/denied-one answered 422: .*denied request: not here"):
        dry_run_create(api_server, config_map("denied-one", label=label))


def test_a_deleted_binding_is_no_longer_enforced(api_server: ApiServer) -> None:
    """Waiting covers deletions too."""
    label = "deleted-again"
    apply(api_server, [policy_about(label, "false", "gone"), binding_of(label, "Warn")])
    wait_until_enforced(api_server)
    delete(api_server, binding_of(label, "Warn"))
    wait_until_enforced(api_server)

    warnings = dry_run_create(api_server, config_map("free", label=label))

    assert [] == warnings


def test_a_users_token_carries_no_rights(api_server: ApiServer) -> None:
    """Users other than the administrator may do what a test grants them, and nothing else."""
    answer = api_server.request("GET", "/api/v1/secrets", token=api_server.tokens["guest"])

    assert answer.status == 403


def test_a_made_up_token_is_refused(api_server: ApiServer) -> None:
    """Wrong credentials and missing rights have different answers."""
    answer = api_server.request("GET", "/api/v1/secrets", token="made-up")

    assert answer.status == 401


def test_the_kubeconfig_of_a_user_leads_to_the_server(api_server: ApiServer) -> None:
    """The file names the server, its certificate and that user's token, and only its owner may read it."""
    path = api_server.kubeconfig_for("auditor")
    config = orjson.loads(path.read_bytes())

    assert api_server.url == config["clusters"][0]["cluster"]["server"]
    assert api_server.tokens["auditor"] == config["users"][0]["user"]["token"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_custom_resources_can_be_stored_together_with_their_definition(api_server: ApiServer) -> None:
    """Namespaces and definitions are stored first, in any order of the arguments."""
    names: JsonObject = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    schema: JsonObject = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version: JsonObject = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec: JsonObject = {"group": "fixture.example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    definition = manifest(
        "CustomResourceDefinition", "widgets.fixture.example.com", "apiextensions.k8s.io/v1", spec=spec
    )
    widget = manifest("Widget", "one", "fixture.example.com/v1", spec={"size": 3})
    in_namespace: JsonObject = {**widget, "metadata": {"name": "one", "namespace": "widgets"}}

    stored = apply(api_server, [in_namespace, definition, manifest("Namespace", "widgets")])

    assert ["Namespace", "CustomResourceDefinition", "Widget"] == [dig(item, "kind") for item in stored]
    assert dig(stored[-1], "spec", "size") == 3


def test_storing_again_replaces(api_server: ApiServer) -> None:
    """A second state can be stored over the first, also when it was read from another cluster."""
    apply(api_server, [config_map("twice", label="first")])
    again: JsonObject = {"name": "twice", "labels": {"about": "second"}, "uid": "of-another-cluster"}

    (stored,) = apply(api_server, [{**config_map("twice", label="second"), "metadata": again}])

    assert dig(stored, "metadata", "labels", "about") == "second"


def test_a_refused_manifest_is_named(api_server: ApiServer) -> None:
    """A manifest that the server rejects stops the test with the server's reason."""
    with pytest.raises(RefusedError, match=r"ConfigMap /Not A Name answered 422: .*Invalid value"):
        apply(api_server, [config_map("Not A Name", label="none")])


def test_nothing_is_left_running(assets: Path, tmp_path: Path) -> None:
    """Leaving the block ends both processes."""
    with running(assets, tmp_path) as server:
        assert server.request("GET", "/readyz").status == 200

    assert [] == processes_of(tmp_path)


def test_a_failed_start_shows_the_log_and_leaves_nothing_running(assets: Path, tmp_path: Path) -> None:
    """A server that refuses its command line is reported with its own words."""
    with (
        pytest.raises(NotStartedError, match=r"(?s)kube-apiserver ended with exit code 1;.*no-such-plugin"),
        running(assets, tmp_path, flags=["--enable-admission-plugins=no-such-plugin"]),
    ):
        pass

    assert [] == processes_of(tmp_path)


def test_a_missing_program_is_named(tmp_path: Path) -> None:
    """KUBEBUILDER_ASSETS that lead nowhere are an error, not a reason to skip."""
    with pytest.raises(NotStartedError, match="etcd is missing: KUBEBUILDER_ASSETS"), running(tmp_path, tmp_path):
        pass


def processes_of(directory: Path) -> list[str]:
    """The command lines that mention the directory, read where the kernel shows them."""
    lines = map(command_line, Path("/proc").glob("[0-9]*/cmdline"))
    return [line for line in lines if str(directory) in line]


def command_line(path: Path) -> str:
    """The text of one command line, empty when its process has ended meanwhile."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
