"""Priority, DefaultTolerationSeconds and RuntimeClass: what the classes of a pod add to it, and the tolerations of every pod.

Source of truth: `plugin/pkg/admission/{priority,defaulttolerationseconds,runtimeclass}` of kube-apiserver 1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from scanner.cel.errors import EvaluationError
from scanner.cel.functions.quantity import compare, parse
from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig
from scanner.preview.plugins.refusal import PluginRefusal

_LOWER: Final = "PreemptLowerPriority"
SYSTEM_CLASSES: Final[Mapping[str, JsonObject]] = {
    name: {"metadata": {"name": name}, "value": value, "preemptionPolicy": _LOWER}
    for name, value in (("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000))
}
"""The classes that every API server has."""
_TAINTS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_SECONDS: Final = 300
"""The default of two flags of kube-apiserver, which no client can read."""
_EVICTS: Final = "NoExecute"


def set_priority(pod: JsonObject, classes: Iterable[JsonObject]) -> JsonObject:
    """The pod with the priority of its class, or of the default class. Raises PluginRefusal for an unknown class, or another value."""
    spec = as_object(pod.get("spec"))
    by_name = {as_text(dig(each, "metadata", "name")): each for each in classes}
    name = as_text(spec.get("priorityClassName"))
    if name and name not in by_name:
        raise PluginRefusal(f"no PriorityClass with name {name} was found", "spec.priorityClassName")
    chosen = by_name[name] if name else _find_default(by_name)
    name = name or (as_text(dig(chosen, "metadata", "name")) if chosen else "")
    priority = _read_value(chosen) if chosen else 0
    policy = (as_text(chosen.get("preemptionPolicy")) if chosen else "") or _LOWER
    if (given := spec.get("priority")) is not None and given != priority:
        raise PluginRefusal(
            f"the integer value of priority ({given}) must not be provided in pod spec; priority admission controller "
            f"computed {priority} from the given PriorityClass name",
            "spec.priority",
        )
    if (given := spec.get("preemptionPolicy")) is not None and given != policy:
        raise PluginRefusal(
            f"the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission controller "
            f"computed {policy} from the given PriorityClass name",
            "spec.preemptionPolicy",
        )
    named: JsonObject = {"priorityClassName": name} if name else {}
    return {**pod, "spec": {**spec, **named, "priority": priority, "preemptionPolicy": policy}}


def _find_default(classes: Mapping[str, JsonObject]) -> JsonObject | None:
    """The default class; of several, that with the lowest value."""
    return min((each for each in classes.values() if each.get("globalDefault") is True), key=_read_value, default=None)


def _read_value(priority_class: JsonObject) -> int:
    value = priority_class.get("value")
    return value if isinstance(value, int) else 0


def set_tolerations(pod: JsonObject) -> JsonObject:
    """The pod with a toleration, for some minutes, of each state of a node that it does not tolerate yet."""
    spec = as_object(pod.get("spec"))
    tolerations = as_list(spec.get("tolerations"))
    added: list[Json] = [
        {"key": taint, "operator": "Exists", "effect": _EVICTS, "tolerationSeconds": _SECONDS}
        for taint in _TAINTS
        if not any(
            (dig(each, "key") or taint) == taint and (dig(each, "effect") or _EVICTS) == _EVICTS for each in tolerations
        )
    ]
    return {**pod, "spec": {**spec, "tolerations": [*tolerations, *added]}} if added else pod


def set_runtime(pod: JsonObject, runtime_class: JsonObject) -> JsonObject:
    """The pod with the overhead and the scheduling of its RuntimeClass. Raises PluginRefusal where it has others."""
    spec = dict(as_object(pod.get("spec")))
    overhead = as_object(dig(runtime_class, "overhead", "podFixed"))
    if as_object(runtime_class.get("overhead")):
        if as_object(spec.get("overhead")) and not _are_equal(overhead, as_object(spec["overhead"])):
            raise PluginRefusal(_OTHER_OVERHEAD, "spec.overhead")
        spec["overhead"] = overhead
    scheduling = as_object(runtime_class.get("scheduling"))
    if scheduling:
        nodes = as_object(spec.get("nodeSelector"))
        for key, value in as_object(scheduling.get("nodeSelector")).items():
            if nodes.get(key, value) != value:
                raise PluginRefusal(
                    f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {nodes[key]}",
                    "spec.nodeSelector",
                )
            nodes = {**nodes, key: value}
        tolerations = _merge(as_list(spec.get("tolerations")), as_list(scheduling.get("tolerations")))
        spec |= {"nodeSelector": nodes} if nodes else {}
        spec |= {"tolerations": tolerations} if tolerations else {}
    return {**pod, "spec": spec}


_OTHER_OVERHEAD: Final = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"


def reject_overhead(pod: JsonObject, runtime_class: JsonObject | None) -> None:
    """Raise PluginRefusal for an overhead that is not that of the RuntimeClass of the pod."""
    overhead = as_object(dig(pod, "spec", "overhead"))
    if runtime_class is not None and as_object(runtime_class.get("overhead")):
        if not _are_equal(as_object(dig(runtime_class, "overhead", "podFixed")), overhead):
            raise PluginRefusal(_OTHER_OVERHEAD, "spec.overhead")
    elif overhead:
        raise PluginRefusal(
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead", "spec.overhead"
        )


def _are_equal(left: JsonObject, right: JsonObject) -> bool:
    """Return whether two resource lists have the same quantities."""
    try:
        return left.keys() == right.keys() and all(
            compare(parse(str(left[name])), parse(str(right[name]))) == 0 for name in left
        )
    except EvaluationError:
        return left == right


def _merge(first: Sequence[Json], second: Sequence[Json]) -> list[Json]:
    """Both lists of tolerations, without those that others include (`MergeTolerations`)."""
    every = [*first, *second]
    merged: list[Json] = []
    for index, each in enumerate(every):
        if any(_includes(other, each) for other in merged):
            continue
        if any(other != each and _includes(other, each) for other in every[index + 1 :]):
            continue
        merged.append(each)
    return merged


def _includes(larger: Json, smaller: Json) -> bool:
    """Return whether a toleration tolerates everything that another one does (`isSuperset`)."""
    if larger == smaller:
        return True
    key, operator, effect = (as_text(dig(larger, field)) for field in ("key", "operator", "effect"))
    if dig(smaller, "key") != dig(larger, "key") and (key or operator != "Exists"):
        return False
    if effect and as_text(dig(smaller, "effect")) != effect:
        return False
    if effect == _EVICTS and isinstance(most := dig(larger, "tolerationSeconds"), int):
        seconds = dig(smaller, "tolerationSeconds")
        if not isinstance(seconds, int) or seconds > most:
            return False
    if operator in ("", "Equal"):
        return dig(smaller, "operator") == "Equal" and as_text(dig(smaller, "value")) == as_text(dig(larger, "value"))
    return operator == "Exists"
