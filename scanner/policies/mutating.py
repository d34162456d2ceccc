"""MutatingAdmissionPolicy: what it would do to a stored object today.

Source of truth: `mutating.dispatcher` of kube-apiserver 1.36. The mutations of a policy run in their order, each on the object
as the ones before have left it, and a failing one does not stop the next; with `IfNeeded` the policy runs once more when it
patched anything. Each policy is judged on the stored object, whatever other policies would do to it before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias, cast

from scanner import cel
from scanner.budget import RUNTIME, Fault, Purse, Variables, run
from scanner.cel.depth import with_room
from scanner.cel.natives import wrapping
from scanner.errors import InvalidManifest, SchemaUnknown
from scanner.evaluate import CompiledPolicy, Expression, Request, before_checks, inputs, left_out
from scanner.model.json import EMPTY, Json, JsonObject
from scanner.model.outcome import (
    Change,
    Errored,
    Judgement,
    Outcome,
    Passed,
    Skipped,
    SkipReason,
    WouldChange,
)
from scanner.model.policy import Binding, Invocation, Mutation, Operation, Policy, PolicyKey
from scanner.model.release import NEWEST, Minor
from scanner.model.resource import Kind, Resource
from scanner.mutate.difference import difference
from scanner.mutate.native import PatchFault
from scanner.mutate.origin import Data
from scanner.mutate.patch import configured, patched
from scanner.mutate.schema import Schema
from scanner.mutate.unchanged import Holds, holds, is_configured, is_patched
from scanner.mutate.values import RequestFault
from scanner.policies import manifest, validation
from scanner.policies.reading import AUDITABLE
from scanner.policies.validating import Bound, Ruling, bound_by

LANGUAGE = "MutatingAdmissionPolicy"
POLICIES = "mutatingadmissionpolicies"
BINDINGS = "mutatingadmissionpolicybindings"
_SEVERAL = 2
_NAMESPACE = Kind("", "v1", "Namespace", "namespaces", namespaced=False)
_WRAPPED_SINCE = (1, 37)
_INTERNAL_ERROR = 500
_ENDED = "an earlier mutation ends the request"
_DEEPEST = 100
_TOO_DEEP = f"what it would change nests more than {_DEEPEST} levels deep, and cannot be recorded"


class Schemas(Protocol):
    """Where the merge schemas of kinds are looked up."""

    def schema(self, kind: Kind) -> Schema | None:
        """The schema of a kind, or None when none is known."""
        ...


class NoSchemas:
    """Knows none."""

    def schema(self, kind: Kind) -> Schema | None:
        """None, whatever the kind is."""
        del kind
        return None


@dataclass(frozen=True, slots=True)
class Prediction:
    """What an invocation says about an object, and the object as it would leave it."""

    judgements: tuple[Judgement, ...]
    after: JsonObject


def read_policy(document: JsonObject, *, source: str = "cluster", rules: Minor = NEWEST) -> Policy:
    """The policy of a manifest. From a file (`source` is not `cluster`), InvalidManifest when the API would refuse it."""
    policy = manifest.read_policy(document, language=LANGUAGE, source=source)
    if source != "cluster":
        _refuse(validation.mutating_policy_faults(document, validation.written(policy, rules)))
    return policy


def read_binding(document: JsonObject, *, source: str = "cluster") -> Binding:
    """The binding of a manifest, with the same promise as `read_policy`."""
    if source != "cluster":
        _refuse(validation.mutating_binding_faults(document))
    return manifest.read_binding(document, language=LANGUAGE, source=source)


def _refuse(faults: tuple[str, ...]) -> None:
    if faults:
        raise InvalidManifest(faults)


def assume_bound(policy: Policy) -> Binding:
    """The binding that `--assume-bound` makes up: the whole policy, without a param."""
    return Binding(
        language=LANGUAGE,
        name=f"assumed:{policy.name}",
        policy_name=policy.name,
        param_ref=None,
        match=None,
        actions=(),
        manifest=EMPTY,
        digest="",
        source="--assume-bound",
        assumed=True,
    )


def bind(
    policies: Sequence[Policy],
    bindings: Sequence[Binding],
    schemas: Schemas,
    operations: tuple[Operation, ...] = AUDITABLE,
    rules: Minor = NEWEST,
) -> tuple[Bound, ...]:
    """Policies that some binding puts into force, compiled, ordered by name, to be asked about some operations."""
    return bound_by(policies, bindings, operations, rules, Mutator(schemas, rules))


Leaves: TypeAlias = Callable[[Mapping[str, object]], bool]
"""Returns True when a mutation leaves the object among what its expression may name as it is."""


@dataclass(frozen=True, slots=True)
class Mutator:
    """How mutating policies judge a request: by the schemas of a cluster and the rules of a Kubernetes release."""

    schemas: Schemas
    rules: Minor

    def __call__(self, compiled: CompiledPolicy, request: Request, param: Resource | None) -> tuple[Judgement, ...]:
        """Every mutation of a matched invocation. Raises SchemaUnknown."""
        return with_room(lambda: predict(compiled, request, param, self.schemas, self.rules)).judgements

    def tests(self, compiled: CompiledPolicy, kind: Kind) -> tuple[Leaves, ...]:
        """How to tell of each mutation that it leaves an object of a kind as it is; nothing where only the whole way tells."""
        schema = self.schemas.schema(kind)
        if schema is None or self.rules >= _WRAPPED_SINCE:
            return ()
        if any(expression.program is None or expression.reads("namespaceObject") for expression in compiled.mutations):
            return ()
        pairs = zip(compiled.policy.mutations, compiled.mutations, strict=True)
        return tuple(_leaves(mutation, expression, schema) for mutation, expression in pairs)

    def once(self, compiled: CompiledPolicy, request: Request, param: Resource | None, body: JsonObject) -> JsonObject:
        """The object after one run of the policy on what others have made of it; as it is when a condition is false."""
        run = _run_of(compiled, request, param, self.schemas, self.rules)
        return (
            body if compiled.excess else with_room(lambda: body if run.conditions(body) else run.mutations(body).after)
        )


def _leaves(mutation: Mutation, expression: Expression, schema: Schema) -> Leaves:
    program = expression.program
    if program is None:
        raise TypeError
    evaluate = program.evaluate
    if not program.reads and mutation.patch_type == "ApplyConfiguration":
        return _Constant(schema, program)
    return lambda given: _is_left(mutation, schema, cast("JsonObject", given["object"]), evaluate(given))


def _is_left(mutation: Mutation, schema: Schema, live: JsonObject, value: cel.Value) -> bool:
    return is_patched(live, value) if mutation.patch_type == "JSONPatch" else is_configured(schema, live, value)


class _Constant:
    """A mutation that says the same of every object."""

    def __init__(self, schema: Schema, program: cel.Program) -> None:
        self._schema, self._program = schema, program
        self._holds: Holds | None = None

    def __call__(self, given: Mapping[str, object]) -> bool:
        if self._holds is None:
            self._holds = holds(self._schema, self._program.evaluate(given))
        return self._holds(given["object"])


def predict(
    compiled: CompiledPolicy, request: Request, param: Resource | None, schemas: Schemas, rules: Minor = NEWEST
) -> Prediction:
    """Every mutation of a matched invocation, and the object after all of them, as a Kubernetes release decides.

    Raises SchemaUnknown when the kind has no schema: then only a server can tell.
    """
    run = _run_of(compiled, request, param, schemas, rules)
    stored = request.resource.body
    if compiled.excess:
        return Prediction(left_out(compiled), stored)
    if stopped := run.conditions(stored):
        return Prediction(stopped, stored)
    first = run.mutations(stored)
    last = run.again(first) if compiled.policy.reinvocation_policy == "IfNeeded" and first.patched else first
    changes = difference_of(stored, last.after)
    converges = not changes or run.is_settled(last.after)
    outcomes = _outcomes(stored, first, last, changes, converges=converges)
    return Prediction(tuple(map(Judgement, compiled.checks, outcomes)), last.after)


def _run_of(compiled: CompiledPolicy, request: Request, param: Resource | None, schemas: Schemas, rules: Minor) -> _Run:
    return _Run(compiled, request, _bare(param, schemas), _known(schemas, request.matched), schemas, rules)


def difference_of(before: JsonObject, after: JsonObject) -> tuple[Change, ...]:
    """The smallest patch from one object to another."""
    return difference(before, after)  # type: ignore[arg-type]


def _known(schemas: Schemas, kind: Kind) -> Schema:
    schema = schemas.schema(kind)
    if schema is None:
        raise SchemaUnknown(f"{kind.api_version}/{kind.kind}")
    return schema


def _bare(param: Resource | None, schemas: Schemas) -> Resource | None:
    """The param as mutations see it: one of a built-in kind has neither apiVersion nor kind there."""
    schema = schemas.schema(param.kind) if param else None
    if param is None or schema is None or not schema.builtin:
        return param
    return replace(param, body={key: value for key, value in param.body.items() if key not in ("apiVersion", "kind")})


@dataclass(frozen=True, slots=True)
class _Pass:
    """One run of all mutations: what each did, the object after each, whether any patch was applied."""

    steps: tuple[tuple[Outcome, JsonObject], ...]
    after: JsonObject
    patched: bool


@dataclass(frozen=True, slots=True)
class _Run:
    compiled: CompiledPolicy
    request: Request
    param: Resource | None
    schema: Schema
    schemas: Schemas
    rules: Minor

    def conditions(self, body: JsonObject) -> tuple[Judgement, ...]:
        if not self.compiled.conditions:
            return ()
        return before_checks(self.compiled, replace(self.request, current=body), self.param)

    def mutations(self, body: JsonObject) -> _Pass:
        """Run every mutation once, beginning with an object."""
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
        return _Pass(tuple(steps), body, patched=patches > 0)

    def again(self, first: _Pass) -> _Pass:
        """The second pass of the same request, when the conditions still hold."""
        return first if self.conditions(first.after) else self.mutations(first.after)

    def is_settled(self, body: JsonObject) -> bool:
        """Whether the policy changes nothing more in its own result, as a request of its own."""
        request = replace(self.request, resource=replace(self.request.resource, body=body))
        run = replace(self, request=request)
        return bool(run.conditions(body)) or not difference_of(body, run.mutations(body).after)

    def _step(self, index: int, body: JsonObject) -> tuple[Outcome, JsonObject]:
        try:
            return Passed(), self._mutation(index, body)
        except _Undecided as unknown:
            return Skipped(SkipReason.NOT_AUDITABLE, str(unknown)), body
        except PatchFault as fault:
            return refused(self.compiled.policy, fault), body

    def _mutation(self, index: int, body: JsonObject) -> JsonObject:
        expression = self.compiled.mutations[index]
        stored = self.request.resource.body
        request = self.request if body is stored else replace(self.request, current=body)
        activation = inputs(self.compiled, request, self.param)
        if "authorizer" not in activation and expression.reads("authorizer"):
            raise _Undecided("the expression asks the authorizer")
        if self.rules < _WRAPPED_SINCE:
            with cel.noting() as made:
                value = _evaluated(expression, activation, self.request)
            if _is_left(self.compiled.policy.mutations[index], self.schema, body, value):
                return body
            data = Data(_sources(activation), made=made)
        else:
            data = Data(_sources(activation), wrapped=self._wrapped(body), request=activation["request"], rebuilds=True)
            with wrapping(lambda one: bool(data.wrapping(one))):
                value = _evaluated(expression, activation, self.request)
        apply = patched if self.compiled.policy.mutations[index].patch_type == "JSONPatch" else configured
        return apply(value, body, self.schema, data)

    def _wrapped(self, body: JsonObject) -> Iterator[tuple[Schema, object]]:
        """What 1.37 shows as Go values: the object only when the policy has conditions, others of compiled kinds always.

        A server shows the object so, too, when a policy with conditions was judged before this one; which comes first is
        random there.
        """
        if self.compiled.conditions and self.schema.builtin:
            yield self.schema, body
            yield self.schema, self.request.resource.body
        namespace = self.schemas.schema(_NAMESPACE)
        if namespace:
            yield namespace, self.request.namespace_object
        schema = self.schemas.schema(self.param.kind) if self.param else None
        if self.param and schema and schema.builtin:
            yield schema, self.param.body


def _sources(activation: dict[str, object]) -> tuple[object, ...]:
    return tuple(activation[name] for name in activation if name != "variables")


class _Undecided(Exception):
    """A mutation that asks what this scan cannot answer."""


def _evaluated(expression: Expression, activation: dict[str, object], request: Request) -> cel.Value:
    """The value of a mutation's expression, which has a budget of its own."""
    if expression.program is None:
        raise PatchFault(expression.fault)
    variables = activation.get("variables")
    counts = isinstance(variables, Variables) and variables.metered
    value = run(expression, activation, Purse(RUNTIME, request.strain) if counts else None)
    if isinstance(value, Fault):
        raise PatchFault(value.text)
    return value


