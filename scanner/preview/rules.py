"""The rules of a cluster that can decide about some new objects, compiled: only what can matter is read.

Source of truth: as for a scan (`scanner.scan.prepare`). Policies of the admission API are independent of each other, so only those that
may match the kinds of the objects are compiled. Namespaces and params are read one by one, when a request needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from typing import Final, Protocol, TypeVar

from msgspec import Struct

from scanner.admission.context import EvaluationContext
from scanner.admission.dispatch import BoundPolicy
from scanner.admission.match import could_match
from scanner.audit.withheld_reads import Withheld, withholds_user
from scanner.cel import CachingDecider
from scanner.errors import ListFailed
from scanner.model.json import JsonObject, as_text, dig
from scanner.model.outcome import Gap, GapKind
from scanner.model.policy import ADMISSION_API, Operation, ParamKind, Policy, PolicyKey
from scanner.model.resource import NAMESPACES, Kind, ObjectKey, Resource, UserInfo, resource_of
from scanner.model.scans.out_of_scope import OutOfScope
from scanner.model.scans.scan import ClusterIdentity
from scanner.model.withheld import has_withheld
from scanner.mutate.schema import Schemas
from scanner.policies.bound_language import BindingContext, BoundLanguage
from scanner.policies.language import derive_from_namespaces, list_constraints, list_document_kinds
from scanner.policies.plan import find_equivalents
from scanner.policies.webhooks import Webhook, list_webhook_kinds, read_webhooks
from scanner.preview.new_objects import StoredObjects
from scanner.preview.plugins import LISTED, Plugins
from scanner.preview.pods import PODS
from scanner.scan.edges import Cluster, Discovery
from scanner.scan.lists import RepeatedLists, ScanLists
from scanner.scan.options import Options, ScanContext
from scanner.scan.policy_set import PolicySet, needs_namespaces, read_policy_set
from scanner.scan.prepare import (
    find_authorizer,
    find_served_versions,
    find_unknown_param_kinds,
    list_policy_documents,
    load_inventory,
)
from scanner.scan.unlabelled import find_undecided, make_policy_gap
from scanner.scan.unneeded import list_policy_kinds

_T = TypeVar("_T")
_WRITES: Final[tuple[Operation, ...]] = ("CREATE", "UPDATE")


class RuleSource(Cluster, StoredObjects, Protocol):
    """A cluster whose rules decide, and whose objects can be read one by one."""


class UnknownPolicy(Struct, frozen=True):
    """A policy in force that cannot be evaluated, in one namespace or (empty) in all, and why: every object that it matches is undecided."""

    bound: BoundPolicy
    why: str
    namespace: str = ""

    def is_about(self, namespace: str) -> bool:
        """Return whether the policy cannot be evaluated about the objects of a namespace."""
        return self.namespace in ("", namespace)


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules that can decide about some objects.

    `mutating` and `validating` are the policies that can be evaluated, `unknown` those that cannot. `gaps` are lists that failed, and
    may concern any object. `webhooks` are called as well, and are not evaluated. `outside` are further rules that are not evaluated.
    Unless it `knows_namespaces`, a Namespace that is missing may exist. `withheld` is what a snapshot withholds of the rules, None for
    another cluster.
    """

    cluster: ClusterIdentity
    context: EvaluationContext
    schemas: Schemas
    plugins: Plugins
    mutating: tuple[BoundPolicy, ...]
    validating: tuple[BoundPolicy, ...]
    unknown: tuple[UnknownPolicy, ...] = ()
    webhooks: tuple[Webhook, ...] = ()
    gaps: tuple[Gap, ...] = ()
    outside: tuple[OutOfScope, ...] = ()
    knows_namespaces: bool = True
    withheld: Withheld | None = None

    def may_concern(self, kind: Kind) -> bool:
        """Return whether a policy or a webhook may match requests on a kind."""
        kinds = (kind, *self.context.equivalents.get(kind, ()))
        bound = (*self.mutating, *self.validating, *(unknown.bound for unknown in self.unknown))
        matches = (*(each.policy.match for each in bound), *(webhook.match for webhook in self.webhooks))
        rules = [rule for match in matches if match for rule in match.rules]
        return any(match is None for match in matches) or any(
            could_match(rule, each, _WRITES) for rule in rules for each in kinds
        )


