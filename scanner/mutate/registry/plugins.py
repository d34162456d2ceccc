"""The changes of other admission plugins to an updated pod: of plugins that are on by default and need only the object.

Mirrors `plugin/pkg/admission/priority` and `defaulttolerationseconds`: when a policy has changed the object, the server calls them
once more, before the second run of the policies. No plugin runs after the second run.
"""

from __future__ import annotations

from scanner.model.json import JsonObject, as_list, as_object, dig
from scanner.mutate.walk import within

_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_PRIORITY = ("priority", "preemptionPolicy")


def after_plugins(type_name: str, before: JsonObject, after: JsonObject) -> JsonObject:
    """The object after the plugins; only pods change. `type_name` is the name of the kind's definition."""
    if type_name != "io.k8s.api.core.v1.Pod":
        return after
    old = as_object(before.get("spec"))
    return within("spec", lambda spec: _tolerating(old, _with_priority(old, spec)))(after)


def _with_priority(old: JsonObject, spec: JsonObject) -> JsonObject:
    missing = {name: old[name] for name in _PRIORITY if old.get(name) is not None and spec.get(name) is None}
    return {**spec, **missing} if missing else spec


def _tolerating(old: JsonObject, spec: JsonObject) -> JsonObject:
    """Add tolerations for unavailable nodes of five minutes unless the pod has its own.

    A pod without them before the update comes from a file, or from a server without this plugin.
    """
    new = _missing_tolerations(spec)
    return (
        spec
        if not new or _missing_tolerations(old)
        else {**spec, "tolerations": [*as_list(spec.get("tolerations")), *new]}
    )


def _missing_tolerations(spec: JsonObject) -> list[JsonObject]:
    ending = [
        toleration
        for toleration in as_list(spec.get("tolerations"))
        if dig(toleration, "effect") in (None, "", "NoExecute")
    ]
    keys = {dig(toleration, "key") or "" for toleration in ending}
    return [_toleration(taint) for taint in _TAINTS if taint not in keys and "" not in keys]


def _toleration(taint: str) -> JsonObject:
    return {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
