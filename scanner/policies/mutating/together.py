"""The result of all mutating policies that match an object in one request.

Source of truth: `mutating.dispatcher` and `reinvoker` of kube-apiserver 1.36. An invocation is a policy with a binding and a
param; its mutations and its match conditions read the object as the invocations before it changed it. After any patch, all of
admission runs once more: there only invocations that ran before and have `IfNeeded` change the object, but every match condition
is evaluated again. One error of a policy with `Fail` denies the request.

Each version of the object in which policies read it is a copy of the object of the request: a policy reads the changes of the policies
before it in its own version alone, and only the version of the last policy that ran is converted back (`lastVersionedAttr`). So
changes in another version are lost, unless the second pass makes them again.

A server runs policies in its own order, and also the bindings of a policy and the params of a binding. If there are few orders,
all are tried; else the order of names, its reverse, every policy first and last, and all orders of the policies that had an
effect in one of these.

Rules: `docs/semantics/mutation.md#invocations`, `docs/semantics/mutation.md#reinvocation`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, combinations, groupby, permutations, product
from math import factorial, prod
from typing import Final, TypeAlias

from msgspec import Struct

from scanner.admission.context import EvaluationContext
from scanner.admission.dispatch import AtRest, BoundPolicy, CombinedChange, InvocationResult, list_requests
from scanner.cel.stack import run_with_room
from scanner.model.json import JsonObject
from scanner.model.outcome import Change, CheckResult, Errored
from scanner.model.policy import Invocation, PolicyKey
from scanner.model.resource import Kind, Resource
from scanner.mutate.operations import is_same_json
from scanner.policies.mutating.evaluator import get_mutator, write_refusal
from scanner.policies.mutating.mutation import PolicyRun, compute_patch, get_run, is_deep

_MOST_ORDERS: Final = 24
_SEVERAL: Final = 2
_Order: TypeAlias = tuple[int, ...]
_Tree: TypeAlias = "int | tuple[_Tree, ...]"


class RequestResult(Struct, frozen=True):
    """The response of a server to one request: the object that it would store, or the reason of the denial.

    `unpruned` is the object after the last mutation, before it is stored, in the version of the request.
    """

    after: JsonObject
    refusal: str = ""
    unpruned: JsonObject | None = None

    def is_like(self, other: RequestResult) -> bool:
        """Return whether two orders have the same end; of several errors any may be the first."""
        if self.refusal or other.refusal:
            return bool(self.refusal) == bool(other.refusal)
        return is_same_json(self.after, other.after)


def list_invocations(
    bound: BoundPolicy, resource: Resource, original: Kind, context: EvaluationContext
) -> Iterator[InvocationResult]:
    """The invocations of a policy on an object, not yet evaluated; none for a policy that changes no object."""
    if bound.may_change_objects:
        yield from list_requests(bound, resource, original, context)


def _is_unknown(_bound: BoundPolicy, _body: JsonObject) -> bool:
    return False


def combine(
    invocation_results: Sequence[tuple[BoundPolicy, InvocationResult]], at_rest: AtRest = _is_unknown
) -> CombinedChange | None:
    """The result of all invocations on an object; None if at most one has an effect, and the same effect as alone.

    Invocations that are not `at_rest` are evaluated. Raises SchemaUnknown.
    """
    if len(invocation_results) < _SEVERAL:
        return None
    return run_with_room(lambda: _SimulatedRequest(invocation_results, at_rest).combine())


class InOneRequest(Struct, frozen=True):
    """Satisfies `Combination`: mutating policies run one after another in one request."""

    def combine(self, acting: Sequence[tuple[BoundPolicy, InvocationResult]], at_rest: AtRest) -> CombinedChange | None:
        """See Combination."""
        return combine(acting, at_rest)


IN_ONE_REQUEST: Final = InOneRequest()


def try_orders(invocation_results: Sequence[tuple[BoundPolicy, InvocationResult]]) -> tuple[RequestResult, ...]:
    """One response for each order of the invocations that is tried; the order of names is the first. Raises SchemaUnknown."""
    return run_with_room(lambda: _SimulatedRequest(invocation_results).try_orders())


class Alternation(Struct, frozen=True):
    """A field to which one policy gives a value, and another policy another value, whenever they run in turn.

    `one` and `other` are the policies, each with its change.
    """

    one: tuple[PolicyKey, Change]
    other: tuple[PolicyKey, Change]


def find_alternations(invocation_results: Sequence[tuple[BoundPolicy, InvocationResult]]) -> tuple[Alternation, ...]:
    """The fields that each pair of policies changes back and forth. Raises SchemaUnknown."""
    return run_with_room(lambda: tuple(_SimulatedRequest(invocation_results).find_alternations()))


class _InvocationResult(Struct, frozen=True):
    """The result of an invocation on an object: whether its conditions are true, and its errors."""

    runs: bool
    after: JsonObject
    patched: bool = False
    refusals: tuple[str, ...] = ()
    ending_error: str = ""


class _PassResult(Struct, frozen=True):
    """The object after one pass of all invocations, and the invocations that ran."""

    after: JsonObject
    invocations: frozenset[int]
    patched: bool
    refusal: str = ""


class _SimulatedRequest:
    """One request, in any order of its invocations; the result of an invocation on an object is computed once."""

    def __init__(
        self, invocation_results: Sequence[tuple[BoundPolicy, InvocationResult]], at_rest: AtRest = _is_unknown
    ) -> None:
        self._at_rest = at_rest
        self._invocation_results = tuple(invocation_results)
        self._runs = [_make_run(bound, invocation_result) for bound, invocation_result in invocation_results]
        self._version = _find_requested_version(invocation_results)
        self._has_versions = any(run is not None and _is_converted(run) for run in self._runs)
        self._stored = self._find_stored_object()
        self._misconfigured = [
            text
            for _, invocation_result in invocation_results
            if invocation_result.request is None
            for text in _list_refusals(invocation_result.check_results, invocation_result.invocation)
        ]
        self._objects = [self._stored]
        begin = next((run.requested_object for run in self._runs if run is not None), self._stored)
        self._begin = self._convert_version(begin, self._version)
        self._objects += [] if self._begin is self._stored else [self._begin]
        self._results: dict[tuple[int, int], _InvocationResult] = {}
        self._objects_by_id: dict[int, JsonObject] = {}
        self._active: set[int] = set()

    def combine(self) -> CombinedChange | None:
        alone = [self.run_order((index,)) for index in range(len(self._runs)) if not self._is_at_rest(index)]
        changing = [answer for answer in alone if not answer.refusal and not is_same_json(answer.after, self._stored)]
        if not changing:
            return None
        answers = self.try_orders()
        if len(changing) < _SEVERAL and all(answer.is_like(changing[0]) for answer in answers):
            return None
        patch = () if answers[0].refusal else compute_patch(self._stored, answers[0].after)
        order_matters = not all(answer.is_like(answers[0]) for answer in answers)
        refused = next((answer.refusal for answer in answers if answer.refusal), "")
        joint = CombinedChange(patch, order_matters, undone=not patch and not answers[0].refusal, refused=refused)
        return None if is_deep(patch) else joint

    def _is_at_rest(self, index: int) -> bool:
        """Return whether an invocation is known to leave the stored object unchanged."""
        return self._at_rest(self._invocation_results[index][0], self._stored)

    def try_orders(self) -> tuple[RequestResult, ...]:
        tree = self._make_tree()
        first_order = _flatten(tree)
        answers = {order: self.run_order(order) for order in (first_order, first_order[::-1])}
        if len(self._active) < _SEVERAL and not self._has_versions:
            # Every invocation ran on the stored object and on the result of the only active one: no order differs.
            return tuple(answers.values())
        answers |= {order: self.run_order(order) for order in _list_orders(tree) if order not in answers}
        active = tuple(part for part in tree if self._active.intersection(_flatten(part)))
        if _count_orders(tree) > _MOST_ORDERS >= _count_orders(active):
            rest = tuple(chain.from_iterable(_flatten(part) for part in tree if part not in active))
            answers |= {(*order, *rest): self.run_order((*order, *rest)) for order in _list_permutations(active)}
        return tuple(answers.values())

    def run_order(self, order: _Order) -> RequestResult:
        """The response of the server if it runs the invocations in this order."""
        first = self._run_pass(order, self._begin)
        if first.refusal or not first.patched:
            return RequestResult(self._stored, first.refusal)
        again = [index for index in order if self._still_selects(index, first.after)]
        between = self._convert_between_passes(first.after)
        due = frozenset(
            index
            for index in first.invocations
            if self._invocation_results[index][0].policy.reinvocation_policy == "IfNeeded"
        )
        last = self._run_pass(again, between, due)
        return (
            RequestResult(self._stored, last.refusal)
            if last.refusal
            else RequestResult(self._convert_to_stored(last.after), unpruned=last.after)
        )

    def find_alternations(self) -> Iterator[Alternation]:
        """The fields that one policy changes, another changes after it, and the first changes back."""
        keys = [bound.policy.key for bound, _ in self._invocation_results]
        for one, other in combinations(range(len(keys)), 2):
            if keys[one] == keys[other]:
                continue
            first = self._run_alone(one, self._begin)
            second = self._run_alone(other, first)
            changed = {each.path: each for each in compute_patch(first, second)}
            for back in compute_patch(second, self._run_alone(one, second)) if changed else ():
                if back.path in changed:
                    yield Alternation((keys[one], back), (keys[other], changed[back.path]))

    def _run_alone(self, index: int, body: JsonObject) -> JsonObject:
        """The object after one invocation; as it was if it is refused."""
        result = self._run_invocation(index, self._convert_version(body, self._get_version(index)))
        return body if result.refusals or result.ending_error else self._convert_version(result.after, self._version)

    def _run_pass(self, order: Sequence[int], body: JsonObject, due: frozenset[int] | None = None) -> _PassResult:
        """Run the invocations that are due (the first time all); a server evaluates the match conditions of all."""
        refusals = [*self._misconfigured]
        ran: set[int] = set()
        patched: set[str] = set()
        versions: dict[str, JsonObject] = {}
        last = ""
        for index in order:
            version = self._get_version(index)
            current = versions.setdefault(version, self._convert_version(body, version))
            result = self._run_invocation(index, current)
            if due is not None and index not in due:
                refusals += () if result.runs else result.refusals
                continue
            if result.ending_error:
                return _PassResult(body, frozenset(), patched=False, refusal=result.ending_error)
            refusals += result.refusals
            ran.update([index] if result.runs else [])
            patched.update([version] if result.patched else [])
            last = version if result.runs else last
            versions[version] = result.after
        after = self._convert_version(versions[last], self._version) if last in patched else body
        return _PassResult(after, frozenset(ran), bool(patched), refusals[0] if refusals else "")

    def _get_version(self, index: int) -> str:
        """The apiVersion in which an invocation reads the object."""
        run = self._runs[index]
        return self._version if run is None else _get_version_of_run(run)

    def _convert_version(self, body: JsonObject, version: str) -> JsonObject:
        """The object in another version: its apiVersion alone changes. Of other kinds, all invocations have the same version."""
        if not self._has_versions or body.get("apiVersion") == version:
            return body
        return self._find_representative({**body, "apiVersion": version}, body)

    def _find_stored_object(self) -> JsonObject:
        """The stored object in the version of the request."""
        resources = [invocation_result.resource for _, invocation_result in self._invocation_results]
        stored = next((resource for resource in resources if resource.kind.api_version == self._version), resources[0])
        is_requested = not self._has_versions or stored.kind.api_version == self._version
        return stored.body if is_requested else {**stored.body, "apiVersion": self._version}

    def _run_invocation(self, index: int, body: JsonObject) -> _InvocationResult:
        key = (index, id(body))
        if key not in self._results:
            result = self._run_new(index, body)
            self._results[key] = result
            if (
                result.refusals
                or result.ending_error
                or result.after is not body
                or (self._has_versions and result.runs)
            ):
                self._active.add(index)
        return self._results[key]

    def _run_new(self, index: int, body: JsonObject) -> _InvocationResult:
        bound, run = self._invocation_results[index][0], self._runs[index]
        if run is None:
            return _InvocationResult(runs=False, after=body)
        # The conditions matter only to a policy that may run again.
        if bound.policy.reinvocation_policy != "IfNeeded" and not self._has_versions and self._at_rest(bound, body):
            return _InvocationResult(runs=True, after=body)
        invocation = self._invocation_results[index][1].invocation
        if stopped := run.evaluate_conditions(body):
            return _InvocationResult(runs=False, after=body, refusals=_list_refusals(stopped, invocation))
        mutated = run.run_mutations(body)
        refusals = tuple(write_refusal(invocation, error) for error in mutated.list_refusals())
        ended = mutated.ending_error.message if mutated.ending_error else ""
        after = self._find_representative(mutated.after, body)
        return _InvocationResult(
            runs=True, after=after, patched=mutated.has_patched, refusals=refusals, ending_error=ended
        )

    def _find_representative(self, after: JsonObject, body: JsonObject) -> JsonObject:
        """The first of all equal objects, which represents them."""
        first = next(
            (candidate for candidate in (body, *self._objects) if candidate is after or is_same_json(candidate, after)),
            None,
        )
        if first is None:
            self._objects.append(after)
        return after if first is None else first

    def _convert_to_stored(self, body: JsonObject) -> JsonObject:
        run = next((run for run in self._runs if run is not None), None)
        if id(body) not in self._objects_by_id:
            self._objects_by_id[id(body)] = body if run is None else self._convert_by(run, body)
        return self._objects_by_id[id(body)]

    def _convert_by(self, run: PolicyRun, body: JsonObject) -> JsonObject:
        stored = run.convert_to_stored(self._convert_version(body, _get_version_of_run(run)))
        return self._convert_version(stored, self._version)

    def _convert_between_passes(self, body: JsonObject) -> JsonObject:
        run = next((run for run in self._runs if run is not None), None)
        return body if run is None else self._find_representative(run.convert_between_passes(body), body)

    def _still_selects(self, index: int, body: JsonObject) -> bool:
        run = self._runs[index]
        return run is not None and run.still_selects(body)

    def _make_tree(self) -> tuple[_Tree, ...]:
        """The invocations of each binding of each policy: every order keeps them together."""

        def policy(index: int) -> object:
            return self._invocation_results[index][0].policy.key

        def binding(index: int) -> object:
            return self._invocation_results[index][1].invocation.binding.key

        of_policies = (tuple(group) for _, group in groupby(range(len(self._invocation_results)), policy))
        return tuple(tuple(tuple(group) for _, group in groupby(part, binding)) for part in of_policies)


def _list_refusals(check_results: Sequence[CheckResult], invocation: Invocation) -> tuple[str, ...]:
    """The messages of the errors for which the API server denies the request."""
    errors = (check_result.outcome for check_result in check_results if isinstance(check_result.outcome, Errored))
    return tuple(write_refusal(invocation, error) for error in errors if error.would_deny)


def _make_run(bound: BoundPolicy, invocation_result: InvocationResult) -> PolicyRun | None:
    mutator, request = get_mutator(bound), invocation_result.request
    if request is None or mutator is None:
        return None
    return get_run(bound.compiled, request, invocation_result.invocation.param, mutator.schemas, mutator.rules)


def _find_requested_version(invocation_results: Sequence[tuple[BoundPolicy, InvocationResult]]) -> str:
    """The apiVersion of the request, or of the list without a request."""
    first = invocation_results[0][1]
    requests_made = (invocation_result.request for _, invocation_result in invocation_results)
    request = next((request for request in requests_made if request is not None), None)
    return first.resource.kind.api_version if request is None else request.original.api_version


def _get_version_of_run(run: PolicyRun) -> str:
    return run.request.matched.api_version


def _is_converted(run: PolicyRun) -> bool:
    """Return whether an invocation reads a custom resource in another version than that of the request."""
    return not run.schema.builtin and run.request.matched != run.request.original


def _list_orders(tree: tuple[_Tree, ...]) -> Iterator[_Order]:
    """All orders if there are few; else the order of names, its reverse, and every policy first and last."""
    if _count_orders(tree) <= _MOST_ORDERS:
        yield from _list_permutations(tree)
        return
    first_order = _flatten(tree)
    yield first_order
    yield first_order[::-1]
    for part in tree:
        part_order = _flatten(part)
        others = tuple(index for index in first_order if index not in part_order)
        yield (*part_order, *others)
        yield (*others, *part_order)


def _count_orders(tree: _Tree) -> int:
    return 1 if isinstance(tree, int) else factorial(len(tree)) * prod(map(_count_orders, tree))


def _list_permutations(tree: _Tree) -> Iterator[_Order]:
    if isinstance(tree, int):
        yield (tree,)
        return
    for arrangement in permutations(tree):
        for parts in product(*map(_list_permutations, arrangement)):
            yield tuple(chain.from_iterable(parts))


def _flatten(tree: _Tree) -> _Order:
    return (tree,) if isinstance(tree, int) else tuple(chain.from_iterable(map(_flatten, tree)))