def refused(policy: Policy, fault: PatchFault) -> Errored:
    """What a mutation that fails means for the request."""
    if isinstance(fault, RequestFault):
        return Errored(str(fault), would_deny=True, always=True, reason="InternalError", code=_INTERNAL_ERROR)
    denies = policy.failure_policy != "Ignore"
    return Errored(str(fault), would_deny=denies, always=denies, code=403)


def _outcomes(
    stored: JsonObject, first: _Pass, last: _Pass, changes: tuple[Change, ...], *, converges: bool
) -> Iterator[Outcome]:
    """One outcome for each mutation. Their patches, one after the other, are what the policy does to the object."""
    more = () if last is first else difference_of(first.after, last.after)
    is_alone = len(first.steps) == 1 and last is first
    heir = max((index for index, (outcome, _) in enumerate(first.steps) if isinstance(outcome, Passed)), default=-1)
    before = stored
    for index, (outcome, after) in enumerate(first.steps):
        patch = changes if is_alone else (*difference_of(before, after), *(more if index == heir else ()))
        before = after
        again = last.steps[index][0]
        if isinstance(outcome, Passed) and isinstance(again, Errored):
            yield again
        elif isinstance(outcome, Passed) and changes and patch:
            yield Skipped(SkipReason.NOT_AUDITABLE, _TOO_DEEP) if _is_deep(patch) else WouldChange(patch, converges)
        else:
            yield outcome


