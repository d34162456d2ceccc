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
from scanner.admission.match import could_match
from scanner.cel import ExpressionTooLarge, Timestamp
from scanner.model.policy import Action, Binding, MatchResources, Operation, Policy, Rule
from scanner.model.reading import Auditability
from scanner.model.release import NEWEST as KUBERNETES
from scanner.model.release import Minor, format_minor
from scanner.model.resource import Kind
from scanner.model.selector import EVERYTHING
from scanner.policies.kyverno.autogen import Resolve, Variant, unresolved
from scanner.policies.kyverno.compile import (
    CompiledException,
    compile_exception,
    compile_policy,
    cost_bounds,
    fault,
)
from scanner.policies.kyverno.configuration import NOTHING, Configuration
from scanner.policies.kyverno.decide import Decision
from scanner.policies.kyverno.exceptions import PolicyException, concerning
from scanner.policies.kyverno.extraction import Extraction
from scanner.policies.kyverno.libraries import ClusterData, NoClusterData, library_values, secret_safe
from scanner.policies.kyverno.modes import ADMISSION, KyvernoMode
from scanner.policies.kyverno.moved_conditions import Beyond, MovedConditions, budget_group, compile_conditions
from scanner.policies.kyverno.registration import Forms, MovedCondition, Registration, Registry, select_name
from scanner.policies.kyverno.releases import NEWEST, OWN_NAMESPACE_ALONE, SCANNED_NAMESPACED
from scanner.policies.kyverno.spec import KyvernoPolicy