def gather_rules(
    cluster: RuleSource,
    discovery: Discovery,
    options: Options,
    requests: Mapping[str, Collection[Kind]],
    now: datetime,
    disabled_plugins: Collection[str] = (),
) -> Rules:
    """The rules of a cluster for requests that create or update objects; `requests` has their kinds by their namespaces.

    `disabled_plugins` are the built-in plug-ins that the server does not run. Raises ClusterError if the cluster does not answer, and UsageError for policy files that cannot be read.
    """
    listing = ScanLists(cluster, options.scope, ahead=False, withheld=discovery.withholds)
    cluster.expect(_list_lists(discovery, options, requests))
    identity = cluster.identity()
    context = ScanContext(identity, options.user or cluster.requester(), options.scope)
    documents = tuple(list_policy_documents(listing, discovery, options))
    webhooks, without_webhooks = list_webhooks(listing, discovery)
    described = _read_namespaces(cluster, discovery, [*requests])
    deriving = tuple(language for language in options.languages if options.derived_policies and language.derive)
    derived = derive_from_namespaces(deriving, described.by_name.values(), context.rules)
    served = find_served_versions(identity, discovery)
    policy_set = read_policy_set(documents, options, (*discovery.kinds, *options.definitions), served, derived)
    families = _list_families(chain.from_iterable(requests.values()), discovery)
    policy_set = replace(policy_set, policies=tuple(each for each in policy_set.policies if _may_match(each, families)))
    languages = _bind_languages(policy_set, options, discovery, listing, context, described, now)
    params = StoredParams((*discovery.kinds, *options.definitions), cluster, listing, policy_set.params)
    bound = tuple(each for language in languages for each in language.bound)
    unlabelled = {name: kinds for name, kinds in requests.items() if name and name not in described.by_name}
    readers: set[PolicyKey] = set()
    unknown = (
        *_find_unknown(listing, discovery, languages, bound, params, described.why_not, readers),
        *(_find_unlabelled(languages, unlabelled) if context.files else ()),
    )
    nowhere = {id(each.bound) for each in unknown if not each.namespace}
    evaluable = [each for each in bound if id(each) not in nowhere]
    authorizer = find_authorizer(listing, evaluable, context)
    return Rules(
        cluster=identity,
        context=EvaluationContext(
            params=params,
            namespaces=described.by_name,
            implied_namespaces=context.files,
            equivalents=find_equivalents(discovery.kinds),
            user=context.user,
            authorizer=CachingDecider(authorizer) if authorizer else None,
        ),
        schemas=listing.relay,
        plugins=Plugins(
            objects=params,
            schemas=listing.relay,
            namespaces=described.by_name,
            release=context.rules,
            files=context.files,
            disabled=disabled_plugins,
        ),
        mutating=tuple(sorted(filter(_changes, evaluable), key=lambda each: each.policy.key)),
        validating=tuple(each for each in evaluable if each.combination is None),
        unknown=unknown,
        webhooks=webhooks,
        gaps=(
            *_list_gaps(discovery, options, policy_set, languages),
            *(described.list_gaps() if deriving else ()),
            *without_webhooks,
        ),
        outside=tuple(dict.fromkeys(item for language in languages for item in language.outside)),
        knows_namespaces=not described.why_not,
        withheld=_find_withheld(readers, described, context.user) if discovery.withholds else None,
    )


def _bind_languages(
    policy_set: PolicySet,
    options: Options,
    discovery: Discovery,
    listing: ScanLists,
    context: ScanContext,
    described: _Namespaces,
    now: datetime,
) -> tuple[BoundLanguage, ...]:
    """The policies of each language with their bindings, compiled for requests that create or update objects."""
    binding_context = BindingContext(
        now=now,
        rules=context.rules,
        operations=_WRITES,
        schemas=listing.relay,
        served=discovery.kinds,
        user=context.user,
        params=policy_set.params,
        lists=RepeatedLists(listing),
        namespaces=tuple(described.by_name.values()),
        files=context.files,
    )
    return tuple(language.bind(policy_set.get_documents(language), binding_context) for language in options.languages)


def _find_withheld(readers: Collection[PolicyKey], described: _Namespaces, user: UserInfo) -> Withheld:
    """What a snapshot withholds of the rules."""
    return Withheld(
        readers=frozenset(readers),
        namespaces=frozenset(name for name, body in described.by_name.items() if has_withheld(body)),
        user=withholds_user(user),
    )


