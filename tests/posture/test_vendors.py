"""Policies that a vendor installed are recognised by marks of their manifests, which are shown as what they are."""

from __future__ import annotations

from typing import Any

import pytest

from scanner.posture.vendors import Vendor, find_vendor

MARKS: dict[str, tuple[dict[str, Any], str, str]] = {
    "owner": (
        {"ownerReferences": [{"apiVersion": "templates.gatekeeper.sh/v1", "kind": "ConstraintTemplate", "name": "a"}]},
        "Gatekeeper",
        "owned by templates.gatekeeper.sh/v1 ConstraintTemplate a",
    ),
    "manager": (
        {"managedFields": [{"manager": "kubectl"}, {"manager": "cluster-version-operator"}]},
        "OpenShift",
        "written by the field manager cluster-version-operator",
    ),
    "annotation": (
        {"annotations": {"gateway.networking.k8s.io/bundle-version": "v1.5.0"}},
        "Gateway API",
        "annotated with gateway.networking.k8s.io/bundle-version=v1.5.0",
    ),
    "label": (
        {"labels": {"app.kubernetes.io/part-of": "cert-manager"}},
        "cert-manager",
        "labelled as app.kubernetes.io/part-of=cert-manager",
    ),
    "name": ({"name": "tiers.projectcalico.org"}, "Calico", "named tiers.projectcalico.org"),
}


@pytest.mark.parametrize("mark", MARKS.values(), ids=list(MARKS))
def test_a_mark_names_the_vendor_and_itself(mark: tuple[dict[str, Any], str, str]) -> None:
    """The reader sees which field states the vendor."""
    metadata, vendor, words = mark
    assert Vendor(vendor, words) == find_vendor({"metadata": {"name": "p", **metadata}})


@pytest.mark.parametrize(
    "metadata",
    [
        {"name": "istio.io"},
        {"name": "projectcalico.org.example.com"},
        {"name": "p", "labels": {"app.kubernetes.io/part-of": "my-cert-manager"}},
        {"name": "p", "annotations": {"example.com/release.openshift.io": "x"}},
        {"name": "p", "managedFields": [{"manager": "kyverno-fan"}]},
        {"name": "p", "labels": ["istio.io/rev"], "ownerReferences": "templates.gatekeeper.sh/v1"},
        {"name": 7, "managedFields": [None, {"manager": 3}]},
        {},
    ],
)
def test_no_other_text_is_a_mark(metadata: dict[str, Any]) -> None:
    """Similar names, and fields of another type, name no vendor."""
    assert find_vendor({"metadata": metadata}) is None


def test_what_controllers_set_comes_before_names() -> None:
    """A policy with marks of two vendors is that of its owner."""
    owner = {"apiVersion": "policies.kyverno.io/v1", "kind": "ValidatingPolicy", "name": "a"}
    vendor = find_vendor({"metadata": {"name": "a.istio.io", "ownerReferences": [owner]}})
    assert Vendor("Kyverno", "owned by policies.kyverno.io/v1 ValidatingPolicy a") == vendor


def test_a_long_mark_is_cut() -> None:
    """The value of an annotation can be as long as a manifest."""
    manifest = {"metadata": {"annotations": {"release.openshift.io/x": "a" * 100_000}}}
    vendor = find_vendor(manifest)
    assert vendor is not None
    assert len(vendor.mark) < 150
