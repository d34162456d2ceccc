"""`assay check` evaluates the plug-ins of the API server that change or refuse a manifest without a policy."""

from __future__ import annotations

from typing import Any

import pytest

from scanner.cli.commands.check import BUILT_IN
from scanner.preview.plugins import BUILT_IN as PLUGINS
from tests.cli.checked import first, verdict
from tests.cli.conftest import Check
from tests.documents import Document
from tests.shop import HUNGRY, bind, deployment, limit_range, pod, vap

LIMITED = "object.spec.containers.all(c, has(c.resources.limits))"


def test_plugins_change_a_pod_before_policies_read_it(check: Check) -> None:
    """The limits of a LimitRange satisfy a policy that demands some, also in files without its other defaults."""
    rules = [vap("limited", "pods", expression=LIMITED), bind("limited")]

    assert (1, "refused") == verdict(check(rules, pod()))
    assert (0, "admitted") == verdict(check([*rules, limit_range(default={"cpu": "1"})], pod()))
    assert [] == first(check([*rules, limit_range(default={"cpu": "1"})], pod()))["changes"]


def test_the_pods_of_a_template_are_limited_by_a_range(check: Check) -> None:
    """The workload is admitted, and its pods are refused by the plug-in; a plug-in that the server does not run refuses nothing."""
    ran = check([limit_range(max={"cpu": "1"})], deployment(containers=HUNGRY))

    assert (1, "podsRefused") == verdict(ran)
    assert ("LimitRanger", "its pods: maximum cpu usage per Container is 1, but limit is 2") == (
        first(ran)["decisions"][0]["by"],
        first(ran)["decisions"][0]["message"],
    )
    flags = ("--disabled-plugin", "LimitRanger")
    assert (0, "admitted") == verdict(
        check([limit_range(max={"cpu": "1"})], deployment(containers=HUNGRY), flags=flags)
    )


def test_a_range_among_the_manifests_counts(check: Check) -> None:
    """Objects of the same files count for each other."""
    ran = check([], pod(containers=HUNGRY), limit_range(max={"cpu": "1"}))
    assert (1, "refused") == verdict(ran)


@pytest.mark.parametrize(
    ("field", "value"),
    [("serviceAccountName", "robot"), ("priorityClassName", "high"), ("runtimeClassName", "kata")],
)
def test_a_class_that_files_do_not_have_is_undecided(check: Check, field: str, value: str) -> None:
    """Files need not have everything that the cluster has."""
    ran = check([], pod(**{field: value}))
    assert (3, "undecided") == verdict(ran)
    assert value in first(ran)["decisions"][0]["message"]


def test_a_class_of_the_system_is_known(check: Check) -> None:
    """Every API server has it."""
    assert (0, "admitted") == verdict(check([], pod(priorityClassName="system-node-critical")))


def test_a_claim_is_limited_by_a_range(check: Check) -> None:
    """LimitRanger limits the storage of claims."""
    spec = {"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}]}
    metadata = {"name": "own", "namespace": "shop"}
    claims = {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": spec}
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": wanted}
    ran = check([claims], claim)

    assert (1, "refused") == verdict(ran)
    assert (
        "maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi"
        == (first(ran)["decisions"][0]["message"])
    )


def of_class(kind: str, name: str, *, created: str = "2026-01-01T00:00:00Z", default: str = "true") -> Document:
    """A StorageClass or an IngressClass that is the default one."""
    group = {"StorageClass": "storage.k8s.io", "IngressClass": "networking.k8s.io"}[kind]
    annotations = {f"{kind.lower()}.kubernetes.io/is-default-class": default}
    metadata = {"name": name, "creationTimestamp": created, "annotations": annotations}
    return {"apiVersion": f"{group}/v1", "kind": kind, "metadata": metadata}


def claim(**spec: Any) -> Document:
    """A claim in the shop."""
    size = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": "data", "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": {**size, **spec}}


@pytest.mark.parametrize(
    ("classes", "manifest", "expected"),
    [
        ([], claim(), ""),
        ([of_class("StorageClass", "b"), of_class("StorageClass", "a")], claim(), "a"),
        ([of_class("StorageClass", "a"), of_class("StorageClass", "b", created="2026-02-01T00:00:00Z")], claim(), "b"),
        ([of_class("StorageClass", "a", default="yes")], claim(), ""),
        ([of_class("StorageClass", "a")], claim(storageClassName="own"), "own"),
        ([of_class("StorageClass", "a")], claim(storageClassName=""), ""),
    ],
)
def test_a_claim_gets_the_default_class(
    check: Check, classes: list[Document], manifest: Document, expected: str
) -> None:
    """The newest one, if it names none, before any policy reads it."""
    found = "has(object.spec.storageClassName) ? object.spec.storageClassName : ''"
    rule = vap("p", "persistentvolumeclaims", expression=f"({found}) == '{expected}'")

    assert (0, "admitted") == verdict(check([*classes, rule, bind("p")], manifest))


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [({}, "nginx"), ({"kubernetes.io/ingress.class": "own"}, "")],
)
def test_an_ingress_gets_the_default_class(check: Check, annotations: dict[str, str], expected: str) -> None:
    """Unless it names one, also by the annotation of older releases; a plug-in that the server does not run changes nothing."""
    ingress = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": "web", "namespace": "shop", "annotations": annotations},
        "spec": {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}},
    }
    found = "has(object.spec.ingressClassName) ? object.spec.ingressClassName : ''"
    rule = vap("p", "ingresses", group="networking.k8s.io", expression=f"({found}) == '{expected}'")
    cluster = [of_class("IngressClass", "nginx"), rule, bind("p")]

    assert (0, "admitted") == verdict(check(cluster, ingress))
    flags = ("--disabled-plugin", "DefaultIngressClass")
    assert bool(expected) is (verdict(check(cluster, ingress, flags=flags)) == (1, "refused"))


def test_a_new_claim_is_protected_while_it_is_in_use(check: Check) -> None:
    """Its finalizer is there when policies read it."""
    rule = vap("p", "persistentvolumeclaims", expression="!has(object.metadata.finalizers)")

    assert (1, "refused") == verdict(check([rule, bind("p")], claim()))
    flags = ("--disabled-plugin", "StorageObjectInUseProtection")
    assert (0, "admitted") == verdict(check([rule, bind("p")], claim(), flags=flags))


def test_an_unknown_plugin_is_a_usage_error(check: Check) -> None:
    """The message names those that are evaluated."""
    ran = check([], pod(), flags=("--disabled-plugin", "ResourceQuota"))
    assert 2 == ran.code
    assert "ServiceAccount" in ran.stderr
    assert BUILT_IN == PLUGINS
