"""Reads policies, bindings and params, and finds their problems before the first object is evaluated.

Documents come from the cluster's lists and from files; a document from a file must be one that the API would store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, Protocol

from scanner.admission.dispatch import BoundPolicy
from scanner.errors import UsageError
from scanner.model.outcome import Gap
from scanner.model.policy import NAMESPACE_LABELS, WRITTEN_ACTIONS, Binding, Policy, PolicyKey
from scanner.model.release import NEWEST
from scanner.model.resource import Kind, Resource
from scanner.model.scans.health import Health, HealthKind
from scanner.model.scans.out_of_scope import OutOfScope
from scanner.model.scans.scan import Scope
from scanner.policies.bound_language import PolicyDocuments, Supporting
from scanner.policies.language import Language, select_documents
from scanner.policies.served_versions import ServedVersions
from scanner.scan.documents import DocumentReader, Manifest
from scanner.scan.param_table import default_namespace

_NEWEST: Final = ServedVersions(NEWEST)


class PolicySelection(Protocol):
    """The part of the options that selects the policies in force."""

    @property
    def scope(self) -> Scope:
        """The scope of policies and bindings."""
        ...

    @property
    def assume_bound(self) -> tuple[tuple[str, str], ...]:
        """Policies to preview, each with the action of its assumed binding."""
        ...

    @property
    def languages(self) -> tuple[Language, ...]:
        """The policy languages that are evaluated."""
        ...


@dataclass(frozen=True, slots=True)
class PolicySet:
    """The policies and bindings of a scan, in force or not, the objects that they rely on, and documents that are params.

    `outside` are the documents of files that are none of these.
    """

    policies: tuple[Policy, ...]
    bindings: tuple[Binding, ...]
    params: tuple[Resource, ...]
    gaps: tuple[Gap, ...]
    health: tuple[Health, ...]
    supporting: tuple[Supporting, ...] = ()
    outside: tuple[OutOfScope, ...] = ()

    def get_documents(self, language: Language) -> PolicyDocuments:
        """The documents of one language."""
        return select_documents(language, (*self.policies, *self.bindings, *self.supporting))


def read_policy_set(
    documents: Iterable[Manifest | Gap],
    selection: PolicySelection,
    kinds: Sequence[Kind],
    served: ServedVersions = _NEWEST,
    derived: Iterable[Policy | Binding] = (),
) -> PolicySet:
    """Read every document once, those of files first; `served` is the Kubernetes release that would store them.

    The `derived` policies and bindings follow from objects of the cluster, and no document contains them.

    Policies are ordered by name and language, bindings by name. Raises UsageError if a flag names a policy or binding that does
    not exist, and for a document with the kind of a policy that cannot be read in a file that the user names.
    """
    reader = DocumentReader(selection.languages, kinds, default_namespace(selection.scope), served)
    for document in documents:
        reader.read(document)
    for noun in derived:
        reader.add(noun)
    reader.read_params()
    policies = {policy.key: policy for policy in reader.policies}
    assumed = _assume_all(selection, policies, reader)
    bindings = (*reader.bindings, *assumed)
    scope = selection.scope
    if reader.is_complete:
        _reject_unknown(scope.policies, {name for _, name in policies}, "--policy")
        _reject_unknown(scope.bindings, {binding.name for binding in bindings}, "--binding")
    bindable = frozenset(name for language in selection.languages if language.needs_bindings for name in language.names)
    selected = tuple(
        policy
        for policy in policies.values()
        if _is_selected(policy.name, scope.policies) and (policy.language in bindable or not scope.bindings)
    )
    copies = dict(_find_generated(selection.languages, selected, tuple(policies.values())))
    selected_policies = tuple(policy for policy in selected if policy.key not in copies)
    selected_bindings = tuple(
        binding for binding in bindings if _has_selected(scope, binding) and binding.policy_key not in copies
    )
    unbound = _find_unbound((policy for policy in selected_policies if policy.language in bindable), bindings)
    joining = (*unbound, *_find_dangling(selected_bindings, policies)) if reader.is_complete else ()
    return PolicySet(
        policies=tuple(sorted(selected_policies, key=lambda policy: (policy.name, policy.language))),
        bindings=tuple(sorted(selected_bindings, key=lambda binding: binding.name)),
        params=tuple(reader.params),
        gaps=tuple(reader.gaps),
        health=(*reader.health, *joining, *copies.values()),
        supporting=tuple(reader.supporting),
        outside=tuple(reader.outside),
    )


def _assume_all(
    selection: PolicySelection, policies: Mapping[PolicyKey, Policy], reader: DocumentReader
) -> tuple[Binding, ...]:
    """The bindings that `--assume-bound` makes up. Raises UsageError for a policy that is left out or bound."""
    assumed = tuple(
        binding
        for name, action in selection.assume_bound
        for binding in _assume_bindings(name, action, policies, reader, selection.languages)
    )
    for name, _ in selection.assume_bound:
        if not _is_selected(name, selection.scope.policies):
            raise UsageError(f"--assume-bound {name}: --policy leaves that policy out; name it there as well")
    for binding in assumed:
        _reject_bound(policies[binding.policy_key], reader.bindings)
    return assumed


def _has_selected(scope: Scope, binding: Binding) -> bool:
    is_named = binding.assumed or _is_selected(binding.name, scope.bindings)
    return is_named and _is_selected(binding.policy_name, scope.policies)


def _find_generated(
    languages: Iterable[Language], chosen: Sequence[Policy], policies: Sequence[Policy]
) -> Iterator[tuple[PolicyKey, Health]]:
    """The policies that a controller generated from evaluated policies of another language."""
    for language in languages:
        own_policies = [policy for policy in chosen if policy.language in language.names]
        yield from language.find_generated(
            own_policies, [policy for policy in policies if policy.language not in language.names]
        )


def _assume_bindings(
    name: str,
    action: str,
    policies: Mapping[PolicyKey, Policy],
    reader: DocumentReader,
    languages: Iterable[Language],
) -> Iterator[Binding]:
    """The assumed bindings for the policies of a name, one for each language that has such a policy.

    Raises UsageError for a binding without effect.
    """
    policies_of_name = [
        (language, policies[kind, name])
        for language in languages
        for kind in language.names
        if (kind, name) in policies
    ]
    if not policies_of_name and name in reader.refused:
        why = next(gap.why for gap in reader.gaps if gap.where == reader.refused[name])
        raise UsageError(f"--assume-bound {name}: the API would reject this policy ({reader.refused[name]}): {why}")
    if not policies_of_name:
        raise UsageError(f"--assume-bound names policy {name}, which is neither in the cluster nor in the policy files")
    if action not in WRITTEN_ACTIONS:
        raise UsageError(f"--assume-bound {name}={action}: the action must be Deny, Warn or Audit")
    bindable = [(language, policy) for language, policy in policies_of_name if language.needs_bindings]
    for language, policy in bindable or policies_of_name:
        yield language.assume_bound(policy, action)


def _reject_bound(policy: Policy, bindings: Iterable[Binding]) -> None:
    """Raise UsageError for a policy that a binding puts into force: with an assumed one, each object would count twice."""
    joined = [binding for binding in bindings if binding.joins(policy)]
    if joined:
        names = ", ".join(sorted(binding.name for binding in joined))
        is_written = any(binding.source != NAMESPACE_LABELS for binding in joined)
        other = f"; to preview another action, use `assay preview --bind {policy.name}`" if is_written else ""
        raise UsageError(
            f"--assume-bound {policy.name}: the policy is bound already, by {names}. Leave out --assume-bound {policy.name}{other}"
        )


def _reject_unknown(patterns: Iterable[str], names: Iterable[str], flag: str) -> None:
    existing = sorted(names)
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in existing):
            there = ", ".join(existing) if existing else "none at all"
            raise UsageError(f"{flag} {pattern} matches nothing; there is: {there}")


def _is_selected(name: str, patterns: tuple[str, ...]) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def _find_unbound(policies: Iterable[Policy], bindings: Iterable[Binding]) -> Iterator[Health]:
    existing = tuple(bindings)
    for policy in policies:
        joined = [binding for binding in existing if binding.joins(policy)]
        if all(binding.assumed for binding in joined):
            advice = "this scan previews it" if joined else f"preview it with `assay preview --bind {policy.name}`"
            detail = f"no binding names it: the server never evaluates it; {advice}"
            yield Health(HealthKind.UNBOUND, policy.name, "", detail, policy.language)


def _find_dangling(bindings: Iterable[Binding], policies: Mapping[PolicyKey, Policy]) -> Iterator[Health]:
    for binding in bindings:
        policy = policies.get(binding.policy_key)
        if policy is None or not binding.joins(policy):
            detail = "the policy does not exist: the server ignores this binding"
            yield Health(HealthKind.DANGLING_BINDING, binding.policy_name, binding.name, detail, binding.language)


def needs_namespaces(bound: BoundPolicy) -> bool:
    """Return whether the evaluation of a policy reads Namespace objects: in a selector or another rule, or in an expression."""
    if bound.covered:
        return True
    matches = (bound.policy.match, *(binding.match for binding in bound.bindings))
    if any(match is not None and not match.namespace_selector.empty for match in matches):
        return True
    return any(expression.reads("namespaceObject") for _, expression in bound.compiled.expressions())
