"""Evaluates one invocation of a mutating policy: its conditions, its mutations in order, and the object after each.

Source of truth: `mutating.dispatcher` of kube-apiserver 1.36. A failing mutation does not stop the next one. After any patch, the
server runs all of admission once more: it evaluates match conditions again, and with `IfNeeded` also the mutations that ran the
first time.

Rules: `docs/semantics/mutation.md#errors-of-mutations`, `docs/semantics/mutation.md#reinvocation`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from msgspec import Struct

from scanner import cel
from scanner.admission.compiled import CompiledPolicy, Expression
from scanner.admission.cost_budget import RUNTIME, CostBudget, EvaluationFault, Variables, run
from scanner.admission.evaluate import evaluate_conditions, make_inputs
from scanner.admission.request import Request, read_typed_object
from scanner.admission.results import skip_checks
from scanner.cel.releases import MISSING_KEYS, WRAPPED_OBJECTS
from scanner.cel.values.wrapped_values import wrap_values
from scanner.errors import ConversionUnknown, SchemaUnknown
from scanner.model.json import Json, JsonObject, as_text, dig, text_map
from scanner.model.outcome import (
    Change,
    CheckResult,
    Errored,
    Outcome,
    Passed,
    Skipped,
    SkipReason,
    WouldChange,
)
from scanner.model.policy import Mutation, Policy
from scanner.model.release import NEWEST, Minor
from scanner.model.resource import NAMESPACES, Kind, Resource
from scanner.mutate.custom import list_wrong_types
from scanner.mutate.decoding import explain_unreturnable
from scanner.mutate.difference import find_changes
from scanner.mutate.native import PatchFault, RequestFault
from scanner.mutate.operations import TOO_LARGE, is_large, is_large_value
from scanner.mutate.origin import RequestData
from scanner.mutate.patch import apply_configuration, apply_patch
from scanner.mutate.schema import Schema, Schemas
from scanner.mutate.storing import convert_to_version, prepare_second_pass, read_request, store_update
from scanner.mutate.unchanged import is_configured, is_patched

_INTERNAL_ERROR = 500
INVALID: Final = 422
"""The code with which the API server refuses an object that its validation finds invalid."""
_ENDED = "an earlier mutation ends the request"
_DEEPEST = 100
_MOST_RUNS = 1000
_TOO_DEEP = f"what it would change nests more than {_DEEPEST} levels deep, and cannot be recorded"


class Prediction(Struct, frozen=True):
    """The results of an invocation for an object, and the object after the invocation."""

    check_results: tuple[CheckResult, ...]
    after: JsonObject


def predict(
    compiled: CompiledPolicy, request: Request, param: Resource | None, schemas: Schemas, rules: Minor = NEWEST
) -> Prediction:
    """Evaluate every mutation of a matched invocation by the rules of a Kubernetes release.

    Raises SchemaUnknown if the kind has no schema: then only a server can evaluate it.
    """
    before = request.resource.body
    if compiled.excess:
        return Prediction(skip_checks(compiled), before)
    run = get_run(compiled, request, param, schemas, rules)
    begin = run.requested_object
    if stopped := run.evaluate_conditions(begin):
        return Prediction(stopped, before)
    first = run.run_mutations(begin)
    between = run.convert_between_passes(first.after)
    stopped = run.evaluate_conditions(between) if run.is_evaluated_again(first) else ()
    if any(denies(check_result.outcome) for check_result in stopped):
        return Prediction(stopped, before)
    again = run.is_evaluated_again(first) and not stopped and compiled.policy.reinvocation_policy == "IfNeeded"
    last = run.run_mutations(between) if again else first
    after = run.convert_to_stored(last.after if again else between)
    changes = compute_patch(before, after)
    converges = not changes or run.is_settled(after)
    outcomes = _list_outcomes(run, first, last, changes, converges=converges)
    if not changes and first.has_patched:
        outcomes = _validate(run, last, outcomes)
    return Prediction(tuple(map(CheckResult, compiled.checks, outcomes)), after)


def denies(outcome: Outcome) -> bool:
    """Return whether the API server denies the request for an outcome."""
    return isinstance(outcome, Errored) and outcome.would_deny


def get_run(
    compiled: CompiledPolicy, request: Request, param: Resource | None, schemas: Schemas, rules: Minor
) -> PolicyRun:
    """An invocation, ready to run; the same object for the same request of the latest resource. Raises SchemaUnknown."""
    return _RUNS.get(compiled, request, param, schemas, rules)


def compute_patch(before: JsonObject, after: JsonObject) -> tuple[Change, ...]:
    """The smallest patch from one object to another."""
    return find_changes(before, after)  # type: ignore[arg-type]


def _find_schema(schemas: Schemas, kind: Kind, rules: Minor) -> Schema:
    schema = schemas.schema(kind)
    if schema is None:
        raise SchemaUnknown(f"{kind.api_version}/{kind.kind}")
    return schema if MISSING_KEYS.holds(rules) else replace(schema, needs_all_keys=True)


def _find_requested_schema(schemas: Schemas, request: Request, schema: Schema, rules: Minor) -> Schema:
    """The schema of the version of the request: a custom resource is converted back to it. Raises SchemaUnknown."""
    original, matched = request.original, request.matched
    if schema.builtin or original.api_version == matched.api_version:
        return schema
    versions = schema.custom.versions if schema.custom else None
    if versions is None or not versions.relabels:
        raise ConversionUnknown(
            f"{matched.api_version}/{matched.kind}",
            definition=f"{matched.plural}.{matched.group}",
            webhook=versions is not None,
        )
    return _find_schema(schemas, original, rules)


def _make_bare(param: Resource | None, schemas: Schemas) -> Resource | None:
    """The param as mutations read it: a param of a built-in kind is an informer's, like a Namespace (`read_typed_namespace`)."""
    schema = schemas.schema(param.kind) if param else None
    if param is None or schema is None or not schema.builtin:
        return param
    return param._replace(body=read_typed_object(param.body))


