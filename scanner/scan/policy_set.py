"""Where policies, bindings and params come from, and what is wrong with them before any object is seen.

Documents come from the cluster's lists and from files; a file's are held to what the API would store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Protocol, cast

from scanner.errors import InvalidManifest, UsageError
from scanner.model.json import JsonObject, as_list, as_object, as_text, dig
from scanner.model.outcome import Gap, GapKind
from scanner.model.policy import Action, Binding, ParamKind, ParamRef, Policy, PolicyKey
from scanner.model.release import NEWEST, Minor
from scanner.model.resource import Kind, Resource, resource_of
from scanner.model.scan import Health, HealthKind, Scope
from scanner.policies import manifest
from scanner.policies.api_validation import Undecodable, unknown_fields
from scanner.policies.kyverno import spec
from scanner.policies.kyverno.exceptions import PLURAL, PolicyException, is_exception, read_exception
from scanner.policies.kyverno.spec import KyvernoPolicy
from scanner.policies.mutating import bind as mutating
from scanner.policies.validating import bind as validating
from scanner.policies.validating.bind import Bound

_ACTIONS = ("Deny", "Warn", "Audit")
_LANGUAGES = (validating.LANGUAGE, mutating.LANGUAGE)


@dataclass(frozen=True, slots=True)
class Manifest:
    """One document. `source` is `cluster`, or a file and the number of the document in it."""

    source: str
    body: JsonObject


class Wishes(Protocol):
    """The part of the options that decides which policies are in force."""

    @property
    def scope(self) -> Scope:
        """Which policies and bindings to look at."""
        ...

    @property
    def assume_bound(self) -> tuple[tuple[str, str], ...]:
        """Policies to preview, each with the action of the binding that is made up for it."""
        ...


@dataclass(frozen=True, slots=True)
class Rulebook:
    """The policies and bindings of a scan, in force or not, and the documents among them that are params.

    `kyverno` are Kyverno's policies, `exceptions` and `entries` their PolicyExceptions and GlobalContextEntries.
    """

    policies: tuple[Policy, ...]
    bindings: tuple[Binding, ...]
    params: tuple[Resource, ...]
    gaps: tuple[Gap, ...]
    health: tuple[Health, ...]
    kyverno: tuple[KyvernoPolicy, ...] = ()
    exceptions: tuple[PolicyException, ...] = ()
    entries: tuple[JsonObject, ...] = ()


def is_policy(document: JsonObject) -> bool:
    """Whether a document is a policy or a binding of a language that Assay speaks, or what its policies lean on."""
    ours = any(manifest.is_a(document, kind) for name in _LANGUAGES for kind in (name, f"{name}Binding"))
    return ours or spec.is_policy(document) or is_exception(document) or spec.is_entry(document)


def policy_kinds(kinds: Iterable[Kind]) -> Iterator[Kind]:
    """The kinds to list policies and bindings from, each in the newest version that is served."""
    for plural in (validating.POLICIES, validating.BINDINGS, mutating.POLICIES, mutating.BINDINGS):
        served = {kind.version: kind for kind in kinds if (kind.group, kind.plural) == (manifest.GROUP, plural)}
        newest = next((served[version] for version in manifest.VERSIONS if version in served), None)
        if newest:
            yield newest
    yield from _kyverno_kinds(kinds)


def _kyverno_kinds(kinds: Iterable[Kind]) -> Iterator[Kind]:
    """Kyverno's kinds, as far as the cluster has them, each in the preferred version: all versions have one schema."""
    wanted = {*((spec.GROUP, plural) for plural in (*spec.PLURALS, PLURAL)), (spec.ENTRIES_GROUP, spec.ENTRIES)}
    served: dict[tuple[str, str], Kind] = {}
    for kind in kinds:
        if (kind.group, kind.plural) in wanted:
            served.setdefault((kind.group, kind.plural), kind)
    yield from (served[key] for key in sorted(served))


