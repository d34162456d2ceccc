"""The changes of the strategies of single kinds on an update, beside metadata and status.

Mirrors `PrepareForUpdate` and `Canonicalize` in `pkg/registry/*/*/strategy.go`, in apiextensions-apiserver and in
kube-aggregator, and the decorators of stores. A table: group and kind, for all versions, and the change of the new object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from scanner.model.json import EMPTY, Json, JsonObject, as_list, as_object, as_text, dig
from scanner.mutate.autoscalers import STATUS_NOTES
from scanner.mutate.defaulting.core import is_externally_accessible
from scanner.mutate.operations import is_same_json
from scanner.mutate.registry.conversion import drop_empty, parse_int
from scanner.mutate.walk import Rule, apply_to_each, apply_within, chain_rules, drop_members, set_member

# The changes of the registry of services to an updated spec, as far as they follow from the object.
#
# Mirrors `pkg/registry/core/service`: `beginUpdate` (`patchAllocatedValues`, `normalizeClusterIPs`,
# `initIPFamilyFields`), then `dropTypeDependentFields`, and `defaultOnReadInternalTrafficPolicy`. Addresses and ports
# that the server would take from its pools stay absent: their values are unknown here.

_HEADLESS = "None"
_SINGLE, _PREFERRED, _REQUIRED = "SingleStack", "PreferDualStack", "RequireDualStack"
_FAMILIES = ("ipFamilies", "ipFamilyPolicy")


def update_service(before: JsonObject, after: JsonObject) -> JsonObject:
    """A service as an update stores it: the addresses and node ports of the stored one are kept where they still apply."""
    old, new = as_object(before.get("spec")), as_object(after.get("spec"))
    spec = _set_families(old, _align_addresses(old, _keep_allocated(old, new)))
    spec = _drop_unused(old, spec)
    if spec.get("type") == "ExternalName":
        spec = drop_members(spec, "internalTrafficPolicy")
    after = set_member(after, "spec", spec)
    return after if spec.get("type") == "LoadBalancer" else _drop_balancer(after)


def _drop_balancer(service: JsonObject) -> JsonObject:
    status = as_object(service.get("status"))
    return {**service, "status": {**status, "loadBalancer": {}}} if status.get("loadBalancer") else service


def _needs_address(spec: JsonObject) -> bool:
    return spec.get("type") != "ExternalName"


def _needs_node_ports(spec: JsonObject) -> bool:
    return spec.get("type") in ("NodePort", "LoadBalancer")


def _allocates_node_ports(spec: JsonObject) -> bool:
    return _needs_node_ports(spec) and (
        spec.get("type") == "NodePort" or spec.get("allocateLoadBalancerNodePorts") is not False
    )


def _needs_health_check_port(spec: JsonObject) -> bool:
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def _keep_allocated(old: JsonObject, new: JsonObject) -> JsonObject:
    """Keep allocated values that the new object does not set (`patchAllocatedValues`)."""
    if _needs_address(old) and _needs_address(new):
        new = _take_over(old, new, "clusterIP", "clusterIPs")
    if _allocates_node_ports(old) and _allocates_node_ports(new):
        new = _keep_node_ports(old, new)
    if _needs_health_check_port(old) and _needs_health_check_port(new):
        new = _take_over(old, new, "healthCheckNodePort")
    return new


def _take_over(old: JsonObject, new: JsonObject, *names: str) -> JsonObject:
    missing = {name: old[name] for name in names if old.get(name) and not new.get(name)}
    return {**new, **missing} if missing else new


def _keep_node_ports(old: JsonObject, new: JsonObject) -> JsonObject:
    """A port with the name of an old port keeps its node port, unless another port has that now."""
    numbers = {as_object(port).get("name", ""): as_object(port).get("nodePort") for port in as_list(old.get("ports"))}
    used = _list_node_ports(old) & _list_node_ports(new)

    def patched(port: JsonObject) -> JsonObject:
        number = numbers.get(port.get("name", ""))
        return port if port.get("nodePort") or not number or number in used else {**port, "nodePort": number}

    return apply_to_each("ports", patched)(new)


def _list_node_ports(spec: JsonObject) -> frozenset[Json]:
    numbers = (as_object(port).get("nodePort") for port in as_list(spec.get("ports")))
    return frozenset(number for number in numbers if isinstance(number, int) and number)


def _are_same(old: JsonObject, new: JsonObject, *names: str) -> bool:
    """Return whether fields are equal; an empty list or text equals an absent one."""
    return all(is_same_json(old.get(name) or None, new.get(name) or None) for name in names)


def _align_addresses(old: JsonObject, new: JsonObject) -> JsonObject:
    """The address and the list of addresses are kept equal (`normalizeClusterIPs`)."""
    if _are_same(old, new, "clusterIP"):
        missing = old.get("clusterIPs") and not new.get("clusterIPs")
        return {**new, "clusterIPs": old["clusterIPs"]} if missing else new
    if not _are_same(old, new, "clusterIPs"):
        return new
    return {**new, "clusterIPs": [new["clusterIP"]]} if new.get("clusterIP") else drop_members(new, "clusterIPs")


def _is_kept_dual_stack(old: JsonObject, new: JsonObject) -> bool:
    """`isMatchingPreferDualStackClusterIPFields`."""
    return (
        new.get("ipFamilyPolicy") == _PREFERRED
        and old.get("ipFamilyPolicy") in (None, _PREFERRED)
        and _are_same(old, new, "type", "clusterIPs", "ipFamilies", "clusterIP")
    )


def _set_families(old: JsonObject, new: JsonObject) -> JsonObject:
    """The families of the addresses, and the family policy that follows from them (`initIPFamilyFields`)."""
    if not _needs_address(new) or _is_kept_dual_stack(old, new):
        return new
    is_open = new.get("clusterIP") == _HEADLESS and not new.get("selector")
    if new.get("ipFamilyPolicy") is None:
        default = _REQUIRED if is_open else _SINGLE
        new = {**new, "ipFamilyPolicy": old.get("ipFamilyPolicy") or default}
    if new.get("ipFamilyPolicy") == _SINGLE:
        new = _keep_single(old, new)
    new = _set_default_family(old, _infer_families(new))
    return _open_families(new) if is_open else new


def _keep_single(old: JsonObject, new: JsonObject) -> JsonObject:
    """A service that becomes single-stack keeps the first value."""
    for name, others in (("clusterIPs", ("clusterIP", "clusterIPs")), ("ipFamilies", ("ipFamilies",))):
        if _are_same(old, new, *others) and len(as_list(new.get(name))) > 1:
            new = {**new, name: as_list(new[name])[:1]}
    return new


def _infer_families(spec: JsonObject) -> JsonObject:
    families, addresses = as_list(spec.get("ipFamilies")), as_list(spec.get("clusterIPs"))
    if _HEADLESS in addresses or len(addresses) <= len(families):
        return spec
    return {**spec, "ipFamilies": [*families, *map(_find_family, addresses[len(families) :])]}


def _set_default_family(old: JsonObject, new: JsonObject) -> JsonObject:
    """A service without any family gets the default of the cluster: most likely the first that it had."""
    first = as_list(old.get("ipFamilies"))[:1]
    return new if new.get("ipFamilies") or not first else {**new, "ipFamilies": first}


def _find_family(address: Json) -> str:
    return "IPv6" if ":" in str(address) else "IPv4"


def _open_families(spec: JsonObject) -> JsonObject:
    """A headless service without selector gets both families unless it sets a policy."""
    families = as_list(spec.get("ipFamilies"))
    if len(families) != 1 or spec.get("ipFamilyPolicy") == _SINGLE:
        return spec
    return {**spec, "ipFamilies": [families[0], "IPv6" if families[0] == "IPv4" else "IPv4"]}


def _drop_unused(old: JsonObject, new: JsonObject) -> JsonObject:
    """Drop fields that the new type does not use, unless the update changed them, too (`dropTypeDependentFields`)."""
    if _needs_address(old) and not _needs_address(new):
        if _are_same(old, new, "clusterIP", "clusterIPs"):
            new = drop_members(new, "clusterIP", "clusterIPs")
        new = drop_members(new, *(name for name in _FAMILIES if _are_same(old, new, name)))
    if _needs_node_ports(old) and not _needs_node_ports(new) and _list_node_ports(old) >= _list_node_ports(new):
        new = apply_to_each("ports", lambda port: drop_members(port, "nodePort"))(new)
    if _needs_health_check_port(old) and not _needs_health_check_port(new):
        new = _drop_unless_changed(old, new, "healthCheckNodePort")
    if old.get("type") == "LoadBalancer" and new.get("type") != "LoadBalancer":
        new = _drop_unless_changed(old, new, "allocateLoadBalancerNodePorts", "loadBalancerClass")
    if is_externally_accessible(old) and not is_externally_accessible(new):
        new = _drop_unless_changed(old, new, "externalTrafficPolicy")
    return new


def _drop_unless_changed(old: JsonObject, new: JsonObject, *names: str) -> JsonObject:
    return drop_members(new, *(name for name in names if _are_same(old, new, name)))


Strategy: TypeAlias = Callable[[JsonObject, JsonObject], JsonObject]
"""A function of the stored object and the new object that returns the object to store."""

_COUNTER = "deprecated.daemonset.template.generation"
_NAME_LABEL = "kubernetes.io/metadata.name"
_FINALIZER = "kubernetes"
_HOST_NAME = "kubernetes.io/hostname"
_JOB_NAMES = ("job-name", "batch.kubernetes.io/job-name")
_COPIED = ("apiGroup", "kind", "name")


def find_update_strategy(type_name: str) -> Strategy:
    """The strategy of a kind, by the name of its definition."""
    *_, group, _, kind = ("", "", *type_name.split("."))
    return _STRATEGIES.get((group, kind), _change_nothing)


def find_creation_strategy(type_name: str) -> Strategy:
    """The strategy of a kind for a new object (`PrepareForCreate`), as far as it is not that of an update."""
    *_, group, _, kind = ("", "", *type_name.split("."))
    return _CREATIONS.get((group, kind), find_update_strategy(type_name))


def _change_nothing(before: JsonObject, after: JsonObject) -> JsonObject:
    del before
    return after


def _make_keep_strategy(*path: str) -> Strategy:
    """Keep a part of the object that an update cannot set."""
    *above, name = path

    def keep(before: JsonObject, after: JsonObject) -> JsonObject:
        rule = _make_restore_rule(name, dig(before, *path))
        for step in reversed(above):
            rule = apply_within(step, rule)
        return rule(after)

    return keep


def _make_restore_rule(name: str, stored: Json) -> Rule:
    return lambda value: drop_members(value, name) if stored is None else set_member(value, name, stored)


def _update_daemon_set(before: JsonObject, after: JsonObject) -> JsonObject:
    """Keep the stored number of the template, like `generation`: only the server sets it."""
    stored = dig(before, "metadata", "annotations", _COUNTER)
    if stored is None or dig(after, "metadata", "annotations", _COUNTER) == stored:
        return after
    return apply_within("metadata", apply_within("annotations", lambda value: {**value, _COUNTER: stored}))(after)


def _create_daemon_set(before: JsonObject, after: JsonObject) -> JsonObject:
    """The template of a new object is the first one."""
    del before
    return _set_counter(after, 1)


def count_template(type_name: str, before: JsonObject, after: JsonObject) -> JsonObject:
    """An updated DaemonSet with the number of its template, which each change of the template increases."""
    if not type_name.endswith(".DaemonSet") or dig(before, "spec", "template") == dig(after, "spec", "template"):
        return after
    try:
        stored = parse_int(as_text(dig(before, "metadata", "annotations", _COUNTER)))
    except ValueError:
        stored = 0  # of an object that no server has
    return _set_counter(after, stored + 1)


def _set_counter(daemon_set: JsonObject, number: int) -> JsonObject:
    rule = apply_within("annotations", lambda value: {**value, _COUNTER: str(number)})
    return apply_within("metadata", rule)(daemon_set)


def _create_job(before: JsonObject, after: JsonObject) -> JsonObject:
    """Label the pods with the name of the job (`generateSelector`); the labels of its uid are not known here."""
    del before
    name, labels = dig(after, "metadata", "name"), as_object(dig(after, "spec", "template", "metadata", "labels"))
    if not name or dig(after, "spec", "manualSelector") is True or _JOB_NAMES[0] in labels:
        return after
    rule = apply_within("labels", lambda value: {**value, **dict.fromkeys(_JOB_NAMES, name)})
    return apply_within("spec", apply_within("template", apply_within("metadata", rule)))(after)


def _update_namespace(before: JsonObject, after: JsonObject) -> JsonObject:
    """Keep the finalizers, which have a subresource, and set the label that names the namespace."""
    after = _make_keep_strategy("spec", "finalizers")(before, after)
    name = dig(after, "metadata", "name")
    if not name or dig(after, "metadata", "labels", _NAME_LABEL) == name:
        return after
    return apply_within("metadata", apply_within("labels", lambda labels: {**labels, _NAME_LABEL: name}))(after)


def _create_namespace(before: JsonObject, after: JsonObject) -> JsonObject:
    """Add the finalizer of the server, and set the label that names the namespace."""
    del before
    finalizers = as_list(dig(after, "spec", "finalizers"))
    if _FINALIZER not in finalizers:
        after = {**after, "spec": {**as_object(after.get("spec")), "finalizers": [*finalizers, _FINALIZER]}}
    return _update_namespace(after, after)


def _update_node(before: JsonObject, after: JsonObject) -> JsonObject:
    """`dropDisabledFields`: a source of configuration is kept where the stored object has one."""
    if dig(before, "spec", "configSource") is not None or dig(after, "spec", "configSource") is None:
        return after
    return apply_within("spec", lambda spec: drop_members(spec, "configSource"))(after)


def _update_claim(before: JsonObject, after: JsonObject) -> JsonObject:
    """The source of a volume is written under both its names (`DropDisabledFields`, `NormalizeDataSources`)."""
    old = as_object(before.get("spec"))

    def apply(spec: JsonObject) -> JsonObject:
        if dig(spec, "dataSourceRef", "namespace") and old.get("dataSourceRef") is None:
            spec = drop_members(spec, "dataSourceRef")
        return _set_both_sources(_drop_unknown_source(old, spec))

    return apply_within("spec", apply)(after)


def _drop_unknown_source(old: JsonObject, spec: JsonObject) -> JsonObject:
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
    return spec if is_supported else drop_members(spec, "dataSource")


def _set_both_sources(spec: JsonObject) -> JsonObject:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and reference is None:
        return {**spec, "dataSourceRef": _copy_reference(source)}
    if reference is not None and source is None and not dig(reference, "namespace"):
        return {**spec, "dataSource": _copy_reference(reference)}
    return spec


def _copy_reference(reference: Json) -> JsonObject:
    return {name: member for name, member in as_object(reference).items() if name in _COPIED}


def _create_claim(before: JsonObject, after: JsonObject) -> JsonObject:
    """A new claim uses no source yet."""
    del before
    return _update_claim(EMPTY, after)


def _create_pod(before: JsonObject, after: JsonObject) -> JsonObject:
    """Add the pod's labels that its terms name to their selectors (`mutatePodAffinity`, `mutateTopologySpreadConstraints`)."""
    del before
    labels = as_object(dig(after, "metadata", "labels"))

    def with_labels(term: JsonObject) -> JsonObject:
        selector = term.get("labelSelector")
        requirements = [
            {"key": key, "operator": operator, "values": [labels[key]]}
            for name, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
            for key in map(as_text, as_list(term.get(name)))
            if key in labels
        ]
        if not isinstance(selector, Mapping) or not requirements:
            return term
        expressions = [*as_list(selector.get("matchExpressions")), *requirements]
        return {**term, "labelSelector": {**selector, "matchExpressions": expressions}}

    terms = chain_rules(
        apply_to_each("requiredDuringSchedulingIgnoredDuringExecution", with_labels),
        apply_to_each("preferredDuringSchedulingIgnoredDuringExecution", apply_within("podAffinityTerm", with_labels)),
    )
    affinity = chain_rules(apply_within("podAffinity", terms), apply_within("podAntiAffinity", terms))
    spec = chain_rules(apply_within("affinity", affinity), apply_to_each("topologySpreadConstraints", with_labels))
    return apply_within("spec", spec)(after)


