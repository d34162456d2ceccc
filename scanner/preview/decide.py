"""Decides about one request in the order of admission: the namespace, built-in plug-ins, mutating policies, then everything that validates.

Source of truth: the create and patch handlers of kube-apiserver 1.36, and the order of its admission plug-ins. What admission would do
and Assay cannot evaluate is a decision of its own, *undecided*: silence is never success.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from msgspec import Struct

from scanner.admission.dispatch import BoundPolicy, make_target, select
from scanner.admission.match import applies, is_exempt
from scanner.audit.evidence import EvidenceParts
from scanner.model.json import JsonObject, dig
from scanner.model.outcome import Change
from scanner.model.resource import NAMESPACES, Resource, UserInfo, resource_of
from scanner.model.selector import EVERYTHING
from scanner.policies.pod_security.labels import read_labels
from scanner.policies.webhooks import Webhook
from scanner.preview.admission_request import AdmissionRequest, has_effect, make_admission_request, make_undecided
from scanner.preview.mutations import mutate
from scanner.preview.requested import Requested
from scanner.preview.rules import Rules
from scanner.preview.validations import validate
from scanner.preview.verdict import Decision, Effect

_INVOKED_AGAIN: Final = (
    "mutating policies that are invoked again may read what built-in plug-ins add after other policies"
)
_NO_SCHEMA: Final = "no schema of its kind is known, so its defaults are not"
_TERMINATING: Final = "Terminating"
_KYVERNO_WEBHOOKS: Final = ("vpol.validate.kyverno.svc", "nvpol.validate.kyverno.svc")
"""The beginnings of the names of the webhooks that only call policies which Assay evaluates."""
_KYVERNO_CONFIGURATION: Final = "kyverno-resource-validating-webhook-cfg"
"""The only configuration of such webhooks: another one may hold any program under their names."""


class Admission(Struct):
    """What admission decides about a request.

    `changes` are what mutating policies change, and `changed_by` their names. `admitted` is the object that validating policies read,
    None if they are not asked.
    """

    decisions: list[Decision]
    changes: tuple[Change, ...] = ()
    changed_by: tuple[str, ...] = ()
    admitted: Resource | None = None


def decide_request(rules: Rules, requested: Requested, user: UserInfo) -> tuple[Decision, ...]:
    """The decisions about one request of a user: mutating policies first, then every validating policy, and webhooks."""
    return tuple(decide(make_admission_request(rules, requested, user)).decisions)


class AdmittedRequest(Struct, frozen=True):
    """A request after mutating policies and built-in plug-ins, about which several sets of validating policies can decide.

    `decisions` are those before any validating policy; without `admitted`, no such policy is asked.
    """

    requested: Requested
    user: UserInfo
    decisions: tuple[Decision, ...]
    admitted: Resource | None

    def decide(self, rules: Rules) -> Iterator[Decision]:
        """The decisions about the request, without deciding values, those of validating policies of some rules included.

        The mutating policies of the rules must be equal.
        """
        yield from self.decisions
        if self.admitted is not None:
            request = make_admission_request(rules, self.requested, self.user)
            yield from validate(request, self.admitted, parts=EvidenceParts.NONE)


def admit_request(rules: Rules, requested: Requested, user: UserInfo) -> AdmittedRequest:
    """A request of a user up to the validating policies of some rules, which have no webhooks."""
    admission = decide(make_admission_request(replace(rules, validating=()), requested, user))
    return AdmittedRequest(requested, user, tuple(admission.decisions), admission.admitted)


def decide(request: AdmissionRequest) -> Admission:
    """What admission decides about a request."""
    admission = Admission([*_decide_lifecycle(request)])
    if any(decision.effect is Effect.REFUSES for decision in admission.decisions) or is_exempt(request.kind):
        return admission
    if request.requested.schema is None:
        admission.decisions.append(Decision(Effect.UNDECIDED, _NO_SCHEMA))
    admission.decisions += _decide_unknown(request)
    after = _change(request, admission)
    if after is None:
        return admission
    admitted = request.requested.after_mutation(after)
    request.rules.plugins.validate(admitted, admission.decisions, created=request.creates)
    admission.decisions += validate(request, admitted)
    admission.decisions += _decide_webhooks(request, admitted)
    admission.admitted = admitted
    return admission


# The namespace of a request, and the labels of a Namespace.


def _decide_lifecycle(request: AdmissionRequest) -> Iterator[Decision]:
    """What the API server decides about the namespace of the request (`NamespaceLifecycle`), and about labels of a Namespace."""
    resource = request.requested.resource
    if resource.kind.resource == NAMESPACES.resource:
        yield from _decide_labels(request.requested)
    elif resource.namespace:
        namespace = request.context.find_namespace(resource.namespace)
        if namespace is None and request.rules.knows_namespaces:
            yield Decision(Effect.REFUSES, f'namespaces "{resource.namespace}" not found')
        elif request.creates and dig(namespace, "status", "phase") == _TERMINATING:
            yield Decision(
                Effect.REFUSES,
                f"unable to create new content in namespace {resource.namespace}: it is being terminated",
            )


def _decide_labels(requested: Requested) -> Iterator[Decision]:
    """Pod Security refuses new invalid labels of a Namespace (`ValidateNamespace`)."""
    faults = read_labels(requested.resource.labels).faults
    old = read_labels(requested.old.labels).faults if requested.old else ()
    if faults and not old:
        yield Decision(Effect.REFUSES, ", ".join(map(str, faults)))


# Policies that cannot be evaluated.


def _decide_unknown(request: AdmissionRequest) -> Iterator[Decision]:
    """A decision for each policy that cannot be evaluated and that matches the request."""
    for unknown in request.rules.unknown:
        matches = _may_match if unknown.namespace else _matches
        if unknown.is_about(request.requested.resource.namespace) and matches(request, unknown.bound):
            yield make_undecided(unknown.bound, unknown.why)


def _matches(request: AdmissionRequest, bound: BoundPolicy) -> bool:
    """Return whether some binding that refuses or warns matches the request."""
    resource = request.requested.resource
    return request.hides_match(bound, resource) or any(
        has_effect(binding) and select(bound, binding, resource, request.kind, request.operation, request.context)
        for binding in bound.bindings
    )


def _may_match(request: AdmissionRequest, bound: BoundPolicy) -> bool:
    """Return whether a policy could match the request with some labels of the namespace, which are not known."""
    match = bound.policy.match
    target = make_target(request.requested.resource, request.kind, request.operation, request.context)
    return any(map(has_effect, bound.bindings)) and (
        match is None or applies(replace(match, namespace_selector=EVERYTHING), target) is not None
    )


# Built-in plug-ins and mutating policies.


def _change(request: AdmissionRequest, admission: Admission) -> JsonObject | None:
    """The object after built-in plug-ins and mutating policies; None if one refuses it, or if the result is not known."""
    plugins = request.rules.plugins
    before = plugins.change(request.requested.resource, admission.decisions, created=request.creates)
    if before is None:
        return None
    mutation = mutate(request, before)
    admission.decisions += mutation.decisions
    admission.changes, admission.changed_by = mutation.changes, mutation.changed_by
    if mutation.after is None or mutation.after == before.body:
        return mutation.after
    return _change_again(request, resource_of(request.kind, mutation.after), admission)


def _change_again(request: AdmissionRequest, resource: Resource, admission: Admission) -> JsonObject | None:
    """The object after the built-in plug-ins, which run once more after policies have changed it; None if they refuse it."""
    again = request.rules.plugins.change(resource, admission.decisions, created=request.creates)
    reinvoked = any(each.policy.reinvocation_policy == "IfNeeded" for each in request.rules.mutating)
    if again and again.body != resource.body and reinvoked:
        admission.decisions.append(Decision(Effect.UNDECIDED, _INVOKED_AGAIN))
    return again.body if again else None


# Webhooks.


def _decide_webhooks(request: AdmissionRequest, resource: Resource) -> Iterator[Decision]:
    """A decision for each webhook that the server calls about the request."""
    target = make_target(resource, request.kind, request.operation, request.context)
    for webhook in request.rules.webhooks:
        if _calls_evaluated_policies(webhook):
            continue
        if not webhook.may_receive(target) and not request.hides_labels((webhook.match,), resource):
            continue
        when = ", if its match conditions are true" if webhook.has_conditions else ""
        does = "change or refuse" if webhook.changes else "refuse"
        message = (
            f"the webhook, of {webhook.configuration}, may {does} it{when}: what a program decides is not in the API"
        )
        yield Decision(Effect.UNDECIDED, message, policy=webhook.name)


def _calls_evaluated_policies(webhook: Webhook) -> bool:
    return webhook.configuration == _KYVERNO_CONFIGURATION and webhook.name.startswith(_KYVERNO_WEBHOOKS)
