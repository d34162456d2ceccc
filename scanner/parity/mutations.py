"""Whether a dry-run update makes of an object what its mutating policies are expected to make of it.

The server answers with the object as all of them leave it, and with the defaults of whatever is new in it: what the
prediction has must be there, and what is there beyond it must lie inside something that the mutations added.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from scanner.admission.dispatch import BoundPolicy, InvocationResult
from scanner.audit import redact
from scanner.audit.secret_values import is_secret
from scanner.model.json import Json, JsonObject, as_object
from scanner.model.resource import Resource
from scanner.mutate.difference import difference
from scanner.mutate.operations import same
from scanner.mutate.values import CONNECTION_ENDS
from scanner.parity.answers import Said, aside_of, refusal_of
from scanner.parity.compare import OTHER_REFUSAL, SILENCE, Comparison, Difference
from scanner.policies.mutating.together import Answer, answers

ORDER: Final = "mutating policies fight over the object, and a server runs them in an order of its own"
_BOOKKEEPING: Final = ("managedFields", "resourceVersion", "generation")
_COUNTER: Final = "deprecated.daemonset.template.generation"
_ADMITTED: Final = 200
_INTERNAL_ERROR: Final = 500
_WEBHOOK: Final = "failed calling webhook"
_MOST_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class Expected:
    """What mutating policies should do to an object in one update: the answers in all orders that were tried.

    `secretive` tells that some of them may make something of a secret: then nothing of the object is shown.
    """

    policies: str
    stored: Resource
    answers: tuple[Answer, ...]
    secretive: bool = False

    @property
    def after(self) -> JsonObject:
        """The object in the order of the policies' names."""
        return self.answers[0].after

    @property
    def refusals(self) -> tuple[str, ...]:
        """The texts with which a server may refuse the request, in some order."""
        return tuple(dict.fromkeys(answer.refused for answer in self.answers if answer.refused))

    @property
    def is_refused(self) -> bool:
        """Whether a server refuses it in every order."""
        return all(answer.refused for answer in self.answers)

    @property
    def ends_connection(self) -> bool:
        """Whether the server may end the connection instead of an answer."""
        return any(text.startswith(CONNECTION_ENDS) for text in self.refusals)

    @property
    def order_matters(self) -> bool:
        """Whether another order ends elsewhere."""
        return not all(answer.is_like(self.answers[0]) for answer in self.answers)


def expected(invocations: Iterable[tuple[BoundPolicy, InvocationResult]]) -> Expected | None:
    """What an update should come to; None when no mutating policy acts on the object. Raises SchemaUnknown."""
    acting = [
        (bound, invocation_result)
        for bound, invocation_result in invocations
        if invocation_result.request or invocation_result.check_results
    ]
    if not acting:
        return None
    names = ", ".join(dict.fromkeys(bound.policy.name for bound, _ in acting))
    secretive = redact.may_tell_secrets((bound.compiled, invocation_result) for bound, invocation_result in acting)
    return Expected(names, acting[0][1].resource, answers(acting), secretive)


def compared_update(it: Expected, said: Said) -> Comparison:
    """Compare with the answer to a dry-run update of the object as it is."""
    comparison = Comparison()
    if said.status != _ADMITTED:
        _refused(it, said, comparison)
    elif it.is_refused:
        comparison.differences.append(Difference(it.policies, "", _said(it, *it.refusals), SILENCE))
    elif it.order_matters:
        # Should the server have taken the order of their names, too, that was chance.
        comparison.unseen[ORDER] += 1
    elif _agrees(_plain(it.after), _plain(said.body), _plain(it.stored.body)):
        comparison.agreed += 1
    else:
        shown = (_diff(it, document) for document in (it.after, said.body))
        comparison.differences.append(Difference(it.policies, "", *shown))
    return comparison


def _refused(it: Expected, said: Said, comparison: Comparison) -> None:
    if said.message in it.refusals:
        comparison.agreed += 1
    elif refusal_of(said):
        comparison.unseen[OTHER_REFUSAL] += 1
    elif it.refusals or said.message.startswith("policy '") or _is_of_a_mutation(said):
        ours = _said(it, *it.refusals) or _diff(it, it.after)
        comparison.differences.append(Difference(it.policies, "", ours, _said(it, said.message)))
    elif aside := aside_of(said, "UPDATE", it.stored.kind.resource):
        comparison.unseen[aside.why] += 1


def _is_of_a_mutation(said: Said) -> bool:
    """Whether an internal error comes from what a mutation made of the object, and not from a webhook."""
    return said.status == _INTERNAL_ERROR and _WEBHOOK not in said.message


def _said(it: Expected, *texts: str) -> str:
    """What refuses the object, without secrets."""
    said = redact.text("; ".join(texts), it.stored)
    return redact.WITHHELD_ANY if said and it.secretive and said != redact.WITHHELD else said


def _diff(it: Expected, document: JsonObject) -> str:
    """What became of an object, as a diff without secrets."""
    if is_secret(it.stored):
        return redact.WITHHELD
    if it.secretive:
        return redact.WITHHELD_ANY
    changes = difference(_plain(it.stored.body), _plain(document))  # type: ignore[arg-type]
    lines = [redact.masked(str(change), it.stored) for change in changes[:_MOST_SHOWN]]
    return "; ".join(lines) or SILENCE


def _plain(document: JsonObject) -> JsonObject:
    """An object without what a server counts and notes by itself."""
    metadata = {key: it for key, it in as_object(document.get("metadata")).items() if key not in _BOOKKEEPING}
    notes = as_object(metadata.get("annotations"))
    if _COUNTER in notes:
        metadata["annotations"] = {key: it for key, it in notes.items() if key != _COUNTER}
    return {**document, "metadata": metadata}


def _agrees(ours: Json, theirs: Json, before: Json) -> bool:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        known = before if isinstance(before, dict) else None
        if known is not None and theirs.keys() - ours.keys():
            return False
        return all(
            name in theirs and _agrees(one, theirs[name], known.get(name) if known else None)
            for name, one in ours.items()
        )
    if isinstance(ours, list) and isinstance(theirs, list):
        partners = _partners(ours, before if isinstance(before, list) else [])
        return len(ours) == len(theirs) and all(map(_agrees, ours, theirs, partners))
    return same(ours, theirs)


def _partners(elements: list[Json], before: list[Json]) -> list[Json]:
    """For each element what it was before, by name or by content; None for a new one."""
    named = {str(one["name"]): one for one in before if isinstance(one, dict) and "name" in one}
    return [
        named.get(str(one.get("name"))) if isinstance(one, dict) else next((it for it in before if same(it, one)), None)
        for one in elements
    ]