def rulebook(
    documents: Iterable[Manifest | Gap], wishes: Wishes, kinds: Sequence[Kind], rules: Minor = NEWEST
) -> Rulebook:
    """Read every document once, those of files first. Raises UsageError when a flag names a policy that is not there.

    `rules` is the Kubernetes release that would store them.
    """
    reader = _Reader(kinds, home_namespace(wishes.scope), rules)
    for document in documents:
        reader.read(document)
    policies = {policy.key: policy for policy in reader.policies}
    assumed = tuple(
        binding for name, action in wishes.assume_bound for binding in _assumed(name, action, policies, reader)
    )
    bindings = (*reader.bindings, *assumed)
    scope = wishes.scope
    for name, _ in wishes.assume_bound:
        if not _chosen(name, scope.policies):
            raise UsageError(f"--assume-bound {name}: --policy leaves that policy out; name it there as well")
    if reader.knows_all:
        names = {*(name for _, name in policies), *(one.full_name for one in reader.kyverno)}
        _reject_unknown(scope.policies, names, "--policy")
        _reject_unknown(scope.bindings, {binding.name for binding in bindings}, "--binding")
    kyverno = tuple(p for p in reader.kyverno if _chosen(p.full_name, scope.policies)) if not scope.bindings else ()
    copies = dict(_copies(policies.values(), kyverno))
    chosen = tuple(p for p in policies.values() if _chosen(p.name, scope.policies) and p.key not in copies)
    wanted = tuple(
        b
        for b in bindings
        if (b.assumed or _chosen(b.name, scope.bindings))
        and _chosen(b.policy_name, scope.policies)
        and b.policy_key not in copies
    )
    joining = (*_unbound(chosen, bindings), *_dangling(wanted, policies)) if reader.knows_all else ()
    return Rulebook(
        policies=tuple(sorted(chosen, key=lambda policy: (policy.name, policy.language))),
        bindings=tuple(sorted(wanted, key=lambda binding: binding.name)),
        params=tuple(reader.params),
        gaps=tuple(reader.gaps),
        health=(*reader.health, *joining, *copies.values()),
        kyverno=kyverno,
        exceptions=tuple(reader.exceptions),
        entries=tuple(reader.entries),
    )


def _copies(policies: Iterable[Policy], kyverno: Iterable[KyvernoPolicy]) -> Iterator[tuple[PolicyKey, Health]]:
    """The admission policies that Kyverno generated from policies of its own that are judged: they would say it twice."""
    judged = {policy.name for policy in kyverno if policy.kind == spec.CLUSTER_WIDE and not policy.unauditable()}
    for policy in policies:
        owners = as_list(dig(policy.manifest, "metadata", "ownerReferences"))
        names = {as_text(dig(owner, "name")) for owner in owners if dig(owner, "kind") == spec.CLUSTER_WIDE}
        for name in sorted(names & judged):
            detail = f"Kyverno generated {policy.language} {policy.name} from it; objects are judged by this one, once"
            yield policy.key, Health(HealthKind.NOTE, name, "", detail, spec.CLUSTER_WIDE)


