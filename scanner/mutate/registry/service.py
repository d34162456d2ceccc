"""The changes of the registry of services to an updated spec, as far as they follow from the object.

Mirrors `pkg/registry/core/service`: `beginUpdate` (`patchAllocatedValues`, `normalizeClusterIPs`, `initIPFamilyFields`), then
`dropTypeDependentFields`, and `defaultOnReadInternalTrafficPolicy`. Addresses and ports that the server would take from its
pools stay absent: their values are unknown here.
"""

from __future__ import annotations

from scanner.model.json import Json, JsonObject, as_list, as_object
from scanner.mutate.defaulting.core import is_externally_accessible
from scanner.mutate.operations import same
from scanner.mutate.walk import each, with_member, without

_HEADLESS = "None"
_SINGLE, _PREFERRED, _REQUIRED = "SingleStack", "PreferDualStack", "RequireDualStack"
_FAMILIES = ("ipFamilies", "ipFamilyPolicy")


def updated_service(before: JsonObject, after: JsonObject) -> JsonObject:
    """A service as an update stores it: the addresses and node ports of the stored one are kept where they still apply."""
    old, new = as_object(before.get("spec")), as_object(after.get("spec"))
    spec = _with_families(old, _with_addresses(old, _with_allocated(old, new)))
    spec = _without_unused(old, spec)
    if spec.get("type") == "ExternalName":
        spec = without(spec, "internalTrafficPolicy")
    after = with_member(after, "spec", spec)
    return after if spec.get("type") == "LoadBalancer" else _without_balancer(after)


def _without_balancer(service: JsonObject) -> JsonObject:
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


def _with_allocated(old: JsonObject, new: JsonObject) -> JsonObject:
    """Keep allocated values that the new object does not set (`patchAllocatedValues`)."""
    if _needs_address(old) and _needs_address(new):
        new = _taken_over(old, new, "clusterIP", "clusterIPs")
    if _allocates_node_ports(old) and _allocates_node_ports(new):
        new = _with_node_ports(old, new)
    if _needs_health_check_port(old) and _needs_health_check_port(new):
        new = _taken_over(old, new, "healthCheckNodePort")
    return new


def _taken_over(old: JsonObject, new: JsonObject, *names: str) -> JsonObject:
    missing = {name: old[name] for name in names if old.get(name) and not new.get(name)}
    return {**new, **missing} if missing else new


def _with_node_ports(old: JsonObject, new: JsonObject) -> JsonObject:
    """A port with the name of an old port keeps its node port, unless another port has that now."""
    numbers = {as_object(port).get("name", ""): as_object(port).get("nodePort") for port in as_list(old.get("ports"))}
    used = _node_ports(old) & _node_ports(new)

    def patched(port: JsonObject) -> JsonObject:
        number = numbers.get(port.get("name", ""))
        return port if port.get("nodePort") or not number or number in used else {**port, "nodePort": number}

    return each("ports", patched)(new)


def _node_ports(spec: JsonObject) -> frozenset[Json]:
    numbers = (as_object(port).get("nodePort") for port in as_list(spec.get("ports")))
    return frozenset(number for number in numbers if isinstance(number, int) and number)


def _same(old: JsonObject, new: JsonObject, *names: str) -> bool:
    """Return whether fields are equal; an empty list or text equals an absent one."""
    return all(same(old.get(name) or None, new.get(name) or None) for name in names)


def _with_addresses(old: JsonObject, new: JsonObject) -> JsonObject:
    """The address and the list of addresses are kept equal (`normalizeClusterIPs`)."""
    if _same(old, new, "clusterIP"):
        missing = old.get("clusterIPs") and not new.get("clusterIPs")
        return {**new, "clusterIPs": old["clusterIPs"]} if missing else new
    if not _same(old, new, "clusterIPs"):
        return new
    return {**new, "clusterIPs": [new["clusterIP"]]} if new.get("clusterIP") else without(new, "clusterIPs")


