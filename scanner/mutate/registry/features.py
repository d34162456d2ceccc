"""Fields of features that are off unless a cluster switches them on: the server drops them where they were not in use before.

Mirrors `dropDisabled…` of the strategies with the feature gates of Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping

from scanner.model.json import JsonObject, as_object
from scanner.mutate.schema import Schema
from scanner.mutate.walk import Rule, RuleSet, drop_members

_CORE = "io.k8s.api.core.v1."
_RESOURCE = "io.k8s.api.resource."
_SCHEDULING = "io.k8s.api.scheduling.v1alpha2."
_LIFECYCLE, _STOP_SIGNAL = f"{_CORE}Lifecycle", "stopSignal"
_GROUP_FIELDS = ("schedulingConstraints", "resourceClaims", "disruptionMode", "priorityClassName", "priority")
_DISABLED: Mapping[str, tuple[str, ...]] = {
    f"{_CORE}PodSpec": ("schedulingGroup",),  # GenericWorkload
    f"{_CORE}VolumeProjection": ("clusterTrustBundle", "podCertificate"),
    _LIFECYCLE: (_STOP_SIGNAL,),  # ContainerStopSignals
    "io.k8s.api.apps.v1.RollingUpdateStatefulSetStrategy": ("maxUnavailable",),  # MaxUnavailableStatefulSet
    **{
        f"io.k8s.api.coordination.{version}.LeaseSpec": ("strategy", "preferredHolder")  # CoordinatedLeaderElection
        for version in ("v1", "v1beta1")
    },
    **{
        f"io.k8s.api.storage.{version}.CSIDriverSpec": ("preventPodSchedulingIfMissing",)  # VolumeLimitScaling
        for version in ("v1", "v1beta1")
    },
    f"{_SCHEDULING}PodGroupSpec": _GROUP_FIELDS,
    f"{_SCHEDULING}PodGroupTemplate": _GROUP_FIELDS,
    **{
        f"{_RESOURCE}{version}.Device": ("nodeAllocatableResourceMappings",)  # DRANodeAllocatableResources
        for version in ("v1", "v1beta2")
    },
    f"{_RESOURCE}v1beta1.BasicDevice": ("nodeAllocatableResourceMappings",),
    **{
        f"{_RESOURCE}{version}.DeviceAttribute": ("ints", "bools", "strings", "versions")  # DRAListTypeAttributes
        for version in ("v1", "v1beta1", "v1beta2")
    },
}
_CONTAINERS = (f"{_CORE}Container", f"{_CORE}EphemeralContainer")


def drop_disabled(schema: Schema, before: JsonObject, after: JsonObject) -> JsonObject:
    """The object without the fields of disabled features that the stored object does not set (`dropDisabled…`)."""
    dropped = _LEFT.apply(schema, after)
    if dropped is after:
        return after
    fields_in_use = _list_set_fields(schema, before)
    rules = {
        kind: _make_drop_rule(*(name for name in names if (kind, name) not in fields_in_use))
        for kind, names in _DISABLED.items()
    }
    if (_LIFECYCLE, _STOP_SIGNAL) not in fields_in_use:
        rules |= dict.fromkeys(_CONTAINERS, _drop_stop_signal)
    return RuleSet(rules).apply(schema, after) if fields_in_use else dropped


def _make_drop_rule(*names: str) -> Rule:
    return lambda value: drop_members(value, *names)


def _drop_stop_signal(container: JsonObject) -> JsonObject:
    """A lifecycle that is empty without the signal is dropped (`dropContainerStopSignals`)."""
    lifecycle = as_object(container.get("lifecycle"))
    return drop_members(container, "lifecycle") if lifecycle.keys() == {_STOP_SIGNAL} else container


def _list_set_fields(schema: Schema, document: JsonObject) -> frozenset[tuple[str, str]]:
    """The fields of disabled features that a document sets, each with its type."""
    fields: set[tuple[str, str]] = set()

    def noting(kind: str, names: tuple[str, ...]) -> Rule:
        def note(value: JsonObject) -> JsonObject:
            fields.update((kind, name) for name in names if value.get(name) is not None)
            return value

        return note

    RuleSet({kind: noting(kind, names) for kind, names in _DISABLED.items()}).apply(schema, document)
    return frozenset(fields)


_LEFT = RuleSet(
    {
        **{kind: _make_drop_rule(*names) for kind, names in _DISABLED.items()},
        **dict.fromkeys(_CONTAINERS, _drop_stop_signal),
    }
)
"""Drops the fields at every place."""
