"""The bindings of a policy that apply to a stored object, their params, and the results of each of these invocations.

Source of truth: `generic.PolicySource` and `validating.dispatcher` of kube-apiserver 1.36: nothing short-circuits,
every policy, binding, param and check is evaluated, and configuration errors deny with any action.

Rules: `docs/semantics/evaluation.md#order`, `docs/semantics/evaluation.md#configuration-errors`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from scanner.admission.compiled import CompiledPolicy
from scanner.admission.context import EvaluationContext, Selection
from scanner.admission.evaluator import ADMISSION, Evaluator
from scanner.admission.match import MatchTarget, applies
from scanner.admission.params import explain_unserved, resolve_params
from scanner.admission.request import Request, read_typed_namespace
from scanner.admission.results import fail_configuration
from scanner.errors import ConfigurationError
from scanner.model.json import JsonObject, dig, text_map
from scanner.model.outcome import Change, Check, CheckKind, CheckResult, Errored, Passed, Skipped
from scanner.model.policy import Binding, Invocation, MatchResources, Operation, Policy
from scanner.model.reading import UNKNOWN_READING, Reading
from scanner.model.resource import Kind, Resource


class Exempts(Protocol):
    """The exemptions of objects from a policy."""

    def __call__(
        self, resource: Resource, namespace_labels: Mapping[str, str], /, *, server_alone: bool = False
    ) -> str:
        """The reason why admission exempts an object, in a namespace with some labels, or an empty string.

        With `server_alone` only exemptions count that hold before the API server calls the webhook of a policy.
        """
        ...


class CoveredNamespaces(Struct, frozen=True):
    """The namespaces whose objects a policy evaluates, by another rule than a selector: `covers` tells it by their labels.

    `keys` are the labels that decide. An object without a namespace is evaluated as in a namespace without labels.
    """

    keys: tuple[str, ...]
    covers: Callable[[Mapping[str, str]], bool]

    def include(self, target: MatchTarget) -> bool:
        """Return whether the namespace of a request is one of them; a Namespace is in itself, as for selectors."""
        is_namespace = (target.kind.group, target.kind.plural) == ("", "namespaces")
        return self.covers(target.labels if is_namespace else target.namespace_labels or {})


@dataclass(frozen=True, slots=True)
class BoundPolicy:
    """A compiled policy with its bindings, ordered by name, and the auditability of its expressions.

    `evaluator` is how the language evaluates a request that a binding matches. `combination` is how policies that change objects
    act together; other policies have none. With a `namespace`, the policy evaluates only objects of that namespace, that Namespace itself and (with
    `evaluates_cluster_scoped`) cluster-scoped objects; with `covered`, only those whose namespace is covered. With
    `own_namespace_object` a Namespace that exists is its own namespaceObject. `exempts` returns why admission exempts a request from
    the policy. `called` are the webhooks through which requests reach the policy: the policy evaluates an object in the version with
    which the first of them is called, if it matches that version. Without `called` its own constraints tell it. Without `proves_fixes` not every check is evaluated, and no finding is resolved.
    With `independent_checks` the outcome of a check depends on no other check. `asked_before` are the kinds of other requests: an
    object that one of them reaches through a binding is evaluated for that one.
    """

    compiled: CompiledPolicy
    bindings: tuple[Binding, ...]
    reading: Reading = UNKNOWN_READING
    requester: frozenset[Check] = frozenset()
    evaluator: Evaluator = ADMISSION
    combination: Combination | None = None
    namespace: str = ""
    evaluates_cluster_scoped: bool = False
    covered: CoveredNamespaces | None = None
    own_namespace_object: bool = False
    exempts: Exempts | None = None
    called: tuple[MatchResources, ...] = ()
    proves_fixes: bool = True
    independent_checks: bool = False
    asked_before: tuple[Kind, ...] = ()

    def evaluates(self, resource: Resource) -> bool:
        """Return whether the policy evaluates objects where this one is; a Namespace is in itself, and cluster-scoped."""
        return any(map(self.evaluates_namespace, (resource.namespace, get_request_namespace(resource))))

    def evaluates_namespace(self, namespace: str) -> bool:
        """Return whether the policy evaluates the objects of a namespace; an empty name stands for cluster-scoped objects."""
        return self.namespace in ("", namespace) or (self.evaluates_cluster_scoped and not namespace)

    def add_exemptions(
        self, check_results: tuple[CheckResult, ...], resource: Resource, namespace: JsonObject | None
    ) -> tuple[CheckResult, ...]:
        """The check results with the exemption of the object in `excepted_by`, if admission exempts its requests from the policy.

        `namespace` is the Namespace object of the request, or None.
        """
        if self.exempts is None or all(
            isinstance(check_result.outcome, Passed | Skipped) for check_result in check_results
        ):
            return check_results
        labels = text_map(dig(namespace, "metadata", "labels"))
        exempted, by_server = (self.exempts(resource, labels, server_alone=alone) for alone in (False, True))
        return tuple(
            _exempt(check_result, by_server if _is_servers(check_result) else exempted)
            for check_result in check_results
        )

    @property
    def may_change_objects(self) -> bool:
        """Return whether the policy is compiled and may change objects."""
        return self.combination is not None and not self.compiled.excess

    @property
    def policy(self) -> Policy:
        """The policy as the API stores it."""
        return self.compiled.policy


def _is_servers(check_result: CheckResult) -> bool:
    """Return whether the API server itself refuses the request, before it calls a webhook."""
    outcome = check_result.outcome
    return check_result.check.kind is CheckKind.CONDITIONS and isinstance(outcome, Errored) and outcome.always


def _exempt(check_result: CheckResult, exempted: str) -> CheckResult:
    """Mark a check result as exempted. Errors of the policy's configuration do not depend on the object and stay."""
    is_fixed = check_result.check.kind is CheckKind.CONFIGURATION or not exempted
    if is_fixed or isinstance(check_result.outcome, Passed | Skipped):
        return check_result
    return check_result._replace(excepted_by=", ".join(filter(None, (exempted, check_result.excepted_by))))


