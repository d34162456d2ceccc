"""Finds the problems of Kyverno's policies and their exceptions, before and after the objects are evaluated.

A problem of a policy is reported once for all its autogen variants. Source of truth: the status of the policies, and Kyverno's
webhook.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from scanner.admission.dispatch import BoundPolicy
from scanner.model.json import as_list, as_object, as_text, dig
from scanner.model.policy import PolicyKey
from scanner.model.release import format_minor
from scanner.model.resource import Kind
from scanner.model.scans.health import Health, HealthKind
from scanner.policies import kinds
from scanner.policies.kyverno.bind import AS_WRITTEN, BoundForm
from scanner.policies.kyverno.decide import Decision
from scanner.policies.kyverno.spec import KyvernoPolicy

_IN_ITS_MANNER = (
    "evaluated as Kyverno's own reports are (--kyverno-compat): a scan without that flag evaluates more checks"
)
_NOT_AT_ADMISSION = (
    "evaluation.admission.enabled is false: Kyverno's webhook does not evaluate the policy, and denies no request"
)
_UNSCORED = "it is not scored: Kyverno reports its failures as warnings"
_NO_EFFECT = "spec.webhookConfiguration limits the time of the webhook, which a scan does not measure"
_SHOWN = 3
_REFUSED = (
    "the API server refuses the webhook of the policy: admission does not evaluate the policy, and Kyverno cannot register other"
    " policies that are created or changed"
)


def of_policies(forms: Iterable[BoundForm], served: tuple[Kind, ...]) -> Iterator[Health]:
    """The problems before the first object is evaluated, once for each policy with all its forms."""
    for form in forms:
        yield from _of_registration(form)
        if form.binding == AS_WRITTEN:
            yield from _of_policy(form.policy, form.bound)
            yield from () if form.bound.reading.reason else kinds.find_unresolved_rules(form.bound, served)
            yield from _of_decision(form.policy.key, form.decision)
            yield from _of_autogen(form)


def _of_registration(form: BoundForm) -> Iterator[Health]:
    """The forms that admission does not evaluate, because Kyverno cannot or does not register a webhook for them."""
    if form.registration is None:
        return
    language, name = form.policy.key
    kyverno = f"Kyverno {format_minor(form.decision.release)}"
    faults, companions = form.registration.faults, form.registration.companions
    if form.binding == AS_WRITTEN and faults:
        yield Health(HealthKind.NOT_ENFORCED, name, "", f"{_REFUSED}: {faults[0]}", language)
    if not (form.is_enforced or faults):
        match = form.bound.policy.match
        plurals = sorted({plural for rule in match.rules for plural in rule.resources} if match else ())
        detail = (
            f"{kyverno} registers no webhook for this variant of a namespaced policy: admission does not evaluate the policy for"
            f" {', '.join(plurals)}"
        )
        yield Health(HealthKind.NOT_ENFORCED, name, form.binding, detail, language)
    if form.binding == AS_WRITTEN and companions:
        detail = (
            f"{kyverno} gives a webhook that policies share the selectors of one of them, by chance: admission may leave out the"
            f" policy for objects that the selectors of other policies exclude ({_first(companions)})"
        )
        yield Health(HealthKind.NOTE, name, "", detail, language)


def _first(names: tuple[str, ...]) -> str:
    """The first names, and the number of the others."""
    others = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {others} more" if others > 0 else "")


def _of_autogen(form: BoundForm) -> Iterator[Health]:
    language, name = form.policy.key
    kyverno = f"Kyverno {format_minor(form.decision.release)}"
    for controller in form.ignored_controllers:
        detail = f"autogen.podControllers names {controller}, which {kyverno} does not know and ignores"
        yield Health(HealthKind.NOTE, name, "", detail, language)


def _of_decision(policy: PolicyKey, decision: Decision) -> Iterator[Health]:
    language, name = policy
    if decision.mode.exempts:
        yield Health(HealthKind.NOTE, name, "", _IN_ITS_MANNER, language)
    if decision.fault:
        yield Health(HealthKind.COMPILE, name, "", decision.fault, language)
    for exception in dict.fromkeys(compiled.exception for compiled in decision.exceptions):
        subject = f"policy exception {exception.key}"
        if decision.ends(exception):
            yield Health(HealthKind.NOTE, name, "", f"{subject} has expired and no longer exempts any object", language)
        elif exception.expired(decision.now):
            detail = f"{subject} still exempts objects after its expiresAt, which {_reader(decision)} does not read"
            yield Health(HealthKind.NOTE, name, "", detail, language)
        if exception.unknown:
            detail = f"{subject} has unknown fields: {', '.join(exception.unknown)}"
            yield Health(HealthKind.NOTE, name, "", detail, language)


def _reader(decision: Decision) -> str:
    """The evaluation that does not read the end of an exception."""
    return (
        f"Kyverno {format_minor(decision.release)}"
        if decision.mode.expires
        else "the evaluation for Kyverno's own reports"
    )


def _of_policy(policy: KyvernoPolicy, bound: BoundPolicy) -> Iterator[Health]:
    language, name = policy.key
    if bound.reading.reason:
        yield Health(HealthKind.NOT_AUDITABLE, name, "", bound.reading.reason, language)
    if policy.unknown and policy.source == "cluster":
        detail = f"unknown fields are ignored: {', '.join(policy.unknown)}"
        yield Health(HealthKind.NOTE, name, "", detail, language)
    if as_object(dig(policy.document, "spec", "webhookConfiguration")):
        yield Health(HealthKind.NOTE, name, "", _NO_EFFECT, language)
    if not policy.admission:
        yield Health(HealthKind.NOTE, name, "", _NOT_AT_ADMISSION, language)
    if policy.unscored:
        yield Health(HealthKind.NOTE, name, "", _UNSCORED, language)
    for condition in as_list(dig(policy.document, "status", "conditionStatus", "conditions")):
        if as_text(dig(condition, "status")) == "False":
            what, why = as_text(dig(condition, "type")), as_text(dig(condition, "message"))
            detail = f"{what} is False ({why})" if why else f"{what} is False"
            yield Health(HealthKind.CONDITION, name, "", detail, language)


def without_noise(health: Iterable[Health], forms: Iterable[BoundForm]) -> Iterator[Health]:
    """Report "matched no object" once per policy, only if none of its autogen variants matched.

    Expressions that do not compile are reported already; Kyverno admits the requests with any failurePolicy.
    """
    names: dict[PolicyKey, set[str]] = {}
    broken: set[PolicyKey] = set()
    for form in forms:
        names.setdefault(form.policy.key, set()).add(form.binding)
        broken |= {form.policy.key} if form.decision.fault else set()
    entries = tuple(health)
    idle = {(*problem.policy_key, problem.binding) for problem in entries if problem.kind is HealthKind.NO_OBJECT}
    for problem in entries:
        policy = problem.policy_key
        own = names.get(policy, set())
        if problem.kind is HealthKind.HIDDEN_ERRORS and policy in broken:
            continue
        if problem.kind is not HealthKind.NO_OBJECT or problem.binding not in own:
            yield problem
        elif problem.binding == AS_WRITTEN and all((*policy, name) in idle for name in own):
            yield replace(problem, binding="")
