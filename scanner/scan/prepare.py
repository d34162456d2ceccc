"""Everything that is settled before the first object is evaluated: policies, params, namespaces, and the lists to make."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from fnmatch import fnmatchcase

from scanner.admission.context import EvaluationContext
from scanner.admission.dispatch import BoundPolicy
from scanner.audit.page import PageEvaluator
from scanner.cel import Decider
from scanner.errors import ListFailed, UsageError
from scanner.health import health_before, mutation_order, native_comparisons
from scanner.model.outcome import Gap, GapKind
from scanner.model.policy import Policy
from scanner.model.reading import Auditability
from scanner.model.resource import Kind, Resource
from scanner.model.scan import (
    ClusterIdentity,
    Health,
    OutOfScope,
    Scope,
)
from scanner.policies.kyverno import bind as kyverno
from scanner.policies.kyverno import health as kyverno_health
from scanner.policies.kyverno.bind import KyvernoContext
from scanner.policies.kyverno.inventory import Inventory
from scanner.policies.kyverno.modes import MODES
from scanner.policies.mutating import bind as mutating
from scanner.policies.plan import KindPlan, equivalents, lists, plan
from scanner.policies.validating.bind import bind
from scanner.scan.context import ScanContext
from scanner.scan.documents import Manifest, policy_kinds
from scanner.scan.edges import Cluster, Discovery
from scanner.scan.gaps import policy_gap, policy_label
from scanner.scan.kyverno_configuration import own_configuration
from scanner.scan.lists import ScanLists, names_kind, resources_of
from scanner.scan.load import load_inventory, load_namespaces, load_params, outside_of
from scanner.scan.options import Options
from scanner.scan.param_table import ParamTable
from scanner.scan.policy_set import PolicySet, namespaces_needed, read_policy_set


def prepare(cluster: Cluster, options: Options, now: datetime, *, ahead: bool = False) -> PreparedScan:
    """What a scan with these options would judge at a moment, and by what. Raises like `run`.

    With `ahead` the cluster hears early what will be judged: the first pages come while policies are compiled.
    """
    identity = cluster.identity()
    discovery = cluster.discover()
    listing = ScanLists(cluster, options.scope, ahead=ahead)
    documents = _policy_documents(listing, discovery, options)
    rules = read_policy_set(documents, options, discovery.kinds, identity.release.rules)
    context = ScanContext(identity, options.user or cluster.requester(), options.scope)
    inventory = Inventory(discovery.kinds, rules.entries, options.parse, options.network)
    mode = MODES[options.kyverno_compat]
    own = own_configuration(listing, discovery, rules, context, options)
    kyverno_context = KyvernoContext(now, mode, inventory, context.operations, own.configuration)
    kyvernos = kyverno.bind(rules.kyverno, rules.exceptions, kyverno_context)
    setting = _setting(listing, discovery, rules, context, kyvernos, inventory)
    _reject_unknown(options.scope, discovery, setting)
    setting = replace(setting, outside=(*setting.outside, *own.outside))
    gaps = (*options.gaps, *discovery.gaps, *rules.gaps, *own.gaps, *setting.gaps)
    return PreparedScan(context, rules, setting, listing, gaps, kyvernos, inventory)


@dataclass(frozen=True, slots=True)
class PreparedScan:
    """A cluster as a scan sees it before it judges the first object."""

    context: ScanContext
    rules: PolicySet
    setting: EvaluationPlan
    listing: ScanLists
    gaps: tuple[Gap, ...]
    kyverno: tuple[BoundPolicy, ...]
    inventory: Inventory

    @property
    def cluster(self) -> ClusterIdentity:
        """Which cluster it is."""
        return self.context.cluster

    @property
    def world(self) -> EvaluationContext:
        """What objects are judged by."""
        return self.setting.judge.world

    @property
    def plans(self) -> tuple[KindPlan, ...]:
        """The lists to make, as far as the scope goes."""
        return tuple(plan for plan in self.setting.plans if not self.listing.left_out(plan.kind))

    def objects(self, kind: Kind) -> Iterator[Resource]:
        """Every object of a kind that is within the scope. Raises ListFailed, and ValueError for an unreadable page."""
        excluded = self.context.scope.exclude_namespaces
        for pages in self.listing.judged(kind):
            for resource in (found for page in pages for found in resources_of(page)):
                if not any(fnmatchcase(resource.namespace, pattern) for pattern in excluded):
                    yield resource


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """Everything that is known before the first object is judged."""

    judge: PageEvaluator
    plans: tuple[KindPlan, ...]
    bound: tuple[BoundPolicy, ...]
    health: tuple[Health, ...]
    gaps: tuple[Gap, ...]
    outside: tuple[OutOfScope, ...]


def _reject_unknown(scope: Scope, discovery: Discovery, setting: EvaluationPlan) -> None:
    """A typing error must not look like a clean cluster. What could not be listed is not called unknown."""
    for pattern in scope.kinds:
        if not discovery.gaps and not any(names_kind(pattern, kind) for kind in discovery.kinds):
            raise UsageError(f"--kind {pattern} matches nothing that the cluster serves: see `kubectl api-resources`")
    for name in scope.namespaces:
        if setting.judge.world.namespace(name) is None:
            raise UsageError(f"--namespace {name}: the cluster has no such namespace: see `kubectl get namespaces`")


def _policy_documents(listing: ScanLists, discovery: Discovery, options: Options) -> Iterator[Manifest | Gap]:
    yield from options.manifests
    if options.cluster_policies:
        for kind in policy_kinds(discovery.kinds):
            try:
                for resource in listing.everything(kind):
                    yield Manifest("cluster", resource.body)
            except (ListFailed, ValueError) as error:
                why = f"policies and bindings may be missing from this scan: {error}"
                yield Gap(GapKind.LIST, f"{kind.api_version}/{kind.kind}", why)


def _setting(
    listing: ScanLists,
    discovery: Discovery,
    rules: PolicySet,
    context: ScanContext,
    kyvernos: tuple[BoundPolicy, ...],
    inventory: Inventory,
) -> EvaluationPlan:
    kinds = discovery.kinds
    namespaces, trouble = load_namespaces(listing, kinds)
    listing.expect(lists(kinds, _in_force(rules, kyvernos), context.operations))
    bound = (*_bound(listing, rules, context), *kyvernos)
    params = ParamTable(kinds)
    unevaluable = (
        *_unknown_param_kinds(bound, params, discovery),
        *load_params(listing, params, bound, rules),
        *load_inventory(listing, inventory, kyvernos),
        *(
            policy_gap(entry, "it needs namespaces, which could not be listed")
            for entry in bound
            if trouble and namespaces_needed(entry)
        ),
    )
    unseen = {gap.where for gap in unevaluable}
    evaluable = tuple(entry for entry in bound if policy_label(entry) not in unseen)
    world = EvaluationContext(
        params=params,
        namespaces=namespaces,
        implied_namespaces=context.files or trouble is not None,
        equivalents=equivalents(kinds),
        user=context.user,
        operations=context.operations,
        authorizer=_authorizer(listing, evaluable, context),
    )
    judge = PageEvaluator(world, context.scope.exclude_namespaces, by_name=context.files)
    others = [entry for entry in evaluable if not kyverno_health.is_kyverno(entry)]
    health = (
        *rules.health,
        *health_before(rules.policies, others, kinds, world),
        *native_comparisons.of_policies(others, kinds),
        *mutation_order.of_policies(others, kinds, context.rules),
        *kyverno_health.of_policies(rules.kyverno, kyvernos, kinds),
    )
    return EvaluationPlan(
        judge=judge,
        plans=plan(kinds, evaluable, context.operations),
        bound=evaluable,
        health=health,
        gaps=(*((trouble,) if trouble else ()), *unevaluable),
        outside=tuple(outside_of(listing, kinds)),
    )


def _in_force(rules: PolicySet, kyvernos: Iterable[BoundPolicy]) -> Iterator[Policy]:
    """The policies that something binds, not compiled yet."""
    named = {binding.policy_key for binding in rules.bindings}
    yield from (policy for policy in rules.policies if policy.key in named)
    yield from (entry.policy for entry in kyvernos)


def _bound(listing: ScanLists, rules: PolicySet, context: ScanContext) -> tuple[BoundPolicy, ...]:
    """The policies in force, of every language."""
    checking = [policy for policy in rules.policies if policy.language != mutating.LANGUAGE]
    changing = [policy for policy in rules.policies if policy.language == mutating.LANGUAGE]
    of_changing = [binding for binding in rules.bindings if binding.language == mutating.LANGUAGE]
    bound = bind(
        checking,
        [binding for binding in rules.bindings if binding.language != mutating.LANGUAGE],
        context.operations,
        context.rules,
        listing.relay,
    )
    if not changing or not of_changing:
        return bound
    return (*bound, *mutating.bind(changing, of_changing, listing.relay, context.operations, context.rules))


def _authorizer(listing: ScanLists, bound: Iterable[BoundPolicy], context: ScanContext) -> Decider | None:
    """Who answers, if any policy asks: nobody is asked about nobody."""
    asks = any(Auditability.AUTHORIZER in entry.reading.classes for entry in bound)
    return listing.authorizer() if asks and context.user.username else None


def _unknown_param_kinds(bound: Iterable[BoundPolicy], params: ParamTable, discovery: Discovery) -> Iterator[Gap]:
    """Policies whose paramKind may well be served, by an API group that did not answer."""
    silent = {gap.where for gap in discovery.gaps if gap.kind is GapKind.DISCOVERY}
    for entry in bound:
        kind = entry.policy.param_kind
        if kind and params.kind(kind) is None and silent & {kind.api_version, "/api", "/apis"}:
            yield policy_gap(entry, f"its paramKind {kind.kind} belongs to {kind.api_version}, which did not answer")