def _is_deep(patch: tuple[Change, ...]) -> bool:
    """Whether a patch nests so deeply that neither a database nor a report could take it."""
    return any(_nests(value, _DEEPEST) for change in patch for value in (change.value, change.was))


def _nests(value: Json, levels: int) -> bool:
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return levels == 0 or any(_nests(part, levels - 1) for part in parts if isinstance(part, Mapping | list))


@dataclass(frozen=True, slots=True)
class Together:
    """What several policies make of one object in the order of their names, and whether another order ends elsewhere."""

    patch: tuple[Change, ...]
    order_matters: bool


def changers(rulings: Iterable[tuple[Bound, Ruling]]) -> frozenset[PolicyKey]:
    """The policies that change an object by themselves."""
    return frozenset(step.bound.policy.key for step in _steps(rulings) if step.changes)


def together(rulings: Sequence[tuple[Bound, Ruling]]) -> Together | None:
    """What all mutating policies that act on an object do to it; None when fewer than two of them change anything.

    A server runs them in an order of its own: the given one and its reverse are tried.
    """
    steps = _steps(rulings)
    if len(changers(rulings)) < _SEVERAL:
        return None
    after, order_matters = with_room(lambda: _in_any_order(steps))
    patch = with_room(lambda: difference_of(steps[0].ruling.resource.body, after))
    return None if _is_deep(patch) else Together(patch, order_matters)


