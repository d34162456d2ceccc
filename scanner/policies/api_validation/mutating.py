"""MutatingAdmissionPolicy and its bindings.

Rules: `docs/semantics/api-validation.md#mutating-policies`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scanner.model.json import Json, JsonObject, as_list, as_text, dig, texts
from scanner.policies.api_validation.common import expression_faults, shared_binding_faults, shared_policy_faults
from scanner.policies.api_validation.fields import Faults, choice, invalid, needed_choice, required

_BODIES = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}
_WRITES = ("*", "CONNECT", "CREATE", "UPDATE")


def mutating_policy_faults(document: JsonObject, expressions: Faults) -> tuple[str, ...]:
    """The field errors of a policy; empty if the API would store it."""
    spec = dig(document, "spec")
    return (
        *shared_policy_faults(document, expressions, _operation_faults),
        *_mutation_faults(as_list(dig(spec, "mutations")), expressions),
        *needed_choice("spec.reinvocationPolicy", as_text(dig(spec, "reinvocationPolicy")), ("IfNeeded", "Never")),
    )


def mutating_binding_faults(document: JsonObject) -> tuple[str, ...]:
    """The field errors of a binding; empty if the API would store it."""
    return tuple(shared_binding_faults(document, _operation_faults))


def _operation_faults(path: str, match: Json) -> Iterator[str]:
    """The errors for operations that write no object, which cannot be mutated."""
    for rule in as_list(dig(match, "resourceRules")):
        for operation in texts(dig(rule, "operations")):
            yield from choice(f"{path}.resourceRules.operations", operation, _WRITES)


def _mutation_faults(mutations: Sequence[Json], expressions: Faults) -> Iterator[str]:
    if not mutations:
        yield required("spec.mutations", "mutations must contain at least one item")
    for index, item in enumerate(mutations):
        path = f"spec.mutations[{index}]"
        patch_type = as_text(dig(item, "patchType"))
        yield from needed_choice(f"{path}.patchType", patch_type, tuple(_BODIES))
        if patch_type in _BODIES:
            yield from _body_faults(path, item, patch_type, expressions)


def _body_faults(path: str, item: Json, patch_type: str, expressions: Faults) -> Iterator[str]:
    """The errors of a mutation, which must have exactly the body that its type names."""
    for other, body in _BODIES.items():
        present = dig(item, body) is not None
        if other != patch_type:
            if present:
                detail = f"must not be specified when patchType is {patch_type}"
                yield invalid(f"{path}.{body}", f"{{{body}}}", detail)
        elif not present:
            yield required(f"{path}.{body}", f"must be specified when patchType is {patch_type}")
        else:
            yield from expression_faults(f"{path}.{body}.expression", dig(item, body), expressions)
