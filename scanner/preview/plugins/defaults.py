"""StorageObjectInUseProtection, DefaultStorageClass and DefaultIngressClass: what new volumes, claims and Ingresses get.

Source of truth: `plugin/pkg/admission/storage/{storageobjectinuseprotection,storageclass/setdefault}` and
`plugin/pkg/admission/network/defaultingressclass` of kube-apiserver 1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from scanner.model.json import JsonObject, as_list, as_object, as_text, dig
from scanner.model.resource import Resource

Classes = Callable[[], Iterable[Resource]]
"""The classes of the cluster, ordered by name; they are listed only where no object names one."""
_FINALIZERS: Final[Mapping[str, str]] = {
    "persistentvolumeclaims": "kubernetes.io/pvc-protection",
    "persistentvolumes": "kubernetes.io/pv-protection",
    "volumeattributesclasses": "kubernetes.io/vac-protection",
}
PROTECTED: Final = frozenset(_FINALIZERS)
"""The plurals of the kinds that are protected while they are in use."""
_STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_INGRESS_CLASS: Final = "kubernetes.io/ingress.class"
_DEFAULT_STORAGE: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_DEFAULT_INGRESS: Final = ("ingressclass.kubernetes.io/is-default-class",)


def protect(plural: str, body: JsonObject) -> JsonObject:
    """A new object of a protected kind with the finalizer that keeps it while it is in use."""
    metadata, finalizer = as_object(body.get("metadata")), _FINALIZERS[plural]
    finalizers = as_list(metadata.get("finalizers"))
    if finalizer in finalizers:
        return body
    return {**body, "metadata": {**metadata, "finalizers": [*finalizers, finalizer]}}


def set_storage_class(claim: JsonObject, classes: Classes) -> JsonObject:
    """A new claim with the default StorageClass, if it names none. Raises ListFailed and ValueError for classes that are not known."""
    return _set_class(claim, "storageClassName", _STORAGE_CLASS, classes, _DEFAULT_STORAGE)


def set_ingress_class(ingress: JsonObject, classes: Classes) -> JsonObject:
    """A new Ingress with the default IngressClass, if it names none. Raises ListFailed and ValueError for classes that are not known."""
    return _set_class(ingress, "ingressClassName", _INGRESS_CLASS, classes, _DEFAULT_INGRESS)


def _set_class(body: JsonObject, field: str, note: str, classes: Classes, marks: Iterable[str]) -> JsonObject:
    spec, annotations = as_object(body.get("spec")), as_object(dig(body, "metadata", "annotations"))
    if note in annotations or spec.get(field) is not None:
        return body
    defaults = [each for each in classes() if _is_default(each, marks)]
    if not defaults:
        return body
    newest = max(defaults, key=lambda each: as_text(dig(each.body, "metadata", "creationTimestamp")))
    return {**body, "spec": {**spec, field: newest.name}}


def _is_default(resource: Resource, marks: Iterable[str]) -> bool:
    return any(dig(resource.body, "metadata", "annotations", mark) == "true" for mark in marks)
