"""Compares the result of a dry-run update with the expected result of the mutating policies.

The server returns the object after all mutations, with defaults for new parts: it must have every field of the prediction,
and additional fields only inside parts that the mutations added.
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
from scanner.mutate.native import CONNECTION_ENDS
from scanner.mutate.operations import same
from scanner.parity.answers import Response, aside_of, denial_of
from scanner.parity.compare import OTHER_DENIAL, SILENCE, Comparison, Difference
from scanner.policies.mutating.together import RequestResult, try_orders

ORDER: Final = "the result depends on the order of mutating policies, which an API server does not define"
_BOOKKEEPING: Final = ("managedFields", "resourceVersion", "generation")
_COUNTER: Final = "deprecated.daemonset.template.generation"
_ADMITTED: Final = 200
_INTERNAL_ERROR: Final = 500
_WEBHOOK: Final = "failed calling webhook"
_MOST_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class Expected:
    """The expected result of mutating policies in one update: the results in all orders that were tried.

    `secretive` is true if a policy may write data of a secret: then messages show nothing of the object.
    """

    policies: str
    stored: Resource
    answers: tuple[RequestResult, ...]
    secretive: bool = False

    @property
    def after(self) -> JsonObject:
        """The object in the order of the policies' names."""
        return self.answers[0].after

    @property
    def refusals(self) -> tuple[str, ...]:
        """The messages with which a server may deny the request, in some order."""
        return tuple(dict.fromkeys(answer.refusal for answer in self.answers if answer.refusal))

    @property
    def is_refused(self) -> bool:
        """Return whether a server denies the request in every order."""
        return all(answer.refusal for answer in self.answers)

    @property
    def ends_connection(self) -> bool:
        """Return whether the server may end the connection without a response."""
        return any(text.startswith(CONNECTION_ENDS) for text in self.refusals)

    @property
    def order_matters(self) -> bool:
        """Return whether another order has another result."""
        return not all(answer.is_like(self.answers[0]) for answer in self.answers)


def expected(stored: Resource, invocations: Iterable[tuple[BoundPolicy, InvocationResult]]) -> Expected | None:
    """The expected result of an update of a stored object; None if no mutating policy matches it. Raises SchemaUnknown."""
    acting = [
        (bound, invocation_result)
        for bound, invocation_result in invocations
        if invocation_result.request or invocation_result.check_results
    ]
    if not acting:
        return None
    names = ", ".join(dict.fromkeys(bound.policy.name for bound, _ in acting))
    secretive = redact.may_contain_secrets((bound.compiled, invocation_result) for bound, invocation_result in acting)
    return Expected(names, stored, try_orders(acting), secretive)


def compared_update(expectation: Expected, response: Response) -> Comparison:
    """Compare the expected result with the response to a no-op dry-run update."""
    comparison = Comparison()
    if response.status != _ADMITTED:
        _refused(expectation, response, comparison)
    elif expectation.is_refused:
        comparison.differences.append(
            Difference(expectation.policies, "", _denial(expectation, *expectation.refusals), SILENCE)
        )
    elif expectation.order_matters:
        # Agreement would be chance: the server may have used any order.
        comparison.unseen[ORDER] += 1
    elif _agrees(_plain(expectation.after), _plain(response.body), _plain(expectation.stored.body)):
        comparison.agreed += 1
    else:
        shown = (_diff(expectation, document) for document in (expectation.after, response.body))
        comparison.differences.append(Difference(expectation.policies, "", *shown))
    return comparison


def _refused(expectation: Expected, response: Response, comparison: Comparison) -> None:
    if response.message in expectation.refusals:
        comparison.agreed += 1
    elif denial_of(response):
        comparison.unseen[OTHER_DENIAL] += 1
    elif expectation.refusals or response.message.startswith("policy '") or _is_of_a_mutation(response):
        ours = _denial(expectation, *expectation.refusals) or _diff(expectation, expectation.after)
        comparison.differences.append(
            Difference(expectation.policies, "", ours, _denial(expectation, response.message))
        )
    elif aside := aside_of(response, "UPDATE", expectation.stored.kind.resource):
        comparison.unseen[aside.why] += 1


def _is_of_a_mutation(response: Response) -> bool:
    """Return whether an internal error comes from the result of a mutation, and not from a webhook."""
    return response.status == _INTERNAL_ERROR and _WEBHOOK not in response.message


def _denial(expectation: Expected, *texts: str) -> str:
    """The messages of a denial, redacted."""
    response = redact.redact_answer("; ".join(texts), expectation.stored)
    return redact.WITHHELD_ANY if response and expectation.secretive and response != redact.WITHHELD else response


def _diff(expectation: Expected, document: JsonObject) -> str:
    """The changes of an object as a redacted diff."""
    if is_secret(expectation.stored):
        return redact.WITHHELD
    if expectation.secretive:
        return redact.WITHHELD_ANY
    changes = difference(_plain(expectation.stored.body), _plain(document))  # type: ignore[arg-type]
    lines = [redact.mask_text(str(change), expectation.stored) for change in changes[:_MOST_SHOWN]]
    return "; ".join(lines) or SILENCE


def _plain(document: JsonObject) -> JsonObject:
    """An object without the metadata that a server updates by itself."""
    metadata = {key: value for key, value in as_object(document.get("metadata")).items() if key not in _BOOKKEEPING}
    annotations = as_object(metadata.get("annotations"))
    if _COUNTER in annotations:
        metadata["annotations"] = {key: value for key, value in annotations.items() if key != _COUNTER}
    return {**document, "metadata": metadata}


def _agrees(ours: Json, theirs: Json, before: Json) -> bool:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        former = before if isinstance(before, dict) else None
        if former is not None and theirs.keys() - ours.keys():
            return False
        return all(
            name in theirs and _agrees(value, theirs[name], former.get(name) if former else None)
            for name, value in ours.items()
        )
    if isinstance(ours, list) and isinstance(theirs, list):
        partners = _partners(ours, before if isinstance(before, list) else [])
        return len(ours) == len(theirs) and all(map(_agrees, ours, theirs, partners))
    return same(ours, theirs)


def _partners(elements: list[Json], before: list[Json]) -> list[Json]:
    """The former value of each element, by name or by content; None for a new element."""
    named = {str(item["name"]): item for item in before if isinstance(item, dict) and "name" in item}
    return [
        named.get(str(element.get("name")))
        if isinstance(element, dict)
        else next((item for item in before if same(item, element)), None)
        for element in elements
    ]
