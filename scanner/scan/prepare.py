"""The preparation of a scan before the first object is evaluated: policies, params, namespaces, and the lists to make."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase

from scanner.admission.context import EvaluationContext
from scanner.admission.dispatch import BoundPolicy
from scanner.audit.page import PageEvaluator
from scanner.cel import Decider
from scanner.errors import ListFailed, UsageError
from scanner.health import health_before
from scanner.model.outcome import Gap, GapKind
from scanner.model.reading import Auditability
from scanner.model.resource import Kind, Resource
from scanner.model.scan import (
    ClusterIdentity,
    Health,
    OutOfScope,
    Scope,
)
from scanner.policies.bound_language import BindingContext, BoundLanguage
from scanner.policies.plan import KindPlan, equivalents, lists, plan
from scanner.scan.context import ScanContext
from scanner.scan.documents import Manifest
from scanner.scan.edges import Cluster, Discovery
from scanner.scan.gaps import policy_gap, policy_label
from scanner.scan.lists import ScanLists, names_kind, resources_of
from scanner.scan.load import load_inventory, load_namespaces, load_params, outside_of
from scanner.scan.options import Options
from scanner.scan.param_table import ParamTable
from scanner.scan.policy_set import PolicySet, namespaces_needed, read_policy_set


def prepare(cluster: Cluster, options: Options, now: datetime, *, ahead: bool = False) -> PreparedScan:
    """Prepare a scan with these options at a moment. Raises like `run`.

    With `ahead` the cluster fetches the first pages while policies are compiled.
    """
    identity = cluster.identity()
    discovery = cluster.discover()
    listing = ScanLists(cluster, options.scope, ahead=ahead)
    documents = _policy_documents(listing, discovery, options)
    rules = read_policy_set(documents, options, discovery.kinds, identity.release.rules)
    context = ScanContext(identity, options.user or cluster.requester(), options.scope)
    around = BindingContext(
        now=now,
        rules=context.rules,
        operations=context.operations,
        schemas=listing.relay,
        served=discovery.kinds,
        user=context.user,
        params=rules.params,
        lists=listing,
    )
    languages = tuple(language.bind(rules.of(language), around) for language in options.languages)
    setting = _setting(listing, discovery, rules, context, languages)
    _reject_unknown(options.scope, discovery, setting)
    own_gaps = (gap for language in languages for gap in language.gaps)
    gaps = (*options.gaps, *discovery.gaps, *rules.gaps, *own_gaps, *setting.gaps)
    return PreparedScan(context, setting, listing, gaps)


@dataclass(frozen=True, slots=True)
class PreparedScan:
    """A prepared scan, before it evaluates the first object."""

    context: ScanContext
    setting: EvaluationPlan
    listing: ScanLists
    gaps: tuple[Gap, ...]

    @property
    def cluster(self) -> ClusterIdentity:
        """The identity of the cluster."""
        return self.context.cluster

    @property
    def world(self) -> EvaluationContext:
        """The context of every evaluation."""
        return self.setting.judge.world

    @property
    def plans(self) -> tuple[KindPlan, ...]:
        """The lists to make within the scope."""
        return tuple(plan for plan in self.setting.plans if not self.listing.left_out(plan.kind))

    def objects(self, kind: Kind) -> Iterator[Resource]:
        """Every object of a kind within the scope. Raises ListFailed, and ValueError for an unreadable page."""
        excluded = self.context.scope.exclude_namespaces
        for pages in self.listing.judged(kind):
            for resource in (found for page in pages for found in resources_of(page)):
                if not any(fnmatchcase(resource.namespace, pattern) for pattern in excluded):
                    yield resource


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """The result of the preparation. `bound` are the policies that can be evaluated."""

    judge: PageEvaluator
    plans: tuple[KindPlan, ...]
    languages: tuple[BoundLanguage, ...]
    bound: tuple[BoundPolicy, ...]
    health: tuple[Health, ...]
    gaps: tuple[Gap, ...]
    outside: tuple[OutOfScope, ...]


def _reject_unknown(scope: Scope, discovery: Discovery, setting: EvaluationPlan) -> None:
    """Raise UsageError for an unknown name, so that a typing error does not look like a clean cluster.

    A name is not unknown if the list that could contain it failed.
    """
    for pattern in scope.kinds:
        if not discovery.gaps and not any(names_kind(pattern, kind) for kind in discovery.kinds):
            raise UsageError(f"--kind {pattern} matches nothing that the cluster serves: see `kubectl api-resources`")
    for name in scope.namespaces:
        if setting.judge.world.namespace(name) is None:
            raise UsageError(f"--namespace {name}: the cluster has no such namespace: see `kubectl get namespaces`")


def _policy_documents(listing: ScanLists, discovery: Discovery, options: Options) -> Iterator[Manifest | Gap]:
    yield from options.manifests
    if options.cluster_policies:
        for kind in (kind for language in options.languages for kind in language.kinds(discovery.kinds)):
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
    languages: tuple[BoundLanguage, ...],
) -> EvaluationPlan:
    kinds = discovery.kinds
    namespaces, trouble = load_namespaces(listing, kinds)
    announced = (policy for language in languages for policy in language.announced())
    listing.expect(lists(kinds, announced, context.operations))
    bound = tuple(entry for language in languages for entry in language.bound)
    params = ParamTable(kinds)
    unevaluable = (
        *_unknown_param_kinds(bound, params, discovery),
        *load_params(listing, params, bound, rules),
        *(gap for language in languages for gap in load_inventory(listing, language)),
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
    return EvaluationPlan(
        judge=judge,
        plans=plan(kinds, evaluable, context.operations),
        languages=languages,
        bound=evaluable,
        health=(*rules.health, *_health(languages, evaluable, kinds, world)),
        gaps=(*((trouble,) if trouble else ()), *unevaluable),
        outside=(*outside_of(listing, kinds), *(it for language in languages for it in language.outside)),
    )


def _health(
    languages: Iterable[BoundLanguage],
    evaluable: tuple[BoundPolicy, ...],
    kinds: tuple[Kind, ...],
    world: EvaluationContext,
) -> Iterator[Health]:
    """The problems of policies before the first object is evaluated."""
    for language in languages:
        own = {id(entry) for entry in language.bound}
        entries = tuple(entry for entry in evaluable if id(entry) in own)
        if not language.own_health:
            yield from health_before((policy for policy, _ in language.recorded()), entries, kinds, world)
        yield from language.health(entries, kinds)


def _authorizer(listing: ScanLists, bound: Iterable[BoundPolicy], context: ScanContext) -> Decider | None:
    """The authorizer, if a policy reads it and the requester is known; else None."""
    asks = any(Auditability.AUTHORIZER in entry.reading.classes for entry in bound)
    return listing.authorizer() if asks and context.user.username else None


def _unknown_param_kinds(bound: Iterable[BoundPolicy], params: ParamTable, discovery: Discovery) -> Iterator[Gap]:
    """Policies whose paramKind may be served by an API group that did not answer."""
    silent = {gap.where for gap in discovery.gaps if gap.kind is GapKind.DISCOVERY}
    for entry in bound:
        kind = entry.policy.param_kind
        if kind and params.kind(kind) is None and silent & {kind.api_version, "/api", "/apis"}:
            yield policy_gap(entry, f"its paramKind {kind.kind} belongs to {kind.api_version}, which did not answer")