def _is_kept_dual_stack(old: JsonObject, new: JsonObject) -> bool:
    """`isMatchingPreferDualStackClusterIPFields`."""
    return (
        new.get("ipFamilyPolicy") == _PREFERRED
        and old.get("ipFamilyPolicy") in (None, _PREFERRED)
        and _same(old, new, "type", "clusterIPs", "ipFamilies", "clusterIP")
    )


def _with_families(old: JsonObject, new: JsonObject) -> JsonObject:
    """The families of the addresses, and the family policy that follows from them (`initIPFamilyFields`)."""
    if not _needs_address(new) or _is_kept_dual_stack(old, new):
        return new
    is_open = new.get("clusterIP") == _HEADLESS and not new.get("selector")
    if new.get("ipFamilyPolicy") is None:
        default = _REQUIRED if is_open else _SINGLE
        new = {**new, "ipFamilyPolicy": old.get("ipFamilyPolicy") or default}
    if new.get("ipFamilyPolicy") == _SINGLE:
        new = _single(old, new)
    new = _with_default_family(old, _with_inferred(new))
    return _with_open_families(new) if is_open else new


def _single(old: JsonObject, new: JsonObject) -> JsonObject:
    """A service that becomes single-stack keeps the first value."""
    for name, others in (("clusterIPs", ("clusterIP", "clusterIPs")), ("ipFamilies", ("ipFamilies",))):
        if _same(old, new, *others) and len(as_list(new.get(name))) > 1:
            new = {**new, name: as_list(new[name])[:1]}
    return new


def _with_inferred(spec: JsonObject) -> JsonObject:
    families, addresses = as_list(spec.get("ipFamilies")), as_list(spec.get("clusterIPs"))
    if _HEADLESS in addresses or len(addresses) <= len(families):
        return spec
    return {**spec, "ipFamilies": [*families, *map(_family, addresses[len(families) :])]}


def _with_default_family(old: JsonObject, new: JsonObject) -> JsonObject:
    """A service without any family gets the default of the cluster: most likely the first that it had."""
    first = as_list(old.get("ipFamilies"))[:1]
    return new if new.get("ipFamilies") or not first else {**new, "ipFamilies": first}


def _family(address: Json) -> str:
    return "IPv6" if ":" in str(address) else "IPv4"


def _with_open_families(spec: JsonObject) -> JsonObject:
    """A headless service without selector gets both families unless it sets a policy."""
    families = as_list(spec.get("ipFamilies"))
    if len(families) != 1 or spec.get("ipFamilyPolicy") == _SINGLE:
        return spec
    return {**spec, "ipFamilies": [families[0], "IPv6" if families[0] == "IPv4" else "IPv4"]}


def _without_unused(old: JsonObject, new: JsonObject) -> JsonObject:
    """Drop fields that the new type does not use, unless the update changed them, too (`dropTypeDependentFields`)."""
    if _needs_address(old) and not _needs_address(new):
        if _same(old, new, "clusterIP", "clusterIPs"):
            new = without(new, "clusterIP", "clusterIPs")
        new = without(new, *(name for name in _FAMILIES if _same(old, new, name)))
    if _needs_node_ports(old) and not _needs_node_ports(new) and _node_ports(old) >= _node_ports(new):
        new = each("ports", lambda port: without(port, "nodePort"))(new)
    if _needs_health_check_port(old) and not _needs_health_check_port(new):
        new = _dropped(old, new, "healthCheckNodePort")
    if old.get("type") == "LoadBalancer" and new.get("type") != "LoadBalancer":
        new = _dropped(old, new, "allocateLoadBalancerNodePorts", "loadBalancerClass")
    if is_externally_accessible(old) and not is_externally_accessible(new):
        new = _dropped(old, new, "externalTrafficPolicy")
    return new


def _dropped(old: JsonObject, new: JsonObject, *names: str) -> JsonObject:
    return without(new, *(name for name in names if _same(old, new, name)))
