"""What mutating policies make of the object of a request.

Source of truth: the plug-in MutatingAdmissionPolicy of kube-apiserver 1.36. It does not define the order of policies: a result that
depends on the order is undecided.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from scanner.admission.dispatch import BoundPolicy, InvocationResult
from scanner.audit import redact
from scanner.errors import AuthorizerFailed, ListFailed, SchemaUnknown
from scanner.model.json import JsonObject
from scanner.model.outcome import Change, Skipped, SkipReason, WouldChange
from scanner.model.resource import Resource
from scanner.policies.mutating.mutation import compute_patch
from scanner.policies.mutating.together import RequestResult, list_invocations, try_orders
from scanner.preview.admission_request import AdmissionRequest, explain_client, make_undecided
from scanner.preview.verdict import Decision, Effect

_Acting: TypeAlias = "Sequence[tuple[BoundPolicy, InvocationResult]]"
_ORDER: Final = "the result depends on the order of mutating policies, which an API server does not define"
_HIDDEN: Final = "mutating policies may read or change what the snapshot withholds"


class Mutation(Struct, frozen=True):
    """The object after all mutating policies, None if they refuse the request or if their result is not known.

    `changes` are what they change, and `changed_by` the names of the policies that change something.
    """

    after: JsonObject | None
    decisions: tuple[Decision, ...] = ()
    changes: tuple[Change, ...] = ()
    changed_by: tuple[str, ...] = ()


def mutate(request: AdmissionRequest, resource: Resource) -> Mutation:
    """The object of a request after all mutating policies."""
    try:
        acting = tuple(_list_acting(request, resource))
        answers = try_orders(acting) if acting else ()
        changed_by, decisions = _list_changing(acting)
        decisions += tuple(_list_by_client(acting))
    except (SchemaUnknown, AuthorizerFailed, ListFailed) as error:
        return Mutation(None, (Decision(Effect.UNDECIDED, f"mutating policies cannot be evaluated: {error}"),))
    hidden = Decision(Effect.UNDECIDED, _HIDDEN)
    if any(request.hides_match(bound, resource) for bound in request.rules.mutating):
        return Mutation(None, (*decisions, hidden), changed_by=changed_by)
    if not answers:
        return Mutation(resource.body, decisions, changed_by=changed_by)
    changes = compute_patch(resource.body, answers[0].after)
    if request.hides_mutations(acting, resource, changes):
        return Mutation(None, (*decisions, hidden), changed_by=changed_by)
    if any(not answer.is_like(answers[0]) for answer in answers):
        decisions = (*decisions, Decision(Effect.UNDECIDED, _ORDER))
    if refusal := answers[0].refusal:
        shown = redact.redact_mutations(refusal, acting)
        refused = Decision(Effect.REFUSES, shown, language="MutatingAdmissionPolicy")
        return Mutation(None, (*decisions, refused), changed_by=changed_by)
    return Mutation(_read_validated(request, answers[0]), decisions, redact.redact_patch(changes, acting), changed_by)


def _read_validated(request: AdmissionRequest, answer: RequestResult) -> JsonObject:
    """The object that validation reads: of a custom resource, the unknown fields that a policy adds are only pruned to be stored."""
    schema = request.requested.schema
    is_custom = schema is not None and schema.custom is not None
    return answer.unpruned if is_custom and answer.unpruned is not None else answer.after


def _list_acting(request: AdmissionRequest, resource: Resource) -> Iterator[tuple[BoundPolicy, InvocationResult]]:
    """The invocations that evaluate something on the object."""
    for bound in request.list_evaluable(request.rules.mutating):
        for view in request.list_views(resource):
            for result in list_invocations(bound, view, request.kind, request.make_context(view)):
                if result.request or result.check_results:
                    yield bound, result


def _list_by_client(acting: _Acting) -> Iterator[Decision]:
    """A decision for each policy whose result depends on the client of the request."""
    for bound in {id(bound): bound for bound, _ in acting}.values():
        if why := explain_client(bound):
            yield make_undecided(bound, why)


def _list_changing(acting: _Acting) -> tuple[tuple[str, ...], tuple[Decision, ...]]:
    """The names of the policies that change the object, and a decision for each invocation that cannot be evaluated."""
    names: dict[str, None] = {}
    undecided: list[Decision] = []
    for bound, result in acting:
        if result.request is None:
            continue
        results = bound.evaluator.evaluate(bound.compiled, result.request, result.invocation.param)
        names.update(dict.fromkeys(bound.policy.name for each in results if isinstance(each.outcome, WouldChange)))
        undecided += [
            make_undecided(bound, each.outcome.detail)
            for each in results
            if isinstance(each.outcome, Skipped) and each.outcome.reason is SkipReason.NOT_AUDITABLE
        ][:1]
    return tuple(names), tuple(undecided)
