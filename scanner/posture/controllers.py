"""The kinds that usually stand between an object and its workload, known before the first object was read.

Upstream: the controllers that set `controller: true` (pkg/controller/deployment, replicaset, replication, statefulset, daemon,
job and cronjob; pkg/controller/history for ControllerRevisions), and the kubelet for mirror Pods (pkg/kubelet/pod).
Operators add kinds of their own, which only the owner references of the objects name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from scanner.model.population import GroupKind

_USUAL: Final[Mapping[GroupKind, tuple[GroupKind, ...]]] = {
    ("", "Pod"): (
        ("", "Node"),
        ("", "ReplicationController"),
        ("apps", "DaemonSet"),
        ("apps", "ReplicaSet"),
        ("apps", "StatefulSet"),
        ("batch", "Job"),
    ),
    ("apps", "ReplicaSet"): (("apps", "Deployment"),),
    ("apps", "ControllerRevision"): (("apps", "DaemonSet"), ("apps", "StatefulSet")),
    ("batch", "Job"): (("batch", "CronJob"),),
}


def usual_controllers(kinds: Iterable[GroupKind]) -> tuple[GroupKind, ...]:
    """The kinds of Kubernetes that control objects of some kinds, directly or through other controllers, sorted."""
    usual: set[GroupKind] = set()
    below = set(kinds)
    while below:
        above = {controller for kind in below for controller in _USUAL.get(kind, ())}
        below = above - usual
        usual |= above
    return tuple(sorted(usual))
