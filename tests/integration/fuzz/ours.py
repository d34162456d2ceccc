"""What Assay says of a case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations

from scanner.api import Auditor, Ruling
from scanner.model.json import JsonObject, as_object, as_text
from scanner.model.outcome import Errored, WouldChange
from scanner.model.policy import Operation
from scanner.model.release import release_of
from scanner.model.resource import Kind, resource_of
from scanner.mutate.operations import Operation as Step
from scanner.mutate.operations import apply
from scanner.policies import mutating
from scanner.policies.mutating import refusal
from scanner.policies.validating import Bound, World, judge
from scanner.sources import ParamTable
from tests.integration.fuzz.case import Case, Made, Outcome, Refused, name_of
from tests.integration.fuzz.manifests import binding_named
from tests.integration.fuzz.stage import Stage

INTERNAL = 500
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
    rulings = auditor.evaluate(document, operation=operation)
    return outcome_of(
        [it for it in rulings if it.resource.kind.api_version == as_text(document["apiVersion"])], document
    )


def outcome_of(rulings: Iterable[Ruling], document: JsonObject) -> Outcome:
    """The first refusal, or the document after all patches."""
    after = document
    for ruling in rulings:
        for outcome in (judgement.outcome for judgement in ruling.judgements):
            if isinstance(outcome, Errored) and outcome.would_deny:
                internal = outcome.code == INTERNAL
                return Refused(
                    outcome.code, outcome.message if internal else refusal(ruling.invocation, outcome.message)
                )
            if isinstance(outcome, WouldChange):
                after = as_object(apply([Step(it.op, it.path, it.value) for it in outcome.patch], after))  # type: ignore[arg-type]
    return Made(after)


def possible(stage: Stage, kind: Kind, case: Case, document: JsonObject, operation: Operation) -> list[Outcome]:
    """What several policies may make of a document: one outcome, or where the order matters, one for each order."""
    acting = [*_acting(stage, kind, case, document, operation)]
    refusals: list[Outcome] = [*_refusals(acting, document)]
    if refusals or not acting:
        return refusals or [Made(document)]
    after, order_matters = mutating.after_all(acting)
    orders = permutations(acting) if order_matters else ()
    return [Made(after), *(Made(mutating.after_all(order)[0]) for order in orders)]


def _acting(
    stage: Stage, kind: Kind, case: Case, document: JsonObject, operation: Operation
) -> Iterator[tuple[Bound, Ruling]]:
    rules = release_of(RELEASE).rules
    world = World(
        params=ParamTable(stage.kinds),
        namespaces={name_of(it): it for it in stage.namespaces},
        implied_namespaces=True,
        user=case.user,
        operations=(operation,),
    )
    policies = [mutating.read_policy(it, rules=rules) for it in case.policies]
    bindings = [mutating.read_binding(binding_named(it.name)) for it in policies]
    for bound in mutating.bind(policies, bindings, stage.schemas, rules=rules):
        for ruling in judge(bound, resource_of(kind, document), kind, world):
            yield bound, ruling


def _refusals(acting: Sequence[tuple[Bound, Ruling]], document: JsonObject) -> Iterator[Refused]:
    for _, ruling in acting:
        outcome = outcome_of([ruling], document)
        if isinstance(outcome, Refused):
            yield outcome
