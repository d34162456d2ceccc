"""The changes of the strategies of single kinds on an update, beside metadata and status.

Mirrors `PrepareForUpdate` and `Canonicalize` in `pkg/registry/*/*/strategy.go`, in apiextensions-apiserver and in
kube-aggregator, and the decorators of stores. A table: group and kind, for all versions, and the change of the new object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from scanner.model.json import EMPTY, Json, JsonObject, as_list, as_object, as_text, dig
from scanner.mutate.autoscalers import STATUS_NOTES
from scanner.mutate.operations import same
from scanner.mutate.registry.conversion import without_empty
from scanner.mutate.registry.service import updated_service
from scanner.mutate.walk import Rule, each, in_order, with_member, within, without

Strategy: TypeAlias = Callable[[JsonObject, JsonObject], JsonObject]
"""A function of the stored object and the new object that returns the object to store."""

_COUNTER = "deprecated.daemonset.template.generation"
_NAME_LABEL = "kubernetes.io/metadata.name"
_HOST_NAME = "kubernetes.io/hostname"
_COPIED = ("apiGroup", "kind", "name")


def strategy_of(type_name: str) -> Strategy:
    """The strategy of a kind, by the name of its definition."""
    *_, group, _, kind = ("", "", *type_name.split("."))
    return _STRATEGIES.get((group, kind), _unchanged)


def creation_of(type_name: str) -> Strategy:
    """The strategy of a kind for a new object (`PrepareForCreate`), as far as it is not that of an update."""
    *_, group, _, kind = ("", "", *type_name.split("."))
    return _CREATIONS.get((group, kind), strategy_of(type_name))


def _unchanged(before: JsonObject, after: JsonObject) -> JsonObject:
    del before
    return after


def _kept(*path: str) -> Strategy:
    """Keep a part of the object that an update cannot set."""
    *above, name = path

    def keep(before: JsonObject, after: JsonObject) -> JsonObject:
        rule = _restoring(name, dig(before, *path))
        for step in reversed(above):
            rule = within(step, rule)
        return rule(after)

    return keep


def _restoring(name: str, stored: Json) -> Rule:
    return lambda value: without(value, name) if stored is None else with_member(value, name, stored)


def _daemon_set(before: JsonObject, after: JsonObject) -> JsonObject:
    """Keep the stored number of the template, like `generation`: only the server sets it."""
    stored = dig(before, "metadata", "annotations", _COUNTER)
    if stored is None or dig(after, "metadata", "annotations", _COUNTER) == stored:
        return after
    return within("metadata", within("annotations", lambda value: {**value, _COUNTER: stored}))(after)


def _namespace(before: JsonObject, after: JsonObject) -> JsonObject:
    """Keep the finalizers, which have a subresource, and set the label that names the namespace."""
    after = _kept("spec", "finalizers")(before, after)
    name = dig(after, "metadata", "name")
    if not name or dig(after, "metadata", "labels", _NAME_LABEL) == name:
        return after
    return within("metadata", within("labels", lambda labels: {**labels, _NAME_LABEL: name}))(after)


def _node(before: JsonObject, after: JsonObject) -> JsonObject:
    """`dropDisabledFields`: a source of configuration is kept where the stored object has one."""
    if dig(before, "spec", "configSource") is not None or dig(after, "spec", "configSource") is None:
        return after
    return within("spec", lambda spec: without(spec, "configSource"))(after)


def _claim(before: JsonObject, after: JsonObject) -> JsonObject:
    """The source of a volume is written under both its names (`DropDisabledFields`, `NormalizeDataSources`)."""
    old = as_object(before.get("spec"))

    def apply(spec: JsonObject) -> JsonObject:
        if dig(spec, "dataSourceRef", "namespace") and old.get("dataSourceRef") is None:
            spec = without(spec, "dataSourceRef")
        return _with_both_sources(_with_known_source(old, spec))

    return within("spec", apply)(after)


def _with_known_source(old: JsonObject, spec: JsonObject) -> JsonObject:
    """Only claims and snapshots are sources of the old form (`EnforceDataSourceBackwardsCompatibility`)."""
    if (
        old.get("dataSource") is not None
        or old.get("dataSourceRef") is not None
        or spec.get("dataSourceRef") is not None
    ):
        return spec
    source = as_object(spec.get("dataSource"))
    is_supported = (source.get("apiGroup"), source.get("kind")) in (
        (None, "PersistentVolumeClaim"),
        ("", "PersistentVolumeClaim"),
        ("snapshot.storage.k8s.io", "VolumeSnapshot"),
    )
    return spec if is_supported else without(spec, "dataSource")


def _with_both_sources(spec: JsonObject) -> JsonObject:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and reference is None:
        return {**spec, "dataSourceRef": _copied(source)}
    if reference is not None and source is None and not dig(reference, "namespace"):
        return {**spec, "dataSource": _copied(reference)}
    return spec


def _copied(reference: Json) -> JsonObject:
    return {name: member for name, member in as_object(reference).items() if name in _COPIED}


def _new_claim(before: JsonObject, after: JsonObject) -> JsonObject:
    """A new claim uses no source yet."""
    del before
    return _claim(EMPTY, after)


def _new_pod(before: JsonObject, after: JsonObject) -> JsonObject:
    """Add the pod's labels that its terms name to their selectors (`mutatePodAffinity`, `mutateTopologySpreadConstraints`)."""
    del before
    labels = as_object(dig(after, "metadata", "labels"))

    def with_labels(term: JsonObject) -> JsonObject:
        selector = term.get("labelSelector")
        wanted = [
            {"key": key, "operator": operator, "values": [labels[key]]}
            for name, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
            for key in map(as_text, as_list(term.get(name)))
            if key in labels
        ]
        if not isinstance(selector, Mapping) or not wanted:
            return term
        expressions = [*as_list(selector.get("matchExpressions")), *wanted]
        return {**term, "labelSelector": {**selector, "matchExpressions": expressions}}

    terms = in_order(
        each("requiredDuringSchedulingIgnoredDuringExecution", with_labels),
        each("preferredDuringSchedulingIgnoredDuringExecution", within("podAffinityTerm", with_labels)),
    )
    affinity = in_order(within("podAffinity", terms), within("podAntiAffinity", terms))
    spec = in_order(within("affinity", affinity), each("topologySpreadConstraints", with_labels))
    return within("spec", spec)(after)