def _update_autoscaler(before: JsonObject, after: JsonObject) -> JsonObject:
    """Keep the status, which v1 has in annotations."""
    notes = as_object(dig(before, "metadata", "annotations"))
    return _keep_status_notes({name: notes[name] for name in STATUS_NOTES if name in notes}, after)


def _create_autoscaler(before: JsonObject, after: JsonObject) -> JsonObject:
    """A new autoscaler has no status."""
    del before
    return _keep_status_notes({}, after)


def _keep_status_notes(status_notes: JsonObject, after: JsonObject) -> JsonObject:
    notes = as_object(dig(after, "metadata", "annotations"))
    others = {name: note for name, note in notes.items() if name not in STATUS_NOTES}
    if {**others, **status_notes} == notes:
        return after
    return apply_within(
        "metadata", lambda metadata: drop_empty({**metadata, "annotations": {**others, **status_notes}}, "annotations")
    )(after)


def _update_service_account(before: JsonObject, after: JsonObject) -> JsonObject:
    """Of a secret reference only the name is kept (`cleanSecretReferences`)."""
    del before
    return apply_to_each(
        "secrets", lambda reference: {name: reference[name] for name in ("name",) if name in reference}
    )(after)


def _update_endpoint_slice(before: JsonObject, after: JsonObject) -> JsonObject:
    """Endpoints that change lose their old topology, and keep the node that it named (`dropTopologyOnV1`)."""
    if is_same_json(before.get("endpoints"), after.get("endpoints")):
        return after
    hosts = {as_text(dig(endpoint, "deprecatedTopology", _HOST_NAME)) for endpoint in as_list(before.get("endpoints"))}

    def apply(endpoint: JsonObject) -> JsonObject:
        node = as_text(dig(endpoint, "deprecatedTopology", _HOST_NAME))
        is_known_node = node and node in hosts and endpoint.get("nodeName") is None
        return drop_members({**endpoint, "nodeName": node} if is_known_node else endpoint, "deprecatedTopology")

    return apply_to_each("endpoints", apply)(after)