def after_all(rulings: Iterable[tuple[Bound, Ruling]]) -> tuple[JsonObject, bool]:
    """The object after all mutating policies, in the order of their names, and whether another order ends elsewhere."""
    steps = _steps(rulings)
    return with_room(lambda: _in_any_order(steps))


def _steps(rulings: Iterable[tuple[Bound, Ruling]]) -> tuple[_Step, ...]:
    return tuple(_Step(bound, ruling, bound.decide) for bound, ruling in rulings if isinstance(bound.decide, Mutator))


def _in_any_order(steps: tuple[_Step, ...]) -> tuple[JsonObject, bool]:
    """Where the given order ends, and whether its reverse, in which every two policies have changed places, ends elsewhere."""
    stored = steps[0].ruling.resource.body
    after = _sequence(steps, stored)
    return after, bool(difference_of(after, _sequence(steps[::-1], stored)))


@dataclass(frozen=True, slots=True)
class _Step:
    """One invocation among several on the same object."""

    bound: Bound
    ruling: Ruling
    mutator: Mutator

    @property
    def changes(self) -> bool:
        """Whether it changes the stored object by itself."""
        return any(isinstance(judgement.outcome, WouldChange) for judgement in self.ruling.judgements)

    def after(self, body: JsonObject) -> JsonObject:
        """The object after this invocation."""
        request, param = self.ruling.request, self.ruling.invocation.param
        return body if request is None else self.mutator.once(self.bound.compiled, request, param, body)


def _sequence(steps: Sequence[_Step], body: JsonObject) -> JsonObject:
    """The object after all invocations; those that want it run once more when anything changed."""
    first = body
    for step in steps:
        first = step.after(first)
    last = first
    for step in steps:
        if step.bound.policy.reinvocation_policy == "IfNeeded":
            last = step.after(last)
    return last


def refusal(invocation: Invocation, message: str) -> str:
    """The message with which the API server refuses a request because of a mutation that failed."""
    return f"policy '{invocation.policy.name}' with binding '{invocation.binding.name}' denied request: {message}"
