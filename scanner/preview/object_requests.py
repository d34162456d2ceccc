"""The requests that controllers and users would make about the objects of a page, by the rules before and after a change.

A pod that runs is not asked again, so a rule that denies it shows its effect at the next drain of a node. Each request is the one
that a controller would make, by its own identity. Source of truth: the controllers of kube-controller-manager 1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from scanner.admission.dispatch import make_target
from scanner.admission.match import could_match
from scanner.audit.page import get_identity
from scanner.audit.population import record_object
from scanner.model.json import JsonObject, as_object, dig, texts
from scanner.model.outcome import Gap, GapKind
from scanner.model.population import Controller, PopulationMember
from scanner.model.resource import Kind, Page, Resource, UserInfo, build_user_info, resource_of
from scanner.preview.asked_requests import RequestAsker
from scanner.preview.objects_between import MADE_FOR, make_between
from scanner.preview.plugins import concerns_plugins
from scanner.preview.pods import (
    PODS,
    find_creator,
    find_pod_revision,
    find_template_revision,
    keeps_earlier_pods,
    make_pod,
    scrub_pod,
)
from scanner.preview.requested import Refused, Requested, make_request, make_stored_request
from scanner.preview.risk_rules import RiskRules
from scanner.preview.rules import list_webhooks
from scanner.preview.verdict import DIFFERS, Decision, Effect
from scanner.preview.workload_risks import (
    NO_RISKS,
    Action,
    Certainty,
    ControlledPods,
    ObjectRisks,
    PageRisks,
    PodTemplate,
    Risk,
    WantedRequest,
    share_texts,
)
from scanner.scan.lists import decode_objects
from scanner.scan.prepare import GatheredRules, PreparedScan

_MANAGER: Final = "system:kube-controller-manager"
_ACCOUNT: Final = "system:serviceaccount:kube-system:{}"
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
_STATEFUL: Final = ("apps", "StatefulSet")
"""The controller whose pods have names and claims of their own."""
_SHOWN: Final = 5
_DIFFERS: Final = "the API server decides otherwise about the pod by the rules before the change"


class ObjectRequests:
    """Makes the requests about objects, page by page, in any process: all that they need of the cluster is read before."""

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

        With an `asker`, each risk keeps its request, and so does each template, for `ask`.
        """
        self._gathered, self._rules, self._as_manager, self._asker = gathered, rules, as_manager, asker
        self._keys = prepared.context.kept_keys
        self._user = prepared.evaluation_context.user
        self._observed: set[PodTemplate] = set()
        self._refused: set[PodTemplate] = set()
        kinds = gathered.discovery.kinds
        if any(concerns_plugins(kind) and rules.may_concern(kind) for kind in kinds):
            rules.plugin_objects.load()
        self._creates = PODS in kinds and rules.may_concern(PODS)
        makes = self._creates or any(map(rules.may_concern, MADE_FOR.values()))
        self._webhooks = list_webhooks(gathered.listing, gathered.discovery) if makes else ((), ())

    def list_kinds(self, compared: Iterable[Kind]) -> Iterator[Kind]:
        """The kinds about whose objects there are requests, those between a pod and its workload first.

        `compared` are the kinds that are listed in any case: their objects may have finalizers.
        """
        kinds = {(kind.group, kind.plural): kind for kind in reversed(self._gathered.discovery.kinds)}
        yield from [PODS] if self._creates else []
        for key in _WITH_TEMPLATES:
            kind, made = kinds.get(key), MADE_FOR.get(key)
            if kind and (self._creates or any(map(self._rules.may_concern, filter(None, (kind, made))))):
                yield kind
        for kind in compared:
            if (kind.group, kind.plural) not in _WITH_TEMPLATES and kind != PODS and self._rules.may_concern(kind):
                yield kind

    def list_notes(self) -> Iterator[str]:
        """The webhooks without which templates were decided: a template that passes has no row of its own."""
        names = [
            f"{each.name} of {each.configuration}"
            for each in self._webhooks[0]
            if each.changes and any(could_match(rule, PODS, ("CREATE",)) for rule in each.match.rules)
        ]
        if self._creates and names and self._asker is None:
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            yield (
                f"templates that pass were decided without the webhooks that may change pods: {', '.join(names[:_SHOWN])}{more}. "
                "With a live cluster, --ask-server asks about them"
            )

    def find_risks(
        self, page: Page, identities: Iterable[str], records: Mapping[str, PopulationMember] | None = None
    ) -> PageRisks:
        """The risks of the objects of a page with some identities, each once. `records` has records that are made already."""
        has_template = (page.kind.group, page.kind.plural) in _WITH_TEMPLATES
        if page.kind != PODS and not has_template and b'"finalizers"' not in page.data:
            return NO_RISKS
        records = records or {}
        objects: list[ObjectRisks] = []
        pods: dict[PodTemplate, ControlledPods] = {}
        gaps: list[Gap] = []
        try:
            for resource in self._decode(page, {*identities}):
                member = records.get(get_identity(resource)) or share_texts(record_object(resource, self._keys))
                if page.kind == PODS:
                    found = self._check_pod(resource, member, pods)
                elif has_template:
                    found = self._check_template(resource, member)
                else:
                    found = ObjectRisks(member, tuple(self._finalize(resource, member)))
                if found.risks or has_template:
                    objects.append(found)
        except ValueError as error:
            why = f"workloads that could not start again may be missing: {error}"
            gaps.append(Gap(GapKind.OBJECT, f"{page.kind.api_version}/{page.kind.kind}", why))
        return PageRisks(tuple(objects), tuple(pods.values()), tuple(gaps))

    def _decode(self, page: Page, identities: set[str]) -> Iterator[Resource]:
        for resource in decode_objects(page, withheld=self._gathered.discovery.withholds):
            if (identity := get_identity(resource)) in identities:
                identities.discard(identity)
                yield resource

    def _check_pod(
        self, pod: Resource, member: PopulationMember, pods: dict[PodTemplate, ControlledPods]
    ) -> ObjectRisks:
        """The risks of a pod of its own; what becomes of the pods of its controller is added to `pods`."""
        risks = list(self._finalize(pod, member))
        controller, running = member.controller, int(dig(pod.body, "status", "phase") == "Running")
        if controller is None:
            risks += self._recreate(pod, member, self._user)
            return ObjectRisks(member, tuple(risks), running=running, has_controller=False)
        if controller.kind == "Node":
            return ObjectRisks(member, tuple(risks))  # a static pod: the kubelet runs it from a file
        own = self._observe(pod, member, controller, running)
        known = pods.get(own.template)
        pods[own.template] = known.add(own) if known else own
        return ObjectRisks(member, tuple(risks))

    def _observe(self, pod: Resource, member: PopulationMember, controller: Controller, running: int) -> ControlledPods:
        """A pod of a controller, evaluated if it is the first one of a template, or if the pods differ and none of those before is refused."""
        creator = find_creator(*controller.group_kind)
        pods = ControlledPods(
            member,
            running,
            None,
            is_named=creator is None,
            differ=creator is None or controller.group_kind == _STATEFUL,
            revision=find_pod_revision(pod, controller),
        )
        # A living pod has what the mutating policies before the change gave it: the template decides if they differ.
        if (creator and self._rules.changes_mutation) or pods.template in (
            self._refused if pods.differ else self._observed
        ):
            return pods
        self._observed.add(pods.template)
        evaluated = replace(pods, risks=tuple(self._recreate(pod, member, self._name_user(creator) or self._user)))
        if evaluated.is_refused:
            self._refused.add(evaluated.template)
        return evaluated

    def _check_template(self, resource: Resource, member: PopulationMember) -> ObjectRisks:
        """The risks of an object with a template. Living pods, if there are any, show more than the template."""
        risks = list(self._finalize(resource, member))
        between, kind = member.controller is not None, resource.kind
        revision = find_template_revision(resource)
        observed = (member.uid, "") in self._observed and not revision
        if self._creates and not between and not observed and (made := make_pod(resource)):
            pod, user = made
            risks += self._create(pod, member, self._name_user(user) or user, Certainty.TEMPLATE)
        if not between and (next_object := make_between(resource)):
            # Without its next Job a CronJob starts no pod; the pods of a Deployment go on without its next ReplicaSet.
            action = Action.UPDATE if (kind.group, kind.plural) == ("apps", "deployments") else Action.RECREATE
            user = self._name_user(next_object.user) or next_object.user
            risks += self._create(next_object.resource, member, user, Certainty.TEMPLATE, action)
        if self._rules.may_concern(kind):
            account = UPDATED_BY.get((kind.group, kind.plural)) if between else None
            if updater := self._name_user(build_user_info(_ACCOUNT.format(account))) if account else None:
                risks += self._update(Action.UPDATE, resource, resource.body, member, updater)
            if not between:
                risks += self._update(Action.EDIT, resource, resource.body, member, self._user)
        replicas = dig(resource.body, "spec", "replicas")
        wanted = replicas if isinstance(replicas, int) else None
        return ObjectRisks(
            member,
            tuple(risks),
            wanted,
            has_template=True,
            revision=revision,
            keeps_earlier=keeps_earlier_pods(resource),
        )

    def _name_user(self, user: UserInfo | None) -> UserInfo | None:
        return build_user_info(_MANAGER) if user and self._as_manager else user

    def _recreate(self, pod: Resource, member: PopulationMember, user: UserInfo) -> Iterator[Risk]:
        return self._create(scrub_pod(pod), member, user, Certainty.OBSERVED)

    def _create(
        self,
        resource: Resource,
        member: PopulationMember,
        user: UserInfo,
        certainty: Certainty,
        action: Action = Action.RECREATE,
    ) -> Iterator[Risk]:
        """The risk that a pod cannot be created, or the object that makes it."""
        if not self._rules.may_concern(resource.kind):
            return
        made = certainty is Certainty.TEMPLATE
        schema = self._rules.after.schemas.schema(resource.kind)
        if self._rules.knows_objects:
            requested = make_stored_request(resource, schema) if made else Requested(resource, schema)
            if not (made and self._asker) and self._rules.passes(requested.resource, None, user):
                return
        else:
            try:
                requested = make_request(resource, None, schema)
            except Refused:
                return  # in both cases
        decisions = self._rules.compare(requested, user, made=made)
        if made and any(each.effect is Effect.REFUSES for each in decisions):
            decisions = tuple(self._list_changing_webhooks(requested.resource)) or decisions
        if decisions or (made and self._asker):
            yield self._make_risk(action, certainty, member, requested, user, decisions)

    def _make_risk(
        self,
        action: Action,
        certainty: Certainty,
        member: PopulationMember,
        requested: Requested,
        user: UserInfo,
        decisions: tuple[Decision, ...],
    ) -> Risk:
        wanted = WantedRequest(requested.resource, requested.old, user) if self._asker else None
        return Risk(action, certainty, member, user.username, decisions, wanted)

    def ask(self, risk: Risk) -> Risk | None:
        """The risk with the answer of the API server; None if the pod that it would store for a template is no risk."""
        if self._asker is None or risk.wanted is None:
            return risk
        wanted = risk.wanted
        schema = self._rules.after.schemas.schema(wanted.resource.kind)
        asked = self._asker.ask(Requested(wanted.resource, schema, wanted.old), wanted.user)
        risk = replace(risk, server=self._asker.compare(asked, self._rules.decide_before), wanted=None)
        if risk.certainty is not Certainty.TEMPLATE:
            return risk
        is_pod = wanted.resource.kind == PODS
        if is_pod and asked.stored and asked.user == wanted.user and self._rules.same_objects:
            pod = scrub_pod(resource_of(PODS, asked.stored))
            decisions = self._rules.compare(make_request(pod, None, schema), wanted.user)
            decisions = tuple(self._list_changing_webhooks(pod, newly=True)) or decisions
            risk = replace(risk, certainty=Certainty.ASKED, decisions=decisions)
        if risk.server and risk.server.compared == DIFFERS and not risk.decisions:
            risk = replace(risk, decisions=(Decision(Effect.UNDECIDED, _DIFFERS),))
        return risk if risk.decisions else None

    def _list_changing_webhooks(self, made: Resource, *, newly: bool = False) -> Iterator[Decision]:
        """A decision for each webhook that may change an object before policies read it, and one if they cannot be listed.

        If `newly`, only those that labels of a namespace bring in with the change.
        """
        webhooks, gaps = self._webhooks
        before, after = (
            make_target(made, made.kind, "CREATE", rules.context) for rules in (self._rules.before, self._rules.after)
        )
        for each in webhooks:
            if each.changes and each.may_receive(after) and not (newly and each.may_receive(before)):
                why = f"the webhook, of {each.configuration}, may change the {made.kind.kind} before policies read it"
                yield Decision(Effect.UNDECIDED, why, policy=each.name)
        yield from (Decision(Effect.UNDECIDED, gap.why) for gap in gaps if not newly)

    def _finalize(self, resource: Resource, member: PopulationMember) -> Iterator[Risk]:
        """The risk that an object cannot be deleted: the update that removes its finalizers would be refused."""
        metadata = as_object(resource.body.get("metadata"))
        finalizers = texts(metadata.get("finalizers"))
        if not finalizers or not self._rules.may_concern(resource.kind):
            return
        account = FINALIZED_BY.get(finalizers[0])
        user = self._name_user(build_user_info(_ACCOUNT.format(account))) if account else self._user
        without = {**resource.body, "metadata": {key: each for key, each in metadata.items() if key != "finalizers"}}
        yield from self._update(Action.FINALIZE, resource, without, member, user or self._user)

    def _update(
        self, action: Action, resource: Resource, body: JsonObject, member: PopulationMember, user: UserInfo
    ) -> Iterator[Risk]:
        """The risk that an object cannot be updated to a body."""
        updated = resource_of(resource.kind, body)
        if self._rules.passes(updated, resource, user):
            return
        requested = Requested(updated, self._rules.after.schemas.schema(resource.kind), resource)
        if decisions := self._rules.compare(requested, user):
            yield self._make_risk(action, Certainty.STORED, member, requested, user, decisions)
