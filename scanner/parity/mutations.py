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
from scanner.mutate.difference import find_changes
from scanner.mutate.native import CONNECTION_ENDS
from scanner.mutate.operations import is_same_json
from scanner.parity.answers import Response, read_denial, read_unrelated
from scanner.parity.compare import OTHER_DENIAL, SILENCE, VerdictComparison, VerdictDifference
from scanner.policies.mutating.together import RequestResult, try_orders

ORDER: Final = "the result depends on the order of mutating policies, which an API server does not define"
_BOOKKEEPING: Final = ("managedFields", "resourceVersion", "generation")
_COUNTER: Final = "deprecated.daemonset.template.generation"
_ADMITTED: Final = 200
_INTERNAL_ERROR: Final = 500
_WEBHOOK: Final = "failed calling webhook"
_MOST_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class ExpectedUpdate:
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


def expect_update(
    stored: Resource, invocations: Iterable[tuple[BoundPolicy, InvocationResult]]
) -> ExpectedUpdate | None:
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
    return ExpectedUpdate(names, stored, try_orders(acting), secretive)


def compare_update(expectation: ExpectedUpdate, response: Response) -> VerdictComparison:
    """Compare the expected result with the response to a no-op dry-run update."""
    comparison = VerdictComparison()
    if response.status != _ADMITTED:
        _compare_refusal(expectation, response, comparison)
    elif expectation.is_refused:
        comparison.differences.append(
            VerdictDifference(expectation.policies, "", _write_denial(expectation, *expectation.refusals), SILENCE)
        )
    elif expectation.order_matters:
        # Agreement would be chance: the server may have used any order.
        comparison.unseen[ORDER] += 1
    elif _agrees(
        _drop_server_metadata(expectation.after),
        _drop_server_metadata(response.body),
        _drop_server_metadata(expectation.stored.body),
    ):
        comparison.agreed += 1
    else:
        shown = (_write_diff(expectation, document) for document in (expectation.after, response.body))
        comparison.differences.append(VerdictDifference(expectation.policies, "", *shown))
    return comparison


def _compare_refusal(expectation: ExpectedUpdate, response: Response, comparison: VerdictComparison) -> None:
    if response.message in expectation.refusals:
        comparison.agreed += 1
    elif read_denial(response):
        comparison.unseen[OTHER_DENIAL] += 1
    elif expectation.refusals or response.message.startswith("policy '") or _is_mutation_error(response):
        ours = _write_denial(expectation, *expectation.refusals) or _write_diff(expectation, expectation.after)
        comparison.differences.append(
            VerdictDifference(expectation.policies, "", ours, _write_denial(expectation, response.message))
        )
    elif unrelated := read_unrelated(response, "UPDATE", expectation.stored.kind.resource):
        comparison.unseen[unrelated.reason] += 1


def _is_mutation_error(response: Response) -> bool:
    """Return whether an internal error comes from the result of a mutation, and not from a webhook."""
    return response.status == _INTERNAL_ERROR and _WEBHOOK not in response.message


def _write_denial(expectation: ExpectedUpdate, *texts: str) -> str:
    """The messages of a denial, redacted."""
    response = redact.redact_answer("; ".join(texts), expectation.stored)
    return redact.WITHHELD_ANY if response and expectation.secretive and response != redact.WITHHELD else response


def _write_diff(expectation: ExpectedUpdate, document: JsonObject) -> str:
    """The changes of an object as a redacted diff."""
    if is_secret(expectation.stored):
        return redact.WITHHELD
    if expectation.secretive:
        return redact.WITHHELD_ANY
    changes = find_changes(_drop_server_metadata(expectation.stored.body), _drop_server_metadata(document))  # type: ignore[arg-type]
    lines = [redact.mask_text(str(change), expectation.stored) for change in changes[:_MOST_SHOWN]]
    return "; ".join(lines) or SILENCE


def _drop_server_metadata(document: JsonObject) -> JsonObject:
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
        partners = _match_elements(ours, before if isinstance(before, list) else [])
        return len(ours) == len(theirs) and all(map(_agrees, ours, theirs, partners))
    return is_same_json(ours, theirs)


def _match_elements(elements: list[Json], before: list[Json]) -> list[Json]:
    """The former value of each element, by name or by content; None for a new element."""
    by_name = {str(item["name"]): item for item in before if isinstance(item, dict) and "name" in item}
    return [
        by_name.get(str(element.get("name")))
        if isinstance(element, dict)
        else next((item for item in before if is_same_json(item, element)), None)
        for element in elements
    ]
