"""Finds the fields that two mutating policies set in turn after a change of rules: each apply of the object changes them again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from scanner.admission.context import EvaluationContext
from scanner.audit import redact
from scanner.errors import AuthorizerFailed, ListFailed, SchemaUnknown
from scanner.model.outcome import Change, WouldChange
from scanner.model.resource import Page, Resource
from scanner.model.withheld import has_withheld
from scanner.policies.mutating.together import find_alternations, list_invocations
from scanner.policies.plan import KindPlan
from scanner.preview.differences import ContestedField, Identity, ObjectDifference
from scanner.scan.lists import decode_objects

_LONGEST: Final = 200


@dataclass(frozen=True, slots=True)
class MutatingSide:
    """The policies about a kind on one side of a change, None without any, and the context of their evaluation."""

    plan: KindPlan | None
    context: EvaluationContext


def add_contested_fields(
    differences: Iterable[ObjectDifference], page: Page, before: MutatingSide, after: MutatingSide
) -> Iterator[ObjectDifference]:
    """The differences of a page with the fields that policies newly set in turn. Of withheld objects nothing is known."""
    every = tuple(differences)
    suspects = {_identify(each) for each in every if _depends_on_order(each)}
    bodies = {}
    for resource in decode_objects(page, withheld=True) if suspects else ():
        identity = Identity(resource.namespace, resource.name, resource.uid)
        if identity in suspects and not has_withheld(resource.body):
            bodies[identity] = resource
    for each in every:
        suspect = bodies.get(_identify(each))
        found, known = ({*_find_contested(suspect, side)} if suspect else set() for side in (after, before))
        yield replace(each, contested=tuple(sorted(found - known))) if found - known else each


def _identify(each: ObjectDifference) -> Identity:
    return Identity(each.object.namespace, each.object.name, each.object.uid)


def _depends_on_order(each: ObjectDifference) -> bool:
    """Return whether a mutation of an object is undone by another one, or their order matters."""
    outcomes = [finding.outcome for one in each.policies for finding in one.after]
    return any(isinstance(outcome, WouldChange) and (outcome.order_matters or outcome.undone) for outcome in outcomes)


def _find_contested(resource: Resource, side: MutatingSide) -> Iterator[ContestedField]:
    try:
        acting = [
            (bound, result)
            for bound, original in (side.plan.policies if side.plan else ())
            for result in list_invocations(bound, resource, original, side.context)
            if result.request
        ]
        found = find_alternations(acting) if acting else ()
    except (SchemaUnknown, AuthorizerFailed, ListFailed):
        return  # the finding itself has this reason
    for each in found:
        (one, set_by_one), (other, set_by_other) = each.one, each.other
        shown = [redact.redact_patch((change,), acting)[0] for change in (set_by_one, set_by_other)]
        yield ContestedField(set_by_one.path, one, _write(shown[0]), other, _write(shown[1]))


def _write(change: Change) -> str:
    return "no value" if change.op == "remove" else json.dumps(change.value, ensure_ascii=False, default=str)[:_LONGEST]