def _changes(bound: BoundPolicy) -> bool:
    return bound.combination is not None


def _list_lists(
    discovery: Discovery, options: Options, requests: Mapping[str, Collection[Kind]]
) -> Iterator[tuple[Kind, str, str]]:
    """The lists that are read in every case, and those of plug-ins in the namespaces of pods."""
    documents = list_document_kinds(options.languages, discovery.kinds) if options.cluster_policies else ()
    yield from ((kind, "", "") for kind in (*documents, *list_webhook_kinds(discovery.kinds)))
    namespaces = [namespace for namespace, kinds in requests.items() if PODS in kinds]
    for kind in LISTED:
        yield from ((kind, namespace, "") for namespace in (namespaces if kind.namespaced else namespaces and ("",)))


def _list_families(kinds: Iterable[Kind], discovery: Discovery) -> frozenset[Kind]:
    """The kinds of the requests, and the other kinds of the same objects."""
    equivalents = find_equivalents(discovery.kinds)
    return frozenset(each for kind in kinds for each in (kind, *equivalents.get(kind, ())))


def _may_match(policy: Policy, kinds: Iterable[Kind]) -> bool:
    """Return whether a policy may match requests on some kinds. Policies of other languages may depend on each other."""
    if policy.language not in ADMISSION_API:
        return True
    matches = list_constraints(policy)
    return not matches or any(
        not match.rules or any(could_match(rule, kind, _WRITES) for rule in match.rules for kind in kinds)
        for match in matches
    )


def list_webhooks(listing: ScanLists, discovery: Discovery) -> tuple[tuple[Webhook, ...], tuple[Gap, ...]]:
    """The webhooks of the cluster, and the gaps of those that could not be listed."""
    webhooks: list[Webhook] = []
    gaps: list[Gap] = []
    for kind in list_webhook_kinds(discovery.kinds):
        try:
            webhooks += [each for configuration in listing.list_all(kind) for each in read_webhooks(configuration)]
        except (ListFailed, ValueError) as error:
            why = f"webhooks that refuse or change objects may be missing: {error}"
            gaps.append(Gap(GapKind.LIST, f"{kind.api_version}/{kind.kind}", why))
    return tuple(webhooks), tuple(gaps)


class _Namespaces(Struct, frozen=True):
    """The Namespaces that were read; `why_not` has the reason for those that could not be read."""

    by_name: dict[str, JsonObject]
    why_not: str = ""

    def list_gaps(self) -> Iterator[Gap]:
        """The gap of policies that follow from Namespaces, if some could not be read."""
        if self.why_not:
            why = (
                f"policies that follow from labels of namespaces, such as Pod Security, may be missing: {self.why_not}"
            )
            yield Gap(GapKind.LIST, f"{NAMESPACES.api_version}/{NAMESPACES.kind}", why)


def _read_namespaces(cluster: StoredObjects, discovery: Discovery, names: Sequence[str]) -> _Namespaces:
    """The Namespaces of some names, and those that the user describes. One that does not exist is left out."""
    described = {as_text(dig(body, "metadata", "name")): body for body in discovery.namespaces}
    wanted = [name for name in dict.fromkeys(names) if name]
    found = cluster.read_objects([ObjectKey(NAMESPACES, "", name) for name in wanted])
    failed = next((str(each) for each in found if isinstance(each, ListFailed)), "")
    bodies = {
        name: body
        for name, body in zip(wanted, found, strict=True)
        if body is not None and not isinstance(body, ListFailed)
    }
    return _Namespaces(described | bodies, failed)


def _find_unknown(
    listing: ScanLists,
    discovery: Discovery,
    languages: tuple[BoundLanguage, ...],
    bound: tuple[BoundPolicy, ...],
    params: StoredParams,
    without_namespaces: str,
    readers: set[PolicyKey],
) -> Iterator[UnknownPolicy]:
    """The policies in force that cannot be evaluated about any object; `without_namespaces` is why Namespaces cannot be read.

    Adds to `readers` the policies that read other objects of which a snapshot withholds parts.
    """
    gaps = [*load_inventory(listing, languages, readers), *find_unknown_param_kinds(bound, params, discovery)]
    reasons = {gap.where: gap.why for gap in reversed(gaps)}
    for each in bound:
        if why := reasons.get(make_policy_gap(each, "").where):
            yield UnknownPolicy(each, why)
        elif each.reading.reason:
            yield UnknownPolicy(each, each.reading.reason)
        elif without_namespaces and needs_namespaces(each):
            yield UnknownPolicy(each, f"it needs the namespace of the object: {without_namespaces}")


