"""What Assay says of a case."""

from __future__ import annotations

from collections.abc import Iterable

from scanner.api import Auditor, Ruling
from scanner.model.json import JsonObject, as_object, as_text
from scanner.model.outcome import Errored, WouldChange
from scanner.model.policy import Operation
from scanner.mutate.operations import Operation as Step
from scanner.mutate.operations import apply
from scanner.policies.mutating import refusal
from tests.integration.fuzz.case import Case, Made, Outcome, Refused, name_of
from tests.integration.fuzz.manifests import binding_named
from tests.integration.fuzz.stage import Stage

INTERNAL = 500


def predicted(stage: Stage, case: Case, document: JsonObject, operation: Operation) -> Outcome:
    """What one policy makes of a document, or the refusal."""
    auditor = Auditor(
        policies=case.policies,
        bindings=[binding_named(name_of(policy)) for policy in case.policies],
        namespaces=stage.namespaces,
        kinds=stage.kinds,
        user=case.user,
        schemas=stage.schemas,
        kubernetes_version="1.36",
    )
    rulings = auditor.evaluate(document, operation=operation)
    return outcome_of([it for it in rulings if it.resource.kind.api_version == as_text(document["apiVersion"])], document)


def outcome_of(rulings: Iterable[Ruling], document: JsonObject) -> Outcome:
    """The first refusal, or the document after all patches."""
    after = document
    for ruling in rulings:
        for outcome in (judgement.outcome for judgement in ruling.judgements):
            if isinstance(outcome, Errored) and outcome.would_deny:
                internal = outcome.code == INTERNAL
                return Refused(outcome.code, outcome.message if internal else refusal(ruling.invocation, outcome.message))
            if isinstance(outcome, WouldChange):
                after = as_object(apply([Step(it.op, it.path, it.value) for it in outcome.patch], after))  # type: ignore[arg-type]
    return Made(after)
