"""The prediction of Assay for a case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from scanner.admission.context import EvaluationContext
from scanner.admission.dispatch import BoundPolicy
from scanner.api import Auditor, InvocationResult
from scanner.model.json import JsonObject, as_object
from scanner.model.outcome import Errored, WouldChange
from scanner.model.policy import Operation
from scanner.model.release import release_of
from scanner.model.resource import Kind, resource_of
from scanner.mutate.native import CONNECTION_ENDS
from scanner.mutate.operations import PatchOperation as Step
from scanner.mutate.operations import apply
from scanner.policies.mutating import language as mutating
from scanner.policies.mutating.evaluator import write_refusal
from scanner.policies.mutating.together import RequestResult, list_invocations, try_orders
from scanner.scan.param_table import ParamTable
from tests.integration.fuzz.case import Case, Made, Outcome, Refused, name_of
from tests.integration.fuzz.compare import ENDED
from tests.integration.fuzz.manifests import binding_named
from tests.integration.fuzz.stage import Stage

INTERNAL, DENIED = 500, 403
RELEASE = "1.36"


def predicted(stage: Stage, case: Case, document: JsonObject, operation: Operation) -> Outcome:
    """What one policy makes of a document, or the refusal."""
    auditor = Auditor(
        policies=case.policies,
        bindings=[binding_named(name_of(policy)) for policy in case.policies],
        namespaces=stage.namespaces,
        kinds=stage.kinds,
        user=case.user,
        schemas=stage.schemas,
        kubernetes_version=RELEASE,
    )
    return outcome_of(auditor.evaluate(document, operation=operation), document)


def outcome_of(invocation_results: Iterable[InvocationResult], document: JsonObject) -> Outcome:
    """The first refusal, or the document after all patches."""
    after = document
    for invocation_result in invocation_results:
        for outcome in (check_result.outcome for check_result in invocation_result.check_results):
            if isinstance(outcome, Errored) and outcome.would_deny:
                internal = outcome.code == INTERNAL
                return Refused(
                    ENDED if outcome.message.startswith(CONNECTION_ENDS) else outcome.code,
                    outcome.message if internal else write_refusal(invocation_result.invocation, outcome),
                )
            if isinstance(outcome, WouldChange):
                after = as_object(apply([Step(step.op, step.path, step.value) for step in outcome.patch], after))  # type: ignore[arg-type]
    return Made(after)


def possible(stage: Stage, kind: Kind, case: Case, document: JsonObject, operation: Operation) -> list[Outcome]:
    """What several policies may make of a document: one outcome for each of the orders that Assay tries."""
    acting = [*_acting(stage, kind, case, document, operation)]
    return [_outcome(answer) for answer in try_orders(acting)] if acting else [Made(document)]


def _outcome(answer: RequestResult) -> Outcome:
    if not answer.refusal:
        return Made(answer.after)
    if answer.refusal.startswith(CONNECTION_ENDS):
        return Refused(ENDED, answer.refusal)
    return Refused(DENIED if answer.refusal.startswith("policy '") else INTERNAL, answer.refusal)


def _acting(
    stage: Stage, kind: Kind, case: Case, document: JsonObject, operation: Operation
) -> Iterator[tuple[BoundPolicy, InvocationResult]]:
    rules = release_of(RELEASE).rules
    context = EvaluationContext(
        params=ParamTable(stage.kinds),
        namespaces={name_of(namespace): namespace for namespace in stage.namespaces},
        implied_namespaces=True,
        user=case.user,
        operations=(operation,),
    )
    policies = [mutating.read_policy(document, rules=rules) for document in case.policies]
    bindings = [mutating.read_binding(binding_named(policy.name)) for policy in policies]
    for bound in mutating.bind(policies, bindings, schemas=stage.schemas, rules=rules):
        for invocation_result in list_invocations(bound, resource_of(kind, document), kind, context):
            yield bound, invocation_result
