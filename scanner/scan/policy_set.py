"""Where policies, bindings and params come from, and what is wrong with them before any object is seen.

Documents come from the cluster's lists and from files; a file's are held to what the API would store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Protocol, cast

from scanner.admission.dispatch import BoundPolicy
from scanner.errors import UsageError
from scanner.model.json import JsonObject, as_list, as_text, dig
from scanner.model.outcome import Gap
from scanner.model.policy import Action, Binding, Policy, PolicyKey
from scanner.model.release import NEWEST, Minor
from scanner.model.resource import Kind, Resource
from scanner.model.scan import Health, HealthKind, Scope
from scanner.policies.kyverno import spec
from scanner.policies.kyverno.exceptions import PolicyException
from scanner.policies.kyverno.spec import KyvernoPolicy
from scanner.policies.mutating import bind as mutating
from scanner.policies.validating import bind as validating
from scanner.scan.documents import ACTIONS, LANGUAGES, DocumentReader, Manifest
from scanner.scan.param_table import home_namespace


class PolicySelection(Protocol):
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
class PolicySet:
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


def read_policy_set(
    documents: Iterable[Manifest | Gap], wishes: PolicySelection, kinds: Sequence[Kind], rules: Minor = NEWEST
) -> PolicySet:
    """Read every document once, those of files first. Raises UsageError when a flag names a policy that is not there.

    `rules` is the Kubernetes release that would store them.
    """
    reader = DocumentReader(kinds, home_namespace(wishes.scope), rules)
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
    return PolicySet(
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


def _assumed(name: str, action: str, policies: Mapping[PolicyKey, Policy], reader: DocumentReader) -> Iterator[Binding]:
    """The bindings that are made up for the policies of a name, one for each language that has such a policy.

    Raises UsageError for what nothing would come of.
    """
    found = [policies[language, name] for language in LANGUAGES if (language, name) in policies]
    if not found and name in reader.refused:
        why = next(gap.why for gap in reader.gaps if gap.where == reader.refused[name])
        raise UsageError(f"--assume-bound {name}: the API would refuse this policy ({reader.refused[name]}): {why}")
    if not found:
        raise UsageError(f"--assume-bound names policy {name}, which is neither in the cluster nor in the policy files")
    if action not in ACTIONS:
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


def namespaces_needed(entry: BoundPolicy) -> bool:
    """Whether judging needs to know namespaces: by a namespaceSelector, or by an expression that reads them."""
    matches = (entry.policy.match, *(binding.match for binding in entry.bindings))
    if any(match is not None and not match.namespace_selector.empty for match in matches):
        return True
    return any(expression.reads("namespaceObject") for _, expression in entry.compiled.expressions())
