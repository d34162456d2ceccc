"""Kyverno's policies in force: every one by itself, in each of its variants, with the exceptions that name it.

A policy needs no binding; what its scope and its variants are is told by bindings that stand in no manifest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from scanner.admission.auditability import AUDITABLE, reading
from scanner.admission.compiled import CompiledPolicy, too_large
from scanner.admission.dispatch import BoundPolicy, Exempts
from scanner.cel import Timestamp, TooLarge
from scanner.model.json import EMPTY
from scanner.model.policy import Binding, MatchResources, Operation, Policy, Rule
from scanner.model.reading import Auditability
from scanner.model.selector import EVERYTHING
from scanner.policies.kyverno.autogen import Variant
from scanner.policies.kyverno.compile import compile_exception, compile_policy, fault
from scanner.policies.kyverno.configuration import NOTHING, Configuration
from scanner.policies.kyverno.decide import Decision
from scanner.policies.kyverno.exceptions import PolicyException, concerning
from scanner.policies.kyverno.libraries import ClusterData, NoClusterData, library_values, secret_safe
from scanner.policies.kyverno.modes import ADMISSION, KyvernoMode
from scanner.policies.kyverno.spec import KyvernoPolicy

AS_WRITTEN = "as-written"
"""The binding of a policy in its own form."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class KyvernoContext:
    """What judging depends on besides policies and objects: in whose manner, at what time, with what around.

    `configuration` is Kyverno's own: what it keeps from the webhook.
    """

    now: datetime
    mode: KyvernoMode = ADMISSION
    cluster_data: ClusterData = field(default_factory=NoClusterData)
    operations: tuple[Operation, ...] = AUDITABLE
    configuration: Configuration = NOTHING


def bind(
    policies: Iterable[KyvernoPolicy], exceptions: Iterable[PolicyException], kyverno_context: KyvernoContext
) -> tuple[BoundPolicy, ...]:
    """Every variant of every policy, compiled, by name and variant."""
    known = tuple(exceptions)
    ordered = sorted(policies, key=lambda policy: (policy.full_name, policy.kind))
    return tuple(bound for policy in ordered for bound in _bound(policy, concerning(policy, known), kyverno_context))


def _bound(
    policy: KyvernoPolicy, exceptions: tuple[PolicyException, ...], kyverno_context: KyvernoContext
) -> Iterator[BoundPolicy]:
    namespaced = bool(policy.namespace)
    try:
        compiled = tuple((variant, compile_policy(form, namespaced=namespaced)) for variant, form in policy.variants())
        as_written = compiled[0][1]
        conditions = tuple(compile_exception(exception, as_written, namespaced=namespaced) for exception in exceptions)
    except TooLarge as why:
        compiled = tuple((variant, too_large(form, why)) for variant, form in policy.variants())
        conditions = ()
    faults = (fault(policy.full_name, form, conditions) for _, form in compiled)
    decision = Decision(
        mode=kyverno_context.mode,
        now=kyverno_context.now,
        exceptions=conditions,
        library_values=library_values(kyverno_context.cluster_data, _timestamp(kyverno_context.now), policy.namespace),
        fault=next(filter(None, faults), ""),
        secret_safe=secret_safe(kyverno_context.cluster_data),
    )
    for variant, form in compiled:
        yield _variant(policy, variant, form, decision, kyverno_context)


def _variant(
    policy: KyvernoPolicy,
    variant: Variant,
    compiled: CompiledPolicy,
    decision: Decision,
    kyverno_context: KyvernoContext,
) -> BoundPolicy:
    mode = kyverno_context.mode
    reason = "" if mode.all_modes and not policy.elsewhere else policy.unauditable()
    read = reading(compiled, ("CREATE",) if mode.create_only else kyverno_context.operations)
    if reason:
        classes = (known for known in read.classes if known is not Auditability.FULL)
        read = replace(read, reason=reason, classes=(*classes, Auditability.OPERATIONS))
    match = None if read.reason else _match(compiled.policy, mode)
    form = replace(compiled, policy=replace(compiled.policy, match=match))
    requester = frozenset(it.check for it in read.checks if Auditability.REQUESTER in it.classes)
    return BoundPolicy(
        form,
        (_binding(policy, variant),),
        read,
        requester,
        decision,
        policy.namespace,
        evaluates_cluster_scoped=mode.evaluates_cluster_scoped,
        own_namespace_object=mode.server,
        exempts=_exempts(policy, kyverno_context),
    )


def _exempts(policy: KyvernoPolicy, kyverno_context: KyvernoContext) -> Exempts | None:
    """Only the webhook filters: the reports controller skips resource filters by default, and so does the command line."""
    configuration = kyverno_context.configuration
    asked = policy.admission and kyverno_context.mode.server
    return configuration.exempts if asked and configuration != NOTHING else None


def _match(policy: Policy, mode: KyvernoMode) -> MatchResources | None:
    """The constraints; a selector that an object without labels fits selects everything in Kyverno's reports."""
    match = policy.match
    if match is None:
        return None
    if mode.create_only:
        match = replace(match, rules=_creating(match.rules), exclude_rules=_creating(match.exclude_rules))
    if not mode.ignores_negative_selectors or any(
        requirement.fault() for requirement in match.object_selector.requirements
    ):
        return match
    return replace(match, object_selector=EVERYTHING) if match.object_selector.matches({}) else match


def _creating(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """The rules as far as they are about a CREATE."""
    return tuple(replace(rule, operations=("CREATE",)) for rule in rules if {"*", "CREATE"} & set(rule.operations))


def _binding(policy: KyvernoPolicy, variant: Variant) -> Binding:
    return Binding(
        language=policy.kind,
        name=f"autogen-{variant.name}" if variant.name else AS_WRITTEN,
        policy_name=policy.full_name,
        param_ref=None,
        match=None,
        actions=policy.enforced,
        manifest=EMPTY,
        digest="",
        source=policy.source,
    )


def _timestamp(moment: datetime) -> Timestamp:
    since = moment - _EPOCH
    return Timestamp((since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000)
