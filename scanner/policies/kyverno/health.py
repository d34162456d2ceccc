"""What is wrong with Kyverno's policies and their exceptions, before and after the objects are seen.

A policy is told of once, whatever autogen makes of it. Source of truth: the status of the policies, and Kyverno's webhook.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from scanner.admission.dispatch import BoundPolicy
from scanner.model.json import as_list, as_object, as_text, dig
from scanner.model.policy import PolicyKey
from scanner.model.resource import Kind
from scanner.model.scan import Health, HealthKind
from scanner.policies import kinds
from scanner.policies.kyverno.bind import AS_WRITTEN
from scanner.policies.kyverno.decide import Decision
from scanner.policies.kyverno.spec import KyvernoPolicy

_IN_ITS_MANNER = "judged as Kyverno's own reports judge (--kyverno-compat): a scan that asks every check finds more"
_NOT_ASKED = "evaluation.admission.enabled is false: Kyverno's webhook does not ask it, and no request is refused"
_UNSCORED = "it is not scored: Kyverno reports its failures as warnings"
_NO_EFFECT = "spec.webhookConfiguration has no effect on a scan: it is about the webhook alone"


def is_kyverno(entry: BoundPolicy) -> bool:
    """Whether a policy is one of Kyverno's."""
    return isinstance(entry.decide, Decision)


def follows_reports(entry: BoundPolicy) -> bool:
    """Whether a policy is judged in the manner of Kyverno's reports, which do not ask every check: nothing counts as fixed."""
    return isinstance(entry.decide, Decision) and entry.decide.mode.exempts


def of_policies(
    policies: Iterable[KyvernoPolicy], bound: Iterable[BoundPolicy], served: tuple[Kind, ...]
) -> Iterator[Health]:
    """What can be said before any object is seen."""
    entries = {entry.policy.key: entry for entry in bound if entry.bindings[0].name == AS_WRITTEN}
    for policy in policies:
        entry = entries[policy.key]
        yield from _of_policy(policy, entry)
        yield from () if entry.reading.reason else kinds.unresolved(entry, served)
        if isinstance(entry.decide, Decision):
            yield from _of_decision(policy.key, entry.decide)


def _of_decision(policy: PolicyKey, decision: Decision) -> Iterator[Health]:
    language, name = policy
    if decision.mode.exempts:
        yield Health(HealthKind.NOTE, name, "", _IN_ITS_MANNER, language)
    if decision.fault:
        yield Health(HealthKind.COMPILE, name, "", decision.fault, language)
    for exception in dict.fromkeys(entry.exception for entry in decision.exceptions):
        said = f"policy exception {exception.key}"
        if exception.expired(decision.now):
            yield Health(HealthKind.NOTE, name, "", f"{said} has expired, and excepts nothing any more", language)
        if exception.unknown:
            detail = f"{said} has unknown fields: {', '.join(exception.unknown)}"
            yield Health(HealthKind.NOTE, name, "", detail, language)


def _of_policy(policy: KyvernoPolicy, entry: BoundPolicy) -> Iterator[Health]:
    language, name = policy.key
    if entry.reading.reason:
        yield Health(HealthKind.NOT_AUDITABLE, name, "", entry.reading.reason, language)
    if policy.unknown:
        detail = f"unknown fields, which nobody looks at: {', '.join(policy.unknown)}"
        yield Health(HealthKind.NOTE, name, "", detail, language)
    if as_object(dig(policy.document, "spec", "webhookConfiguration")):
        yield Health(HealthKind.NOTE, name, "", _NO_EFFECT, language)
    if not policy.admission:
        yield Health(HealthKind.NOTE, name, "", _NOT_ASKED, language)
    if policy.unscored:
        yield Health(HealthKind.NOTE, name, "", _UNSCORED, language)
    for condition in as_list(dig(policy.document, "status", "conditionStatus", "conditions")):
        if as_text(dig(condition, "status")) == "False":
            what, why = as_text(dig(condition, "type")), as_text(dig(condition, "message"))
            detail = f"{what} is False ({why})" if why else f"{what} is False"
            yield Health(HealthKind.CONDITION, name, "", detail, language)


def without_noise(health: Iterable[Health], bound: Iterable[BoundPolicy]) -> Iterator[Health]:
    """Leave out that a form which autogen made matched no object: of a policy it is said when none of its forms did.

    What does not compile is said before; that its errors refuse nothing is no matter of its failurePolicy.
    """
    forms: dict[PolicyKey, set[str]] = {}
    broken: set[PolicyKey] = set()
    for form in bound:
        if isinstance(form.decide, Decision):
            forms.setdefault(form.policy.key, set()).update(binding.name for binding in form.bindings)
            broken |= {form.policy.key} if form.decide.fault else set()
    entries = tuple(health)
    idle = {(*entry.policy_key, entry.binding) for entry in entries if entry.kind is HealthKind.NO_OBJECT}
    for entry in entries:
        policy = entry.policy_key
        own = forms.get(policy, set())
        if entry.kind is HealthKind.HIDDEN_ERRORS and policy in broken:
            continue
        if entry.kind is not HealthKind.NO_OBJECT or entry.binding not in own:
            yield entry
        elif entry.binding == AS_WRITTEN and all((*policy, name) in idle for name in own):
            yield replace(entry, binding="")
