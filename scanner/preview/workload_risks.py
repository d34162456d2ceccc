"""What workloads could no longer do after a change of rules: start their pods again, be updated or edited, and be deleted.

A pod that runs is not asked again, so a rule that denies it shows its effect at the next drain of a node. Each request is the one
that a controller would make, by its own identity. Source of truth: the controllers of kube-controller-manager 1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from scanner.admission.dispatch import BoundPolicy, evaluate_object, make_target
from scanner.admission.match import could_match
from scanner.admission.server_fields import list_fields_to_be_set, reads_any
from scanner.audit.population import record_object
from scanner.audit.withheld_reads import WithheldReads
from scanner.errors import ListFailed
from scanner.model.json import JsonObject, as_object, dig, texts
from scanner.model.outcome import Gap, GapKind, Passed
from scanner.model.policy import Operation, PolicyKey
from scanner.model.population import Controller, GroupKind, KeptMetadata, KeptOfObject, PopulationMember, Workload
from scanner.model.resource import NAMESPACES, Kind, ObjectKey, Resource, UserInfo, build_user_info, resource_of
from scanner.policies.webhooks import Webhook
from scanner.posture.owners import Owners
from scanner.posture.workloads import Workloads
from scanner.preview.asked_requests import RequestAnswer, RequestAsker
from scanner.preview.check import decide_request
from scanner.preview.plugins import BUILT_IN, SERVICE_ACCOUNT, Plugins, concerns_plugins
from scanner.preview.pods import PODS, find_creator, make_pod, scrub_pod
from scanner.preview.requested import Refused, Requested, make_request
from scanner.preview.rules import Rules, StoredParams, list_webhooks
from scanner.preview.verdict import DIFFERS, Decision, Effect
from scanner.scan.intermediates import IntermediateNote, list_intermediate_pages
from scanner.scan.lists import ScanLists, decode_objects
from scanner.scan.prepare import GatheredRules, PreparedScan

CONTROL_PLANE: Final = frozenset({"kube-system", "kube-public", "kube-node-lease"})
_WRITES: Final[tuple[Operation, ...]] = ("CREATE", "UPDATE")
_MANAGER: Final = "system:kube-controller-manager"
_ACCOUNT: Final = "system:serviceaccount:kube-system:{}"
_FILLING: Final = frozenset(BUILT_IN) - {SERVICE_ACCOUNT}
"""The plug-ins without whose result a template is undecided. An account adds its own volume and secrets to pull images with."""
_DIFFERS: Final = "the API server decides otherwise about the pod by the rules before the change"
_WITH_TEMPLATES: Final = (
    ("apps", "replicasets"),
    ("batch", "jobs"),
    ("apps", "deployments"),
    ("apps", "statefulsets"),
    ("apps", "daemonsets"),
    ("batch", "cronjobs"),
    ("", "replicationcontrollers"),
)
"""The kinds with templates of pods, those between a pod and its workload first."""
UPDATED_BY: Final[Mapping[tuple[str, str], str]] = {("apps", "replicasets"): "deployment-controller"}
"""The kinds whose objects a controller updates, to scale them and to roll out. Others update the status alone, a subresource."""
FINALIZED_BY: Final[Mapping[str, str]] = {
    "batch.kubernetes.io/job-tracking": "job-controller",
    "kubernetes.io/pvc-protection": "pvc-protection-controller",
    "kubernetes.io/pv-protection": "pv-protection-controller",
    "foregroundDeletion": "generic-garbage-collector",
    "orphan": "generic-garbage-collector",
}
"""The controllers that remove their finalizers."""


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
class Risk:
    """An action that the rules after the change would refuse, and did not refuse before, or about which they are undecided.

    `object` is the object of the request, `user` its requester. `server` is the answer of the API server under the rules that it has,
    None if it is not to be asked.
    """

    action: Action
    certainty: Certainty
    object: PopulationMember
    user: str
    decisions: tuple[Decision, ...]
    server: RequestAnswer | None = None

    @property
    def is_refused(self) -> bool:
        """Return whether the action would be refused; else it is undecided."""
        return _refuses(self.decisions)

    def is_worse_than(self, other: Risk) -> bool:
        """Return whether this risk stands for a workload rather than another one of the same action."""
        return self._weight > other._weight

    @property
    def _weight(self) -> tuple[bool, bool]:
        return self.is_refused, self.server is not None and self.server.compared == DIFFERS


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
class RiskRules:
    """The rules before and after the change that can differ, and the others, which may refuse a request in both cases.

    The objects are `stored` if a server has set their defaults, also those of templates. `changes_mutation` is true if mutating policies
    are among those that can differ.
    """

    before: Rules
    after: Rules
    others: Rules
    withheld: WithheldReads | None = None
    stored: bool = True
    changes_mutation: bool = False

    def may_concern(self, kind: Kind) -> bool:
        """Return whether the change may concern requests on a kind."""
        return self.before.may_concern(kind) or self.after.may_concern(kind)

    def passes(self, resource: Resource, old: Resource | None, user: UserInfo) -> bool:
        """Return whether every check after the change certainly passes, without the steps of a request that change the object.

        Most objects pass: this is a shortcut, and False is no answer.
        """
        rules = self.after
        operation: Operation = "UPDATE" if old else "CREATE"
        has_versions = bool(rules.context.equivalents.get(resource.kind))
        if not self.stored or self.withheld is not None or has_versions:
            return False
        if any(map(self._may_mutate(resource.kind), rules.mutating)):
            return False
        if old is None and concerns_plugins(resource.kind):
            undecided: list[Decision] = []
            changed = rules.plugins.change(resource, undecided, created=True)
            if changed is None or undecided:
                return False
            resource = changed
        to_be_set = () if old else tuple(list_fields_to_be_set(resource.kind, resource.body))
        context = replace(rules.context, user=user, operations=(operation,), old=old)
        try:
            return all(
                isinstance(each.outcome, Passed)
                and not (to_be_set and reads_any(bound.compiled.reads(each.check), to_be_set))
                for bound in rules.validating
                for result in evaluate_object(bound, resource, resource.kind, context)
                for each in result.check_results
            )
        except Exception:  # noqa: BLE001 - the request itself decides, and tells the reason
            return False

    def _may_mutate(self, kind: Kind) -> Callable[[BoundPolicy], bool]:
        return lambda bound: (
            bound.policy.match is None or any(could_match(rule, kind, _WRITES) for rule in bound.policy.match.rules)
        )

    def compare(self, requested: Requested, user: UserInfo, *, made: bool = False) -> tuple[Decision, ...]:
        """The decisions that newly refuse a request, or are newly undecided; none if it is refused in any case.

        A pod that is `made` from a template is undecided where a plug-in is that could change it.
        """
        if self._hides(requested.resource):
            return (Decision(Effect.UNDECIDED, "the snapshot withholds a part of the object that a policy may read"),)
        after = decide_request(self.after, requested, user)
        if not any(each.effect in (Effect.REFUSES, Effect.UNDECIDED) for each in after):
            return ()
        before = decide_request(self.before, requested, user)
        if _refuses(before):
            return ()
        newly = [each for each in after if each.effect is Effect.REFUSES]
        newly = newly or [each for each in after if each.effect is Effect.UNDECIDED and each not in before]
        if newly and _refuses(decide_request(self.others, requested, user)):
            return ()
        if not (made and newly):
            return tuple(newly)
        return tuple(each for each in after if each.effect is Effect.UNDECIDED and each.policy in _FILLING) or tuple(
            newly
        )

    def decide_before(self, requested: Requested, user: UserInfo) -> Iterator[Decision]:
        """The decisions about a request by all rules before the change: those that the API server has."""
        yield from decide_request(self.before, requested, user)
        yield from decide_request(self.others, requested, user)

    def _hides(self, resource: Resource) -> bool:
        bound = (*self.before.validating, *self.before.mutating, *self.after.validating, *self.after.mutating)
        return self.withheld is not None and self.withheld.concern(resource, resource.body, bound)


def _refuses(decisions: Iterable[Decision]) -> bool:
    return any(each.effect is Effect.REFUSES for each in decisions)


def make_risk_rules(before: PreparedScan, after: PreparedScan, changed: Sequence[PolicyKey]) -> RiskRules:
    """The rules of the requests. What mutating policies change may differ for every policy that follows them."""
    keys = frozenset(changed)
    sides = [_select(each, keys) for each in (before, after)]
    changes_mutation = any(not keys.isdisjoint(each.policy.key for each in rules.mutating) for rules in sides)
    if changes_mutation:
        keys = frozenset(bound.policy.key for each in (before, after) for bound in each.evaluation.bound)
        sides = [_select(each, keys) for each in (before, after)]
    others = frozenset(bound.policy.key for bound in after.evaluation.bound) - keys
    withheld = after.evaluation.page_evaluator.withheld
    reads = None if withheld is None else WithheldReads(after.evaluation_context, withheld)
    one, other = sides
    stored = not after.context.files
    return RiskRules(one, other, _select(after, others), reads, stored=stored, changes_mutation=changes_mutation)


class _ListedObjects:
    """The objects that built-in plug-ins read, listed by namespace when the first of them is needed. Satisfies `StoredObjects`."""

    def __init__(self, listing: ScanLists) -> None:
        self._listing = listing
        self._lists: dict[tuple[Kind, str], Mapping[str, JsonObject] | ListFailed] = {}

    def read_objects(self, names: Sequence[ObjectKey]) -> Sequence[JsonObject | ListFailed | None]:
        """See StoredObjects."""
        return [
            each if isinstance(each, ListFailed) else each.get(name.name)
            for name in names
            for each in [self._list(name)]
        ]

    def _list(self, name: ObjectKey) -> Mapping[str, JsonObject] | ListFailed:
        key = name.kind, name.namespace
        if key not in self._lists:
            try:
                self._lists[key] = {
                    each.name: each.body for each in self._listing.list_all(name.kind, (name.namespace,))
                }
            except ListFailed as error:
                self._lists[key] = error
        return self._lists[key]


def _select(prepared: PreparedScan, keys: frozenset[PolicyKey]) -> Rules:
    """The rules of one side: all mutating policies, and the validating policies with some keys."""
    bound = prepared.evaluation.bound
    return Rules(
        cluster=prepared.cluster,
        context=prepared.evaluation_context,
        schemas=prepared.listing.relay,
        plugins=Plugins(
            objects=StoredParams((), _ListedObjects(prepared.listing), prepared.listing, ()),
            schemas=prepared.listing.relay,
            namespaces=prepared.evaluation_context.namespaces,
            release=prepared.context.rules,
            files=prepared.context.files,
        ),
        mutating=tuple(sorted((each for each in bound if each.combination), key=lambda each: each.policy.key)),
        validating=tuple(each for each in bound if each.combination is None and each.policy.key in keys),
    )


@dataclass(slots=True)
class _Row:
    """A workload while its risks are collected."""

    risks: dict[Action, Risk] = field(default_factory=dict)
    kept: KeptMetadata = field(default_factory=KeptMetadata)
    replicas: int | None = None
    running: int = 0
    has_controller: bool = True


class RiskFinder:
    """Finds the risks of every workload, kind by kind: pods first, because a living pod shows more than a template."""

    def __init__(
        self,
        gathered: GatheredRules,
        rules: RiskRules,
        prepared: PreparedScan,
        *,
        as_manager: bool,
        asker: RequestAsker | None = None,
    ) -> None:
        """Make the requests of controllers by their own service accounts, or `as_manager` by that of kube-controller-manager.

        With an `asker`, the API server is asked about each request that is a risk, and about the pod of each template.
        """
        self._gathered, self._rules, self._as_manager, self._asker = gathered, rules, as_manager, asker
        self._keys = prepared.context.kept_keys
        self._user = prepared.evaluation_context.user
        self._exclusions = prepared.context.scope.exclude_namespaces
        self._rows: dict[PopulationMember, _Row] = {}
        self._observed: dict[str, Risk | None] = {}
        self._running: dict[str, int] = {}
        self._controllers: dict[GroupKind, Controller] = {}
        self._between: list[PopulationMember] = []
        self._webhooks: tuple[tuple[Webhook, ...], tuple[Gap, ...]] | None = None
        self.gaps: list[Gap] = []
        self.notes: list[str] = []

    def find(self, owners: Owners, others: Iterable[Kind]) -> tuple[WorkloadRisks, ...]:
        """The risks of the workloads; `others` are further kinds whose objects may have finalizers."""
        templates = [kind for key in _WITH_TEMPLATES if (kind := self._find_kind(*key))]
        pods = self._find_kind("", "pods")
        creates = pods is not None and self._rules.may_concern(PODS)
        if pods and creates:
            self._stream(pods, self._add_pod)
        for kind in templates:
            if creates or self._rules.may_concern(kind):
                self._stream(kind, self._add_template)
        for kind in others:
            if kind not in (pods, *templates) and self._rules.may_concern(kind):
                self._stream(kind, self._add_finalizers)
        return self._conclude(owners)

    def find_replicas(self, member: PopulationMember) -> int | None:
        """The wanted number of pods of an object with a template, None if it is not known."""
        row = self._rows.get(member)
        return row.replicas if row else None

    def _find_kind(self, group: str, plural: str) -> Kind | None:
        kinds = self._gathered.discovery.kinds
        return next((kind for kind in kinds if (kind.group, kind.plural) == (group, plural)), None)

    def _stream(self, kind: Kind, add: Callable[[Resource], None]) -> None:
        """Read every object of a kind once; a list that fails is a gap."""
        listing = self._gathered.listing
        if listing.find_exclusion(kind):
            return
        try:
            for pages in listing.list_pages(kind):
                for page in pages:
                    if add == self._add_finalizers and b'"finalizers"' not in page.data:
                        continue
                    for resource in decode_objects(page, withheld=self._gathered.discovery.withholds):
                        if not listing.excludes(resource.namespace):
                            add(resource)
        except (ListFailed, ValueError) as error:
            why = f"workloads that could not start again may be missing: {error}"
            self.gaps.append(Gap(GapKind.LIST, f"{kind.api_version}/{kind.kind}", why))

    def _add_pod(self, pod: Resource) -> None:
        """Note what becomes of a pod: the first one of each controller stands for all."""
        member = record_object(pod, self._keys)
        controller = member.controller
        self._add_finalizers(pod)
        if controller is None:
            risk = self._compare_pod(pod, member, self._user)
            self._add_risk(member, risk, has_controller=False, running=_is_running(pod))
            return
        if controller.kind == "Node":
            return  # a static pod: the kubelet runs it from a file, whatever admission decides about its mirror
        self._running[controller.uid] = self._running.get(controller.uid, 0) + _is_running(pod)
        self._controllers[controller.group_kind] = controller
        if controller.uid not in self._observed:
            creator = find_creator(*controller.group_kind)
            self._observed[controller.uid] = self._compare_pod(pod, member, self._name_user(creator) or self._user)
            if creator is None:
                self._add_risk(member, self._observed[controller.uid], running=_is_running(pod))

    def _name_user(self, user: UserInfo | None) -> UserInfo | None:
        return build_user_info(_MANAGER) if user and self._as_manager else user

    def _compare_pod(self, pod: Resource, member: PopulationMember, user: UserInfo) -> Risk | None:
        return self._create(scrub_pod(pod), member, user, Certainty.OBSERVED)

    def _create(self, pod: Resource, member: PopulationMember, user: UserInfo, certainty: Certainty) -> Risk | None:
        """The risk that a pod cannot be created."""
        made = certainty is Certainty.TEMPLATE
        if not (made and self._asker) and self._rules.passes(pod, None, user):
            return None
        try:
            requested = make_request(pod, None, self._rules.after.schemas.schema(PODS))
        except Refused:
            return None  # in both cases
        if made and self._asker:
            return self._ask_template(self._asker, requested, member, user)
        decisions = self._decide_template(requested, user) if made else self._rules.compare(requested, user)
        return self._make_risk(Action.RECREATE, certainty, member, user, requested, decisions)

    def _decide_template(self, requested: Requested, user: UserInfo) -> tuple[Decision, ...]:
        """The decisions about a pod of a template that is known alone."""
        decisions = self._rules.compare(requested, user, made=True)
        webhooks = self._list_changing_webhooks(requested.resource) if _refuses(decisions) else ()
        return tuple(webhooks) or decisions

    def _ask_template(
        self, asker: RequestAsker, requested: Requested, member: PopulationMember, user: UserInfo
    ) -> Risk | None:
        """The risk of the pod that the API server would store for a template: webhooks and plug-ins have changed it."""
        asked = asker.ask(requested, user)
        answer = asker.compare(asked, self._rules.decide_before)
        certainty, decisions = Certainty.TEMPLATE, self._decide_template(requested, user)
        if asked.stored and asked.user == user and not self._rules.changes_mutation:
            pod = scrub_pod(resource_of(PODS, asked.stored))
            certainty = Certainty.ASKED
            decisions = self._rules.compare(make_request(pod, None, requested.schema), user)
            decisions = tuple(self._list_changing_webhooks(pod, newly=True)) or decisions
        if answer.compared == DIFFERS and not decisions:
            decisions = (Decision(Effect.UNDECIDED, _DIFFERS),)
        return Risk(Action.RECREATE, certainty, member, user.username, decisions, answer) if decisions else None

    def _make_risk(
        self,
        action: Action,
        certainty: Certainty,
        member: PopulationMember,
        user: UserInfo,
        requested: Requested,
        decisions: tuple[Decision, ...],
    ) -> Risk | None:
        """The risk of some decisions, with the answer of the API server if it is to be asked; None without a decision."""
        if not decisions:
            return None
        risk = Risk(action, certainty, member, user.username, decisions)
        if self._asker is None:
            return risk
        answer = self._asker.compare(self._asker.ask(requested, user), self._rules.decide_before)
        return replace(risk, server=answer)

    def _list_changing_webhooks(self, pod: Resource, *, newly: bool = False) -> Iterator[Decision]:
        """A decision for each webhook that may change a pod before policies read it, and one if they cannot be listed.

        If `newly`, only those that labels of a namespace bring in with the change.
        """
        if self._webhooks is None:
            self._webhooks = list_webhooks(self._gathered.listing, self._gathered.discovery)
        webhooks, gaps = self._webhooks
        before, after = (
            make_target(pod, PODS, "CREATE", rules.context) for rules in (self._rules.before, self._rules.after)
        )
        for each in webhooks:
            if each.changes and each.may_receive(after) and not (newly and each.may_receive(before)):
                why = f"the webhook, of {each.configuration}, may change the pod before policies read it"
                yield Decision(Effect.UNDECIDED, why, policy=each.name)
        yield from (Decision(Effect.UNDECIDED, gap.why) for gap in gaps if not newly)

    def _add_template(self, resource: Resource) -> None:
        """Note the risks of an object with a template."""
        member = record_object(resource, self._keys)
        self._add_finalizers(resource)
        between = member.controller is not None
        if between:
            self._between.append(member)
        row = _Row(kept=keep_metadata(member), replicas=_read_replicas(resource))
        if member.uid in self._observed:
            row.running = self._running.get(member.uid, 0)
            self._add_risk(member, self._observed[member.uid], row=row)
        elif not between and self._rules.may_concern(PODS) and (made := make_pod(resource)):
            pod, user = made
            self._add_risk(
                member, self._create(pod, member, self._name_user(user) or user, Certainty.TEMPLATE), row=row
            )
        if self._rules.may_concern(resource.kind):
            account = UPDATED_BY.get((resource.kind.group, resource.kind.plural)) if between else None
            if updater := self._name_user(build_user_info(_ACCOUNT.format(account))) if account else None:
                self._add_risk(member, self._update(Action.UPDATE, resource, resource.body, member, updater), row=row)
            if not between:
                self._add_risk(member, self._update(Action.EDIT, resource, resource.body, member, self._user), row=row)
        self._rows.setdefault(member, row)

    def _add_finalizers(self, resource: Resource) -> None:
        """Note that an object could not be deleted: the update that removes its finalizers would be refused."""
        metadata = as_object(resource.body.get("metadata"))
        finalizers = texts(metadata.get("finalizers"))
        if not finalizers or not self._rules.may_concern(resource.kind):
            return
        member = record_object(resource, self._keys)
        account = FINALIZED_BY.get(finalizers[0])
        user = self._name_user(build_user_info(_ACCOUNT.format(account))) if account else self._user
        without = {**resource.body, "metadata": {key: each for key, each in metadata.items() if key != "finalizers"}}
        self._add_risk(member, self._update(Action.FINALIZE, resource, without, member, user or self._user))

    def _update(
        self, action: Action, resource: Resource, body: JsonObject, member: PopulationMember, user: UserInfo
    ) -> Risk | None:
        """The risk that an object cannot be updated to a body."""
        if self._rules.passes(resource_of(resource.kind, body), resource, user):
            return None
        schema = self._rules.after.schemas.schema(resource.kind)
        requested = Requested(resource_of(resource.kind, body), schema, resource)
        decisions = self._rules.compare(requested, user)
        return self._make_risk(action, Certainty.STORED, member, user, requested, decisions)

    def _add_risk(
        self,
        member: PopulationMember,
        risk: Risk | None,
        *,
        row: _Row | None = None,
        has_controller: bool = True,
        running: int = 0,
    ) -> None:
        row = (
            self._rows.setdefault(member, row or _Row(has_controller=has_controller, running=running)) if risk else row
        )
        if row and risk:
            row.risks.setdefault(risk.action, risk)

    def _conclude(self, owners: Owners) -> tuple[WorkloadRisks, ...]:
        """The risks by workload: those of the objects between a pod and its workload belong to the workload."""
        workloads = self._list_workloads()
        rows: dict[Workload, list[tuple[PopulationMember, _Row]]] = {}
        for member, row in self._rows.items():
            rows.setdefault(workloads.find(member), []).append((member, row))
        found = (self._join(workload, parts, owners) for workload, parts in rows.items())
        return tuple(sorted((each for each in found if each.risks), key=_rank))

    def _list_workloads(self) -> Workloads:
        kinds = self._gathered.discovery.kinds
        workloads = Workloads({(kind.group, kind.kind): kind.namespaced for kind in kinds})
        for member in (*self._between, *(each for each in self._rows if each not in self._between)):
            workloads.add(member)
        streamed = {each.kind for each in self._rows} | {each.kind for each in self._between}
        of_rows = {each.controller.group_kind: each.controller for each in self._rows if each.controller}
        references = (self._controllers | of_rows).values()
        for step in list_intermediate_pages(self._gathered.listing, references, streamed, kinds):
            if isinstance(step, IntermediateNote):
                self.notes.append(step.text)
                continue
            for member in step.objects:
                workloads.add(member)
        return workloads

    def _join(
        self, workload: Workload, parts: Sequence[tuple[PopulationMember, _Row]], owners: Owners
    ) -> WorkloadRisks:
        risks: dict[Action, Risk] = {}
        for _, row in parts:
            for action, risk in row.risks.items():
                if action not in risks or risk.is_worse_than(risks[action]):
                    risks[action] = risk
        member, top = next(
            (
                (member, row)
                for member, row in parts
                if (member.kind.kind, member.name) == (workload.kind, workload.name)
            ),
            parts[0],
        )
        kept = KeptOfObject(keep_metadata(member), top.kept, self._keep_namespace(workload.namespace))
        return WorkloadRisks(
            workload,
            tuple(risks[action] for action in Action if action in risks),
            owners(kept),
            top.replicas,
            sum(row.running for _, row in parts),
            all(row.has_controller for _, row in parts),
        )

    def _keep_namespace(self, name: str) -> KeptMetadata:
        body = self._gathered.namespaces.by_name.get(name)
        if body is None:
            return KeptMetadata()
        return keep_metadata(record_object(resource_of(NAMESPACES, body), self._keys))


def keep_metadata(member: PopulationMember) -> KeptMetadata:
    """The kept labels and annotations of an object."""
    return KeptMetadata(member.labels, member.annotations)


def _is_running(pod: Resource) -> bool:
    return dig(pod.body, "status", "phase") == "Running"


def _read_replicas(resource: Resource) -> int | None:
    value = dig(resource.body, "spec", "replicas")
    return value if isinstance(value, int) else None


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
