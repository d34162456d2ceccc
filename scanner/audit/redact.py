"""No secret leaves the process: applied to every text before it becomes part of a finding.

The values of Secrets and of container environment variables are masked wherever they appear. Where an expression reads
a Secret's data, or the Secret as a whole, computes a value from another secret, or reads other objects than those of the request,
its message and its changes are withheld altogether: parts of a value could not be recognised.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from scanner.admission.compiled import CompiledPolicy, Expression
from scanner.admission.dispatch import BoundPolicy, CombinedChange, InvocationResult
from scanner.admission.results import get_written_message
from scanner.audit.secret_values import HIDDEN, SHORTEST_SECRET, get_fields, is_secret, list_hidden_values, mask_values
from scanner.audit.sensitive_fields import MASK, mask_named_secrets
from scanner.audit.taint import (
    Taint,
    find_taint,
    get_documents,
    leads_to_secret,
    list_carried_texts,
    list_sensitive_texts,
    overlaps,
)
from scanner.model.json import Json
from scanner.model.outcome import Change, Check, CheckKind, Errored, Violated, WouldChange
from scanner.model.resource import LAST_APPLIED, Resource

WITHHELD = "[redacted: the message reads the data of a Secret]"
WITHHELD_ERROR = "[redacted: the expression reads the data of a Secret]"
WITHHELD_VALUE = "[redacted: a value of a Secret]"
WITHHELD_ANY = "[redacted: it may hold a secret]"
# Whole parent fields of a Secret are never shown: all its metadata may contain the copy that kubectl keeps of its data.
_SHOWN_OF_SECRETS = (
    "/metadata/labels",
    "/metadata/annotations/",
    "/metadata/finalizers",
    "/metadata/ownerReferences",
    "/type",
    "/immutable",
)
# The fields with the data of a Secret; kubectl keeps a copy of the whole object in an annotation.
_AREAS = (("data",), ("stringData",), ("metadata", "annotations", LAST_APPLIED))
_LONGEST_BEFORE = 2000
_DATA = ("data", "stringData")
_NO_KEY = "no such key: "
# By depth: the fields that the shown part of a path may name. Deeper steps are keys and numbers that may be computed.
_FIELDS = (
    frozenset({"metadata", "spec", "status", "data", "stringData", "binaryData", "type", "immutable"}),
    frozenset({"labels", "annotations", "finalizers", "ownerReferences"}),
)
_NESTED = re.compile(r'^(composited variable "[^"]*" fails to evaluate: )+')


def redact_outcome(
    outcome: Violated | WouldChange | Errored,
    check: Check,
    invocation_result: InvocationResult,
    compiled: CompiledPolicy,
) -> Violated | WouldChange | Errored:
    """The outcome in the form that may be stored and shown: without secrets in its message and its changes."""
    match outcome:
        case Violated():
            return _redact_violation(outcome, check, invocation_result, compiled)
        case WouldChange():
            return _redact_change(outcome, check, invocation_result, compiled)
        case Errored():
            return _redact_error(outcome, check, invocation_result, compiled)
        case _ as never:
            assert_never(never)


def _redact_violation(
    outcome: Violated, check: Check, invocation_result: InvocationResult, compiled: CompiledPolicy
) -> Violated:
    if outcome.message == get_written_message(compiled.policy.validations[check.index]):
        return outcome
    if not compiled.validations:
        # The message of a language without expressions: what it contains is not known.
        text = redact_answer(outcome.message, invocation_result.resource, invocation_result.invocation.param)
        return replace(outcome, message=text)
    message = compiled.validations[check.index][2]
    secrets = find_taint(compiled, message, get_documents(invocation_result))
    if secrets.of_secret:
        return replace(outcome, message=WITHHELD)
    if secrets.hides:
        return replace(outcome, message=WITHHELD_ANY)
    text = outcome.message
    if secrets.carries:
        redacted = mask_values(mask_named_secrets(text), _list_hidden_forms(invocation_result))
    else:
        redacted = mask_values(text, _list_hidden(invocation_result))
    return outcome if redacted == text else replace(outcome, message=redacted)


def _list_hidden(invocation_result: InvocationResult) -> frozenset[str]:
    """The secrets of the object, its param and the object that it replaces."""
    old = invocation_result.request.old if invocation_result.request else None
    return HIDDEN.get(invocation_result.resource, invocation_result.invocation.param, old)


def _list_hidden_forms(invocation_result: InvocationResult) -> frozenset[str]:
    """All recognisable forms of the secrets: unchanged, without surrounding blanks, and as in JSON."""
    secrets = _list_hidden(invocation_result) | list_carried_texts(get_documents(invocation_result))
    forms = {form for text in secrets for form in (text, text.strip(), json.dumps(text, ensure_ascii=False)[1:-1])}
    return frozenset(form for form in forms if len(form) >= SHORTEST_SECRET)


def _redact_change(
    outcome: WouldChange, check: Check, invocation_result: InvocationResult, compiled: CompiledPolicy
) -> WouldChange:
    """The change without values of Secrets and of the environment; of a Secret, only changes to metadata are shown."""
    changes = (*outcome.patch, *outcome.together)
    has_text = any(_has_text(value) for change in changes for value in (change.value, change.was))
    hidden = _list_hidden_forms(invocation_result) if has_text else frozenset()
    redacted = tuple(_redact_operation(change, invocation_result, hidden) for change in outcome.patch)
    return replace(
        outcome,
        patch=_withhold_changes(outcome.patch) if _may_write_secrets(check, invocation_result, compiled) else redacted,
        together=tuple(_redact_operation(change, invocation_result, hidden) for change in outcome.together),
    )


def _may_write_secrets(check: Check, invocation_result: InvocationResult, compiled: CompiledPolicy) -> bool:
    """Return whether a mutation may write a text into the object that was computed from a secret.

    A secret that this mutation copies is recognised by its value; a secret that an earlier mutation copied may have any form.
    """
    *earlier_expressions, own_expression = _list_expressions_behind(check, compiled)
    documents = get_documents(invocation_result)
    secrets = find_taint(compiled, own_expression, documents)
    if secrets.of_secret or secrets.hides or (secrets.carries and _may_run_again(compiled)):
        return True
    return any(find_taint(compiled, expression, documents) for expression in earlier_expressions)


def _may_run_again(compiled: CompiledPolicy) -> bool:
    return compiled.policy.reinvocation_policy == "IfNeeded"


def _list_expressions_behind(check: Check, compiled: CompiledPolicy) -> tuple[Expression, ...]:
    """The expressions on which an outcome of a check depends, its own last: mutations read the result of those before them."""
    own_expressions = compiled.list_deciding(check)
    if check.kind is CheckKind.MUTATION:
        others = compiled.mutations if _may_run_again(compiled) else compiled.mutations[: check.index]
        return (*(mutation for mutation in others if mutation is not own_expressions[0]), *own_expressions)
    return (*compiled.mutations, *own_expressions) if check.kind is CheckKind.CONDITIONS else own_expressions


def _withhold_changes(changes: Iterable[Change]) -> tuple[Change, ...]:
    """The kind and the rough place of each change. The number of parts may reveal the length of a secret."""
    withheld_changes = (
        Change(
            change.op,
            _find_known_place(change.path),
            None if change.op == "remove" else WITHHELD_ANY,
            None if change.op == "add" else WITHHELD_ANY,
        )
        for change in changes
    )
    return tuple({(change.op, change.path): change for change in withheld_changes}.values())


def _find_known_place(path: str) -> str:
    """The beginning of a path, as far as it names fields that every object may have, without keys."""
    steps = path.split("/")[1:]
    known_steps = [step for step in steps[:1] if step in _FIELDS[0]]
    known_steps += [step for step in steps[1:2] if known_steps == ["metadata"] and step in _FIELDS[1]]
    return "/".join(["", *known_steps, *([MASK] if len(steps) > len(known_steps) else [])])


def redact_together(together: CombinedChange, acting: Sequence[tuple[BoundPolicy, InvocationResult]]) -> CombinedChange:
    """The combined changes of several policies to an object, without parts that any of them may have computed from a secret."""
    patches = any(
        _has_taint(bound.compiled.mutations, invocation_result, bound.compiled) for bound, invocation_result in acting
    )
    errors = patches or any(
        _has_taint((condition for _, condition in bound.compiled.conditions), invocation_result, bound.compiled)
        for bound, invocation_result in acting
    )
    resource, params = acting[0][1].resource, [invocation_result.invocation.param for _, invocation_result in acting]
    refused = redact_answer(together.refused, resource, *params)
    return replace(
        together,
        patch=_withhold_changes(together.patch) if patches else together.patch,
        refused=WITHHELD_ANY if errors and refused and refused != WITHHELD else refused,
    )


def redact_patch(
    patch: tuple[Change, ...], acting: Sequence[tuple[BoundPolicy, InvocationResult]]
) -> tuple[Change, ...]:
    """What several policies would change in an object, without secrets; `acting` has at least one of them for any change."""
    if not patch:
        return ()
    together = redact_together(CombinedChange(patch, order_matters=False), acting)
    hidden = frozenset().union(*(_list_hidden_forms(invocation_result) for _, invocation_result in acting))
    return tuple(_redact_operation(change, acting[0][1], hidden) for change in together.patch)


def redact_mutations(refusal: str, acting: Sequence[tuple[BoundPolicy, InvocationResult]]) -> str:
    """The message with which mutating policies refuse an object, without secrets."""
    return redact_together(CombinedChange((), order_matters=False, refused=refusal), acting).refused


def may_contain_secrets(evaluations: Iterable[tuple[CompiledPolicy, InvocationResult]]) -> bool:
    """Return whether the messages or changes of some policies may contain a secret of the evaluated object."""
    return any(
        _has_taint((expression for _, expression in compiled.expressions()), invocation_result, compiled)
        for compiled, invocation_result in evaluations
    )


def _has_taint(
    expressions: Iterable[Expression], invocation_result: InvocationResult, compiled: CompiledPolicy
) -> bool:
    documents = get_documents(invocation_result)
    return any(find_taint(compiled, expression, documents) for expression in expressions)


def redact_answer(answer: str, resource: Resource, *params: Resource | None) -> str:
    """A text of the API server with secret values masked; withheld as a whole if the object or a param is a Secret.

    The parts that an expression read from a Secret cannot be recognised.
    """
    if answer and any(is_secret(document) for document in (resource, *params)):
        return WITHHELD
    return mask_text(answer, resource, *params)


def _redact_operation(change: Change, invocation_result: InvocationResult, hidden: frozenset[str]) -> Change:
    change = replace(change, was=_shorten(change.was))
    if LAST_APPLIED.replace("/", "~1") in change.path:
        return replace(change, value=_withhold(change.value), was=_withhold(change.was))
    if is_secret(invocation_result.resource):
        return _redact_operation_on_secret(change, invocation_result.resource, hidden)
    return replace(change, value=_mask_value(change.value, hidden), was=_mask_value(change.was, hidden))


def _redact_operation_on_secret(change: Change, secret: Resource, hidden: frozenset[str]) -> Change:
    """The change of a Secret: new values of fields that it shows, and earlier ones where its fields are no secrets."""
    steps = tuple(step.replace("~1", "/").replace("~0", "~") for step in change.path.split("/")[1:])
    hides = not change.path.startswith(_SHOWN_OF_SECRETS)
    hides_was = hides or leads_to_secret(secret.body, steps, (), get_fields(secret))
    return replace(
        change,
        value=_withhold(change.value) if hides else _mask_value(change.value, hidden),
        was=_withhold(change.was) if hides_was else _mask_value(change.was, hidden),
    )


def _has_text(value: Json) -> bool:
    """Return whether a value has a text or a number to mask."""
    match value:
        case bool() | None:
            return False
        case str() | int() | float():
            return True
        case Mapping():
            return any(map(_has_text, value.values()))
        case _:
            return any(map(_has_text, value))


def _shorten(value: Json) -> Json:
    """The earlier value, shortened for readers and for the database."""
    if isinstance(value, bool | int | float | None):
        return value
    size = len(value) if isinstance(value, str) else len(repr(value))
    return value if size <= _LONGEST_BEFORE else f"[{size:,} characters]"


def _withhold(value: Json) -> Json:
    return None if value is None else WITHHELD_VALUE


def _mask_value(value: Json, hidden: frozenset[str]) -> Json:
    """A value with every secret text and number in it masked; of a text with the name of a secret, the rest is shown."""
    match value:
        case str():
            masked = mask_named_secrets(value) if value in hidden else value
            return mask_values(value, hidden) if masked == value else masked
        case bool() | None:
            return value
        case int() | float():
            return MASK if str(value) in hidden else value
        case Mapping():
            return {key: _mask_value(item, hidden) for key, item in value.items()}
        case _:
            return [_mask_value(item, hidden) for item in value]


def _redact_error(
    outcome: Errored, check: Check, invocation_result: InvocationResult, compiled: CompiledPolicy
) -> Errored:
    evaluated, documents = _list_expressions_behind(check, compiled), get_documents(invocation_result)
    taints = [find_taint(compiled, expression, documents) for expression in evaluated]
    reads = frozenset(path for expression in evaluated for path in expression.paths)
    if any(taints) and not (
        _has_policy_words_only(outcome.message, check, reads)
        or (
            not any(each.carries or each.computes for each in taints)
            and _is_own_error(outcome, check, compiled, taints)
        )
    ):
        cause = WITHHELD_ERROR if any(each.of_secret for each in taints) else WITHHELD_ANY
        return replace(outcome, message=_find_error_prefix(outcome.message, check) + cause)
    # The errors of patches quote values of the object that the expression may not have read.
    hidden = _list_hidden_forms(invocation_result) if compiled.mutations else _list_hidden(invocation_result)
    return replace(outcome, message=mask_values(outcome.message, hidden))


def _has_policy_words_only(message: str, check: Check, reads: Iterable[tuple[str, ...]]) -> bool:
    return is_plain_error(
        message.removeprefix(_find_error_prefix(message, check)), {step for path in reads for step in path}
    )


def _is_own_error(outcome: Errored, check: Check, compiled: CompiledPolicy, taints: Iterable[Taint]) -> bool:
    """Return whether an error is about a request that an expression makes: it quotes nothing of the response."""
    cause = outcome.message.removeprefix(_find_error_prefix(outcome.message, check))
    roots = frozenset().union(*(each.elsewhere for each in taints))
    return all(root in compiled.own_errors for root in roots) and any(
        cause.startswith(compiled.own_errors[root]) for root in roots
    )


def is_plain_error(text: str, words: Container[str]) -> bool:
    """Return whether an error has only words of the policy: a missing key, an operand of a wrong type."""
    cause = _NESTED.sub("", text)
    return cause == "no such overload" or (cause.startswith(_NO_KEY) and cause.removeprefix(_NO_KEY) in words)


def _find_error_prefix(message: str, check: Check) -> str:
    """The text before the cause of an error: the policy's own words, or Kyverno's."""
    own_prefix = f"expression '{check.expression}' resulted in error: "
    prefixes = (own_prefix, "error: ", "failed to load context: ")
    found_prefix = next((prefix for prefix in prefixes if message.startswith(prefix)), "")
    return found_prefix or ("" if check.kind is CheckKind.CONDITIONS else own_prefix)


def remove_data(resource: Resource) -> Resource:
    """A Secret without `data` and `stringData`, for policies that do not read them; `withheld` keeps both for masking."""
    withheld_fields = {field: resource.body[field] for field in _DATA if field in resource.body}
    body = {field: value for field, value in resource.body.items() if field not in withheld_fields}
    return resource._replace(body=body, withheld=withheld_fields)


def reads_data(reads: Iterable[tuple[str, ...]], root: str) -> bool:
    """Return whether an expression with these access paths reads the data of the Secret called `object` or `params`."""
    roots = {root, "oldObject"} if root == "object" else {root}
    # Kyverno's request contains the object.
    paths = [(path[1:] or ("object",)) if path[0] == "request" else path for path in reads]
    return any(path[0] in roots and overlaps(path[1:], area) for path in paths for area in _AREAS)


def mask_text(text: str, *resources: Resource | None) -> str:
    """The text with every secret value of these objects masked."""
    if not text:
        return text
    sensitive = (list_sensitive_texts(resource.body) for resource in resources if resource is not None)
    return mask_values(mask_named_secrets(text), list_hidden_values(*resources).union(*sensitive))
