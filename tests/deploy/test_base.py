"""What the base of kustomize sends to a cluster reads and never writes, and meets the restricted pod security standard."""

from __future__ import annotations

import re
from importlib import resources

import orjson
import pytest
import yaml

from scanner import __version__
from scanner.config.values import parse_seconds
from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig, texts
from scanner.model.scans.scan import SILENCE
from scanner.policies.language import LANGUAGES
from scanner.posture.workloads import list_usual_controllers
from tests.deploy.programs import BASE, base

MANIFESTS = base()
OF_LANGUAGES = {
    (kind.group, kind.plural) for language in LANGUAGES for kind in (*language.custom_kinds, *language.counted_kinds)
}
"""Group and plural of the documents of policy languages that Kubernetes does not serve."""
_FORMS = ("deleting", "generating", "imagevalidating", "mutating")
NAMED = {
    *(("policies.kyverno.io", f"{scope}{form}policies") for scope in ("", "namespaced") for form in _FORMS),
    *(("kyverno.io", plural) for plural in ("cleanuppolicies", "clustercleanuppolicies")),
}
"""Group and plural of Kyverno's other kinds, which a scan counts as a source of refusals."""
REVIEWS = {"selfsubjectreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews", "subjectaccessreviews"}


def manifest(kind: str) -> JsonObject:
    """Pick the one manifest of a kind."""
    (manifest,) = (item for item in MANIFESTS if item["kind"] == kind)
    return manifest


def rules() -> list[JsonObject]:
    """Pick the rules of the ClusterRole."""
    return [as_object(item) for item in as_list(manifest("ClusterRole")["rules"])]


def resource_rules() -> list[JsonObject]:
    """Pick the rules about resources."""
    return [rule for rule in rules() if "resources" in rule]


def granted() -> set[tuple[str, str]]:
    """Group and plural of everything that the ClusterRole speaks of."""
    return {
        (group, item)
        for rule in resource_rules()
        for group in texts(rule["apiGroups"])
        for item in texts(rule["resources"])
    }


def served(version: re.Pattern[str]) -> set[tuple[str, str]]:
    """Group and plural of what Kubernetes serves in such a version, as in the shipped table of kinds."""
    table = orjson.loads(resources.files("scanner.cluster").joinpath("kinds.json").read_bytes())
    return {(group, plural) for group, served_in, _, plural, _ in table["kinds"] if version.fullmatch(served_in)}


def pod() -> Json:
    """Pick the pod that the CronJob starts."""
    return dig(manifest("CronJob"), "spec", "jobTemplate", "spec", "template", "spec")


def container(name: str = "assay") -> Json:
    """Pick a container or an init container of the pod."""
    containers = [*as_list(dig(pod(), "initContainers")), *as_list(dig(pod(), "containers"))]
    (container,) = (container for container in containers if dig(container, "name") == name)
    return container


def configuration() -> JsonObject:
    """Read assay.yaml."""
    return as_object(yaml.safe_load(as_text(dig(manifest("ConfigMap"), "data", "assay.yaml"))))


def test_everything_that_is_needed_is_there() -> None:
    """The base has the identity, its rights, the configuration, the disk and the job."""
    kinds = [
        "Namespace",
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "ConfigMap",
        "PersistentVolumeClaim",
        "CronJob",
    ]
    assert kinds == [as_text(item["kind"]) for item in MANIFESTS]


@pytest.mark.parametrize("rule", resource_rules(), ids=lambda rule: texts(rule["apiGroups"])[0] or "core")
def test_rights_are_reading_and_asking(rule: JsonObject) -> None:
    """The verb create is granted for reviews alone, which store nothing; everything else is get and list."""
    resources = set(texts(rule["resources"]))
    expected = {"create"} if resources <= REVIEWS else {"get", "list"}
    assert expected == set(texts(rule["verbs"]))


@pytest.mark.parametrize("field", ["apiGroups", "resources", "verbs"])
def test_no_right_is_a_wildcard(field: str) -> None:
    """Groups and resources are named one by one."""
    assert "*" not in {item for rule in resource_rules() for item in texts(rule[field])}


def test_the_metrics_are_the_one_path_besides_resources() -> None:
    """They have the API server's own counts of objects, and are read alone."""
    others = [rule for rule in rules() if "resources" not in rule]
    assert [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}] == others


def test_every_kind_of_a_policy_language_is_granted() -> None:
    """The scan lists the documents of each language."""
    assert OF_LANGUAGES <= granted()


def test_every_right_is_about_something_that_kubernetes_or_a_policy_language_serves() -> None:
    """A misspelt group or resource would grant nothing, and only an incomplete scan would show it."""
    assert NAMED <= granted()
    unknown = granted() - served(re.compile(".*")) - OF_LANGUAGES - NAMED
    assert set() == {right for right in unknown if right[1] not in REVIEWS}


