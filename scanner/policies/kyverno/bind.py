"""Kyverno's policies in force: each policy separately, in each of its variants, with the exceptions that name it.

A policy needs no binding; Assay creates bindings that represent its scope and its variants.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from scanner.admission.auditability import AUDITABLE, classify_policy
from scanner.admission.compiled import CompiledPolicy, leave_uncompiled
from scanner.admission.dispatch import BoundPolicy, Exempts
from scanner.cel import ExpressionTooLarge, Timestamp
from scanner.model.policy import Binding, MatchResources, Operation, Policy, Rule
from scanner.model.reading import Auditability
from scanner.model.release import Minor, format_minor
from scanner.model.selector import EVERYTHING
from scanner.policies.kyverno.autogen import Resolve, Variant, unresolved
from scanner.policies.kyverno.compile import compile_exception, compile_policy, fault
from scanner.policies.kyverno.configuration import NOTHING, Configuration
from scanner.policies.kyverno.decide import Decision
from scanner.policies.kyverno.exceptions import PolicyException, concerning
from scanner.policies.kyverno.extraction import Extraction
from scanner.policies.kyverno.libraries import ClusterData, NoClusterData, library_values, secret_safe
from scanner.policies.kyverno.modes import ADMISSION, KyvernoMode
from scanner.policies.kyverno.releases import NEWEST, SCANNED_NAMESPACED
from scanner.policies.kyverno.spec import KyvernoPolicy

AS_WRITTEN = "as-written"
"""The binding of a policy in its original form."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class KyvernoContext:
    """The context of the evaluation besides policies and objects: the mode, the time, and the cluster data.

    `configuration` is Kyverno's own: the requests that never reach the webhook. `release` is that of Kyverno, and `resolve` returns
    the resource that the name of a controller means in the cluster.
    """

    now: datetime
    mode: KyvernoMode = ADMISSION
    cluster_data: ClusterData = field(default_factory=NoClusterData)
    operations: tuple[Operation, ...] = AUDITABLE
    configuration: Configuration = NOTHING
    release: Minor = NEWEST
    resolve: Resolve = unresolved


@dataclass(frozen=True, slots=True)
class BoundForm:
    """One form of a policy in force: the original, or one from autogen. All forms share one decision.

    `ignored_controllers` are the names of controllers for which the policy has no form.
    """

    policy: KyvernoPolicy
    decision: Decision
    bound: BoundPolicy
    ignored_controllers: tuple[str, ...] = ()

    @property
    def binding(self) -> str:
        """The name of the binding, which identifies the form of the policy."""
        return self.bound.bindings[0].name


def bind(
    policies: Iterable[KyvernoPolicy], exceptions: Iterable[PolicyException], kyverno_context: KyvernoContext
) -> tuple[BoundPolicy, ...]:
    """One bound policy for every form of every policy, compiled, ordered by name and form."""
    return tuple(form.bound for form in bind_forms(policies, exceptions, kyverno_context))


def bind_forms(
    policies: Iterable[KyvernoPolicy], exceptions: Iterable[PolicyException], kyverno_context: KyvernoContext
) -> tuple[BoundForm, ...]:
    """Every form of every policy, compiled, ordered by name and form, with its Kyverno policy and its decision."""
    all_exceptions = tuple(exceptions)
    ordered = sorted(policies, key=lambda policy: (policy.full_name, policy.kind))
    return tuple(
        form for policy in ordered for form in _forms(policy, concerning(policy, all_exceptions), kyverno_context)
    )


