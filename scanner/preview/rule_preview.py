"""Compares what admission decides about the objects of a cluster by its rules, and by the same rules with a change.

One stream of objects, two sets of rules: only the policies that the change can concern are evaluated twice. Nothing is stored (ADR 91).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from scanner.admission.dispatch import BoundPolicy
from scanner.audit.evidence import EvidenceParts
from scanner.audit.population import record_object
from scanner.errors import UsageError
from scanner.model.outcome import Gap, GapKind, WouldChange
from scanner.model.policy import PolicyKey, policy_label
from scanner.model.population import NOTHING_KEPT, GroupKind, KeptOfObject, PopulationMember, Workload
from scanner.model.resource import NAMESPACES, Kind, resource_of
from scanner.model.scans.out_of_scope import Unneeded
from scanner.model.scans.scan import ClusterIdentity, Coverage, PageResult, ScanEnd
from scanner.policies.plan import KindPlan, plan
from scanner.posture.owners import Owners
from scanner.posture.workloads import Workloads
from scanner.preview.admission_request import explain_client
from scanner.preview.asked_requests import RequestAsker, RequestWriter
from scanner.preview.differences import Difference, ObjectDifference, PolicyDifference
from scanner.preview.object_requests import ObjectRequests
from scanner.preview.page_pair import ComparedPage, PageChanges, PagePair, Side, unpack_changes
from scanner.preview.risk_rules import make_risk_rules, may_deny
from scanner.preview.rule_change import Cause, RuleChange, apply_change
from scanner.preview.verdict import API_SERVER, DIFFERS
from scanner.preview.workload_risks import CONTROL_PLANE, RiskFinder, WorkloadRisks, keep_metadata
from scanner.scan.edges import Cluster, PageSink, Progress
from scanner.scan.options import Options
from scanner.scan.policy_set import needs_namespaces
from scanner.scan.prepare import GatheredRules, PreparedScan, gather, plan_scan
from scanner.scan.record import ScanRecorder
from scanner.scan.unlabelled import make_policy_gap
from scanner.scan.workers.pool import Workers
from scanner.scan.workers.process import collect_rarely

_ROLLED_OUT: Final = frozenset({("apps", "Deployment"), ("apps", "StatefulSet"), ("apps", "DaemonSet")})
"""The kinds whose controllers replace the pods when the template changes."""
_TEMPLATE: Final = "/spec/template/"
DEFAULT_OWNERS: Final = Owners()
"""The owners that the labels `team` and `owner` name."""


@dataclass(frozen=True, slots=True)
class PreviewedObject:
    """An object for which the change of rules changes something, with its workload.

    `is_control_plane` marks the cluster's own namespaces. `replicas` is the wanted number of its pods, None if it has none in its spec.
    """

    difference: ObjectDifference
    workload: Workload
    owner: str = ""
    replicas: int | None = None

    @property
    def restarts_pods(self) -> bool:
        """Return whether mutating policies would change the template of the pods at the next apply, so that its controller replaces them."""
        key = self.object.kind.group, self.object.kind.kind
        outcomes = (finding.outcome for each in self.difference.policies for finding in each.after)
        return key in _ROLLED_OUT and any(
            change.path.startswith(_TEMPLATE)
            for outcome in outcomes
            if isinstance(outcome, WouldChange) and not outcome.undone
            for change in outcome.together or outcome.patch
        )

    @property
    def object(self) -> PopulationMember:
        """The object."""
        return self.difference.object

    @property
    def is_control_plane(self) -> bool:
        """Return whether the object is in a namespace of the cluster itself."""
        return self.object.namespace in CONTROL_PLANE


@dataclass(frozen=True, slots=True)
class PreviewResult:
    """What a change of rules would change for the objects of a cluster.

    `causes` are the parts of the change, `objects` those that it concerns, and `workloads` those that could no longer start, be
    updated or deleted, both the worst first. `examined` counts the objects that were evaluated by the changed policies, `policies` those
    policies. `gaps` make the preview incomplete, `notes` do not. `asked` counts the requests about which the API server was asked, by how
    its answers relate to the decisions; None if it was not to be asked.
    """

    cluster: ClusterIdentity
    user: str
    causes: tuple[Cause, ...]
    objects: tuple[PreviewedObject, ...]
    workloads: tuple[WorkloadRisks, ...] = ()
    policies: tuple[PolicyKey, ...] = ()
    examined: int = 0
    coverage: tuple[Coverage, ...] = ()
    gaps: tuple[Gap, ...] = ()
    notes: tuple[str, ...] = ()
    asked: Mapping[str, int] | None = None

    @property
    def is_complete(self) -> bool:
        """Return whether every object and every request of a controller was decided by both sets of rules."""
        undecided = any(each.difference.worst is Difference.UNDECIDED for each in self.objects)
        of_workloads = any(not risk.is_refused for each in self.workloads for risk in each.risks)
        return not (self.gaps or undecided or of_workloads)

    @property
    def differs(self) -> bool:
        """Return whether the API server decided otherwise about some request."""
        return bool(self.asked and self.asked.get(DIFFERS))

    def find_causes(self, each: PolicyDifference, namespace: str) -> tuple[Cause, ...]:
        """The parts of the change that concern a policy, about objects of a namespace."""
        of_policy = (
            cause for cause in self.causes if _concerns(cause, each.policy, self._param_kinds.get(each.policy))
        )
        return tuple(cause for cause in of_policy if cause.namespace in ("", namespace))

    _param_kinds: Mapping[PolicyKey, tuple[str, str]] = field(default_factory=dict)


def _concerns(cause: Cause, policy: PolicyKey, param_kind: tuple[str, str] | None) -> bool:
    """Return whether a part of the change can change what a policy decides."""
    language, name = policy
    if cause.param_kind[1]:
        return cause.param_kind == param_kind
    return (not cause.languages or language in cause.languages) and (not cause.names or name in cause.names)


def preview(
    cluster: Cluster,
    change: RuleChange,
    options: Options,
    now: datetime,
    *,
    owners: Owners = DEFAULT_OWNERS,
    as_manager: bool = False,
    writer: RequestWriter | None = None,
    progress: Progress = lambda _: None,
    workers: int = 1,
    fork_after_bytes: int = 0,
) -> PreviewResult:
    """Compare the rules of a cluster with the same rules after a change, on every object that a changed policy can match.

    `owners` names the teams. The requests of controllers are made by their own service accounts, or `as_manager` by the one user of
    kube-controller-manager. With a `writer`, the API server is asked about requests under its own rules. Raises ClusterError if the
    cluster cannot be reached, and UsageError for a change that changes nothing that exists.
    """
    gathered = gather(cluster, options, keep_lists=True)
    changed, causes = apply_change(change, gathered, options.languages)
    before, after = plan_scan(gathered, options, now), plan_scan(changed, options, now)
    _reject_refused(change, after)
    sides = _split(before, after, causes)
    risk_rules = make_risk_rules(before, after, sorted(sides.changed))
    asker = RequestAsker(writer, cluster.requester()) if writer else None
    requests = ObjectRequests(gathered, risk_rules, after, as_manager=as_manager, asker=asker)
    compared = tuple(each.kind for each in sides.plans)
    requested = frozenset(requests.list_kinds(compared))
    plans = (*sides.plans, *(KindPlan(kind, ()) for kind in sorted(requested.difference(compared))))
    finder = RiskFinder(gathered, after)
    comparer = _Comparer()
    recorder = ScanRecorder(comparer, "", progress)
    recorder.gaps = [*dict.fromkeys((*before.gaps, *after.gaps, *_list_by_client(before, after, sides.changed)))]
    evaluation = replace(after.evaluation, plans=plans)
    single = any(language.single_process for language in options.languages)
    gathered.listing.fetch_ahead()
    with (
        collect_rarely(),
        Workers(
            PagePair(sides.before, sides.after, sides.others, requests, requested),
            plans,
            gathered.listing.relay,
            cluster.pause,
            count=1 if single else workers,
            fork_after_bytes=fork_after_bytes,
        ) as pool,
    ):
        recorder.record(evaluation, gathered.listing, pool)
    differences: list[ObjectDifference] = []
    for changes in comparer.take_changes():
        differences += changes.differences
        finder.add(changes.risks)
    workloads = finder.read_workloads(each.object for each in differences)
    recorder.notes += [*finder.notes, *requests.list_notes()]
    objects = _add_workloads(differences, workloads, gathered, after, owners)
    objects = [replace(each, replicas=finder.find_replicas(each.object)) for each in objects]
    risks = finder.conclude(owners, workloads, requests.ask)
    for why in asker.reasons if asker else ():
        recorder.gaps.append(Gap(GapKind.EVALUATION, API_SERVER, f"could not be asked: {why}"))
    end = recorder.end(replace(after, evaluation=evaluation), now, options)
    places = {f"{kind.api_version}/{kind.kind}": kind in compared for kind in (*compared, *requested)}
    coverage = tuple(each for each in end.coverage if places[f"{each.api_version}/{each.kind}"])
    return PreviewResult(
        cluster=gathered.identity,
        user=gathered.user.username,
        causes=causes,
        objects=tuple(sorted(objects, key=_rank)),
        workloads=risks,
        policies=tuple(sorted(sides.changed)),
        examined=sum(each.objects for each in coverage),
        coverage=coverage,
        gaps=tuple(_explain(gap, places) for gap in end.gaps),
        notes=tuple(_list_notes(end, comparer)),
        asked=asker.counts if asker else None,
        _param_kinds=_list_param_kinds((*before.evaluation.bound, *after.evaluation.bound)),
    )


def _list_by_client(before: PreparedScan, after: PreparedScan, changed: Collection[PolicyKey]) -> Iterator[Gap]:
    """A gap for each changed policy that reads what the client of a request chooses: objects are compared as in a dry run."""
    for bound in (*before.evaluation.bound, *after.evaluation.bound):
        if bound.policy.key in changed and (why := explain_client(bound)):
            yield make_policy_gap(bound, why)


def _explain(gap: Gap, places: Mapping[str, bool]) -> Gap:
    """The gap; without the list of a kind that is not compared, only requests about its objects are missing."""
    if gap.kind is not GapKind.LIST or places.get(gap.where, True):
        return gap
    return replace(gap, why=f"workloads that could not start again may be missing: {gap.why}")


def _list_notes(end: ScanEnd, comparer: _Comparer) -> Iterator[str]:
    yield from end.notes
    for (language, name), number in sorted(comparer.not_auditable.items()):
        yield f"{language} {name}: only a server can decide {number:,} of its checks"


def _reject_refused(change: RuleChange, after: PreparedScan) -> None:
    """Raise UsageError for a manifest of the change that the API would refuse, or that is no rule: it would change nothing."""
    sources = {manifest.source for manifest in change.manifests}
    for gap in after.gaps:
        if gap.kind is GapKind.DOCUMENT and gap.where in sources:
            raise UsageError(f"-f: {gap.where}: {gap.why}")
    for item in after.evaluation.outside:
        if item.kind == Unneeded.UNUSED_DOCUMENT and item.name in sources:
            raise UsageError(f"-f: {item.name}: {item.why}")


def _list_param_kinds(bound: Iterable[BoundPolicy]) -> dict[PolicyKey, tuple[str, str]]:
    return {
        each.policy.key: (kind.api_version.rpartition("/")[0], kind.kind)
        for each in bound
        if (kind := each.policy.param_kind)
    }


@dataclass(frozen=True, slots=True)
class _Sides:
    """The two sides of a comparison, the policies that are on both, the kinds to list, and the policies that the change concerns."""

    before: Side
    after: Side
    others: Side
    plans: tuple[KindPlan, ...]
    changed: frozenset[PolicyKey]


def _split(before: PreparedScan, after: PreparedScan, causes: Sequence[Cause]) -> _Sides:
    """Split the policies into those that the change can concern, and the others."""
    # A policy that one side cannot evaluate would seem to admit everything there: a gap names it.
    unknown = {gap.where for gap in (*before.gaps, *after.gaps)}
    changed = frozenset(key for key in _find_changed(before, after, causes) if policy_label(key) not in unknown)
    one, other = sides = [
        _make_side(each, [bound for bound in each.evaluation.bound if bound.policy.key in changed])
        for each in (before, after)
    ]
    others = _make_side(
        after,
        [
            bound
            for bound in after.evaluation.bound
            if bound.policy.key not in changed and policy_label(bound.policy.key) not in unknown and may_deny(bound)
        ],
        EvidenceParts.NONE,
    )
    kinds = sorted({*sides[0].plans, *sides[1].plans})
    plans = tuple(KindPlan(kind, _join_plans(kind, sides)) for kind in kinds)
    return _Sides(one, other, others, plans, changed)


def _join_plans(kind: Kind, sides: Iterable[Side]) -> tuple[tuple[BoundPolicy, Kind], ...]:
    return tuple(each for side in sides if kind in side.plans for each in side.plans[kind].policies)


def _make_side(
    prepared: PreparedScan, bound: Sequence[BoundPolicy], parts: EvidenceParts = EvidenceParts.REASONS
) -> Side:
    context = prepared.evaluation_context
    plans = plan(prepared.served, bound, context.operations, context.relabelled)
    evaluator = replace(prepared.evaluation.page_evaluator, fast_paths={}, evidence=parts)
    return Side(evaluator, {each.kind: each for each in plans})


def _find_changed(before: PreparedScan, after: PreparedScan, causes: Sequence[Cause]) -> frozenset[PolicyKey]:
    """The policies whose decisions can differ. Policies that change objects act together: if one may differ, all may."""
    sides = [{bound.policy.key: bound for bound in each.evaluation.bound} for each in (before, after)]
    params = _list_param_kinds((*sides[0].values(), *sides[1].values()))
    changed = {
        key
        for key in {*sides[0], *sides[1]}
        if (forms := [side.get(key) for side in sides])
        and (_describe(forms[0]) != _describe(forms[1]) or _is_concerned(key, forms, params.get(key), causes))
    }
    mutating = {key for side in sides for key, bound in side.items() if bound.combination is not None}
    return frozenset(changed | mutating if changed & mutating else changed)


def _describe(bound: BoundPolicy | None) -> object:
    """The parts of a policy that decide, besides params and namespaces; None for one that is not in force."""
    return bound and (
        bound.policy.digest,
        [(each.name, each.digest, each.actions, each.match, each.param_ref) for each in bound.bindings],
    )


def _is_concerned(
    key: PolicyKey, forms: Iterable[BoundPolicy | None], param_kind: tuple[str, str] | None, causes: Iterable[Cause]
) -> bool:
    of_policy = [cause for cause in causes if _concerns(cause, key, param_kind)]
    return any(not cause.namespace for cause in of_policy) or (
        bool(of_policy) and any(bound is not None and needs_namespaces(bound) for bound in forms)
    )


class _Comparer(PageSink):
    """The store of a preview: it keeps the changes of each page, packed, and nothing else."""

    def __init__(self) -> None:
        self._pages: list[bytes] = []
        self.not_auditable: Counter[PolicyKey] = Counter()

    def write_page(self, scan_id: str, result: PageResult) -> None:
        """Keep the changes of a page."""
        del scan_id
        if isinstance(result, ComparedPage):
            self._pages.append(result.changes)
            self.not_auditable.update(result.not_auditable or {})

    def take_changes(self) -> Iterator[PageChanges]:
        """The changes of each page, in their order; the page is kept no longer."""
        self._pages.reverse()
        while self._pages:
            yield unpack_changes(self._pages.pop())

    def write_controllers(self, scan_id: str, kind: Kind, objects: bytes) -> None:
        """Keep nothing."""
        del scan_id, kind, objects

    def workload_kinds(self, scan_id: str) -> Collection[GroupKind]:
        """No kind: there is no history."""
        del scan_id
        return ()


def _add_workloads(
    differences: Sequence[ObjectDifference],
    workloads: Workloads,
    gathered: GatheredRules,
    after: PreparedScan,
    owners: Owners,
) -> list[PreviewedObject]:
    """The objects with their workloads and owners."""
    keys = after.context.kept_keys
    bodies = gathered.namespaces.by_name.items()
    namespaces = {name: keep_metadata(record_object(resource_of(NAMESPACES, body), keys)) for name, body in bodies}
    return [
        PreviewedObject(
            each,
            workloads.find(each.object),
            owners(
                KeptOfObject(keep_metadata(each.object), namespace=namespaces.get(each.object.namespace, NOTHING_KEPT))
            ),
        )
        for each in differences
    ]


_WORST: Final = tuple(Difference)


def _rank(each: PreviewedObject) -> tuple[int, bool, str, str, str, str]:
    workload = each.workload
    return (
        _WORST.index(each.difference.worst),
        not each.is_control_plane,
        each.object.namespace,
        workload.kind,
        workload.name,
        each.object.name,
    )