def _update_definition(before: JsonObject, after: JsonObject) -> JsonObject:
    """Add the version that is stored from now on to the stored versions."""
    del before
    versions = [
        dig(version, "name") for version in as_list(dig(after, "spec", "versions")) if dig(version, "storage") is True
    ][:1]
    stored = as_list(dig(after, "status", "storedVersions"))
    new = [version for version in versions if version not in stored]
    return apply_within("status", lambda status: {**status, "storedVersions": [*stored, *new]})(after) if new else after


_CREATIONS: Mapping[tuple[str, str], Strategy] = {
    ("apps", "DaemonSet"): _create_daemon_set,
    ("autoscaling", "HorizontalPodAutoscaler"): _create_autoscaler,
    ("batch", "Job"): _create_job,
    ("core", "Namespace"): _create_namespace,
    ("core", "PersistentVolumeClaim"): _create_claim,
    ("core", "Pod"): _create_pod,
}
_STRATEGIES: Mapping[tuple[str, str], Strategy] = {
    ("autoscaling", "HorizontalPodAutoscaler"): _update_autoscaler,
    ("apps", "DaemonSet"): _update_daemon_set,
    ("apiextensions", "CustomResourceDefinition"): _update_definition,
    ("certificates", "CertificateSigningRequest"): _make_keep_strategy("spec"),
    ("core", "Namespace"): _update_namespace,
    ("core", "Node"): _update_node,
    ("core", "PersistentVolumeClaim"): _update_claim,
    ("core", "Service"): update_service,
    ("core", "ServiceAccount"): _update_service_account,
    ("discovery", "EndpointSlice"): _update_endpoint_slice,
}
