"""ValidatingAdmissionPolicy and its bindings.

Rules: `docs/semantics/api-validation.md#validating-policies`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scanner.model.json import Json, JsonObject, as_list, as_text, dig, texts
from scanner.policies.api_validation import names
from scanner.policies.api_validation.common import expression_faults, shared_binding_faults, shared_policy_faults
from scanner.policies.api_validation.fields import (
    Faults,
    choice,
    duplicate,
    each,
    invalid,
    invalid_json,
    required,
    unsupported,
)

_ACTIONS = ("Audit", "Deny", "Warn")
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_MOST_ANNOTATIONS = 20
_LONGEST_VALUE = 5120


def policy_faults(document: JsonObject, expressions: Faults) -> tuple[str, ...]:
    """The field errors of a policy; empty if the API would store it."""
    return (*shared_policy_faults(document, expressions), *_check_faults(document, expressions))


def binding_faults(document: JsonObject) -> tuple[str, ...]:
    """The field errors of a binding; empty if the API would store it."""
    actions = texts(dig(document, "spec", "validationActions"))
    return (*shared_binding_faults(document), *_action_faults(actions))


def _check_faults(document: JsonObject, expressions: Faults) -> Iterator[str]:
    validations = as_list(dig(document, "spec", "validations"))
    annotations = as_list(dig(document, "spec", "auditAnnotations"))
    if not validations and not annotations:
        detail = "validations or auditAnnotations must contain at least one item"
        yield required("spec.validations", detail)
        yield required("spec.auditAnnotations", detail)
    for index, item in enumerate(validations):
        yield from _validation_faults(f"spec.validations[{index}]", item, expressions)
    yield from _annotations_faults(as_text(dig(document, "metadata", "name")), annotations, expressions)


def _validation_faults(path: str, item: Json, expressions: Faults) -> Iterator[str]:
    yield from expression_faults(f"{path}.expression", item, expressions, "expression is not specified")
    message, template = as_text(dig(item, "message")), as_text(dig(item, "messageExpression"))
    if template and not template.strip():
        yield invalid(f"{path}.messageExpression", template, "must be non-empty if specified")
    elif template and (fault := expressions(f"{path}.messageExpression")):
        yield fault
    if message and not message.strip():
        yield invalid(f"{path}.message", message, "must be non-empty if specified")
    elif "\n" in message.strip() or "\r" in message.strip():
        yield invalid(f"{path}.message", message, "must not contain line breaks")
    yield from choice(f"{path}.reason", dig(item, "reason"), _REASONS)


def _annotations_faults(policy: str, annotations: Sequence[Json], expressions: Faults) -> Iterator[str]:
    path = "spec.auditAnnotations"
    if len(annotations) > _MOST_ANNOTATIONS:
        shown_annotations: Json = [
            {"Key": as_text(dig(item, "key")), "ValueExpression": as_text(dig(item, "valueExpression"))}
            for item in annotations
        ]
        yield invalid_json(path, shown_annotations, f"must not have more than {_MOST_ANNOTATIONS} auditAnnotations")
    keys: set[str] = set()
    for index, item in enumerate(annotations):
        where, key = f"{path}[{index}]", as_text(dig(item, "key"))
        yield from _key_faults(f"{where}.key", policy, key)
        yield from _value_faults(f"{where}.valueExpression", item, expressions)
        if key in keys:
            yield duplicate(f"{where}.key", key)
        keys.add(key)


def _key_faults(path: str, policy: str, key: str) -> Iterator[str]:
    """The errors of an annotation key, which follows the name of the policy in the published annotation."""
    if not policy:
        yield invalid(path, key, "requires metadata.name be non-empty")
        return
    published = f"{policy}/{key}"
    yield from each(path, published, names.check_qualified_name(published))


def _value_faults(path: str, item: Json, expressions: Faults) -> Iterator[str]:
    text = as_text(dig(item, "valueExpression"))
    if len(text.strip().encode("utf-8", "surrogatepass")) > _LONGEST_VALUE:
        yield required(path, f"must not exceed {_LONGEST_VALUE} bytes in length")
        return
    yield from expression_faults(path, item, expressions, "valueExpression is not specified")


def _action_faults(actions: Sequence[str]) -> Iterator[str]:
    path = "spec.validationActions"
    if not actions:
        yield required(path, "at least one validation action is required")
    for index, action in enumerate(actions):
        if action not in _ACTIONS:
            yield unsupported(f"{path}[{index}]", action, _ACTIONS)
        if action in actions[:index]:
            yield duplicate(f"{path}[{index}]", action)
    if "Deny" in actions and "Warn" in actions:
        yield invalid_json(
            path,
            list(actions),
            "must not contain both Deny and Warn (repeating the same validation failure information in the API response "
            "and headers serves no purpose)",
        )