class _Reader:
    """Sorts documents into policies, bindings and params; what cannot be used becomes a gap."""

    def __init__(self, kinds: Iterable[Kind], namespace: str, rules: Minor) -> None:
        self._rules = rules
        self.policies: list[Policy] = []
        self.bindings: list[Binding] = []
        self.params: list[Resource] = []
        self.kyverno: list[KyvernoPolicy] = []
        self.exceptions: list[PolicyException] = []
        self.entries: list[JsonObject] = []
        self.gaps: list[Gap] = []
        self.health: list[Health] = []
        self.refused: dict[str, str] = {}
        self._kinds = {(kind.api_version, kind.kind): kind for kind in kinds}
        self._namespace = namespace
        self._seen: dict[tuple[str, ...], str] = {}

    @property
    def knows_all(self) -> bool:
        """Whether every list of policies and bindings was read to its end."""
        return not any(gap.kind is GapKind.LIST for gap in self.gaps)

    def read(self, document: Manifest | Gap) -> None:
        if isinstance(document, Gap):
            self.gaps.append(document)
            return
        try:
            self._sort(document)
        except InvalidManifest as error:
            kind, name = as_text(document.body.get("kind")), as_text(dig(document.body, "metadata", "name"))
            self.refused[name] = document.source
            group = as_text(document.body.get("apiVersion")).partition("/")[0]
            undecodable = isinstance(error, Undecodable)
            self._miss(document, str(error) if undecodable else f'{kind}.{group} "{name}" is invalid: {error}')

    def _sort(self, document: Manifest) -> None:
        body, source = document.body, document.source
        if manifest.is_a(body, validating.LANGUAGE):
            self._policy(validating.read_policy(body, source=source, rules=self._rules), body)
        elif manifest.is_a(body, mutating.LANGUAGE):
            self._policy(mutating.read_policy(body, source=source, rules=self._rules), body)
        elif manifest.is_a(body, f"{validating.LANGUAGE}Binding"):
            self._binding(validating.read_binding(body, source=source), body)
        elif manifest.is_a(body, f"{mutating.LANGUAGE}Binding"):
            self._binding(mutating.read_binding(body, source=source), body)
        elif not self._of_kyverno(document) and source != "cluster":
            self._param(document)

    def _policy(self, policy: Policy, document: JsonObject) -> None:
        if self._first("policy", policy.name, policy.source, policy.language):
            self.policies.append(policy)
            self.health.extend(_ignored(policy.source, document, policy.name, "", policy.language))

    def _binding(self, binding: Binding, document: JsonObject) -> None:
        if self._first("binding", binding.name, binding.source, binding.language):
            self.bindings.append(binding)
            self.health.extend(_ignored(binding.source, document, binding.policy_name, binding.name, binding.language))

    def _of_kyverno(self, document: Manifest) -> bool:
        """Take what is Kyverno's, and tell whether it is."""
        body, source = document.body, document.source
        if spec.is_policy(body):
            policy = spec.read_policy(body, source=source, namespace=self._namespace)
            if self._first("policy", policy.full_name, source, policy.kind):
                self.kyverno.append(policy)
        elif is_exception(body):
            exception = read_exception(body, source=source)
            if self._first("policy exception", exception.key, source):
                self.exceptions.append(exception)
        elif spec.is_entry(body):
            if self._first("global context entry", as_text(dig(body, "metadata", "name")), source):
                self.entries.append(body)
        else:
            return False
        return True

    def _param(self, document: Manifest) -> None:
        version, name = as_text(document.body.get("apiVersion")), as_text(document.body.get("kind"))
        if version.startswith(f"{manifest.GROUP}/"):
            self._miss(document, f"Assay evaluates nothing for {name} in version {version}")
            return
        kind = self._kinds.get((version, name))
        if kind is None:
            why = f"it is no policy and no binding, and {name} in version {version}, which could be a param, is not served"
            self._miss(document, why)
            return
        param = param_of(kind, document.body, self._namespace)
        if self._first(kind.kind, param.name, document.source, kind.group, param.namespace):
            self.params.append(param)

    def _miss(self, document: Manifest, why: str) -> None:
        self.gaps.append(Gap(GapKind.DOCUMENT, document.source, why))

    def _first(self, what: str, name: str, source: str, *where: str) -> bool:
        """Whether this is the first of its name: files come before the cluster, and stand in for its objects."""
        key = (what, name, *where)
        if key not in self._seen:
            self._seen[key] = source
            return True
        earlier = self._seen[key]
        if source == "cluster":
            detail = f"the {what} in {earlier} is used instead of the cluster's"
            policy, binding = (name, "") if what == "policy" else ("", name)
            language = where[0] if what in ("policy", "binding") else ""
            self.health.append(Health(HealthKind.NOTE, policy, binding, detail, language))
            return False
        why = f"{what} {name} is defined already in {earlier}; this one is not used: rename or remove one of them"
        self.gaps.append(Gap(GapKind.DOCUMENT, source, why))
        return False


def _ignored(source: str, document: JsonObject, policy: str, binding: str, language: str) -> Iterator[Health]:
    """The fields of a manifest in a file that its kind does not have, and that the API server drops with a warning."""
    unknown = unknown_fields(document) if source != "cluster" else ()
    if unknown:
        detail = f"the API server ignores unknown fields: {', '.join(unknown)}"
        yield Health(HealthKind.NOTE, policy, binding, detail, language)


def _assumed(name: str, action: str, policies: Mapping[PolicyKey, Policy], reader: _Reader) -> Iterator[Binding]:
    """The bindings that are made up for the policies of a name, one for each language that has such a policy.

    Raises UsageError for what nothing would come of.
    """
    found = [policies[language, name] for language in _LANGUAGES if (language, name) in policies]
    if not found and name in reader.refused:
        why = next(gap.why for gap in reader.gaps if gap.where == reader.refused[name])
        raise UsageError(f"--assume-bound {name}: the API would refuse this policy ({reader.refused[name]}): {why}")
    if not found:
        raise UsageError(f"--assume-bound names policy {name}, which is neither in the cluster nor in the policy files")
    if action not in _ACTIONS:
        raise UsageError(f"--assume-bound {name}={action}: the action must be Deny, Warn or Audit")
    for policy in found:
        if policy.language == mutating.LANGUAGE:
            yield mutating.assume_bound(policy)
        else:
            yield validating.assume_bound(policy, cast("Action", action))


def _reject_unknown(patterns: Iterable[str], names: Iterable[str], flag: str) -> None:
    known = sorted(names)
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in known):
            there = ", ".join(known) if known else "none at all"
            raise UsageError(f"{flag} {pattern} matches nothing; there is: {there}")


