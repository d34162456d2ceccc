"""Everything that is settled before the first object is evaluated: policies, params, namespaces, and the lists to make."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from fnmatch import fnmatchcase

from scanner.admission.context import World
from scanner.admission.dispatch import Bound
from scanner.audit.page import Judge
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
    Outside,
    Scope,
)
from scanner.policies.kyverno import bind as kyverno
from scanner.policies.kyverno import health as kyverno_health
from scanner.policies.kyverno.bind import Circumstances
from scanner.policies.kyverno.inventory import Inventory
from scanner.policies.kyverno.modes import MANNERS
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
from scanner.scan.policy_set import Rulebook, namespaces_needed, rulebook


def prepare(cluster: Cluster, options: Options, now: datetime, *, ahead: bool = False) -> PreparedScan:
    """What a scan with these options would judge at a moment, and by what. Raises like `run`.

    With `ahead` the cluster hears early what will be judged: the first pages come while policies are compiled.
    """
    identity = cluster.identity()
    discovery = cluster.discover()
    listing = ScanLists(cluster, options.scope, ahead=ahead)
    documents = _policy_documents(listing, discovery, options)
    rules = rulebook(documents, options, discovery.kinds, identity.release.rules)
    viewer = ScanContext(identity, options.user or cluster.requester(), options.scope)
    inventory = Inventory(discovery.kinds, rules.entries, options.parse, options.network)
    manner = MANNERS[options.kyverno_compat]
    own = own_configuration(listing, discovery, rules, viewer, options)
    circumstances = Circumstances(now, manner, inventory, viewer.operations, own.configuration)
    kyvernos = kyverno.bind(rules.kyverno, rules.exceptions, circumstances)
    setting = _setting(listing, discovery, rules, viewer, kyvernos, inventory)
    _reject_unknown(options.scope, discovery, setting)
    setting = replace(setting, outside=(*setting.outside, *own.outside))
    gaps = (*options.gaps, *discovery.gaps, *rules.gaps, *own.gaps, *setting.gaps)
    return PreparedScan(viewer, rules, setting, listing, gaps, kyvernos, inventory)


@dataclass(frozen=True, slots=True)
class PreparedScan:
    """A cluster as a scan sees it before it judges the first object."""

    viewer: ScanContext
    rules: Rulebook
    setting: EvaluationPlan
    listing: ScanLists
    gaps: tuple[Gap, ...]
    kyverno: tuple[Bound, ...]
    inventory: Inventory

    @property
    def cluster(self) -> ClusterIdentity:
        """Which cluster it is."""
        return self.viewer.cluster

    @property
    def world(self) -> World:
        """What objects are judged by."""
        return self.setting.judge.world

    @property
    def plans(self) -> tuple[KindPlan, ...]:
        """The lists to make, as far as the scope goes."""
        return tuple(plan for plan in self.setting.plans if not self.listing.left_out(plan.kind))

    def objects(self, kind: Kind) -> Iterator[Resource]:
        """Every object of a kind that is within the scope. Raises ListFailed, and ValueError for an unreadable page."""
        excluded = self.viewer.scope.exclude_namespaces
        for pages in self.listing.judged(kind):
            for resource in (found for page in pages for found in resources_of(page)):
                if not any(fnmatchcase(resource.namespace, pattern) for pattern in excluded):
                    yield resource


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """Everything that is known before the first object is judged."""

    judge: Judge
    plans: tuple[KindPlan, ...]
    bound: tuple[Bound, ...]
    health: tuple[Health, ...]
    gaps: tuple[Gap, ...]
    outside: tuple[Outside, ...]


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
    rules: Rulebook,
    viewer: ScanContext,
    kyvernos: tuple[Bound, ...],
    inventory: Inventory,
) -> EvaluationPlan:
    kinds = discovery.kinds
    namespaces, trouble = load_namespaces(listing, kinds)
    listing.expect(lists(kinds, _in_force(rules, kyvernos), viewer.operations))
    bound = (*_bound(listing, rules, viewer), *kyvernos)
    params = ParamTable(kinds)
    blind = (
        *_unknown_param_kinds(bound, params, discovery),
        *load_params(listing, params, bound, rules),
        *load_inventory(listing, inventory, kyvernos),
        *(
            policy_gap(entry, "it needs namespaces, which could not be listed")
            for entry in bound
            if trouble and namespaces_needed(entry)
        ),
    )
    unseen = {gap.where for gap in blind}
    sighted = tuple(entry for entry in bound if policy_label(entry) not in unseen)
    world = World(
        params=params,
        namespaces=namespaces,
        implied_namespaces=viewer.files or trouble is not None,
        equivalents=equivalents(kinds),
        user=viewer.user,
        operations=viewer.operations,
        authorizer=_authorizer(listing, sighted, viewer),
    )
    judge = Judge(world, viewer.scope.exclude_namespaces, by_name=viewer.files)
    others = [entry for entry in sighted if not kyverno_health.is_kyverno(entry)]
    health = (
        *rules.health,
        *health_before(rules.policies, others, kinds, world),
        *native_comparisons.of_policies(others, kinds),
        *mutation_order.of_policies(others, kinds, viewer.rules),
        *kyverno_health.of_policies(rules.kyverno, kyvernos, kinds),
    )
    return EvaluationPlan(
        judge=judge,
        plans=plan(kinds, sighted, viewer.operations),
        bound=sighted,
        health=health,
        gaps=(*((trouble,) if trouble else ()), *blind),
        outside=tuple(outside_of(listing, kinds)),
    )


def _in_force(rules: Rulebook, kyvernos: Iterable[Bound]) -> Iterator[Policy]:
    """The policies that something binds, not compiled yet."""
    named = {binding.policy_key for binding in rules.bindings}
    yield from (policy for policy in rules.policies if policy.key in named)
    yield from (entry.policy for entry in kyvernos)


def _bound(listing: ScanLists, rules: Rulebook, viewer: ScanContext) -> tuple[Bound, ...]:
    """The policies in force, of every language."""
    checking = [policy for policy in rules.policies if policy.language != mutating.LANGUAGE]
    changing = [policy for policy in rules.policies if policy.language == mutating.LANGUAGE]
    of_changing = [binding for binding in rules.bindings if binding.language == mutating.LANGUAGE]
    bound = bind(
        checking,
        [binding for binding in rules.bindings if binding.language != mutating.LANGUAGE],
        viewer.operations,
        viewer.rules,
        listing.relay,
    )
    if not changing or not of_changing:
        return bound
    return (*bound, *mutating.bind(changing, of_changing, listing.relay, viewer.operations, viewer.rules))


def _authorizer(listing: ScanLists, bound: Iterable[Bound], viewer: ScanContext) -> Decider | None:
    """Who answers, if any policy asks: nobody is asked about nobody."""
    asks = any(Auditability.AUTHORIZER in entry.reading.classes for entry in bound)
    return listing.authorizer() if asks and viewer.user.username else None


def _unknown_param_kinds(bound: Iterable[Bound], params: ParamTable, discovery: Discovery) -> Iterator[Gap]:
    """Policies whose paramKind may well be served, by an API group that did not answer."""
    silent = {gap.where for gap in discovery.gaps if gap.kind is GapKind.DISCOVERY}
    for entry in bound:
        kind = entry.policy.param_kind
        if kind and params.kind(kind) is None and silent & {kind.api_version, "/api", "/apis"}:
            yield policy_gap(entry, f"its paramKind {kind.kind} belongs to {kind.api_version}, which did not answer")