def _forms(
    policy: KyvernoPolicy, exceptions: tuple[PolicyException, ...], kyverno_context: KyvernoContext
) -> Iterator[BoundForm]:
    namespaced, release = bool(policy.namespace), kyverno_context.release
    forms = policy.variants(release, kyverno_context.resolve)
    try:
        compiled = tuple((variant, compile_policy(form, release, namespaced=namespaced)) for variant, form in forms)
        as_written = compiled[0][1]
        conditions = tuple(
            compile_exception(exception, as_written, release, namespaced=namespaced) for exception in exceptions
        )
    except ExpressionTooLarge as why:
        compiled = tuple((variant, leave_uncompiled(form, why)) for variant, form in forms)
        conditions = ()
    faults = (fault(policy.full_name, form, conditions) for _, form in compiled)
    decision = Decision(
        mode=kyverno_context.mode,
        now=kyverno_context.now,
        exceptions=conditions,
        library_values=library_values(
            kyverno_context.cluster_data, _timestamp(kyverno_context.now), policy.namespace, release
        ),
        fault=next(filter(None, faults), ""),
        secret_safe=secret_safe(kyverno_context.cluster_data),
        release=kyverno_context.release,
    )
    unknown = policy.ignored_controllers(kyverno_context.release, kyverno_context.resolve)
    for variant, form in compiled:
        yield BoundForm(policy, decision, _variant(policy, variant, form, decision, kyverno_context), unknown)


def _variant(
    policy: KyvernoPolicy,
    variant: Variant,
    compiled: CompiledPolicy,
    decision: Decision,
    kyverno_context: KyvernoContext,
) -> BoundPolicy:
    mode = kyverno_context.mode
    reason = _unauditable(policy, kyverno_context)
    read = classify_policy(compiled, ("CREATE",) if mode.create_only else kyverno_context.operations)
    if reason:
        classes = (class_ for class_ in read.classes if class_ is not Auditability.FULL)
        read = replace(read, reason=reason, classes=(*classes, Auditability.OPERATIONS))
    match = None if read.reason else _match(compiled.policy, mode)
    form = replace(compiled, policy=replace(compiled.policy, match=match))
    name = f"autogen-{variant.name}" if variant.name else AS_WRITTEN
    requester = frozenset(
        check_reading.check for check_reading in read.checks if Auditability.REQUESTER in check_reading.classes
    )
    return BoundPolicy(
        form,
        (Binding.create_without_manifest(form.policy, name, policy.enforced, policy.source),),
        read,
        requester,
        Extraction(replace(decision, absent=None)) if variant.extracts else decision,
        namespace="" if mode.everywhere else policy.namespace,
        evaluates_cluster_scoped=mode.evaluates_cluster_scoped,
        own_namespace_object=mode.server,
        exempts=_exempts(policy, kyverno_context),
        proves_fixes=not mode.exempts,
    )


def _unauditable(policy: KyvernoPolicy, kyverno_context: KyvernoContext) -> str:
    """The reason why the policy is not evaluated in a mode, or an empty string."""
    if kyverno_context.mode.all_modes:
        return policy.elsewhere
    is_scan = kyverno_context.mode.create_only
    if is_scan and policy.namespace and not SCANNED_NAMESPACED.holds(kyverno_context.release):
        return f"the background scan of Kyverno {format_minor(kyverno_context.release)} evaluates no namespaced policy"
    return policy.unauditable()


def _exempts(policy: KyvernoPolicy, kyverno_context: KyvernoContext) -> Exempts | None:
    """The filter of the webhook; the reports controller and the command line skip resource filters by default."""
    configuration = kyverno_context.configuration
    by_webhook = policy.admission and kyverno_context.mode.server
    return configuration.exempts if by_webhook and configuration != NOTHING else None


def _match(policy: Policy, mode: KyvernoMode) -> MatchResources | None:
    """The constraints; in Kyverno's reports a selector that matches an object without labels selects every object."""
    match = policy.match
    if match is None:
        return None
    if mode.create_only:
        match = replace(match, rules=_creating(match.rules), exclude_rules=_creating(match.exclude_rules))
    if not mode.ignores_negative_selectors or any(
        requirement.find_fault() for requirement in match.object_selector.requirements
    ):
        return match
    return replace(match, object_selector=EVERYTHING) if match.object_selector.matches({}) else match


def _creating(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """The rules that name CREATE, for CREATE alone."""
    return tuple(replace(rule, operations=("CREATE",)) for rule in rules if {"*", "CREATE"} & set(rule.operations))


def _timestamp(moment: datetime) -> Timestamp:
    since = moment - _EPOCH
    return Timestamp((since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000)
