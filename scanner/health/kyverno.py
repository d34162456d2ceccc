"""What is wrong with Kyverno's policies and their exceptions, before and after the objects are seen.

A policy is told of once, whatever autogen makes of it. Source of truth: the status of the policies, and Kyverno's webhook.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from scanner.health import kinds
from scanner.model.json import as_list, as_object, as_text, dig
from scanner.model.resource import Kind
from scanner.model.scan import Health, HealthKind
from scanner.policies.kyverno.bind import AS_WRITTEN
from scanner.policies.kyverno.decide import Decision
from scanner.policies.kyverno.spec import KyvernoPolicy
from scanner.policies.validating import Bound

_IN_ITS_MANNER = "judged as Kyverno's own reports judge (--kyverno-compat): a scan that asks every check finds more"
_NOT_ASKED = "evaluation.admission.enabled is false: Kyverno's webhook does not ask it, and no request is refused"
_NO_EFFECT = "spec.webhookConfiguration has no effect on a scan: it is about the webhook alone"


def is_kyverno(entry: Bound) -> bool:
    """Whether a policy is one of Kyverno's."""
    return isinstance(entry.decide, Decision)


def follows_reports(entry: Bound) -> bool:
    """Whether a policy is judged in the manner of Kyverno's reports, which do not ask every check: nothing counts as fixed."""
    return isinstance(entry.decide, Decision) and entry.decide.manner.exempts


def of_policies(
    policies: Iterable[KyvernoPolicy], bound: Iterable[Bound], served: tuple[Kind, ...]
) -> Iterator[Health]:
    """What can be said before any object is seen."""
    entries = {entry.policy.name: entry for entry in bound if entry.bindings[0].name == AS_WRITTEN}
    for policy in policies:
        entry = entries[policy.full_name]
        yield from _of_policy(policy, entry)
        yield from () if entry.reading.reason else kinds.unresolved(entry, served)
        if isinstance(entry.decide, Decision):
            yield from _of_decision(policy.full_name, entry.decide)


def _of_decision(name: str, decision: Decision) -> Iterator[Health]:
    if decision.manner.exempts:
        yield Health(HealthKind.NOTE, name, "", _IN_ITS_MANNER)
    if decision.fault:
        yield Health(HealthKind.COMPILE, name, "", decision.fault)
    for exception in dict.fromkeys(entry.exception for entry in decision.exceptions):
        said = f"policy exception {exception.key}"
        if exception.expired(decision.now):
            yield Health(HealthKind.NOTE, name, "", f"{said} has expired, and excepts nothing any more")
        if exception.unknown:
            yield Health(HealthKind.NOTE, name, "", f"{said} has unknown fields: {', '.join(exception.unknown)}")


def _of_policy(policy: KyvernoPolicy, entry: Bound) -> Iterator[Health]:
    name = policy.full_name
    if entry.reading.reason:
        yield Health(HealthKind.NOT_AUDITABLE, name, "", entry.reading.reason)
    if policy.unknown:
        yield Health(HealthKind.NOTE, name, "", f"unknown fields, which nobody looks at: {', '.join(policy.unknown)}")
    if as_object(dig(policy.document, "spec", "webhookConfiguration")):
        yield Health(HealthKind.NOTE, name, "", _NO_EFFECT)
    if not policy.admission:
        yield Health(HealthKind.NOTE, name, "", _NOT_ASKED)
    if policy.unscored:
        yield Health(HealthKind.NOTE, name, "", "it is not scored: Kyverno reports its failures as warnings")
    for condition in as_list(dig(policy.document, "status", "conditionStatus", "conditions")):
        if as_text(dig(condition, "status")) == "False":
            what, why = as_text(dig(condition, "type")), as_text(dig(condition, "message"))
            yield Health(HealthKind.CONDITION, name, "", f"{what} is False ({why})" if why else f"{what} is False")


def without_noise(health: Iterable[Health], bound: Iterable[Bound]) -> Iterator[Health]:
    """Leave out that a form which autogen made matched no object: of a policy it is said when none of its forms did.

    What does not compile is said before; that its errors refuse nothing is no matter of its failurePolicy.
    """
    forms: dict[str, set[str]] = {}
    broken: set[str] = set()
    for form in bound:
        if isinstance(form.decide, Decision):
            forms.setdefault(form.policy.name, set()).update(binding.name for binding in form.bindings)
            broken |= {form.policy.name} if form.decide.fault else set()
    entries = tuple(health)
    idle = {(entry.policy, entry.binding) for entry in entries if entry.kind is HealthKind.NO_OBJECT}
    for entry in entries:
        own = forms.get(entry.policy, set())
        if entry.kind is HealthKind.HIDDEN_ERRORS and entry.policy in broken:
            continue
        if entry.kind is not HealthKind.NO_OBJECT or entry.binding not in own:
            yield entry
        elif entry.binding == AS_WRITTEN and all((entry.policy, name) in idle for name in own):
            yield replace(entry, binding="")
