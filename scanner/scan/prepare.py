"""The preparation of a scan before the first object is evaluated: policies, params, namespaces, and the lists to make."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from scanner.admission.context import EvaluationContext
from scanner.admission.dispatch import BoundPolicy
from scanner.admission.params import ParamSource
from scanner.audit.withheld_reads import Withheld, may_read, select_paths, withholds_user
from scanner.cel import Decider
from scanner.errors import ListFailed, UsageError
from scanner.health import find_static_problems
from scanner.model.json import JsonObject, as_text, dig
from scanner.model.outcome import Gap, GapKind
from scanner.model.policy import Policy, PolicyKey, policy_label
from scanner.model.reading import Auditability
from scanner.model.resource import NAMESPACES, Kind, Resource, UserInfo
from scanner.model.rule import RuleObject
from scanner.model.scans.health import Health
from scanner.model.scans.out_of_scope import OutOfScope
from scanner.model.scans.scan import FILES, ClusterIdentity, Scope, UncoveredKind
from scanner.model.withheld import has_withheld
from scanner.mutate.schema import Custom
from scanner.mutate.versions import is_builtin
from scanner.policies.bound_language import BindingContext, BoundLanguage
from scanner.policies.language import Language, derive_from_namespaces, list_deciding_kinds, list_document_kinds
from scanner.policies.other_sources import list_other_sources
from scanner.policies.plan import KindPlan, find_equivalents, find_other_versions, find_uncovered, plan, plan_lists
from scanner.policies.served_versions import ServedVersions
from scanner.scan.documents import Manifest
from scanner.scan.edges import Cluster, Discovery
from scanner.scan.lists import RepeatedLists, ScanLists, decode_objects, names_kind
from scanner.scan.options import Options, ScanContext
from scanner.scan.param_table import ParamTable, list_rule_objects
from scanner.scan.policy_set import PolicySet, needs_namespaces, read_policy_set
from scanner.scan.unlabelled import find_undecided, make_policy_gap
from scanner.scan.unneeded import list_policy_kinds, split_gaps

if TYPE_CHECKING:
    from scanner.audit.page import PageEvaluator


def prepare(cluster: Cluster, options: Options, now: datetime, *, ahead: bool = False) -> PreparedScan:
    """Prepare a scan with these options at a moment.

    With `ahead` the cluster fetches the first pages while policies are compiled. Raises ClusterError if the cluster cannot be
    reached, and UsageError for options that name something that does not exist.
    """
    return plan_scan(gather(cluster, options, ahead=ahead), options, now)


@dataclass(frozen=True, slots=True)
class GatheredRules:
    """The rules that a cluster and policy files have, before any is compiled, and the user of the simulated requests."""

    identity: ClusterIdentity
    discovery: Discovery
    listing: ScanLists
    documents: tuple[Manifest | Gap, ...]
    namespaces: ListedNamespaces
    user: UserInfo


def gather(cluster: Cluster, options: Options, *, ahead: bool = False, keep_lists: bool = False) -> GatheredRules:
    """Read the rules of a cluster. With `keep_lists` more than one plan can be made of them, from the same lists.

    Raises ClusterError if the cluster cannot be reached.
    """
    identity = cluster.identity()
    discovery = cluster.discover()
    listing = ScanLists(
        cluster, options.scope, ahead=ahead, withheld=discovery.withholds, kept={} if keep_lists else None
    )
    documents = tuple(list_policy_documents(listing, discovery, options))
    namespaces = load_namespaces(listing, discovery, decide_policies=bool(_list_deriving(options)))
    return GatheredRules(identity, discovery, listing, documents, namespaces, options.user or cluster.requester())


def _list_deriving(options: Options) -> tuple[Language, ...]:
    """The languages of which policies follow from namespaces."""
    return tuple(language for language in options.languages if options.derived_policies and language.derive)


def plan_scan(gathered: GatheredRules, options: Options, now: datetime) -> PreparedScan:
    """Compile the gathered rules, and plan their evaluation. Raises UsageError for options that name something that does not exist."""
    identity, discovery, listing = gathered.identity, gathered.discovery, gathered.listing
    documents, namespaces = gathered.documents, gathered.namespaces
    deriving = _list_deriving(options)
    defined = tuple(kind for kind in options.definitions if kind not in discovery.kinds)
    served = find_served_versions(identity, discovery)
    policy_set = read_policy_set(
        (*documents, *namespaces.gaps_of_policies),
        options,
        (*discovery.kinds, *defined),
        served,
        derive_from_namespaces(deriving, namespaces.by_name.values(), served.rules),
    )
    context = ScanContext(identity, gathered.user, options.scope, options.kept_keys)
    binding_context = BindingContext(
        now=now,
        rules=context.rules,
        operations=context.operations,
        schemas=listing.relay,
        served=discovery.kinds,
        user=context.user,
        params=policy_set.params,
        lists=RepeatedLists(listing),
        namespaces=tuple(namespaces.by_name.values()),
        files=context.files,
    )
    languages = tuple(
        language.bind(policy_set.get_documents(language), binding_context) for language in options.languages
    )
    needed, outside = split_gaps(
        discovery,
        languages,
        list_policy_kinds(options.languages, discovery.kinds),
        context.operations,
        policies_known=not any(gap.kind is GapKind.LIST for gap in policy_set.gaps),
    )
    evaluation = _make_plan(listing, discovery, namespaces, policy_set, context, languages, defined)
    evaluation = replace(
        evaluation,
        read_languages=tuple(_list_read_languages(options, needed, discovery, policy_set)),
        outside=(*evaluation.outside, *options.outside, *policy_set.outside, *outside),
    )
    _reject_unknown(options.scope, discovery, evaluation)
    own_gaps = (gap for language in languages for gap in language.gaps)
    gaps = tuple(dict.fromkeys((*options.gaps, *needed, *policy_set.gaps, *own_gaps, *evaluation.gaps)))
    notes = (*options.notes, *discovery.notes)
    return PreparedScan(context, evaluation, listing, gaps, discovery.kinds, notes, discovered=not discovery.gaps)


@dataclass(frozen=True, slots=True)
class PreparedScan:
    """A prepared scan, before it evaluates the first object. `gaps` are those of the preparation, `served` all kinds.

    `notes` are sentences for the report. `discovered` tells that discovery was complete: no other kind is served.
    """

    context: ScanContext
    evaluation: EvaluationPlan
    listing: ScanLists
    gaps: tuple[Gap, ...]
    served: tuple[Kind, ...] = ()
    notes: tuple[str, ...] = ()
    discovered: bool = False

    @property
    def cluster(self) -> ClusterIdentity:
        """The identity of the cluster."""
        return self.context.cluster

    @property
    def evaluation_context(self) -> EvaluationContext:
        """The context of every evaluation."""
        return self.evaluation.page_evaluator.context

    @property
    def plans(self) -> tuple[KindPlan, ...]:
        """The kinds to list within the scope, each with its policies."""
        return tuple(plan for plan in self.evaluation.plans if not self.listing.find_exclusion(plan.kind))

    def list_objects(self, kind: Kind) -> Iterator[Resource]:
        """Every object of a kind within the scope. Raises ListFailed, and ValueError for a page that cannot be decoded."""
        excluded = self.context.scope.exclude_namespaces
        for pages in self.listing.list_pages(kind):
            for page in pages:
                for resource in decode_objects(page):
                    if not any(fnmatchcase(resource.namespace, pattern) for pattern in excluded):
                        yield resource


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """The evaluation that a scan will make. `bound` are the policies that can be evaluated, `gaps` name the others.

    `undecided` are those of `bound` about which unknown labels of a namespace may decide: a gap names each of them, too.
    """

    page_evaluator: PageEvaluator
    plans: tuple[KindPlan, ...]
    languages: tuple[BoundLanguage, ...]
    bound: tuple[BoundPolicy, ...]
    health: tuple[Health, ...]
    gaps: tuple[Gap, ...]
    outside: tuple[OutOfScope, ...]
    rules: tuple[RuleObject, ...] = ()
    uncovered: tuple[UncoveredKind, ...] = ()
    read_languages: tuple[str, ...] = ()
    undecided: frozenset[PolicyKey] = frozenset()


def _reject_unknown(scope: Scope, discovery: Discovery, evaluation: EvaluationPlan) -> None:
    """Raise UsageError for an unknown name, so that a typing error does not look like a clean cluster.

    A name is not unknown if the list that could contain it failed.
    """
    for pattern in scope.kinds:
        if not discovery.gaps and not any(names_kind(pattern, kind) for kind in discovery.kinds):
            raise UsageError(f"--kind {pattern} matches nothing that the cluster serves: see `kubectl api-resources`")
    for name in scope.namespaces:
        if evaluation.page_evaluator.context.find_namespace(name) is None:
            raise UsageError(f"--namespace {name}: the cluster has no such namespace: see `kubectl get namespaces`")


def list_policy_documents(listing: ScanLists, discovery: Discovery, options: Options) -> Iterator[Manifest | Gap]:
    """The policies and bindings of the options and of the cluster, and a gap for each list that failed."""
    yield from options.manifests
    if options.cluster_policies:
        for kind in list_document_kinds(options.languages, discovery.kinds):
            try:
                for resource in listing.list_all(kind):
                    yield Manifest("cluster", resource.body)
                    if discovery.withholds:
                        yield from _find_withheld_rules(resource)
            except (ListFailed, ValueError) as error:
                why = f"policies and bindings may be missing from this scan: {error}"
                yield Gap(GapKind.LIST, f"{kind.api_version}/{kind.kind}", why)


def _find_withheld_rules(resource: Resource) -> Iterator[Gap]:
    """A gap for a document of a snapshot of which a part that decides is withheld."""
    if any(has_withheld(value) for field, value in resource.body.items() if field != "metadata"):
        kind = f"{resource.kind.api_version}/{resource.kind.kind}"
        yield Gap(
            GapKind.DOCUMENT,
            f"{kind} {resource.name}",
            "the snapshot withholds a part of it, so it may decide otherwise",
        )


def find_served_versions(identity: ClusterIdentity, discovery: Discovery) -> ServedVersions:
    """The versions that the cluster serves; files serve those of their release, and not every version in the table of kinds."""
    if identity.source == FILES:
        return ServedVersions(identity.release.rules)
    unknown = frozenset(gap.where for gap in discovery.gaps)
    return ServedVersions(identity.release.rules, discovery.kinds, unknown)


def _list_read_languages(
    options: Options, needed: Iterable[Gap], discovery: Discovery, policy_set: PolicySet
) -> Iterator[str]:
    """The languages of which every policy and binding was read. A document that could not be read may be of any language."""
    if any(needed) or options.gaps or any(gap.kind is not GapKind.LIST for gap in policy_set.gaps):
        return
    missing = {gap.where for gap in policy_set.gaps}
    for language in options.languages:
        if not any(
            f"{kind.api_version}/{kind.kind}" in missing for kind in list_deciding_kinds(language, discovery.kinds)
        ):
            yield from language.names


def _make_plan(
    listing: ScanLists,
    discovery: Discovery,
    namespaces: ListedNamespaces,
    policy_set: PolicySet,
    context: ScanContext,
    languages: tuple[BoundLanguage, ...],
    defined: tuple[Kind, ...],
) -> EvaluationPlan:
    """The plan; `defined` are kinds that only the policy files define: their params are those of the files."""
    from scanner.audit.page import PageEvaluator  # a check of manifests gathers the same rules, and evaluates no pages

    kinds = discovery.kinds
    announced = tuple(policy for language in languages for policy in language.list_announced())
    relabelled, unknown = _find_conversions(listing, kinds, find_other_versions(kinds, announced, context.operations))
    listing.expect(plan_lists(kinds, announced, context.operations, relabelled))
    bound = tuple(bound_policy for language in languages for bound_policy in language.bound)
    params = ParamTable((*kinds, *defined))
    readers: set[PolicyKey] = set()
    unevaluable = (
        *find_unknown_param_kinds(bound, params, discovery),
        *load_params(listing, params, bound, policy_set, unlisted=defined),
        *load_inventory(listing, languages, readers),
        *_list_unevaluable(bound, namespaces, unknown),
    )
    labels = {gap.where for gap in unevaluable}
    evaluable = tuple(bound_policy for bound_policy in bound if policy_label(bound_policy.policy.key) not in labels)
    evaluation_context = EvaluationContext(
        params=params,
        namespaces=namespaces.by_name,
        implied_namespaces=context.files or namespaces.gap is not None,
        equivalents=find_equivalents(kinds),
        relabelled=relabelled,
        user=context.user,
        operations=context.operations,
        authorizer=find_authorizer(listing, evaluable, context),
    )
    plans = plan(kinds, evaluable, context.operations, relabelled)
    page_evaluator = PageEvaluator(
        evaluation_context,
        context.scope.exclude_namespaces,
        by_name=context.files,
        kept_keys=context.kept_keys,
        defaults={} if context.files else _find_defaults(listing, plans, evaluation_context),
        withheld=_find_withheld(evaluable, evaluation_context, params, readers) if discovery.withholds else None,
    )
    others = (bound_policy for bound_policy in bound if policy_label(bound_policy.policy.key) in labels)
    doubts = tuple(_find_undecided(listing, discovery, languages, plans, context))
    return EvaluationPlan(
        page_evaluator=page_evaluator,
        plans=plans,
        languages=languages,
        bound=evaluable,
        health=(*policy_set.health, *_find_health(languages, evaluable, kinds, evaluation_context)),
        gaps=(*namespaces.gaps, *unevaluable, *(gap for _, gap in doubts)),
        outside=(
            *list_other_sources(listing, kinds, listing.namespaces),
            *dict.fromkeys(item for each in languages for item in each.outside),
        ),
        rules=list_rule_objects(languages, evaluable, params, namespaces.by_name.values()),
        uncovered=find_uncovered(kinds, plans, others, context.operations),
        undecided=frozenset(bound_policy.policy.key for bound_policy, _ in doubts),
    )


def _list_unevaluable(
    bound: Iterable[BoundPolicy], namespaces: ListedNamespaces, unknown: Mapping[PolicyKey, str]
) -> Iterator[Gap]:
    """The policies that need namespaces, which could not be listed, or an `unknown` conversion, by its reason."""
    for bound_policy in bound:
        if namespaces.gap and needs_namespaces(bound_policy):
            yield make_policy_gap(bound_policy, "it needs namespaces, which could not be listed")
    for bound_policy in bound:
        if bound_policy.policy.key in unknown:
            yield make_policy_gap(bound_policy, unknown[bound_policy.policy.key])


def _find_conversions(
    listing: ScanLists, kinds: tuple[Kind, ...], users: Mapping[Kind, tuple[Policy, ...]]
) -> tuple[frozenset[Kind], dict[PolicyKey, str]]:
    """The kinds whose versions differ in the apiVersion alone, and the policies whose conversion is unknown, with the reason."""
    conversions = {kind: listing.relay.conversion(kind) for kind in users}
    unknown: dict[PolicyKey, str] = {}
    for kind, policies in users.items():
        if conversions[kind] == "unknown":
            why = (
                f"it reads {kind.resource} in version {kind.version}, and their CustomResourceDefinition, which tells how the server "
                f"converts them, cannot be read: grant get on customresourcedefinitions/{kind.resource}"
            )
            unknown.update((policy.key, why) for policy in policies)
    same = find_equivalents(kinds)
    relabelled = (kind for kind, how in conversions.items() if how == "relabels")
    return frozenset(version for kind in relabelled for version in (kind, *same[kind])), unknown


def _find_withheld(
    bound: Iterable[BoundPolicy],
    evaluation_context: EvaluationContext,
    params: ParamTable,
    readers: Collection[PolicyKey],
) -> Withheld:
    """What a snapshot withholds besides the evaluated objects; `readers` are the policies that read other objects with withheld parts."""
    hidden_params = (
        each.policy.key
        for each in bound
        if any(may_read(select_paths(each.compiled, "params"), param.body) for param in params.list_selected(each))
    )
    return Withheld(
        readers=frozenset(readers),
        params=frozenset(hidden_params),
        namespaces=frozenset(name for name, body in evaluation_context.namespaces.items() if has_withheld(body)),
        user=withholds_user(evaluation_context.user),
    )


def _find_defaults(
    listing: ScanLists, plans: Iterable[KindPlan], evaluation_context: EvaluationContext
) -> dict[Kind, Custom]:
    """The schemas of the listed custom resources that may be stored in another version, whose defaults the list lacks."""
    several = [
        plan.kind for plan in plans if evaluation_context.equivalents.get(plan.kind) and not is_builtin(plan.kind)
    ]
    schemas = {kind: listing.relay.schema(kind) for kind in several if not listing.find_exclusion(kind)}
    return {kind: schema.custom for kind, schema in schemas.items() if schema and schema.custom}


def _find_undecided(
    listing: ScanLists,
    discovery: Discovery,
    languages: Iterable[BoundLanguage],
    plans: Iterable[KindPlan],
    context: ScanContext,
) -> Iterator[tuple[BoundPolicy, Gap]]:
    """The bound policies about which unknown labels of namespaces in scope may decide, each with its gap."""
    scoped = context.scope.namespaces
    left_out = {kind.kind for kind in (kind_plan.kind for kind_plan in plans) if listing.find_exclusion(kind)}
    kinds_of = {
        namespace: kinds
        for namespace, of_namespace in discovery.unlabelled.items()
        if (not scoped or namespace in scoped)
        and not listing.excludes(namespace)
        and (kinds := [kind for kind in of_namespace if kind.kind not in left_out])
    }
    yield from find_undecided(languages, kinds_of, context.operations)


def _find_health(
    languages: Iterable[BoundLanguage],
    evaluable: tuple[BoundPolicy, ...],
    kinds: tuple[Kind, ...],
    evaluation_context: EvaluationContext,
) -> Iterator[Health]:
    """The problems of policies before the first object is evaluated."""
    for language in languages:
        own_ids = {id(policy) for policy in language.bound}
        policies = tuple(policy for policy in evaluable if id(policy) in own_ids)
        if not language.own_health:
            yield from find_static_problems(
                (policy for policy, _ in language.list_recorded()), policies, kinds, evaluation_context
            )
        yield from language.health(policies, kinds)


def find_authorizer(listing: ScanLists, bound: Iterable[BoundPolicy], context: ScanContext) -> Decider | None:
    """The authorizer, if a policy reads it and the requester is known; else None."""
    asks = any(Auditability.AUTHORIZER in bound_policy.reading.classes for bound_policy in bound)
    return listing.authorizer() if asks and context.user.username else None


def find_unknown_param_kinds(bound: Iterable[BoundPolicy], params: ParamSource, discovery: Discovery) -> Iterator[Gap]:
    """Policies whose paramKind may be served by an API group that did not answer."""
    unanswered = {gap.where for gap in discovery.gaps if gap.kind is GapKind.DISCOVERY}
    for bound_policy in bound:
        kind = bound_policy.policy.param_kind
        if kind and params.find_kind(kind) is None and unanswered & {kind.api_version, "/api", "/apis"}:
            yield make_policy_gap(
                bound_policy, f"its paramKind {kind.kind} belongs to {kind.api_version}, which did not answer"
            )


# The lists before the evaluation: namespaces, params, and the objects that expressions read from the cluster.


def load_params(
    listing: ScanLists,
    params: ParamTable,
    bound: Iterable[BoundPolicy],
    policy_set: PolicySet,
    *,
    unlisted: Collection[Kind] = (),
) -> Iterator[Gap]:
    """List the params of policies into `params`, then add those of policy files.

    The cluster does not serve the kinds of `unlisted`, so it has no objects of these. Yields a gap for each policy whose params could
    not be listed.
    """
    for kind, policies in params.list_needed(bound).items():
        if kind in unlisted:
            continue
        try:
            for resource in listing.list_all(kind, params.list_namespaces(kind, policies, listing.scoped)):
                params.keep(resource, policies)
        except (ListFailed, ValueError) as error:
            yield from (
                make_policy_gap(bound_policy, f"its params ({kind.resource}) could not be listed: {error}")
                for bound_policy in policies
            )
    for param in policy_set.params:
        params.put(param)


def load_inventory(
    listing: ScanLists, languages: Iterable[BoundLanguage], withheld: set[PolicyKey] | None = None
) -> Iterator[Gap]:
    """List the objects that expressions read, once for all languages.

    Adds to `withheld` the policies that read objects of which a snapshot withholds parts. Yields a gap for each policy whose objects could not be listed.
    """
    reads = [
        (language, bound_policy, kind, place)
        for language in languages
        for bound_policy, places in language.reads()
        if not bound_policy.reading.reason
        for kind, of_kind in places.items()
        for place in of_kind
    ]
    readers: dict[tuple[Kind, str], dict[BoundLanguage, None]] = {}
    for language, _, kind, place in reads:
        readers.setdefault((kind, place), {})[language] = None
    hidden: set[tuple[Kind, str]] = set()
    failed = {where: _list_for_readers(listing, of_list, hidden, *where) for where, of_list in readers.items()}
    if withheld is not None:
        withheld.update(bound_policy.policy.key for _, bound_policy, kind, place in reads if (kind, place) in hidden)
    for _, bound_policy, kind, place in reads:
        if why := failed[kind, place]:
            yield make_policy_gap(bound_policy, f"it reads {kind.resource}, which could not be listed: {why}")


def _list_for_readers(
    listing: ScanLists, readers: Iterable[BoundLanguage], hidden: set[tuple[Kind, str]], kind: Kind, place: str
) -> str:
    """The reason why the objects that expressions read could not be listed, or an empty string.

    Adds the list to `hidden` if a snapshot withholds a part of its objects.
    """
    try:
        resources = tuple(listing.list_all(kind, (place,)))
    except (ListFailed, ValueError) as error:
        return str(error)
    if any(has_withheld(resource.body) for resource in resources):
        hidden.add((kind, place))
    for language in readers:
        language.take(kind, place, resources)
    return ""


@dataclass(frozen=True, slots=True)
class ListedNamespaces:
    """The Namespace objects by name, and a gap if they could not be listed. With `decide_policies` some policies follow from them."""

    by_name: Mapping[str, JsonObject]
    gap: Gap | None = None
    decide_policies: bool = False

    @property
    def gaps_of_policies(self) -> tuple[Gap, ...]:
        """The gap as that of a list of policies, if policies may be missing because of it."""
        if self.gap is None or not self.decide_policies:
            return ()
        why = f"policies that follow from namespaces may be missing from this scan: {self.gap.why}"
        return (Gap(GapKind.LIST, self.gap.where, why),)

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """The gap, if there is one, with all that it may hide."""
        return self.gaps_of_policies or ((self.gap,) if self.gap else ())


def load_namespaces(listing: ScanLists, discovery: Discovery, *, decide_policies: bool = False) -> ListedNamespaces:
    """The Namespaces of the cluster, and those that the user describes."""
    described = {as_text(dig(body, "metadata", "name")): body for body in discovery.namespaces}
    where = f"{NAMESPACES.api_version}/{NAMESPACES.kind}"
    if NAMESPACES not in discovery.kinds:
        gap = Gap(GapKind.DISCOVERY, where, "discovery of the cluster does not list namespaces")
        return ListedNamespaces(described, gap, decide_policies)
    try:
        listed_bodies = {resource.name: resource.body for resource in _list_namespaces(listing)}
    except (ListFailed, ValueError) as error:
        return ListedNamespaces(described, Gap(GapKind.LIST, where, str(error)), decide_policies)
    return ListedNamespaces(described | listed_bodies, decide_policies=decide_policies)


def _list_namespaces(listing: ScanLists) -> Iterator[Resource]:
    """All namespaces, or those that the user names: a user of one namespace may have no permission to read others."""
    try:
        yield from listing.list_all(NAMESPACES, listing.namespaces)
    except ListFailed:
        if not listing.scoped:
            raise
        yield from listing.list_all(NAMESPACES)
