"""The other sources of refusals: objects of the cluster that also decide about requests, and that a scan counts and cannot evaluate.

Source of truth: `ValidatingWebhookConfiguration` and `MutatingWebhookConfiguration` of admissionregistration.k8s.io, the plug-ins
`ResourceQuota` and `LimitRanger` of kube-apiserver, the kinds of Kyverno 1.19 that no language of `policies.kyverno` reads, and the
constraints of Gatekeeper 3.20, each kind of which a ConstraintTemplate defines in the group `constraints.gatekeeper.sh`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from scanner.errors import ListFailed
from scanner.model.json import Json, as_list, as_text, dig
from scanner.model.resource import Kind, Resource
from scanner.model.scans.out_of_scope import CONSTRAINTS, NEVER_CALLED, NOT_KNOWN, OutOfScope
from scanner.policies.bound_language import ListRight, Lists
from scanner.policies.kyverno.kinds import ENTRIES_GROUP, GROUP, SHARED_KINDS
from scanner.policies.kyverno.spec import VALIDATING
from scanner.policies.webhooks import list_webhook_kinds

_QUOTAS: Final = {
    "resourcequotas": "the plug-in ResourceQuota of the API server decides by the sum of all objects of a namespace",
    "limitranges": "the plug-in LimitRanger of the API server decides by the limits of containers and claims",
}
_OLDER_KYVERNO: Final = ("cleanuppolicies", "clustercleanuppolicies")
_EVALUATED: Final = frozenset((kind.group, kind.plural) for kind in (*VALIDATING.served, *SHARED_KINDS))
_OF_KYVERNO: Final = (
    "Kyverno decides by them; Assay evaluates its kinds ValidatingPolicy and NamespacedValidatingPolicy"
)
_OF_GATEKEEPER: Final = "whether Gatekeeper runs, and what its templates decide, is not written in these objects"
_ACTIONS: Final = ("deny", "warn", "dryrun", "scoped")
"""The values of `spec.enforcementAction`: without a value, a constraint denies."""
_NAMED: Final = 5


def list_counted_kinds(kinds: Iterable[Kind]) -> Iterator[Kind]:
    """The other kinds that decide about requests, each in the preferred version: limits of namespaces, Kyverno's, Gatekeeper's."""
    preferred: dict[str, Kind] = {}
    for kind in kinds:
        if _describe_source(kind):
            preferred.setdefault(kind.resource, kind)
    yield from preferred.values()


def list_rights(kinds: Iterable[Kind], namespaces: Sequence[str]) -> Iterator[ListRight]:
    """The permissions for these lists, which a scan does not need; namespaced objects are listed in some namespaces, or all ("")."""
    offered = tuple(kinds)
    for kind in list_webhook_kinds(offered):
        yield ListRight(
            kind.group, kind.plural, "", "to list the webhooks, which a scan does not evaluate", optional=True
        )
    for kind in list_counted_kinds(offered):
        why = f"the number of {kind.kind} objects, which also decide about requests and which a scan does not evaluate"
        without = f"the report cannot tell whether there are {kind.kind} objects"
        for namespace in namespaces if kind.namespaced else ("",):
            yield ListRight(kind.group, kind.plural, namespace, why, optional=True, without=without)


def list_other_sources(lists: Lists, kinds: Iterable[Kind], namespaces: Sequence[str]) -> Iterator[OutOfScope]:
    """The other sources of refusals: an item for each webhook configuration, and one with a number for each other kind.

    A missing permission to list them is an item, and no gap.
    """
    offered = tuple(kinds)
    for kind in list_webhook_kinds(offered):
        try:
            yield from [describe_webhooks(configuration) for configuration in lists.list_all(kind)]
        except (ListFailed, ValueError) as error:
            yield OutOfScope(kind.kind, "", f"{NOT_KNOWN} is not known: {error}")
    for kind in list_counted_kinds(offered):
        try:
            objects = lists.list_all(kind, namespaces if kind.namespaced else ("",))
            yield OutOfScope(kind.resource, kind.kind, _describe_objects(kind, objects))
        except (ListFailed, ValueError) as error:
            yield OutOfScope(kind.resource, kind.kind, f"{NOT_KNOWN} is not known: {error}")


def describe_webhooks(configuration: Resource) -> OutOfScope:
    """One configuration, with the names of its webhooks."""
    webhooks = as_list(configuration.body.get("webhooks"))
    if not any(map(_has_rule, webhooks)):
        why = (
            f"{_count(len(webhooks), 'webhook')} without a rule: {NEVER_CALLED}"
            if webhooks
            else f"no webhook: {NEVER_CALLED}"
        )
        return OutOfScope(configuration.kind.kind, configuration.name, why)
    names = [as_text(dig(item, "name")) for item in webhooks]
    names_text = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
    # The API server stores the default of `failurePolicy`, Fail; a file may not have it.
    failing = sum(dig(item, "failurePolicy") != "Ignore" and _has_rule(item) for item in webhooks)
    unanswered = (
        f"; {failing:,} of them {'refuses' if failing == 1 else 'refuse'} what a program does not answer"
        if failing
        else ""
    )
    why = (
        f"{_count(len(names), 'webhook')} ({names_text}): what a program decides is not written in the API{unanswered}"
    )
    return OutOfScope(configuration.kind.kind, configuration.name, why)


def _has_rule(webhook: Json) -> bool:
    return bool(as_list(dig(webhook, "rules")))


def _describe_source(kind: Kind) -> str:
    """The source that decides by the objects of a kind, as a clause; empty for a kind of none, and for one that is evaluated."""
    if not kind.group:
        return _QUOTAS.get(kind.plural, "")
    if kind.group == CONSTRAINTS:
        return _OF_GATEKEEPER
    of_kyverno = kind.group == GROUP or (kind.group == ENTRIES_GROUP and kind.plural in _OLDER_KYVERNO)
    return _OF_KYVERNO if of_kyverno and (kind.group, kind.plural) not in _EVALUATED else ""


def _describe_objects(kind: Kind, objects: Iterable[Resource]) -> str:
    """The number of objects of a kind, of constraints also by action, and what decides by them."""
    actions = Counter(_find_action(each) if kind.group == CONSTRAINTS else "" for each in objects)
    parts = ", ".join(f"{actions[action]:,} {action}" for action in (*_ACTIONS, "other") if actions[action])
    return f"{_count(actions.total(), 'object')}{f' ({parts})' if parts else ''}: {_describe_source(kind)}"


def _find_action(constraint: Resource) -> str:
    action = dig(constraint.body, "spec", "enforcementAction")
    return "deny" if action in (None, "") else next((known for known in _ACTIONS if known == action), "other")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
