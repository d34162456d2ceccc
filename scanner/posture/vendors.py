"""The vendor that installed a policy, as far as marks in its manifest state it.

A user who may write a policy may write its marks, so a mark is shown with the vendor, and proves nothing: names, labels, annotations,
owner references and field managers are all fields of the request. The table has what the vendors' own manifests and controllers set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from scanner.model.json import JsonObject, as_list, as_text, dig, text_map


@dataclass(frozen=True, slots=True)
class Vendor:
    """A vendor and the mark by which a policy is recognised, such as `labelled as app.kubernetes.io/part-of=cert-manager`."""

    name: str
    mark: str


class _Mark(NamedTuple):
    """A glob for a text of a manifest, such as `key=value` of a label, and the vendor that sets such a text."""

    vendor: str
    glob: str


_LONGEST: Final = 120
_GATEWAY: Final = "Gateway API"
_CERT_MANAGER: Final = "cert-manager"
_CALICO: Final = "Calico"
_OPENSHIFT: Final = "OpenShift"
_ISTIO: Final = "Istio"
_CILIUM: Final = "Cilium"
_GATEKEEPER: Final = "Gatekeeper"
_KYVERNO: Final = "Kyverno"
_GKE: Final = "GKE"
_EKS: Final = "EKS"
_AKS: Final = "AKS"

_OWNERS: Final = (
    _Mark(_GATEKEEPER, "templates.gatekeeper.sh/*"),
    _Mark(_GATEKEEPER, "constraints.gatekeeper.sh/*"),
    _Mark(_KYVERNO, "kyverno.io/*"),
    _Mark(_KYVERNO, "policies.kyverno.io/*"),
)
_ANNOTATIONS: Final = (
    _Mark(_GATEWAY, "gateway.networking.k8s.io/bundle-version=*"),
    _Mark(_OPENSHIFT, "release.openshift.io/*"),
    _Mark(_OPENSHIFT, "include.release.openshift.io/*"),
    _Mark(_OPENSHIFT, "exclude.release.openshift.io/*"),
    _Mark(_GKE, "components.gke.io/*"),
)
_LABELS: Final = (
    *(
        _Mark(vendor, f"app.kubernetes.io/{key}={value}")
        for vendor, value in (
            (_CERT_MANAGER, "cert-manager"),
            (_CALICO, "calico"),
            (_ISTIO, "istio"),
            (_CILIUM, "cilium"),
            (_GATEKEEPER, "gatekeeper"),
            (_KYVERNO, "kyverno"),
        )
        for key in ("name", "part-of", "managed-by")
    ),
    _Mark(_GATEKEEPER, "gatekeeper.sh/system=*"),
    _Mark(_ISTIO, "istio.io/rev=*"),
    _Mark(_ISTIO, "operator.istio.io/component=*"),
    _Mark(_GKE, "components.gke.io/*"),
    _Mark(_EKS, "eks.amazonaws.com/component=*"),
    _Mark(_AKS, "kubernetes.azure.com/managedby=*"),
)
_MANAGERS: Final = (
    _Mark(_OPENSHIFT, "cluster-version-operator"),
    _Mark(_CALICO, "tigera-operator"),
    _Mark(_GATEKEEPER, "gatekeeper"),
    _Mark(_KYVERNO, "kyverno"),
    _Mark(_EKS, "eks"),
)
_NAMES: Final = (
    _Mark(_GATEWAY, "*.gateway.networking.k8s.io"),
    _Mark(_CERT_MANAGER, "*.cert-manager.io"),
    _Mark(_CALICO, "*.projectcalico.org"),
    _Mark(_CALICO, "*.tigera.io"),
    _Mark(_OPENSHIFT, "*.openshift.io"),
    _Mark(_ISTIO, "*.istio.io"),
    _Mark(_CILIUM, "*.cilium.io"),
    _Mark(_GKE, "*.gke.io"),
    _Mark(_EKS, "*.eks.amazonaws.com"),
    _Mark(_AKS, "aks-managed-*"),
)


def find_vendor(manifest: JsonObject) -> Vendor | None:
    """The vendor of a policy by the first mark of its manifest, those first that controllers set; None without a mark."""
    for list_texts, marks, words in _KINDS_OF_MARKS:
        for text in list_texts(manifest):
            vendor = next((mark.vendor for mark in marks if fnmatchcase(text, mark.glob)), None)
            if vendor:
                return Vendor(vendor, f"{words} {text[:_LONGEST]}")
    return None


def _list_owners(manifest: JsonObject) -> Iterator[str]:
    for owner in as_list(dig(manifest, "metadata", "ownerReferences")):
        yield f"{as_text(dig(owner, 'apiVersion'))} {as_text(dig(owner, 'kind'))} {as_text(dig(owner, 'name'))}"


def _list_managers(manifest: JsonObject) -> Iterator[str]:
    return (as_text(dig(entry, "manager")) for entry in as_list(dig(manifest, "metadata", "managedFields")))


def _list_annotations(manifest: JsonObject) -> Iterator[str]:
    return _list_pairs(manifest, "annotations")


def _list_labels(manifest: JsonObject) -> Iterator[str]:
    return _list_pairs(manifest, "labels")


def _list_pairs(manifest: JsonObject, field: str) -> Iterator[str]:
    return (f"{key}={value}" for key, value in sorted(text_map(dig(manifest, "metadata", field)).items()))


def _list_names(manifest: JsonObject) -> Iterator[str]:
    yield as_text(dig(manifest, "metadata", "name"))


_KINDS_OF_MARKS: Final[tuple[tuple[Callable[[JsonObject], Iterator[str]], tuple[_Mark, ...], str], ...]] = (
    (_list_owners, _OWNERS, "owned by"),
    (_list_managers, _MANAGERS, "written by the field manager"),
    (_list_annotations, _ANNOTATIONS, "annotated with"),
    (_list_labels, _LABELS, "labelled as"),
    (_list_names, _NAMES, "named"),
)