def _autoscaler(before: JsonObject, after: JsonObject) -> JsonObject:
    """Keep the status, which v1 has in annotations."""
    notes = as_object(dig(before, "metadata", "annotations"))
    return _with_status_notes({name: notes[name] for name in STATUS_NOTES if name in notes}, after)


def _new_autoscaler(before: JsonObject, after: JsonObject) -> JsonObject:
    """A new autoscaler has no status."""
    del before
    return _with_status_notes({}, after)


def _with_status_notes(kept: JsonObject, after: JsonObject) -> JsonObject:
    notes = as_object(dig(after, "metadata", "annotations"))
    others = {name: note for name, note in notes.items() if name not in STATUS_NOTES}
    if {**others, **kept} == notes:
        return after
    return within(
        "metadata", lambda metadata: without_empty({**metadata, "annotations": {**others, **kept}}, "annotations")
    )(after)


def _service_account(before: JsonObject, after: JsonObject) -> JsonObject:
    """Of a secret reference only the name is kept (`cleanSecretReferences`)."""
    del before
    return each("secrets", lambda reference: {name: reference[name] for name in ("name",) if name in reference})(after)


def _endpoint_slice(before: JsonObject, after: JsonObject) -> JsonObject:
    """Endpoints that change lose their old topology, and keep the node that it named (`dropTopologyOnV1`)."""
    if same(before.get("endpoints"), after.get("endpoints")):
        return after
    hosts = {as_text(dig(endpoint, "deprecatedTopology", _HOST_NAME)) for endpoint in as_list(before.get("endpoints"))}

    def apply(endpoint: JsonObject) -> JsonObject:
        node = as_text(dig(endpoint, "deprecatedTopology", _HOST_NAME))
        named = node and node in hosts and endpoint.get("nodeName") is None
        return without({**endpoint, "nodeName": node} if named else endpoint, "deprecatedTopology")

    return each("endpoints", apply)(after)


def _definition(before: JsonObject, after: JsonObject) -> JsonObject:
    """Add the version that is stored from now on to the stored versions."""
    del before
    versions = [
        dig(version, "name") for version in as_list(dig(after, "spec", "versions")) if dig(version, "storage") is True
    ][:1]
    stored = as_list(dig(after, "status", "storedVersions"))
    new = [version for version in versions if version not in stored]
    return within("status", lambda status: {**status, "storedVersions": [*stored, *new]})(after) if new else after


_CREATIONS: Mapping[tuple[str, str], Strategy] = {
    ("autoscaling", "HorizontalPodAutoscaler"): _new_autoscaler,
    ("core", "PersistentVolumeClaim"): _new_claim,
    ("core", "Pod"): _new_pod,
}
_STRATEGIES: Mapping[tuple[str, str], Strategy] = {
    ("autoscaling", "HorizontalPodAutoscaler"): _autoscaler,
    ("apps", "DaemonSet"): _daemon_set,
    ("apiextensions", "CustomResourceDefinition"): _definition,
    ("certificates", "CertificateSigningRequest"): _kept("spec"),
    ("core", "Namespace"): _namespace,
    ("core", "Node"): _node,
    ("core", "PersistentVolumeClaim"): _claim,
    ("core", "Service"): updated_service,
    ("core", "ServiceAccount"): _service_account,
    ("discovery", "EndpointSlice"): _endpoint_slice,
}