def test_every_kind_above_pods_is_granted() -> None:
    """The workload of no object has to be derived because a right is missing."""
    table = orjson.loads(resources.files("scanner.cluster").joinpath("kinds.json").read_bytes())
    plurals = {
        (group, plural)
        for group, _, kind, plural, _ in table["kinds"]
        if (group, kind) in list_usual_controllers([("", "Pod")])
    }
    assert plurals <= granted()


def test_every_kind_that_kubernetes_serves_is_granted_or_known_to_be_left_out() -> None:
    """Left out are Secrets, for the reason the file gives, the deprecated ComponentStatus, and what only alpha and beta serve."""
    assert {("", "secrets"), ("", "componentstatuses")} == served(re.compile(r"v\d+")) - granted()


def test_secrets_are_neither_readable_nor_silently_missing() -> None:
    """The role leaves Secrets out, and the configuration of the scan does."""
    assert "secrets" not in {item for rule in resource_rules() for item in texts(rule["resources"])}
    assert ["secrets"] == configuration()["skipKind"]


def test_the_role_is_bound_to_the_identity_of_the_job() -> None:
    """Binding, ServiceAccount and pod name the same identity."""
    subject = as_list(manifest("ClusterRoleBinding")["subjects"])[0]
    assert ("assay", "assay") == (dig(subject, "namespace"), dig(subject, "name"))
    assert "assay" == dig(pod(), "serviceAccountName")
    assert "assay" == dig(manifest("ServiceAccount"), "metadata", "name")


def test_two_scans_never_run_at_once() -> None:
    """The next scan waits for its day when the last one still runs."""
    assert "Forbid" == dig(manifest("CronJob"), "spec", "concurrencyPolicy")


def test_the_pod_is_restricted() -> None:
    """The fields that the restricted standard requires, and the number of the image's user."""
    expected = {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}}
    context = as_object(dig(pod(), "securityContext"))
    assert expected == {key: context[key] for key in expected}
    assert {"hostNetwork", "hostPID", "hostIPC"}.isdisjoint(as_object(pod()))


@pytest.mark.parametrize("name", ["upgrade", "prune", "assay"])
def test_the_container_is_restricted(name: str) -> None:
    """No capability, no escalation, and a root file system that cannot be written."""
    expected = {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert expected == dig(container(name), "securityContext")


@pytest.mark.parametrize("name", ["upgrade", "prune", "assay"])
def test_volumes_are_of_allowed_types_and_all_mounted(name: str) -> None:
    """The database lies on a claim and temporary files in an emptyDir, where the image expects them."""
    types = {key for volume in as_list(dig(pod(), "volumes")) for key in as_object(volume) if key != "name"}
    mounts = {as_text(dig(mount, "mountPath")) for mount in as_list(dig(container(name), "volumeMounts"))}
    assert {"persistentVolumeClaim", "emptyDir", "configMap"} == types
    assert {"/data", "/tmp", "/etc/assay"} == mounts


def test_memory_and_processors_are_limited() -> None:
    """A scan has a process for each processor of the limit, on every node, so its memory is the same on every node."""
    resources = dig(container(), "resources")
    assert {"cpu", "memory"} == set(as_object(dig(resources, "requests")))
    assert {"cpu": "2", "memory": "1Gi"} == dig(resources, "limits")


def test_the_deadline_agrees_with_the_time_limit_of_a_kind() -> None:
    """Kubernetes ends no scan whose lists are within their time limit, and whose heartbeat is not old."""
    limit = parse_seconds(as_text(configuration()["kindTimeout"])) or 0
    deadline = dig(manifest("CronJob"), "spec", "jobTemplate", "spec", "activeDeadlineSeconds")
    assert isinstance(deadline, int)
    assert 0 < limit <= deadline - SILENCE


def test_the_configuration_has_the_schedule_of_the_cronjob() -> None:
    """`assay runs` expects a run at each time of the CronJob."""
    spec = manifest("CronJob")["spec"]
    assert {"cron": dig(spec, "schedule"), "timeZone": dig(spec, "timeZone")} == configuration()["schedule"]


def test_the_kustomization_has_every_file_and_the_image() -> None:
    """`kubectl apply -k` applies what stands in the folder, with the image of this version."""
    kustomization = as_object(yaml.safe_load((BASE / "kustomization.yaml").read_text()))
    assert {path.name for path in BASE.glob("*.yaml")} == {"kustomization.yaml", *texts(kustomization["resources"])}
    assert [{"name": as_text(dig(container(), "image")), "newTag": __version__}] == kustomization["images"]
