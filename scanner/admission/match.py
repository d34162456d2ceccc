"""The matching of a policy or binding with a request.

Source of truth: `matching.Matcher`, `rules.Matcher` and the selector predicates of kube-apiserver 1.36's admission
plugins, in their order: namespaceSelector, objectSelector, excludeResourceRules, resourceRules; a selector's error
counts only when the rules match.

Rules: `docs/semantics/matching.md#order`, `docs/semantics/matching.md#rules`,
`docs/semantics/matching.md#equivalent-resources`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from scanner.errors import ConfigurationError
from scanner.model.policy import MatchResources, Operation, Policy, Rule
from scanner.model.resource import Kind

_NEVER = frozenset(
    {
        ("authentication.k8s.io", "selfsubjectreviews"),
        ("authentication.k8s.io", "tokenreviews"),
        ("authorization.k8s.io", "localsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
        ("authorization.k8s.io", "subjectaccessreviews"),
    }
)
_POLICY_OBJECTS = frozenset(
    ("admissionregistration.k8s.io", plural)
    for plural in (
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
    )
)


@dataclass(frozen=True, slots=True)
class MatchTarget:
    """A simulated request on an object: the facts that matching reads.

    `kind` is the resource the request names, `equivalents` the same objects' other served kinds in registration
    order. `namespace` is the request's: a Namespace's own name for Namespace objects, empty for other cluster-scoped
    objects. `namespace_labels` is None when that namespace does not exist. `old_labels` are those of the object that an UPDATE
    replaces; None if it changes nothing.
    """

    kind: Kind
    operation: Operation
    name: str
    namespace: str
    labels: Mapping[str, str]
    namespace_labels: Mapping[str, str] | None
    equivalents: tuple[Kind, ...] = ()
    old_labels: Mapping[str, str] | None = None


def is_exempt(kind: Kind, *, static: bool = False) -> bool:
    """Return whether admission exempts a kind from all policies; static manifest policies do evaluate policy objects."""
    key = (kind.group, kind.plural)
    return key in _NEVER or (not static and key in _POLICY_OBJECTS)


def applies(match: MatchResources, target: MatchTarget) -> Kind | None:
    """The kind in which the object has to be evaluated, or None when the request is not matched.

    Mirrors `Matcher.Matches` of `plugin/policy/matching`. Raises ConfigurationError for a Namespace that does not exist, and
    for a selector that cannot be parsed, if the rules match.
    """
    fault = ""
    for selects in (_selects_namespace, _selects_object):
        try:
            if not selects(match, target):
                return None
        except ConfigurationError as error:
            fault = fault or str(error)
    if match.exclude_rules and _find_first_match(match.exclude_rules, match.match_policy, target):
        return None
    matched = _find_first_match(match.rules, match.match_policy, target) if match.rules else target.kind
    if matched and fault:
        raise ConfigurationError(fault)
    return matched


def could_match(rule: Rule, kind: Kind, operations: Iterable[str]) -> bool:
    """Return whether a rule can match a main-resource request on objects of a kind; names of objects are ignored."""
    return any(_matches(rule, kind, operation, None, kind.namespaced) for operation in operations)


def could_match_write(policy: Policy, kind: Kind) -> bool:
    """Return whether a policy can match the creation or the update of objects of a kind; names of objects are ignored."""
    return any(could_match(rule, kind, ("CREATE", "UPDATE")) for rule in (policy.match.rules if policy.match else ()))


def _find_first_match(rules: tuple[Rule, ...], match_policy: str, target: MatchTarget) -> Kind | None:
    candidates = (target.kind, *target.equivalents) if match_policy == "Equivalent" else (target.kind,)
    # No rule is tried with an equivalent kind before all rules were tried with the requested one.
    if any(_rule_matches(rule, target.kind, target) for rule in rules):
        return target.kind
    return next((kind for rule in rules for kind in candidates[1:] if _rule_matches(rule, kind, target)), None)


def _rule_matches(rule: Rule, kind: Kind, target: MatchTarget) -> bool:
    # Namespaces are cluster-scoped although their requests carry a namespace.
    namespaced = bool(target.namespace) and not _is_namespace(target.kind)
    return _matches(rule, kind, target.operation, target.name, namespaced)


def _matches(rule: Rule, kind: Kind, operation: str, name: str | None, namespaced: bool) -> bool:  # noqa: FBT001 - one of five facts
    return (
        rule.scope in ("*", "Namespaced" if namespaced else "Cluster")
        and _is_listed(operation, rule.operations)
        and _is_listed(kind.group, rule.api_groups)
        and _is_listed(kind.version, rule.api_versions)
        and any(_names_main_resource(pattern, kind.plural) for pattern in rule.resources)
        and (name is None or not rule.resource_names or name in rule.resource_names)
    )


def _is_listed(value: str, allowed: tuple[str, ...]) -> bool:
    return "*" in allowed or value in allowed


def _names_main_resource(pattern: str, plural: str) -> bool:
    """Return whether a resources entry names the main resource; `pods/*` does, `*/scale` does not."""
    resource, slash, subresource = pattern.partition("/")
    return resource in ("*", plural) and (not slash or subresource == "*")


def _selects_namespace(match: MatchResources, target: MatchTarget) -> bool:
    selector = match.namespace_selector
    if selector.empty:
        return True
    # The API server compares the resource's name alone here, not its group.
    if target.kind.plural == "namespaces":
        return selector.matches(target.labels)
    if not target.namespace:
        return True
    if target.namespace_labels is None:
        raise ConfigurationError(f'namespaces "{target.namespace}" not found')
    return selector.matches(target.namespace_labels)


def _selects_object(match: MatchResources, target: MatchTarget) -> bool:
    selector, old_labels = match.object_selector, target.old_labels
    if selector.empty or selector.matches(target.labels):
        return True
    return old_labels is not None and selector.matches(old_labels)


def _is_namespace(kind: Kind) -> bool:
    return (kind.group, kind.version, kind.plural) == ("", "v1", "namespaces")
