"""Versions of policy kinds: those that a release serves by default, and those that a cluster serves."""

from __future__ import annotations

import pytest

from scanner.cluster.definitions import builtin_kinds
from scanner.model.json import JsonObject
from scanner.model.release import Minor
from scanner.model.resource import Kind
from scanner.policies.served_versions import ServedVersions

GROUP = "admissionregistration.k8s.io"
VALIDATING, MUTATING = "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"
SERVED = (Kind(GROUP, "v1", VALIDATING, "validatingadmissionpolicies", namespaced=False),)


def manifest(kind: str, version: str, *, group: str = GROUP) -> JsonObject:
    """The beginning of a manifest."""
    return {"apiVersion": f"{group}/{version}", "kind": kind}


@pytest.mark.parametrize("suffix", ["", "Binding"])
@pytest.mark.parametrize(
    ("release", "kind", "version", "note"),
    [
        ((1, 36), VALIDATING, "v1", ""),
        ((1, 36), VALIDATING, "v1beta1", "Kubernetes 1.36 does not serve v1beta1 of this kind, but v1"),
        ((1, 36), VALIDATING, "v1alpha1", "Kubernetes 1.36 does not serve v1alpha1 of this kind, but v1"),
        (
            (1, 33),
            VALIDATING,
            "v1beta1",
            "Kubernetes 1.33 serves v1beta1 of this kind only if --runtime-config enables it",
        ),
        ((1, 34), VALIDATING, "v1beta1", "Kubernetes 1.34 does not serve v1beta1 of this kind, but v1"),
        ((1, 35), MUTATING, "v1", "Kubernetes 1.35 does not serve v1 of this kind"),
        ((1, 36), MUTATING, "v1", ""),
        (
            (1, 36),
            MUTATING,
            "v1beta1",
            "Kubernetes 1.36 serves v1beta1 of this kind only if --runtime-config enables it",
        ),
        ((1, 33), MUTATING, "v1beta1", "Kubernetes 1.33 does not serve v1beta1 of this kind"),
        ((1, 31), MUTATING, "v1alpha1", "Kubernetes 1.31 does not serve v1alpha1 of this kind"),
    ],
)
def test_a_release_serves_some_versions(release: Minor, kind: str, version: str, suffix: str, note: str) -> None:
    """The note names a version that is served by default, if there is one; bindings have the versions of their policies."""
    full = f"{note}; it is evaluated all the same" if note else ""

    assert full == ServedVersions(release).make_note(manifest(f"{kind}{suffix}", version))


def test_a_release_serves_no_custom_kinds() -> None:
    """The versions of custom kinds do not depend on the release of Kubernetes."""
    assert "" == ServedVersions((1, 36)).make_note(
        manifest("ValidatingPolicy", "v1alpha1", group="policies.kyverno.io")
    )


def test_a_cluster_decides_which_versions_it_serves() -> None:
    """Discovery decides, and not what the release serves by default."""
    cluster = ServedVersions((1, 33), SERVED)

    assert "" == cluster.make_note(manifest(VALIDATING, "v1"))
    assert (
        "this cluster of Kubernetes 1.33 does not serve v1beta1 of this kind, but v1; it is evaluated all the same"
    ) == cluster.make_note(manifest(VALIDATING, "v1beta1"))


def test_a_cluster_without_the_custom_kind() -> None:
    """A kind that is not installed has no served version."""
    note = ServedVersions((1, 36), SERVED).make_note(manifest("ValidatingPolicy", "v1", group="policies.kyverno.io"))

    assert "this cluster of Kubernetes 1.36 does not serve v1 of this kind; it is evaluated all the same" == note


@pytest.mark.parametrize("where", ["/apis", GROUP, f"{GROUP}/v1beta1"])
def test_an_unknown_group_has_no_note(where: str) -> None:
    """Discovery that did not answer is a gap, and proves nothing about versions."""
    assert "" == ServedVersions((1, 36), (), frozenset({where})).make_note(manifest(VALIDATING, "v1beta1"))


def test_the_table_has_the_versions_of_a_server() -> None:
    """A server of 1.36 with every version enabled serves those that the release does not refuse."""
    release = ServedVersions((1, 36))
    kinds = {kind for kind in builtin_kinds() if kind.group == GROUP and "AdmissionPolicy" in kind.kind}
    served = {(kind.kind, kind.version) for kind in kinds}

    assert served == {
        (name, version)
        for name in {kind.kind for kind in kinds}
        for version in ("v1", "v1beta1", "v1alpha1")
        if "does not serve" not in release.make_note(manifest(name, version))
    }