class InvocationResult(NamedTuple):
    """The results of one invocation for one object. `resource` is the object in the kind in which it was evaluated.

    That is the kind of its list, or another version that differs from it in the apiVersion alone.

    Without check results the binding matches but selects no param, so that nothing is evaluated. `request` is the evaluated
    request, or None without one.
    """

    invocation: Invocation
    operation: Operation
    resource: Resource
    check_results: tuple[CheckResult, ...]
    request: Request | None = None

    def on(self, evaluated: Resource | None) -> InvocationResult:
        """The result as one for the object that a check evaluated; None is the object of the request."""
        if evaluated is None or self.request is None:
            return self
        return self._replace(resource=evaluated, request=self.request.on(evaluated))


@dataclass(frozen=True, slots=True)
class CombinedChange:
    """The changes of several invocations to one object, in the order of their names.

    `undone` is true if they leave the object unchanged, `order_matters` if another order has another result. `refused` is the
    text with which they deny the object in this order, or else in another.
    """

    patch: tuple[Change, ...]
    order_matters: bool
    undone: bool = False
    refused: str = ""


AtRest: TypeAlias = Callable[[BoundPolicy, JsonObject], bool]
"""Returns True for a policy that certainly leaves an object, after the changes of others, unchanged and without an error."""


class Combination(Protocol):
    """The way in which a language's policies change an object together: each changes the result of the policies before it."""

    def combine(self, acting: Sequence[tuple[BoundPolicy, InvocationResult]], at_rest: AtRest) -> CombinedChange | None:
        """The result of all requests of `acting` on an object; None if at most one policy acts.

        Policies that are not `at_rest` are evaluated. Raises SchemaUnknown.
        """
        ...


def evaluate_object(
    bound: BoundPolicy, resource: Resource, original: Kind, context: EvaluationContext
) -> Iterator[InvocationResult]:
    """The results of a policy for a stored object, one for each binding and param, ordered by binding.

    The object is evaluated as if a request on `original` created or updated it.
    `resource` is in the kind in which it was listed. A policy that evaluates the object in another of its kinds has no result
    here: it has one when the object is listed in that kind. A request without results is one that the policy does not evaluate. A kind that differs in the apiVersion alone has no list of its own. Raises AuthorizerFailed and SchemaUnknown.
    """
    for pending in list_requests(bound, resource, original, context):
        if pending.request is None:
            yield pending
            continue
        check_results = bound.evaluator.evaluate(bound.compiled, pending.request, pending.invocation.param)
        if bound.compiled.checks and not check_results:
            continue
        check_results = bound.add_exemptions(check_results, resource, context.find_namespace(resource.namespace))
        yield pending._replace(check_results=check_results)


def list_requests(
    bound: BoundPolicy, resource: Resource, original: Kind, context: EvaluationContext
) -> Iterator[InvocationResult]:
    """The invocations of a policy for an object, not evaluated, ordered by binding.

    A result without `request` is final: its binding selects no param, or its configuration is wrong.
    """
    if bound.reading.reason or not bound.evaluates(resource):
        return
    for binding in bound.bindings:
        if any(select_first(bound, binding, resource, kind, context) for kind in bound.asked_before):
            continue
        selection = select_first(bound, binding, resource, original, context)
        viewed = selection and _view(resource, selection.matched, original, context)
        if selection and viewed:
            yield from _list_requests(bound, binding, selection, viewed, context)


def select_first(
    bound: BoundPolicy, binding: Binding, resource: Resource, original: Kind, context: EvaluationContext
) -> Selection | None:
    """The request for which an object is evaluated once: that of the first operation that policy and binding match."""
    selections = (select(bound, binding, resource, original, operation, context) for operation in context.operations)
    return next((candidate for candidate in selections if candidate), None)


def is_viewed(matched: Kind, listed: Kind, original: Kind, context: EvaluationContext) -> bool:
    """Return whether a policy evaluates objects that are listed in a kind as another kind of them."""
    return matched != listed and listed == original and matched in context.relabelled