def _chosen(name: str, patterns: tuple[str, ...]) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def _unbound(policies: Iterable[Policy], bindings: Iterable[Binding]) -> Iterator[Health]:
    known = tuple(bindings)
    for policy in policies:
        joined = [binding for binding in known if binding.joins(policy)]
        if all(binding.assumed for binding in joined):
            advice = "this scan previews it" if joined else "preview it with --assume-bound"
            detail = f"no binding names it: the server never evaluates it; {advice}"
            yield Health(HealthKind.UNBOUND, policy.name, "", detail, policy.language)


def _dangling(bindings: Iterable[Binding], policies: Mapping[PolicyKey, Policy]) -> Iterator[Health]:
    for binding in bindings:
        policy = policies.get(binding.policy_key)
        if policy is None or not binding.joins(policy):
            detail = "the policy does not exist: the server ignores this binding"
            yield Health(HealthKind.DANGLING_BINDING, binding.policy_name, binding.name, detail, binding.language)


def namespaces_needed(entry: Bound) -> bool:
    """Whether judging needs to know namespaces: by a namespaceSelector, or by an expression that reads them."""
    matches = (entry.policy.match, *(binding.match for binding in entry.bindings))
    if any(match is not None and not match.namespace_selector.empty for match in matches):
        return True
    return any(expression.reads("namespaceObject") for _, expression in entry.compiled.expressions())


def param_of(kind: Kind, document: JsonObject, namespace: str = "default") -> Resource:
    """A document as an object of its kind; `namespace` is where it is applied if it does not say so itself."""
    param = resource_of(kind, document)
    if not kind.namespaced or param.namespace:
        return param
    body = {**document, "metadata": {**as_object(document.get("metadata")), "namespace": namespace}}
    return resource_of(kind, body)


def home_namespace(scope: Scope) -> str:
    """Where documents without a namespace are applied: in the one that `-n` names, or in `default`."""
    return scope.namespaces[0] if len(scope.namespaces) == 1 else "default"


class ParamTable:
    """Param objects by kind: just those that some binding can mean."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        """An empty table of what the cluster serves."""
        self._kinds = {(kind.api_version, kind.kind): kind for kind in kinds}
        self._objects: dict[Kind, dict[tuple[str, str], Resource]] = {}

    def kind(self, param_kind: ParamKind) -> Kind | None:
        """See ParamSource."""
        return self._kinds.get((param_kind.api_version, param_kind.kind))

    def get(self, kind: Kind, namespace: str, name: str) -> Resource | None:
        """See ParamSource."""
        return self._objects.get(kind, {}).get((namespace, name))

    def all(self, kind: Kind, namespace: str) -> Iterable[Resource]:
        """See ParamSource."""
        objects = self._objects.get(kind, {})
        return tuple(objects[key] for key in sorted(objects) if key[0] == namespace)

    def needed(self, bound: Iterable[Bound]) -> dict[Kind, tuple[Bound, ...]]:
        """The kinds to list, each with the policies that need it."""
        needed: dict[Kind, tuple[Bound, ...]] = {}
        for entry in bound:
            kind = self.kind(entry.policy.param_kind) if entry.policy.param_kind else None
            if kind and any(_references(entry)):
                needed[kind] = (*needed.get(kind, ()), entry)
        return needed

    def namespaces(self, kind: Kind, entries: Iterable[Bound], within: Iterable[str] = ()) -> tuple[str, ...]:
        """The namespaces to list; the empty one stands for all of them.

        Where objects bring their namespace, those that are judged (`within`) are enough.
        """
        if not kind.namespaced:
            return ("",)
        named = {reference.namespace for entry in entries for reference in _references(entry)}
        if "" in named and within:
            named = (named - {""}) | {*within}
        return ("",) if "" in named else tuple(sorted(named))

    def keep(self, resource: Resource, entries: Iterable[Bound]) -> None:
        """Take a listed object if some binding can mean it."""
        if any(_meant(reference, resource) for entry in entries for reference in _references(entry)):
            self.put(resource)

    def add(self, document: JsonObject) -> None:
        """Take a document as a param; it stands in for an object of that name."""
        kind = self._kinds.get((as_text(document.get("apiVersion")), as_text(document.get("kind"))))
        if kind:
            self.put(param_of(kind, document))

    def put(self, param: Resource) -> None:
        """Take an object as a param."""
        self._objects.setdefault(param.kind, {})[param.namespace, param.name] = param


def _references(entry: Bound) -> Iterator[ParamRef]:
    return (binding.param_ref for binding in entry.bindings if binding.param_ref)


def _meant(reference: ParamRef, resource: Resource) -> bool:
    if reference.namespace and resource.namespace and reference.namespace != resource.namespace:
        return False
    # A selector that the server cannot parse is an outcome of the evaluation; here everything is kept for it.
    return not reference.name or reference.name == resource.name
