"""The workload of every object: the top of its `controller: true` owner references.

Upstream: the garbage collector of kube-controller-manager (pkg/controller/garbagecollector) for which references are
legal: an owner is cluster-scoped or in the namespace of its dependent, and has the UID of the reference; the controllers
of Deployments (pkg/controller/deployment) for the label `pod-template-hash` and the names `<deployment>-<hash>` of
ReplicaSets.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, assert_never

from scanner.model.population import Controller, GroupKind, PopulationMember, Workload
from scanner.model.resource import Kind

LONGEST_CHAIN: Final = 16
"""Controllers above one object that are followed: Kubernetes sets no limit, operators use four at most."""

_MOST_REMEMBERED: Final = 10_000
"""Lists have the objects of one workload near each other."""

_REPLICA_SETS: Final = ("apps", "ReplicaSet")


@dataclass(frozen=True, slots=True, eq=False)
class _Link:
    """An object of a chain of references. Two links are the same only if they are the same Python object."""

    kind: Kind
    namespace: str
    name: str
    controller: Controller | None
    template_hash: str


_Above: TypeAlias = _Link | Controller | None
"""The controller of an object as it was read; its reference where it was not read; None above the top of a chain."""

_MemoKey: TypeAlias = tuple[str, Controller, str]


def list_intermediate_kinds(controllers: Iterable[Controller | None], listed: Iterable[Kind]) -> tuple[GroupKind, ...]:
    """The kinds whose metadata must be listed before the workloads of some objects can be resolved.

    `controllers` are the references of the objects, `listed` the kinds that were listed or whose list was tried. Objects of
    an intermediate kind may have controllers of other kinds: call again with those, until no kind is left.
    """
    referenced = {controller.group_kind for controller in controllers if controller is not None}
    return tuple(sorted(referenced.difference((kind.group, kind.kind) for kind in listed)))


class Workloads:
    """Resolves workloads. Holds the objects of intermediate kinds, about 400 bytes for each, and no other object."""

    def __init__(self, namespaced: Mapping[GroupKind, bool]) -> None:
        """Begin without objects. `namespaced` has the scope of the kinds of controllers, from discovery."""
        self._namespaced = namespaced
        self._by_uid: dict[GroupKind, dict[str, _Link]] = {}
        self._by_name: dict[GroupKind, dict[tuple[str, str], _Link]] = {}
        self._controllers: dict[Controller, Controller] = {}
        """Equal references of these objects are kept once."""
        self._memo: dict[_MemoKey, Workload | None] = {}
        """The workloads that were resolved last."""

    def add(self, examined: PopulationMember) -> None:
        """Add an object of an intermediate kind, before the first workload is resolved."""
        group_kind = examined.kind.group, examined.kind.kind
        controller = examined.controller
        link = _link(examined, None if controller is None else self._controllers.setdefault(controller, controller))
        if examined.uid:
            self._by_uid.setdefault(group_kind, {})[examined.uid] = link
        else:
            self._by_name.setdefault(group_kind, {})[examined.namespace, examined.name] = link

    def find(self, examined: PopulationMember) -> Workload:
        """The workload of an object; `derived` where an object above it was not read. The object need not have been added.

        An object without controller is its own workload.
        """
        if examined.controller is None:
            return _workload(examined)
        key = examined.namespace, examined.controller, examined.template_hash
        if key not in self._memo:
            if len(self._memo) >= _MOST_REMEMBERED:
                self._memo.clear()
            self._memo[key] = self._resolve(_link(examined, examined.controller))
        return self._memo[key] or _workload(examined)

    def select_present(self, places: Collection[tuple[str, str, str, str]]) -> set[tuple[str, str, str, str]]:
        """Return those of some objects that were added: group, kind, namespace and name of each."""
        return {place for place in map(_place, self._links({place[:2] for place in places})) if place in places}

    def select_controlled(self, tops: Collection[tuple[str, str, str, str]]) -> set[tuple[str, str, str, str]]:
        """Return those of some workloads to which an object that was added belongs: group, kind, namespace and name of each."""
        if not tops:
            return set()
        tops_of_objects: set[tuple[str, str, str, str]] = set()
        for link in self._links(self._by_uid.keys() | self._by_name.keys()):
            if link.controller is not None and (above := self._resolve(link)) is not None:
                tops_of_objects.add((above.api_version.rpartition("/")[0], above.kind, above.namespace, above.name))
        return tops_of_objects.intersection(tops)

    def _links(self, kinds: Iterable[GroupKind]) -> Iterator[_Link]:
        for kind in kinds:
            yield from self._by_uid.get(kind, {}).values()
            yield from self._by_name.get(kind, {}).values()

    def _resolve(self, first: _Link) -> Workload | None:
        """The workload of an object with a controller; None for the object itself."""
        chain = [first]
        while len(chain) <= LONGEST_CHAIN:
            above = self._find_above(chain[-1])
            match above:
                case None:
                    return _workload(chain[-1]) if len(chain) > 1 else None
                case Controller():
                    return self._derive_unread(above, chain[-1])
                case _Link():
                    if above in chain:
                        return _choose_least(chain[chain.index(above) :])
                    chain.append(above)
                case _ as never:
                    assert_never(never)
        return replace(_workload(chain[-1]), derived=True)

    def _find_above(self, link: _Link) -> _Above:
        """The controller of an object. None, too, for a reference that the garbage collector does not follow."""
        controller = link.controller
        if controller is None:
            return None
        read = self._by_uid.get(controller.group_kind, {}).get(controller.uid) or self._find_without_uid(
            controller, link
        )
        if read is None:
            return None if self._crosses_scopes(controller, link) else controller
        legal = read.name == controller.name and read.namespace in ("", link.namespace)
        return read if legal else None

    def _find_without_uid(self, controller: Controller, link: _Link) -> _Link | None:
        """A controller from a file that has no UID."""
        named = self._by_name.get(controller.group_kind, {})
        return named.get((link.namespace, controller.name)) or named.get(("", controller.name))

    def _crosses_scopes(self, controller: Controller, link: _Link) -> bool:
        """Return whether a cluster-scoped object names a namespaced controller, which is not legal."""
        return not link.namespace and self._namespaced.get(controller.group_kind, False)

    def _derive_unread(self, controller: Controller, link: _Link) -> Workload:
        """The workload above a controller that was not read: not listed, gone, or created again with another UID."""
        namespace = link.namespace if self._namespaced.get(controller.group_kind, True) else ""
        deployment = controller.name.removesuffix(f"-{link.template_hash}") if link.template_hash else ""
        if controller.group_kind == _REPLICA_SETS and deployment not in ("", controller.name):
            return Workload("apps/v1", "Deployment", namespace, deployment, derived=True)
        return Workload(controller.api_version, controller.kind, namespace, controller.name, derived=True)


def _choose_least(cycle: Iterable[_Link]) -> Workload:
    """The workload of a cycle: the same for each of its objects."""
    return replace(min(map(_workload, cycle)), derived=True)


def _link(examined: PopulationMember, controller: Controller | None) -> _Link:
    return _Link(examined.kind, examined.namespace, examined.name, controller, examined.template_hash)


def _place(link: _Link) -> tuple[str, str, str, str]:
    return link.kind.group, link.kind.kind, link.namespace, link.name


def _workload(link: _Link | PopulationMember) -> Workload:
    return Workload(link.kind.api_version, link.kind.kind, link.namespace, link.name)


# The kinds that usually stand between an object and its workload, known before the first object was read.
#
# Upstream: the controllers that set `controller: true` (pkg/controller/deployment, replicaset, replication,
# statefulset, daemon, job and cronjob; pkg/controller/history for ControllerRevisions), and the kubelet for mirror
# Pods (pkg/kubelet/pod). Operators add kinds of their own, which only the owner references of the objects name.

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


def list_usual_controllers(kinds: Iterable[GroupKind]) -> tuple[GroupKind, ...]:
    """The kinds of Kubernetes that control objects of some kinds, directly or through other controllers, sorted."""
    usual: set[GroupKind] = set()
    below = set(kinds)
    while below:
        above = {controller for kind in below for controller in _USUAL.get(kind, ())}
        below = above - usual
        usual |= above
    return tuple(sorted(usual))