def _view(resource: Resource, matched: Kind, original: Kind, context: EvaluationContext) -> Resource | None:
    """The object in the kind in which a policy evaluates it; None if the policy evaluates it on another list."""
    if is_viewed(matched, resource.kind, original, context):
        return _VIEWS.of(resource, matched)
    is_elsewhere = resource.kind != original and matched in context.relabelled
    return resource if matched == resource.kind and not is_elsewhere else None


class _Views:
    """The latest object in other versions of its kind: the same view for the same object and version."""

    def __init__(self) -> None:
        self._resource: Resource | None = None
        self._views: dict[Kind, Resource] = {}

    def of(self, resource: Resource, kind: Kind) -> Resource:
        """The object as `nopConverter` of apiextensions-apiserver converts it: its apiVersion alone changes."""
        if resource is not self._resource:
            self._resource = resource
            self._views.clear()
        if kind not in self._views:
            body = {**resource.body, "apiVersion": kind.api_version}
            self._views[kind] = resource._replace(kind=kind, body=body)
        return self._views[kind]


_VIEWS: Final = _Views()


def select(
    bound: BoundPolicy,
    binding: Binding,
    resource: Resource,
    original: Kind,
    operation: Operation,
    context: EvaluationContext,
) -> Selection | None:
    """The request that a policy and one of its bindings match, or None; a configuration error is the selection's `fault`.

    Only the facts in `MatchTarget` decide.
    """
    policy, target = bound.policy, make_target(resource, original, operation, context)
    if bound.covered and not bound.covered.include(target):
        return None
    try:
        matched = _match(bound, target)
    except ConfigurationError as error:
        return Selection(target, resource.kind, f"failed to configure policy: {error}")
    if matched is None:
        return None
    if fault := explain_unserved(policy, context.params):
        return Selection(target, matched, f"failed to configure policy: {fault}")
    try:
        narrowed_out = binding.match is not None and applies(binding.match, target) is None
    except ConfigurationError as error:
        return Selection(target, matched, f"failed to configure binding: {error}")
    return None if narrowed_out else Selection(target, matched)


def make_target(resource: Resource, original: Kind, operation: Operation, context: EvaluationContext) -> MatchTarget:
    """The facts of a request that matching reads."""
    namespace = get_request_namespace(resource)
    namespace_object = context.find_namespace(namespace)
    return MatchTarget(
        kind=original,
        operation=operation,
        name=resource.name,
        namespace=namespace,
        labels=resource.labels,
        namespace_labels=None if namespace_object is None else text_map(dig(namespace_object, "metadata", "labels")),
        equivalents=context.equivalents.get(original, ()),
        old_labels=context.old.labels if context.old and operation == "UPDATE" else None,
    )


def get_request_namespace(resource: Resource) -> str:
    """The namespace of a request on an object: a Namespace's own name for Namespace objects."""
    if (resource.kind.group, resource.kind.plural) == ("", "namespaces"):
        return resource.name
    return resource.namespace


def _list_requests(
    bound: BoundPolicy, binding: Binding, selection: Selection, resource: Resource, context: EvaluationContext
) -> Iterator[InvocationResult]:
    policy, target = bound.policy, selection.target

    def fault_result(text: str) -> InvocationResult:
        return InvocationResult(
            Invocation(policy, binding), target.operation, resource, (fail_configuration(bound.compiled, text),)
        )

    if selection.fault:
        yield fault_result(selection.fault)
        return
    try:
        params = resolve_params(policy, binding, target.namespace, context.params)
    except ConfigurationError as error:
        yield fault_result(f"failed to configure binding: {error}")
        return
    if not params:
        yield InvocationResult(Invocation(policy, binding), target.operation, resource, ())
        return
    request = _make_request(bound, binding, selection, resource, context)
    for param in params:
        yield InvocationResult(Invocation(policy, binding, param), target.operation, resource, (), request)


def _match(bound: BoundPolicy, target: MatchTarget) -> Kind | None:
    match = bound.policy.match
    if match is None:
        raise ConfigurationError("policy contained no match constraints, a required field")
    if not bound.called:
        return applies(match, target)
    kinds = (applies(webhook, target) for webhook in bound.called)
    received = (kind for kind in kinds if kind and applies(match, replace(target, kind=kind, equivalents=())))
    return next(received, None)


def _make_request(
    bound: BoundPolicy, binding: Binding, selection: Selection, resource: Resource, context: EvaluationContext
) -> Request:
    target = selection.target
    return Request(
        operation=target.operation,
        original=target.kind,
        matched=selection.matched,
        resource=resource,
        namespace=target.namespace,
        namespace_object=_get_namespace_object(bound, target, resource, context),
        user=context.user,
        decider=context.authorizer,
        budget_use=context.budget_use,
        narrowing=binding.match,
        old=context.old if target.operation == "UPDATE" else None,
    )


def _get_namespace_object(
    bound: BoundPolicy, target: MatchTarget, resource: Resource, context: EvaluationContext
) -> JsonObject | None:
    if not target.namespace:
        return None
    if (resource.kind.group, resource.kind.plural) != ("", "namespaces"):
        return read_typed_namespace(context.find_namespace(target.namespace))
    # The request that creates a Namespace finds no Namespace of this name.
    return resource.body if bound.own_namespace_object and target.operation != "CREATE" else None