def _find_unlabelled(
    languages: tuple[BoundLanguage, ...], unlabelled: Mapping[str, Collection[Kind]]
) -> Iterator[UnknownPolicy]:
    """The policies that unknown labels of a namespace may decide about: only its name is known."""
    for name, kinds in unlabelled.items():
        for each, gap in find_undecided(languages, {name: kinds}, _WRITES):
            yield UnknownPolicy(each, gap.why, name)


def _list_gaps(
    discovery: Discovery, options: Options, policy_set: PolicySet, languages: Iterable[BoundLanguage]
) -> Iterator[Gap]:
    """The rules that could not be read: lists of policies, and documents that may be policies."""
    of_rules = {*list_policy_kinds(options.languages, discovery.kinds), ("", "Namespace")}
    groups = {group for group, _ in of_rules}
    every = (gap for language in languages for gap in language.gaps)
    for gap in discovery.gaps:
        if gap.kind is GapKind.DISCOVERY:
            group = gap.where.partition("/")[0]
            yield from [gap] if group in groups or not group else []
        elif (concern := discovery.kinds_of_gaps.get(gap)) is None or concern in of_rules or not concern[1]:
            yield gap
    yield from dict.fromkeys((*options.gaps, *policy_set.gaps, *every))


class StoredParams:
    """The params of policies, each read when a binding selects it. Satisfies `ParamSource`.

    Its methods raise ListFailed for objects that cannot be read, and ValueError for those that cannot be decoded.
    """

    def __init__(
        self, kinds: Iterable[Kind], stored: StoredObjects, listing: ScanLists, given: Iterable[Resource]
    ) -> None:
        """Use the params of policy files first: they are `given`."""
        self._kinds = {(kind.api_version, kind.kind): kind for kind in kinds}
        self._stored, self._listing = stored, listing
        self._given = {ObjectKey(each.kind, each.namespace, each.name): each for each in given}
        self._objects: dict[ObjectKey, Resource | ListFailed | None] = {}
        self._lists: dict[tuple[Kind, str], tuple[Resource, ...] | ListFailed] = {}

    def find_kind(self, param_kind: ParamKind) -> Kind | None:
        """The served kind of a paramKind, or None."""
        return self._kinds.get((param_kind.api_version, param_kind.kind))

    def get(self, kind: Kind, namespace: str, name: str) -> Resource | None:
        """The param with a namespace ("" for a cluster-scoped kind) and a name, or None."""
        key = ObjectKey(kind, namespace, name)
        return self._given.get(key) or _kept(self._objects, key, lambda: self._read(key))

    def list_all(self, kind: Kind, namespace: str) -> Iterable[Resource]:
        """The params of a kind in one namespace ("" for a cluster-scoped kind), ordered by name."""
        listed = _kept(self._lists, (kind, namespace), lambda: self._list(kind, namespace))
        objects = {each.name: each for each in listed}
        objects |= {each.name: each for key, each in self._given.items() if key[:2] == (kind, namespace)}
        return tuple(objects[name] for name in sorted(objects))

    def _read(self, key: ObjectKey) -> Resource | ListFailed | None:
        (body,) = self._stored.read_objects([key])
        return body if body is None or isinstance(body, ListFailed) else resource_of(key.kind, body)

    def _list(self, kind: Kind, namespace: str) -> tuple[Resource, ...] | ListFailed:
        try:
            return tuple(self._listing.list_all(kind, (namespace,)))
        except ListFailed as error:
            return error


_K = TypeVar("_K")


def _kept(known: dict[_K, _T | ListFailed], key: _K, read: Callable[[], _T | ListFailed]) -> _T:
    """What is read once under a key. Raises ListFailed each time."""
    if key not in known:
        known[key] = read()
    value = known[key]
    if isinstance(value, ListFailed):
        raise value
    return value
