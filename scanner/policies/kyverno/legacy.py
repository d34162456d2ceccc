"""Kyverno's older policies, of the group kyverno.io: a scan counts them and evaluates none.

Source of truth: the types of `kyverno.io` v1 and v2beta1 (ClusterPolicy, Policy) and v2 and v2beta1 (PolicyException) of Kyverno 1.19:
a rule has one of four types, and those that validate or verify images have an action, their own or that of the policy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from scanner.errors import ListFailed
from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig
from scanner.model.resource import Kind
from scanner.model.scans.out_of_scope import LEGACY_ENDING, OutOfScope, Unneeded
from scanner.policies.bound_language import BindingContext, ListRight, Supporting
from scanner.policies.kyverno.kinds import ENTRIES_GROUP, EXCEPTION, versions_of

LEGACY: Final = "policy or exception of the group kyverno.io"
LEGACY_KINDS: Final = (
    *versions_of(ENTRIES_GROUP, ("v1", "v2beta1"), "ClusterPolicy", "clusterpolicies"),
    *versions_of(ENTRIES_GROUP, ("v1", "v2beta1"), "Policy", "policies", namespaced=True),
    *versions_of(ENTRIES_GROUP, ("v2", "v2beta1"), EXCEPTION, "policyexceptions", namespaced=True),
)
"""The kinds in each of their versions, the preferred version first."""
_RULE_TYPES: Final = ("validate", "mutate", "generate", "verifyImages")
_ACTIONS: Final = ("Enforce", "Audit")
_NAMES: Final = {kind.kind: f"{kind.kind} of {ENTRIES_GROUP}" for kind in LEGACY_KINDS}
_ITEMS: Final = {kind: Unneeded.LEGACY_EXCEPTION if kind == EXCEPTION else Unneeded.LEGACY_POLICY for kind in _NAMES}


def is_legacy(document: JsonObject) -> bool:
    """Return whether a document is one of the older policies, or an exception from them."""
    group = as_text(document.get("apiVersion")).partition("/")[0]
    return group == ENTRIES_GROUP and as_text(document.get("kind")) in _NAMES


def read_legacy(document: JsonObject, namespace: str) -> Supporting:
    """The document, under a name that no other one has; `namespace` is that of a namespaced one without any."""
    kind, metadata = as_text(document.get("kind")), dig(document, "metadata")
    where = "" if kind == "ClusterPolicy" else as_text(dig(metadata, "namespace")) or namespace
    return Supporting(LEGACY, f"{kind} {where}/{as_text(dig(metadata, 'name'))}", document)


def list_rights(served: Iterable[Kind]) -> Iterator[ListRight]:
    """The permissions to count the older policies of a cluster, which a scan does not need."""
    for kind in _select_served(served):
        why = f"the number of {kind.kind} objects of {ENTRIES_GROUP}, which a scan does not evaluate"
        without = f"the report cannot tell whether there are {kind.kind} objects of {ENTRIES_GROUP}"
        yield ListRight(kind.group, kind.plural, "", why, optional=True, without=without)


def describe_legacy(supporting: Iterable[Supporting], context: BindingContext) -> tuple[OutOfScope, ...]:
    """The older policies and exceptions among files and in the cluster, counted by kind; an unknown number is an item, too."""
    documents = {each.name: each.body for each in supporting if each.what == LEGACY}
    unknown: dict[str, str] = {}
    for kind in _select_served(context.served) if context.lists else ():
        try:
            for resource in context.lists.list_all(kind) if context.lists else ():
                legacy = read_legacy({**resource.body, "kind": kind.kind}, resource.namespace)
                documents.setdefault(legacy.name, legacy.body)
        except (ListFailed, ValueError) as error:
            unknown[kind.kind] = f"whether there are any in the cluster is not known: {error}"
    bodies = {name: [body for body in documents.values() if body.get("kind") == name] for name in _NAMES}
    return tuple(
        OutOfScope(_ITEMS[name], _NAMES[name], why)
        for name in _NAMES
        for why in (
            *([_describe(name, bodies[name])] if bodies[name] else []),
            *([unknown[name]] if name in unknown else []),
        )
    )


def _select_served(served: Iterable[Kind]) -> Iterator[Kind]:
    """Each kind in the preferred version that the cluster serves."""
    preferred: dict[str, Kind] = {}
    for kind in served:
        if kind in LEGACY_KINDS:
            preferred.setdefault(kind.plural, kind)
    yield from preferred.values()


def _describe(kind: str, bodies: list[JsonObject]) -> str:
    if kind == EXCEPTION:
        return f"{len(bodies):,}{LEGACY_ENDING}"
    rules = [(body, as_object(rule)) for body in bodies for rule in as_list(dig(body, "spec", "rules"))]
    types = Counter(name for _, rule in rules for name in _RULE_TYPES if rule.get(name) is not None)
    actions = Counter(action for body, rule in rules for action in _list_actions(body, rule))
    parts = [
        ", ".join(f"{types[name]:,} {name}" for name in _RULE_TYPES if types[name]),
        ", ".join(f"{actions[name]:,} {name}" for name in _ACTIONS if actions[name]),
    ]
    details = "; ".join(filter(None, parts))
    return f"{len(bodies):,}{f' ({details})' if details else ''}{LEGACY_ENDING}"


def _list_actions(policy: JsonObject, rule: JsonObject) -> Iterator[str]:
    """The action of a rule that validates, and of each of its image verifications: its own, that of the policy, or Audit."""
    usual = dig(policy, "spec", "validationFailureAction")
    images: tuple[Json, ...] = tuple(as_list(rule.get("verifyImages")))
    for part in (*([rule["validate"]] if rule.get("validate") is not None else []), *images[:1]):
        action = as_text(dig(part, "failureAction")) or as_text(usual)
        yield "Enforce" if action.lower() == "enforce" else "Audit"