AS_WRITTEN = "as-written"
"""The binding of a policy in its original form."""
_EVERY_OPERATION: tuple[Operation, ...] = ("CREATE", "UPDATE", "DELETE", "CONNECT")
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

    `ignored_controllers` are the names of controllers for which the policy has no form. `registration` is None without webhooks. Only
    if the form `is_enforced`, requests reach it.
    """

    policy: KyvernoPolicy
    decision: Decision
    bound: BoundPolicy
    ignored_controllers: tuple[str, ...] = ()
    registration: Registration | None = None
    is_enforced: bool = True

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
    policies: Iterable[KyvernoPolicy],
    exceptions: Iterable[PolicyException],
    kyverno_context: KyvernoContext,
    rules: Minor = KUBERNETES,
) -> tuple[BoundForm, ...]:
    """Every form of every policy, compiled, ordered by name and form, with its Kyverno policy and its decision.

    `rules` is the Kubernetes release of the API server that calls Kyverno.
    """
    all_exceptions = tuple(exceptions)
    ordered = sorted(policies, key=lambda policy: (policy.full_name, policy.kind))
    release, resolve = kyverno_context.release, kyverno_context.resolve
    forms = [(policy, policy.variants(release, resolve)) for policy in ordered]
    registry = Registry(forms, release, rules) if kyverno_context.mode.webhooks else None
    binder = _Binder(kyverno_context, registry, rules)
    return tuple(
        form for policy, variants in forms for form in binder.bind(policy, variants, concerning(policy, all_exceptions))
    )


@dataclass(frozen=True, slots=True)
class _Binder:
    """Binds policies. Without a `registry` requests come through no webhooks; `rules` is the release of the API server."""

    context: KyvernoContext
    registry: Registry | None
    rules: Minor

    def bind(self, policy: KyvernoPolicy, forms: Forms, exceptions: tuple[PolicyException, ...]) -> Iterator[BoundForm]:
        """Every form of a policy."""
        namespaced, release = bool(policy.namespace), self.context.release
        try:
            compiled = tuple((variant, compile_policy(form, release, namespaced=namespaced)) for variant, form in forms)
            as_written = compiled[0][1]
            conditions = tuple(
                compile_exception(exception, as_written, release, namespaced=namespaced) for exception in exceptions
            )
        except ExpressionTooLarge as why:
            compiled = tuple((variant, leave_uncompiled(form, why)) for variant, form in forms)
            conditions = ()
        read_fields = frozenset().union(*(each.paths for exception in conditions for _, each in exception.conditions))
        compiled = tuple((variant, replace(form, read_fields=read_fields)) for variant, form in compiled)
        faults = (fault(policy.full_name, form, conditions) for _, form in compiled)
        decision = self._decision(policy, conditions, next(filter(None, faults), ""))
        registration = self.registry.of(policy) if self.registry and policy.has_webhook else None
        unknown = policy.ignored_controllers(release, self.context.resolve)
        for variant, form in compiled:
            name = f"autogen-{variant.name}" if variant.name else AS_WRITTEN
            parts = tuple(_parts(variant, form, registration))
            for is_enforced, part in parts:
                of_rest = "-not-enforced" if len(parts) > 1 and not is_enforced else ""
                own = registration if is_enforced else None
                actions: tuple[Action, ...] = policy.enforced if is_enforced else ("Audit",)
                binding = Binding.create_without_manifest(part.policy, f"{name}{of_rest}", actions, policy.source)
                bound = self._bound(policy, binding, part, decision, own, variant=variant)
                yield BoundForm(policy, decision, bound, unknown, registration, is_enforced)

    def _decision(self, policy: KyvernoPolicy, exceptions: tuple[CompiledException, ...], why: str) -> Decision:
        context = self.context
        return Decision(
            mode=context.mode,
            now=context.now,
            exceptions=exceptions,
            library_values=library_values(
                context.cluster_data, _timestamp(context.now), policy.namespace, context.release
            ),
            fault=why,
            secret_safe=secret_safe(context.cluster_data),
            release=context.release,
        )

    def _bound(
        self,
        policy: KyvernoPolicy,
        binding: Binding,
        compiled: CompiledPolicy,
        decision: Decision,
        registration: Registration | None,
        *,
        variant: Variant,
    ) -> BoundPolicy:
        """One form of a policy, with its binding; without a registration no webhook reaches it."""
        mode = self.context.mode
        reason = _unauditable(policy, self.context)
        read = classify_policy(compiled, ("CREATE",) if mode.create_only else self.context.operations)
        if reason:
            classes = (class_ for class_ in read.classes if class_ is not Auditability.FULL)
            read = replace(read, reason=reason, classes=(*classes, Auditability.OPERATIONS))
        match = None if read.reason else _match(compiled.policy, mode)
        if match and registration is None and not (mode.webhooks and policy.is_generated):
            match = replace(match, match_policy="Exact")
        form = replace(compiled, policy=replace(compiled.policy, match=match))
        requester = frozenset(
            check_reading.check for check_reading in read.checks if Auditability.REQUESTER in check_reading.classes
        )
        bound = BoundPolicy(
            form,
            (binding,),
            read,
            requester,
            Extraction(replace(decision, absent=None)) if variant.extracts else decision,
            namespace="" if mode.everywhere else policy.namespace,
            evaluates_cluster_scoped=mode.evaluates_cluster_scoped,
            own_namespace_object=mode.server,
            exempts=self._exempts(registration),
            proves_fixes=not mode.exempts,
        )
        if registration is None:
            return bound
        # The conditions about other forms are true for every object that this form matches, unless the object is null.
        conditions = tuple(
            moved
            for moved in registration.conditions
            if moved.variant == variant.name or "DELETE" in self.context.operations
        )
        if match is None or not conditions:
            return replace(bound, called=registration.called)
        return self._through_webhook(policy, bound, match, conditions)

    def _through_webhook(
        self, policy: KyvernoPolicy, bound: BoundPolicy, match: MatchResources, moved: tuple[MovedCondition, ...]
    ) -> BoundPolicy:
        """A form of which the API server evaluates the match conditions first."""
        compiled = bound.compiled
        conditions = compile_conditions(compiled, moved, self.rules)
        called = _of_webhook(match, policy.namespace, self.context.release)
        beyond = None if called == match and not policy.namespace else Beyond(match, policy.namespace)
        pinned = OWN_NAMESPACE_ALONE.holds(self.context.release)
        return replace(
            bound,
            compiled=replace(
                compiled,
                policy=replace(compiled.policy, match=called),
                cost_bounds=cost_bounds(compiled, budget_group(conditions)),
            ),
            evaluator=MovedConditions(conditions, bound.evaluator, beyond),
            namespace=bound.namespace if pinned else "",
            evaluates_cluster_scoped=pinned and bool(policy.namespace),
        )

    def _exempts(self, registration: Registration | None) -> Exempts | None:
        """The filter of the webhook; the reports controller and the command line skip resource filters by default."""
        configuration = self.context.configuration
        return configuration.exempts if registration and configuration != NOTHING else None


def _parts(
    variant: Variant, form: CompiledPolicy, registration: Registration | None
) -> Iterator[tuple[bool, CompiledPolicy]]:
    """The parts of a form: one whose requests reach Kyverno (True), and one whose requests do not."""
    match = form.policy.match
    if registration is None:
        yield True, form
        return
    is_registered = not registration.faults and variant.name in registration.variants
    borrowed = () if registration.faults else registration.borrowed
    reached = tuple(_reached(match, borrowed)) if match and borrowed and not is_registered else ()
    if match is None or not reached:
        yield is_registered, form
        return
    plurals = {plural for rule in reached for plural in rule.resources}
    missed = tuple(
        replace(rule, resources=(plural,)) for rule in match.rules for plural in rule.resources if plural not in plurals
    )
    for is_enforced, rules in ((True, reached), (False, missed)):
        if rules:
            yield is_enforced, replace(form, policy=replace(form.policy, match=replace(match, rules=rules)))


def _unauditable(policy: KyvernoPolicy, kyverno_context: KyvernoContext) -> str:
    """The reason why the policy is not evaluated in a mode, or an empty string."""
    if kyverno_context.mode.all_modes:
        return policy.elsewhere
    is_scan = kyverno_context.mode.create_only
    if is_scan and policy.namespace and not SCANNED_NAMESPACED.holds(kyverno_context.release):
        return f"the background scan of Kyverno {format_minor(kyverno_context.release)} evaluates no namespaced policy"
    return policy.unauditable()


def _reached(match: MatchResources, borrowed: tuple[Rule, ...]) -> Iterator[Rule]:
    """The rules of a variant, as far as borrowed rules lead requests to Kyverno."""
    for rule, plural in [(each, plural) for each in match.rules for plural in each.resources]:
        kind = Kind(rule.api_groups[0], rule.api_versions[0], "", plural, namespaced=True)
        operations = (
            operation
            for operation in (_EVERY_OPERATION if "*" in rule.operations else rule.operations)
            if any(could_match(other, kind, (operation,)) for other in borrowed)
        )
        if led := tuple(operations):
            yield replace(rule, resources=(plural,), operations=led)


def _of_webhook(match: MatchResources, namespace: str, release: Minor) -> MatchResources:
    """The constraints of a policy as far as its webhook has them: no names of objects, and no exclusions.

    The webhook of a namespaced policy selects its namespace instead of others.
    """
    pinned = namespace and OWN_NAMESPACE_ALONE.holds(release)
    return replace(
        match,
        rules=tuple(replace(rule, resource_names=()) for rule in match.rules),
        exclude_rules=(),
        namespace_selector=select_name(namespace) if pinned else match.namespace_selector,
    )


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
