"""What workloads could no longer do after a change of rules: start their pods again, be updated or edited, and be deleted.

The risks of objects are found page by page; those of the objects between a pod and its workload belong to the workload.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Final

from scanner.audit.population import record_object
from scanner.model.outcome import Gap
from scanner.model.population import KeptMetadata, KeptOfObject, PopulationMember, Workload
from scanner.model.resource import NAMESPACES, Resource, UserInfo, resource_of
from scanner.posture.owners import Owners
from scanner.posture.workloads import Workloads
from scanner.preview.asked_requests import RequestAnswer
from scanner.preview.verdict import Decision, Effect
from scanner.scan.intermediates import IntermediateNote, list_intermediate_pages
from scanner.scan.prepare import GatheredRules, PreparedScan

CONTROL_PLANE: Final = frozenset({"kube-system", "kube-public", "kube-node-lease"})
_MOST_SHARED: Final = 4096


class Action(StrEnum):
    """What a workload could no longer do, the worst first."""

    RECREATE = "recreate"
    FINALIZE = "finalize"
    UPDATE = "update"
    EDIT = "edit"


class Certainty(StrEnum):
    """How sure a risk is: `observed` of a living pod, `asked` of the pod that the API server would store for a template.

    `template` is of the template alone, `stored` of an object as it is.
    """

    OBSERVED = "observed"
    ASKED = "asked"
    TEMPLATE = "template"
    STORED = "stored"


@dataclass(frozen=True, slots=True)
class WantedRequest:
    """A request about which the API server is to be asked: the object that it would write, None or the object before it, and the user."""

    resource: Resource
    old: Resource | None
    user: UserInfo


@dataclass(frozen=True, slots=True)
class Risk:
    """An action that the rules after the change would refuse, and did not refuse before, or about which they are undecided.

    `object` is the object of the request, `user` its requester. If the API server is to be asked, `wanted` is the request, also of a
    template without decisions, and `server` the answer under the rules that it has.
    """

    action: Action
    certainty: Certainty
    object: PopulationMember
    user: str
    decisions: tuple[Decision, ...]
    wanted: WantedRequest | None = None
    server: RequestAnswer | None = None

    @property
    def is_refused(self) -> bool:
        """Return whether the action would be refused; else it is undecided."""
        return any(each.effect is Effect.REFUSES for each in self.decisions)


@dataclass(frozen=True, slots=True)
class WorkloadRisks:
    """A workload with its risks, the worst first. `replicas` is the wanted number of pods, None if it has none in its spec.

    `running` counts its running pods. `has_controller` is false for a pod that nothing recreates.
    """

    workload: Workload
    risks: tuple[Risk, ...]
    owner: str = ""
    replicas: int | None = None
    running: int = 0
    has_controller: bool = True

    @property
    def is_control_plane(self) -> bool:
        """Return whether the workload is in a namespace of the cluster itself."""
        return self.workload.namespace in CONTROL_PLANE

    def find(self, action: Action) -> Risk | None:
        """The risk of an action."""
        return next((risk for risk in self.risks if risk.action is action), None)

    @property
    def cannot_start(self) -> bool:
        """Return whether its pods could not start again."""
        risk = self.find(Action.RECREATE)
        return risk is not None and risk.is_refused


@dataclass(frozen=True, slots=True)
class ObjectRisks:
    """The risks of one object: of its own requests, and of its pods if it has a template.

    `replicas` is the wanted number of its pods, None if it has none in its spec. `running` is 1 for a running pod without a controller.
    `revision` is that of its template, empty for an object of which the pods do not tell theirs. If it `keeps_earlier` pods, it makes some
    of them again from the template before.
    """

    object: PopulationMember
    risks: tuple[Risk, ...]
    replicas: int | None = None
    running: int = 0
    has_controller: bool = True
    has_template: bool = False
    revision: str = ""
    keeps_earlier: bool = False


PodTemplate = tuple[str, str]
"""The UID of a controller, and the revision of its template; empty if its pods do not tell it."""


@dataclass(frozen=True, slots=True)
class ControlledPods:
    """The pods of one template of one controller on a page, of which the first stands for all, and the number of those that run.

    If the pods `differ`, as those of a StatefulSet and of an operator do, the first one that is refused stands for them. `risks` are
    None if no pod was evaluated, because one of an earlier page stands for all, or because the template decides. With `is_named` the
    controller is not one of kube-controller-manager, and the pod itself is a part of its workload. `revision` is that of the template.
    """

    first: PopulationMember
    running: int
    risks: tuple[Risk, ...] | None
    is_named: bool = False
    differ: bool = False
    revision: str = ""

    @property
    def template(self) -> PodTemplate:
        """The template of which they were made."""
        return (self.first.controller.uid if self.first.controller else "", self.revision)

    @property
    def is_refused(self) -> bool:
        """Return whether the pod that stands for all would be refused."""
        return any(risk.is_refused for risk in self.risks or ())

    def add(self, other: ControlledPods) -> ControlledPods:
        """These pods, and those that follow."""
        is_worse = self.differ and other.is_refused and not self.is_refused
        evaluated = other if is_worse or self.risks is None else self
        return replace(evaluated, running=self.running + other.running)


@dataclass(frozen=True, slots=True)
class PageRisks:
    """What becomes of the objects of a page: those with a template or a risk, and the pods of controllers."""

    objects: tuple[ObjectRisks, ...] = ()
    pods: tuple[ControlledPods, ...] = ()
    gaps: tuple[Gap, ...] = ()


NO_RISKS: Final = PageRisks()


class RiskFinder:
    """Collects the risks of pages, in their order, and joins those of each workload."""

    def __init__(self, gathered: GatheredRules, prepared: PreparedScan) -> None:
        """Begin without a page."""
        self._gathered = gathered
        self._keys = prepared.context.kept_keys
        self._objects: dict[PopulationMember, ObjectRisks] = {}
        self._pods: dict[PodTemplate, ControlledPods] = {}
        self.notes: list[str] = []

    def add(self, page: PageRisks) -> None:
        """Add the risks of the next page."""
        self._objects |= {each.object: each for each in page.objects}
        for each in page.pods:
            known = self._pods.get(each.template)
            self._pods[each.template] = known.add(each) if known else each

    def find_replicas(self, member: PopulationMember) -> int | None:
        """The wanted number of pods of an object with a template, None if it is not known."""
        found = self._objects.get(member)
        return found.replicas if found else None

    def conclude(
        self, owners: Owners, workloads: Workloads, ask: Callable[[Risk], Risk | None] = lambda risk: risk
    ) -> tuple[WorkloadRisks, ...]:
        """The risks by workload, the worst first: those of the objects between a pod and its workload belong to the workload.

        `ask` gives each risk the answer of the API server, or None if it is no risk any more.
        """
        by_workload: dict[Workload, list[ObjectRisks]] = {}
        for each in self._list_parts():
            by_workload.setdefault(workloads.find(each.object), []).append(each)
        joined = (self._join(workload, parts, owners) for workload, parts in by_workload.items())
        found = (replace(each, risks=tuple(filter(None, map(ask, each.risks)))) for each in joined)
        return tuple(sorted((each for each in found if each.risks), key=_rank))

    def _list_parts(self) -> Iterator[ObjectRisks]:
        """The objects with their risks, pods first: a living pod shows more than the template of its controller."""
        objects = sorted(self._objects.values(), key=lambda each: (each.has_template, not each.object.controller))
        for pods in self._pods.values():
            if pods.is_named and pods.risks:
                yield ObjectRisks(pods.first, pods.risks, running=pods.running)
        of_object: dict[str, list[ControlledPods]] = {}
        for (uid, _), pods in self._pods.items():
            of_object.setdefault(uid, []).append(pods)
        for each in objects:
            own = of_object.get(each.object.uid, ()) if each.has_template else ()
            yield _add_pods(each, own) if own else each

    def read_workloads(self, members: Iterable[PopulationMember]) -> Workloads:
        """The workloads of the objects with risks, and of other members. Kinds between them that were not evaluated are listed."""
        kinds = self._gathered.discovery.kinds
        workloads = Workloads({(kind.group, kind.kind): kind.namespaced for kind in kinds})
        templates = [each.object for each in self._objects.values() if each.has_template]
        for member in templates:
            workloads.add(member)
        pods = (each.first for each in self._pods.values())
        references = {
            each.controller.group_kind: each.controller
            for each in (*pods, *self._objects, *members)
            if each.controller is not None
        }
        evaluated = {member.kind for member in templates}
        for step in list_intermediate_pages(self._gathered.listing, references.values(), evaluated, kinds):
            if isinstance(step, IntermediateNote):
                self.notes.append(step.text)
                continue
            for member in step.objects:
                workloads.add(member)
        return workloads

    def _join(self, workload: Workload, parts: Sequence[ObjectRisks], owners: Owners) -> WorkloadRisks:
        risks: dict[Action, Risk] = {}
        for risk in (risk for each in parts for risk in each.risks):
            if risk.action not in risks or (risk.is_refused and not risks[risk.action].is_refused):
                risks[risk.action] = risk
        names = workload.kind, workload.name
        top = next((each for each in parts if (each.object.kind.kind, each.object.name) == names), parts[0])
        kept = keep_metadata(top.object)
        return WorkloadRisks(
            workload,
            tuple(risks[action] for action in Action if action in risks),
            owners(KeptOfObject(kept, kept, self._keep_namespace(workload.namespace))),
            top.replicas,
            sum(each.running for each in parts),
            all(each.has_controller for each in parts),
        )

    def _keep_namespace(self, name: str) -> KeptMetadata:
        body = self._gathered.namespaces.by_name.get(name)
        if body is None:
            return KeptMetadata()
        return keep_metadata(record_object(resource_of(NAMESPACES, body), self._keys))


def _add_pods(each: ObjectRisks, own: Sequence[ControlledPods]) -> ObjectRisks:
    """An object with a template, and the risk of its living pods in place of that of the template, if they were evaluated.

    Pods of an earlier template do not show what the next ones are like (`OnDelete`, and a rollout that has not ended).
    """
    next_ones = [pods for pods in own if each.revision in ("", pods.revision)]
    risks = list(each.risks)
    if any(pods.risks is not None for pods in next_ones):
        risks = [risk for risk in risks if risk.action is not Action.RECREATE]
    shown = own if each.keeps_earlier else next_ones
    observed = (risk for pods in shown for risk in pods.risks or ())
    return replace(each, risks=(*observed, *risks), running=sum(pods.running for pods in own))


def keep_metadata(member: PopulationMember) -> KeptMetadata:
    """The kept labels and annotations of an object."""
    return KeptMetadata(member.labels, member.annotations)


def share_texts(member: PopulationMember) -> PopulationMember:
    """An equal record, with the texts of its namespace and labels that the latest records have.

    A process sends each of them once with a page, and a preview keeps thousands of records.
    """
    labels = tuple(map(_share_pair, member.labels))
    return member._replace(namespace=_share_text(member.namespace), labels=labels)


@lru_cache(maxsize=_MOST_SHARED)
def _share_pair(pair: tuple[str, str]) -> tuple[str, str]:
    return pair


@lru_cache(maxsize=_MOST_SHARED)
def _share_text(text: str) -> str:
    return text


def _rank(each: WorkloadRisks) -> tuple[bool, bool, bool, str, str, str]:
    """What runs and could not start again is first, and the control plane among equals."""
    dies = each.cannot_start and each.running > 0
    workload = each.workload
    return (
        not dies,
        not each.cannot_start,
        not each.is_control_plane,
        workload.namespace,
        workload.kind,
        workload.name,
    )