class MutationPass(Struct, frozen=True):
    """One run of all mutations: the outcome of each, the object after each, and whether any patch was applied."""

    steps: tuple[tuple[Outcome, JsonObject], ...]
    after: JsonObject
    has_patched: bool

    def list_refusals(self) -> Iterator[Errored]:
        """The errors for which the API server denies the request."""
        for outcome, _ in self.steps:
            if isinstance(outcome, Errored) and outcome.would_deny:
                yield outcome

    @property
    def ending_error(self) -> Errored | None:
        """The error that ends the request at once, with any failure policy."""
        errors = (outcome for outcome, _ in self.steps if isinstance(outcome, Errored))
        return next((error for error in errors if error.code == _INTERNAL_ERROR), None)


@dataclass(frozen=True, slots=True)
class PolicyRun:
    """A policy, a request and a param, ready to be evaluated. The result of a pass on an object is computed once.

    `schema` is of the version in which the policy reads the object, `requested` of the version of the request. `fault` is the error
    of every mutation that would be applied, where the server cannot convert its result back.
    """

    compiled: CompiledPolicy
    request: Request
    param: Resource | None
    schema: Schema
    requested: Schema
    schemas: Schemas
    rules: Minor
    fault: str = ""
    _requested_objects: list[JsonObject] = field(default_factory=list, init=False, compare=False, repr=False)
    _passes: dict[int, tuple[JsonObject, MutationPass]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    _rounds: dict[int, tuple[JsonObject, JsonObject]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    @property
    def requested_object(self) -> JsonObject:
        """The object of the request as the first mutation reads it."""
        if not self._requested_objects:
            self._requested_objects.append(read_request(self.requested, self.request.resource.body))
        return self._requested_objects[0]

    def evaluate_conditions(self, body: JsonObject) -> tuple[CheckResult, ...]:
        """The results of the match conditions for an object; empty if all conditions are true."""
        if not self.compiled.conditions:
            return ()
        return evaluate_conditions(self.compiled, self.request._replace(current=body), self.param)

    def run_mutations(self, body: JsonObject) -> MutationPass:
        """Run every mutation once, beginning with an object."""
        if id(body) not in self._passes:
            self._passes[id(body)] = body, self._mutate_all(body)
        return self._passes[id(body)][1]

    def _mutate_all(self, body: JsonObject) -> MutationPass:
        steps: list[tuple[Outcome, JsonObject]] = []
        patches, ended = 0, False
        for index in range(len(self.compiled.mutations)):
            if ended:
                steps.append((Skipped(SkipReason.NOT_AUDITABLE, _ENDED), body))
                continue
            outcome, body = self._step(index, body)
            patches += isinstance(outcome, Passed)
            ended = isinstance(outcome, Errored) and outcome.code == _INTERNAL_ERROR
            steps.append((outcome, body))
        return MutationPass(tuple(steps), body, has_patched=patches > 0)

    def is_evaluated_again(self, first: MutationPass) -> bool:
        """Return whether the server, after a first pass of this policy alone, repeats admission and matches the policy again."""
        return first.has_patched and not any(first.list_refusals()) and self.still_selects(first.after)

    def still_selects(self, body: JsonObject) -> bool:
        """Return whether the selectors match a changed object: for an UPDATE the old object is enough."""
        if self.request.operation == "CREATE":
            return self._selects(body)
        old = self.request.old
        return self._selects(body, objects=old is not None, old_labels=old.labels if old else None)

    def _selects(self, body: JsonObject, *, objects: bool = True, old_labels: Mapping[str, str] | None = None) -> bool:
        """Return whether policy and binding select an object by its labels; a Namespace's labels are its namespace's too."""
        matches = [match for match in (self.compiled.policy.match, self.request.narrowing) if match is not None]
        if all(match.object_selector.empty and match.namespace_selector.empty for match in matches):
            return True
        labels = text_map(dig(body, "metadata", "labels"))
        either = [labels] if old_labels is None else [labels, old_labels]
        if objects and not all(any(map(match.object_selector.matches, either)) for match in matches):
            return False
        is_namespace = self.request.matched.plural == NAMESPACES.plural
        return not is_namespace or all(match.namespace_selector.matches(labels) for match in matches)

    def convert_between_passes(self, body: JsonObject) -> JsonObject:
        """The object after the first pass, as the second pass reads it."""
        if id(body) not in self._rounds:
            self._rounds[id(body)] = body, prepare_second_pass(self.schema, self.request.resource.body, body)
        return self._rounds[id(body)][1]

    def convert_to_stored(self, body: JsonObject) -> JsonObject:
        """The object as the server would store it after all mutations."""
        return store_update(
            self.requested, self.request.resource.body, body, created=self.request.operation == "CREATE"
        )

    def find_wrong_types(self, body: JsonObject) -> Iterator[str]:
        """The errors of an object whose values have wrong types in fields that are not stored."""
        if self.requested.custom is None:
            return
        kind, name = self.request.original, as_text(dig(body, "metadata", "name"))
        for error in list_wrong_types(self.requested.custom, body):
            yield f'{kind.kind}.{kind.group} "{name}" is invalid: {error}'

    def store_first_pass(self, body: JsonObject) -> JsonObject:
        """The object as the server would store it after a first pass, if a second pass changes nothing."""
        return self.convert_to_stored(self.convert_between_passes(body))

    def is_settled(self, body: JsonObject) -> bool:
        """Return whether the policy, in a new request, would not change its own result; it need not match that result."""
        if not self._selects(body):
            return True
        request = self.request._replace(resource=self.request.resource._replace(body=body))
        run = replace(self, request=request)
        begin = run.requested_object
        return bool(run.evaluate_conditions(begin)) or not compute_patch(
            body, run.store_first_pass(run.run_mutations(begin).after)
        )

    def _step(self, index: int, body: JsonObject) -> tuple[Outcome, JsonObject]:
        try:
            return Passed(), self._mutate(index, body)
        except _Undecided as unknown:
            return Skipped(SkipReason.NOT_AUDITABLE, str(unknown)), body
        except PatchFault as fault:
            return make_refusal(self.compiled.policy, fault), body

    def _mutate(self, index: int, body: JsonObject) -> JsonObject:
        expression = self.compiled.mutations[index]
        stored_body = self.request.resource.body
        request = self.request if body is stored_body else self.request._replace(current=body)
        activation = make_inputs(self.compiled, request, self.param)
        if "authorizer" not in activation and expression.reads("authorizer"):
            raise _Undecided("the expression asks the authorizer")
        if not WRAPPED_OBJECTS.holds(self.rules):
            with cel.record_lists_anew() as list_kinds:
                value = _evaluate(expression, activation, self.request)
            if self._is_of_request and is_left(self.compiled.policy.mutations[index], self.schema, body, value):
                return body
            data = RequestData(_list_sources(activation), made=list_kinds)
        else:
            data = RequestData(
                _list_sources(activation),
                wrapped=self._list_wrapped(body),
                request=activation["request"],
                rebuilds=True,
            )
            with wrap_values(lambda part: bool(data.find_go_types(part))):
                value = _evaluate(expression, activation, self.request)
        if is_large_value(value):
            raise _Undecided(TOO_LARGE)
        if self.compiled.policy.mutations[index].patch_type == "JSONPatch":
            after = apply_patch(value, body, self.schema, data, self.request.original.api_version)
        else:
            after = apply_configuration(value, body, self.schema, data)
        if self.fault:
            raise PatchFault(self.fault)
        after = after if self._is_of_request else convert_to_version(self.schema, after)
        if after is not body and is_large(after) and not is_large(body):
            raise _Undecided(TOO_LARGE)
        return after

    @property
    def _is_of_request(self) -> bool:
        """Return whether the policy reads the object in the version of the request."""
        return self.request.original.api_version == self.request.matched.api_version

    def _list_wrapped(self, body: JsonObject) -> Iterator[tuple[Schema, object]]:
        """The values that 1.37 wraps: the object only if the policy has conditions, others of compiled-in kinds always.

        A server also wraps the object if it evaluated a policy with conditions before this one; the order of policies is random
        there.
        """
        if self.compiled.conditions and self.schema.builtin:
            yield self.schema, body
            yield self.schema, self.request.resource.body
        namespace = self.schemas.schema(NAMESPACES)
        if namespace:
            yield namespace, self.request.namespace_object
        schema = self.schemas.schema(self.param.kind) if self.param else None
        if self.param and schema and schema.builtin:
            yield schema, self.param.body


class _LatestRuns:
    """The runs of the latest evaluated object: the evaluation of all invocations reuses those of each alone."""

    def __init__(self) -> None:
        self._metadata: Json = None
        self._runs: dict[tuple[int, int, int], tuple[Resource | None, PolicyRun]] = {}

    def get(
        self, compiled: CompiledPolicy, request: Request, param: Resource | None, schemas: Schemas, rules: Minor
    ) -> PolicyRun:
        # The views of an object in several versions have the same metadata.
        metadata = request.resource.body.get("metadata")
        if metadata is None or metadata is not self._metadata or len(self._runs) >= _MOST_RUNS:
            self._metadata = metadata
            self._runs.clear()
        key = (id(compiled), id(request), id(param))
        _, run = self._runs.get(key, (None, None))
        if run is None or run.schemas is not schemas or run.rules != rules:
            schema = _find_schema(schemas, request.matched, rules)
            fault = explain_unreturnable(request.original, request.matched) if schema.builtin else ""
            requested = _find_requested_schema(schemas, request, schema, rules)
            run = PolicyRun(compiled, request, _make_bare(param, schemas), schema, requested, schemas, rules, fault)
            # The param is kept as well: while it exists, no other object has its id.
            self._runs[key] = param, run
        return run


_RUNS = _LatestRuns()


def _list_sources(activation: dict[str, object]) -> tuple[object, ...]:
    return tuple(activation[name] for name in activation if name != "variables")


class _Undecided(Exception):
    """A mutation reads data that this scan does not have."""


def _evaluate(expression: Expression, activation: dict[str, object], request: Request) -> cel.Value:
    """The value of a mutation's expression, which has a budget of its own."""
    if expression.program is None:
        raise PatchFault(expression.fault)
    variables = activation.get("variables")
    counts = isinstance(variables, Variables) and variables.metered
    value = run(expression, activation, CostBudget(RUNTIME, request.budget_use) if counts else None)
    if isinstance(value, EvaluationFault):
        raise PatchFault(value.text)
    return value


def make_refusal(policy: Policy, fault: PatchFault) -> Errored:
    """The outcome of the request when a mutation fails."""
    if isinstance(fault, RequestFault):
        return Errored(str(fault), would_deny=True, always=True, reason="InternalError", code=_INTERNAL_ERROR)
    denies = policy.failure_policy != "Ignore"
    return Errored(str(fault), would_deny=denies, always=denies, code=403)


def is_left(mutation: Mutation, schema: Schema, live: JsonObject, value: cel.Value) -> bool:
    """Return whether the value of a mutation leaves an object unchanged, as far as a fast test can detect it."""
    return is_patched(live, value) if mutation.patch_type == "JSONPatch" else is_configured(schema, live, value)


def _list_outcomes(
    run: PolicyRun, first: MutationPass, last: MutationPass, changes: tuple[Change, ...], *, converges: bool
) -> Iterator[Outcome]:
    """One outcome for each mutation. Their patches, in order, are the policy's change of the stored object."""
    more = () if last is first else compute_patch(run.store_first_pass(first.after), run.convert_to_stored(last.after))
    is_alone = len(first.steps) == 1 and last is first
    last_applied = max(
        (index for index, (outcome, _) in enumerate(first.steps) if isinstance(outcome, Passed)), default=-1
    )
    before = run.request.resource.body
    for index, (outcome, body) in enumerate(first.steps):
        after = run.store_first_pass(body)
        patch = changes if is_alone else (*compute_patch(before, after), *(more if index == last_applied else ()))
        before = after
        mutation_outcome = _decide(outcome, last.steps[index][0])
        if isinstance(mutation_outcome, Passed) and changes and patch:
            yield Skipped(SkipReason.NOT_AUDITABLE, _TOO_DEEP) if is_deep(patch) else WouldChange(patch, converges)
        else:
            yield mutation_outcome


def _validate(run: PolicyRun, last: MutationPass, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
    """The outcomes of mutations that leave the stored object unchanged: the server may refuse what it would not store."""
    for outcome, (_, body) in zip(outcomes, last.steps, strict=True):
        errors = run.find_wrong_types(body) if isinstance(outcome, Passed) else ()
        text = ", ".join(errors)
        yield Errored(text, would_deny=True, always=True, reason="Invalid", code=INVALID) if text else outcome


def _decide(first: Outcome, last: Outcome) -> Outcome:
    """The outcome of a mutation: an error that denies, or else that of the pass in which it was applied.

    The server drops an error that failurePolicy ignores, and keeps what the other pass made of the object.
    """
    if isinstance(first, Skipped) or not isinstance(last, Errored):
        return first if isinstance(first, Skipped) else last
    return first if isinstance(first, Passed) and not last.would_deny else last


def is_deep(patch: tuple[Change, ...]) -> bool:
    """Return whether a patch nests too deeply for a database or a report."""
    return any(_nests(value, _DEEPEST) for change in patch for value in (change.value, change.was))


def _nests(value: Json, levels: int) -> bool:
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return levels == 0 or any(_nests(part, levels - 1) for part in parts if isinstance(part, Mapping | list))
