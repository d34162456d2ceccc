"""The question that a check asks, as a digest: what a person accepts who waives the findings of the check.

The question is the expression, without spaces and comments, with the variables of the policy that the expression uses. Names,
messages, reasons and the objects that the policy matches are no part of it: after a change of these, the same is asked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias, assert_never

from scanner.model.outcome import CheckKind
from scanner.model.policy import Policy
from scanner.posture.check_names import canonical

CheckPlace: TypeAlias = tuple[CheckKind, int]
"""The kind and the position of a check in its policy."""

_VARIABLES: Final = "variables"


def question_of(policy: Policy, place: CheckPlace) -> str:
    """The digest of the question of a check: `sha256:` and 64 hex digits. Files of waivers have it, so its form never changes."""
    kind, _ = place
    texts = [canonical(text.strip()) for text in _texts(policy, place)]
    declared = {variable.name: canonical(variable.expression.strip()) for variable in policy.variables}
    return f"sha256:{_digest((kind.value, texts, sorted(_used(texts, declared).items()))).hex()}"


def form_of(policy: Policy, place: CheckPlace) -> bytes:
    """The digest of a check as its policy has it, with spaces and comments: checks with equal forms ask the same.

    It needs no compiler, whose import takes as long as many commands.
    """
    kind, _ = place
    declared = [(variable.name, variable.expression) for variable in policy.variables]
    return _digest((kind.value, list(_texts(policy, place)), declared))


def _digest(content: object) -> bytes:
    return hashlib.sha256(json.dumps(content, separators=(",", ":")).encode("ascii")).digest()


def _texts(policy: Policy, place: CheckPlace) -> Iterator[str]:
    """The expressions that decide a check."""
    kind, index = place
    match kind:
        case CheckKind.VALIDATION:
            yield policy.validations[index].expression
        case CheckKind.AUDIT_ANNOTATION:
            yield policy.audit_annotations[index].value_expression
        case CheckKind.MUTATION:
            yield policy.mutations[index].expression
        case CheckKind.CONDITIONS:
            yield from (condition.expression for condition in policy.match_conditions)
        case CheckKind.CONFIGURATION:
            yield from _everything(policy)
        case _ as never:
            assert_never(never)


def _everything(policy: Policy) -> Iterator[str]:
    """All that can make a policy unusable: it has no param, one of its expressions does not compile, or all cost too much."""
    if policy.param_kind is not None:
        yield policy.param_kind.api_version
        yield policy.param_kind.kind
    yield from (condition.expression for condition in policy.match_conditions)
    yield from (variable.expression for variable in policy.variables)
    yield from (validation.expression for validation in policy.validations)
    yield from (annotation.value_expression for annotation in policy.audit_annotations)
    yield from (mutation.expression for mutation in policy.mutations)


def _used(texts: Iterable[tuple[str, ...]], declared: Mapping[str, tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:
    """The variables that expressions use, themselves or in other variables, with their expressions."""
    used: dict[str, tuple[str, ...]] = {}
    stack = list(texts)
    while stack:
        for name in _names(stack.pop(), declared):
            if name not in used:
                used[name] = declared[name]
                stack.append(declared[name])
    return used


def _names(text: tuple[str, ...], declared: Iterable[str]) -> Iterator[str]:
    """The variables that an expression names. Where it names none that can be known, it may read each of them."""
    if len(text) == 1 and _VARIABLES in text[0]:
        # It may be a text that is no expression.
        yield from declared
    for place, token in enumerate(text):
        if token != _VARIABLES:
            continue
        match text[place + 1 : place + 3]:
            case (".", name) if name.strip("`").isidentifier():
                yield from (each for each in declared if each == name.strip("`"))
            case _:
                yield from declared
