"""The ordinary case in front of the judge: what passes a policy is only counted.

Most objects pass most policies, and most of what decides whether a policy looks at an object (rules, selectors of
namespaces, bindings, the size below which nothing has to be counted) is the same for all objects of a kind in a
namespace. It is decided once. What is left for an object is to call a few generated functions. Those that it does not
simply pass are evaluated check by check; only what has to be counted, or depends on more, goes to the judge, which knows
nothing of this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple, TypeAlias

from scanner import cel
from scanner.budget import Variables
from scanner.errors import ConfigurationError
from scanner.evaluate import CompiledPolicy, Expression, Request, filtered_namespace, request_form, uncounted, unmet
from scanner.model.json import JsonObject
from scanner.model.outcome import Check, Judgement
from scanner.model.policy import Binding, BindingKey, Invocation, MatchResources, Operation
from scanner.model.resource import Kind, Resource
from scanner.model.scan import OutcomeName, TallyKey
from scanner.params import resolve
from scanner.plan import KindPlan
from scanner.policies.kyverno.decide import Decision
from scanner.policies.mutating import Mutator
from scanner.policies.together import can_act, invocations
from scanner.policies.validating import Bound, Ruling, Selection, World, select
from scanner.redact import reads_data

Inputs: TypeAlias = "dict[str, object]"
Passes: TypeAlias = "Callable[[Inputs], object]"
"""Returns True for the inputs of an object that simply passes; returns or raises anything else for those that may not."""
_NAMES = cel.Extent(64.0, 1024.0, 64.0)
"""What the names of an object add to a request."""
_OFTEN = 64
"""So many objects for which a function raises are no exceptions."""


class Test(NamedTuple):
    """A policy, how to tell that an object passes it, and what there may be in the object, where that has to be seen first."""

    passes: Passes
    quick: Quick
    extent: cel.Extent | None


class Held(NamedTuple):
    """A policy that an object does not simply pass, and what its expressions may name."""

    test: Test
    inputs: Inputs


class _Skip:
    """What a test returns for an object that a match condition leaves out."""


_SKIPS = _Skip()


class Mutating(NamedTuple):
    """A policy that may change objects, and its quick way, if it has any."""

    bound: Bound
    original: Kind
    quick: Quick | None

    def rulings(self, resource: Resource, world: World) -> Iterable[Ruling]:
        """What it is asked about an object, not yet evaluated."""
        if self.quick is None:
            return invocations(self.bound, resource, self.original, world)
        request = self.quick.request(resource)
        return [Ruling(it, self.quick.operation, resource, (), request) for it in self.quick.invocations]


class Shape:
    """The policies for the objects of a namespace: those with a quick way, and those for the judge.

    Namespaces to which the same policies apply have one in common.
    """

    def __init__(
        self, quicks: Iterable[Quick], judged: Iterable[tuple[Bound, Kind]], mutating: Iterable[Mutating] = ()
    ) -> None:
        """Put policies together that look at the same inputs: those are made once for an object.

        `mutating` are all that may change one, in their order, whichever way they are asked.
        """
        self.mutating = tuple(mutating)
        groups: dict[tuple[object, ...], list[Quick]] = {}
        for quick in quicks:
            groups.setdefault(quick.needs, []).append(quick)
        self._groups = tuple(groups.values())
        self._tests: dict[int, tuple[tuple[Callable[[Resource], Inputs], tuple[Test, ...]], ...]] = {}
        self._raised: Counter[Quick] = Counter()
        self.quicks = tuple(quick for group in self._groups for quick in group)
        self.judged = tuple(judged)

    def held_back(self, resource: Resource, size: int, skipped: Counter[Quick]) -> list[Held]:
        """The quick ones that an object whose JSON text has so many bytes does not simply pass.

        Those that ask nothing, because a match condition is false, are counted as `skipped`.
        """
        groups = self._tests.get(size.bit_length())
        if groups is None:
            groups = self._tests[size.bit_length()] = self._of_size(1 << size.bit_length())
        held: list[Held] = []
        for made, tests in groups:
            inputs = made(resource)
            for test in tests:
                try:
                    answer = test[0](inputs)
                    if answer is True:
                        continue
                    if answer is _SKIPS:
                        skipped[test[1]] += 1
                        continue
                except Exception:  # noqa: BLE001 - whatever it is, it is met again where it can be said
                    self._raise(test.quick)
                held.append(Held(test, inputs))
        return held

    def _raise(self, quick: Quick) -> None:
        """Take note of a function that raises: if many do, another form of it may not, or the exact evaluator has the answer."""
        self._raised[quick] += 1
        if self._raised[quick] == _OFTEN:
            quick.adapt()
            self._tests.clear()

    def _of_size(self, size: int) -> tuple[tuple[Callable[[Resource], Inputs], tuple[Test, ...]], ...]:
        return tuple((group[0].inputs, tuple(quick.test(size) for quick in group)) for group in self._groups)


class Mesh:
    """What the objects of one namespace come to, counted until it is emptied."""

    __slots__ = ("_held", "_namespace", "_others", "_ruled", "_seen", "_skipped", "shape")

    def __init__(self, namespace: str, shape: Shape) -> None:
        """Begin with nothing."""
        self.shape = shape
        self._namespace = namespace
        self._seen = 0
        self._held: Counter[Quick] = Counter()
        self._ruled: Counter[Quick] = Counter()
        self._skipped: Counter[Quick] = Counter()
        self._others: Counter[tuple[Quick, Check, OutcomeName]] = Counter()

    def held_back(self, resource: Resource, size: int) -> list[Held]:
        """See `Shape.held_back`, without those whose conditions are false. All others are counted as passed."""
        self._seen += 1
        held = self.shape.held_back(resource, size, self._skipped)
        for one in held:
            self._held[one.test.quick] += 1
        return held

    def rule(self, quick: Quick, outcomes: Iterable[tuple[Check, OutcomeName]]) -> None:
        """Count the outcomes of a policy that held an object back."""
        self._ruled[quick] += 1
        for check, outcome in outcomes:
            self._others[quick, check, outcome] += 1

    def empty_into(self, tallies: Counter[TallyKey], matched: Counter[BindingKey], kind: Kind) -> None:
        """Add what was counted: outcomes, and the objects that each binding matched."""
        for quick in self.shape.quicks:
            skipped = self._skipped[quick]
            passed = self._seen - self._held[quick] - skipped
            counts = [(check, OutcomeName.PASSED, passed) for check in quick.checks] if passed else []
            counts += [(check, OutcomeName.SKIPPED, skipped) for check in quick.checks] if skipped else []
            counts += [(check, name, number) for (one, check, name), number in self._others.items() if one is quick]
            for binding in quick.bindings:
                matched[binding.key] += passed + skipped + self._ruled[quick]
                for check, outcome, number in counts:
                    tallies[quick.key(binding, check, outcome, kind, self._namespace)] += number
        self._seen = 0
        for counter in (self._held, self._ruled, self._skipped, self._others):
            counter.clear()


class Sieve:
    """The policies of one list, by namespace. Counts what it decides, until it is emptied."""

    def __init__(self, world: World, plan: KindPlan) -> None:
        """Take the policies of a list."""
        self._world = world
        self._plan = plan
        self._traits = [_traits(bound, plan.kind) for bound, _ in plan.policies]
        self._everywhere: dict[int, Chosen | None] = {}
        self._quicks: dict[tuple[object, ...], Quick | None] = {}
        self._shapes: dict[tuple[Quick | None, ...], Shape] = {}
        self._meshes: dict[str, Mesh] = {}
        self._touched: dict[str, Mesh] = {}
        self.withholds = (plan.kind.group, plan.kind.kind) == ("", "Secret") and not any(map(_sees_data, plan.policies))
        """Whether the data of these objects, which are Secrets, is nothing that any policy reads."""

    def mesh(self, namespace: str) -> Mesh:
        """The policies for the objects of a namespace."""
        mesh = self._touched.get(namespace)
        if mesh is None:
            mesh = self._meshes.get(namespace) or Mesh(namespace, self._shape(namespace))
            self._meshes[namespace] = self._touched[namespace] = mesh
        return mesh

    def _shape(self, namespace: str) -> Shape:
        found = tuple(self.quick(number, namespace) for number in range(len(self._plan.policies)))
        if found not in self._shapes:
            policies = [(*policy, quick) for policy, quick in zip(self._plan.policies, found, strict=True)]
            judged = ((bound, original) for bound, original, quick in policies if quick is None)
            mutating = (
                Mutating(bound, original, quick)
                for bound, original, quick in policies
                if can_act(bound) and (quick is None or quick.bindings)
            )
            self._shapes[found] = Shape((quick for quick in found if quick and quick.bindings), judged, mutating)
        return self._shapes[found]

    def quick(self, number: int, namespace: str) -> Quick | None:
        """The quick way of one of the policies for the objects of a namespace, None where there is none.

        Without bindings it looks at none of them.
        """
        bound, original = self._plan.policies[number]
        traits = self._traits[number]
        try:
            chosen = self._choice(number, namespace) if traits.plain else None
        except Exception:  # noqa: BLE001 - whatever it is, the judge meets it for every object, and says so
            return None
        if chosen is None:
            return None
        read = namespace if traits.reads_namespace else ""
        key = (number, chosen.key, read)
        if key not in self._quicks:
            self._quicks[key] = Quick(bound, original, chosen, self._plan.kind, namespace, self._world)
        return self._quicks[key]

    def _choice(self, number: int, namespace: str) -> Chosen | None:
        """How a policy looks at the objects of a namespace; of one that cannot tell namespaces apart it is asked once."""
        if number in self._everywhere:
            return self._everywhere[number]
        bound, original = self._plan.policies[number]
        chosen = _chosen(bound, original, self._plan.kind, namespace, self._world)
        if self._traits[number].everywhere:
            self._everywhere[number] = chosen
        return chosen

    def empty_into(self, tallies: Counter[TallyKey], matched: Counter[BindingKey]) -> None:
        """Add what has been counted since the last time: outcomes, and the objects that each binding matched."""
        for mesh in self._touched.values():
            mesh.empty_into(tallies, matched, self._plan.kind)
        self._touched.clear()


class Traits(NamedTuple):
    """What is the same of a policy in every namespace.

    `plain`: it has a quick way; `everywhere`: by its rules all namespaces are alike.
    """

    plain: bool
    everywhere: bool
    reads_namespace: bool


def _traits(bound: Bound, kind: Kind) -> Traits:
    matches = (bound.policy.match, *(binding.match for binding in bound.bindings))
    selects = any(match is not None and not match.namespace_selector.empty for match in matches)
    plain = (kind.group, kind.plural) != ("", "namespaces") and _is_plain(bound, kind)
    return Traits(plain, not selects and bound.policy.param_kind is None, _reads_namespace(bound.compiled))


class Chosen(NamedTuple):
    """By which bindings, for which operation and with which param a policy looks at objects."""

    operation: Operation
    bindings: tuple[Binding, ...]
    param: Resource | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """What tells it from other choices of the same policy."""
        param = (self.param.namespace, self.param.name) if self.param else None
        return (self.operation, tuple(binding.key for binding in self.bindings), param)


class Quick:
    """A policy that looks at all objects of a kind in a namespace alike, and evaluates them without counting the cost."""

    def __init__(self, bound: Bound, original: Kind, chosen: Chosen, kind: Kind, namespace: str, world: World) -> None:
        """Get the functions of a policy."""
        compiled = bound.compiled
        asked = tuple(_expressions(compiled))
        messages = tuple(message for _, _, message in compiled.validations if message is not None)
        self._compiled = compiled
        self._conditions = tuple(_function(expression) for _, expression in compiled.conditions)
        self._validations = tuple(_function(expression) for _, expression, _ in compiled.validations)
        self._values = tuple(_function(expression) for expression in compiled.annotations)
        self._mutations = bound.decide.tests(compiled, kind) if isinstance(bound.decide, Mutator) else ()
        read = (path for one in (*asked, *messages) for path in one.paths if path[0] in ("object", "oldObject"))
        self._paths = _outermost(path[1:] for path in read)
        self._ranges = tuple(sorted(compiled.outlay.ranges)) if compiled.outlay else ()
        self._answers: dict[tuple[object, ...], bool] = {}
        self._tests: dict[int, Test] = {}
        self._reads_request = any(expression.reads("request") for expression in asked)
        self._messages_read_request = any(message.reads("request") for message in messages)
        self._user = world.user
        self._decision = bound.decide if isinstance(bound.decide, Decision) else None
        reads_namespace = _reads_namespace(compiled)
        self._whole_namespace = world.namespace(namespace) if namespace and reads_namespace else None
        self._namespace = filtered_namespace(self._whole_namespace)
        self._form = request_form(chosen.operation, kind, original, world.user)
        self._fixed = {
            "request": _added(cel.extent_of_document(self._form.filled("", "")), _NAMES),
            "namespaceObject": cel.extent_of_document(self._whole_namespace),
            "params": cel.extent_of_document(chosen.param.body if chosen.param else None),
        }
        self._params = {"params": chosen.param.body if chosen.param else None} if bound.policy.param_kind else {}
        self.bound, self.original, self.param = bound, original, chosen.param
        self.operation, self.bindings = chosen.operation, chosen.bindings
        self.invocations = tuple(Invocation(bound.policy, binding, chosen.param) for binding in chosen.bindings)
        self.checks = compiled.checks
        read_too = (self._reads_request, self._decision is not None, reads_namespace)
        self.needs = (chosen.operation, original, *read_too, id(bound) if self._params else None)

    def adapt(self) -> None:
        """Ask the programs, which know several ways, and not their first functions."""
        self._conditions = tuple(_evaluating(expression) for _, expression in self._compiled.conditions)
        self._validations = tuple(_evaluating(expression) for _, expression, _ in self._compiled.validations)
        self._values = tuple(map(_evaluating, self._compiled.annotations))
        self._tests.clear()

    def test(self, size: int) -> Test:
        """How to tell that an object passes whose JSON text has no more than so many bytes."""
        asked = (*self._validations, *self._mutations)
        is_one = len(asked) == 1 and not (self._compiled.variables or self._conditions or self._values)
        several = self._holds if self._compiled.variables else self._all_hold
        holds: Passes = asked[0] if is_one else several
        extent = cel.Extent(size / 2, float(size), size / 2)
        if self._fits(extent):
            return Test(holds, self, None)
        return Test(partial(self._is_small_and_holds, holds, extent), self, extent)

    def leaves(self, resource: Resource, current: JsonObject, size: int) -> bool:
        """Whether it is known to leave what others have made of an object as it is.

        Neither that nor the object has a JSON text of more than so many bytes; what has to be measured is not known.
        """
        test = self._tests.get(size) or self._tests.setdefault(size, self.test(size))
        if test.extent is not None:
            return False
        try:
            answer = test.passes({**self.inputs(resource), "object": current})
        except Exception:  # noqa: BLE001 - whatever it is, it is met again where it can be said
            return False
        return answer is True or answer is _SKIPS

    def inputs(self, resource: Resource) -> Inputs:
        """What the expressions may name, but the variables; `request` is empty for those who do not read it."""
        if self._decision is not None:
            return self._decision.inputs(self.request(resource))
        body = resource.body
        return {
            "object": body,
            "oldObject": body if self.operation == "UPDATE" else None,
            "request": self._form.filled(resource.name, resource.namespace) if self._reads_request else None,
            "namespaceObject": self._namespace,
            **self._params,
        }

    def judgements(self, resource: Resource, held: Held) -> tuple[Judgement, ...] | None:
        """Every check of an object that was held back; None where its cost has to be counted, or it would be changed."""
        compiled, inputs, extent = self._compiled, held.inputs, held.test.extent
        if extent is not None and not self._is_small(inputs, extent):
            return None
        if self._decision is not None:
            return self._decision.judgements(compiled, inputs)
        if compiled.conditions and (stopped := unmet(compiled, inputs)):
            return stopped
        if compiled.mutations:
            return None
        for_messages = inputs
        if self._messages_read_request and not self._reads_request:
            for_messages = {**inputs, "request": self._form.filled(resource.name, resource.namespace)}
        return uncounted(compiled, inputs, for_messages, inputs)

    def request(self, resource: Resource) -> Request:
        """What is asked."""
        return Request(
            operation=self.operation,
            original=self.original,
            matched=resource.kind,
            resource=resource,
            namespace=resource.namespace,
            namespace_object=self._whole_namespace,
            user=self._user,
        )

    def key(self, binding: Binding, check: Check, outcome: OutcomeName, kind: Kind, namespace: str) -> TallyKey:
        """Under what outcomes of the policy are counted."""
        return TallyKey(
            policy=self.bound.policy.name,
            binding=binding.name,
            param_namespace=self.param.namespace if self.param else "",
            param_name=self.param.name if self.param else "",
            check=check,
            api_version=kind.api_version,
            kind=kind.kind,
            namespace=namespace,
            outcome=outcome,
            requester=check in self.bound.requester,
            language=self.bound.policy.language,
        )

    def _fits(self, extent: cel.Extent, lengths: dict[tuple[str, ...], float] | None = None) -> bool:
        """Whether no limit of cost can be reached by any object with no more in it than this."""
        outlay = self._compiled.outlay
        extents = {"object": extent, "oldObject": extent, **self._fixed}
        return outlay is not None and outlay.is_within(extents, lengths)

    def _is_small_and_holds(self, holds: Passes, extent: cel.Extent, inputs: Inputs) -> object:
        return self._is_small(inputs, extent) and holds(inputs)

    def _is_small(self, inputs: Inputs, extent: cel.Extent) -> bool:
        """Whether no limit can be reached by this object: by the lengths of its lists, or by what is in the parts it reads."""
        lengths = tuple((cel.entries_at(inputs, path) - 1).bit_length() for path in self._ranges)
        key = (extent, lengths)
        if key not in self._answers:
            known = {path: float(1 << length) for path, length in zip(self._ranges, lengths, strict=True)}
            self._answers[key] = self._fits(extent, known)
        return self._answers[key] or self._fits(
            cel.extent_of_document([_part(inputs["object"], path) for path in self._paths])
        )

    def _holds(self, inputs: Inputs) -> object:
        return self._all_hold({**inputs, "variables": Variables(self._compiled.variables, inputs)})

    def _all_hold(self, inputs: Inputs) -> object:
        for holds in self._conditions:
            met = holds(inputs)
            if met is not True:
                return _SKIPS if met is False and self._decision is None else False
        for holds in self._validations:
            if holds(inputs) is not True:
                return False
        for leaves in self._mutations:
            if not leaves(inputs):
                return False
        for value in self._values:
            annotation = value(inputs)
            if annotation.__class__ is not str and (annotation is not None or self._decision is not None):
                return False
        return True


def _chosen(bound: Bound, original: Kind, kind: Kind, namespace: str, world: World) -> Chosen | None:
    """How a plain policy looks at the objects of a kind in a namespace; None unless at all of them alike, or at none."""
    resource = Resource(kind, namespace, "", "", "", {})
    operations: set[Operation] = set()
    bindings: list[Binding] = []
    params: dict[tuple[str, str] | None, Resource | None] = {}
    for binding in bound.bindings:
        found = (select(bound.policy, binding, resource, original, operation, world) for operation in world.operations)
        selection = next((one for one in found if one), None)
        if selection is None or selection.matched != kind:
            continue
        meant = _meant(bound, binding, selection, world)
        if not meant:
            return None
        operations.add(selection.target.operation)
        bindings.append(binding)
        params |= {(one.namespace, one.name) if one else None: one for one in meant}
    if len(operations) > 1 or len(params) > 1:
        return None
    operation = operations.pop() if operations else world.operations[0]
    return Chosen(operation, tuple(bindings), next(iter(params.values()), None))


def _meant(bound: Bound, binding: Binding, selection: Selection, world: World) -> tuple[Resource | None, ...]:
    """The params of a binding, None for an evaluation without one; nothing where something is wrong, or none is found."""
    try:
        return () if selection.fault else resolve(bound.policy, binding, selection.target.namespace, world.params)
    except ConfigurationError:
        return ()


def _sees_data(policy: tuple[Bound, Kind]) -> bool:
    """Whether a policy may see the data of Secrets. Mutations see all there is, and so may exceptions."""
    bound, _ = policy
    plain = not isinstance(bound.decide, Decision) or bound.decide.is_plain()
    sees = any(reads_data(expression.paths, "object") for _, expression in bound.compiled.expressions())
    return sees or bool(bound.policy.mutations) or not plain


def _reads_namespace(compiled: CompiledPolicy) -> bool:
    return any(expression.reads("namespaceObject") for _, expression in compiled.expressions())


def _is_plain(bound: Bound, kind: Kind) -> bool:
    """Whether nothing about an object but its kind, namespace and content decides what the policy makes of it."""
    compiled, policy = bound.compiled, bound.policy
    narrowings = (policy.match, *(binding.match for binding in bound.bindings))
    return (
        (bound.decides_plainly(kind) or _is_plain_kyverno(bound) or _is_plain_mutator(bound, kind))
        and not bound.reading.reason
        and not bound.namespace
        and not (policy.param_kind and policy.mutations)
        and all(_looks_at_all(match) for match in narrowings if match is not None)
        and all(expression.program is not None for _, expression in compiled.expressions())
        and not any(expression.reads("authorizer") for expression in _expressions(compiled))
        and not any(_differs(expression) for _, expression in compiled.conditions)
        and not any(expression.reads("namespaceObject") for expression in compiled.annotations)
    )


def _is_plain_kyverno(bound: Bound) -> bool:
    """Whether nothing is excepted from a policy of Kyverno's; its request has the object in it, and is as large."""
    asked = _expressions(bound.compiled)
    decides = isinstance(bound.decide, Decision) and bound.decide.is_plain()
    return decides and not any(("request",) in expression.paths for expression in asked)


def _is_plain_mutator(bound: Bound, kind: Kind) -> bool:
    """Whether it can be told of every mutation that it leaves an object as it is."""
    return isinstance(bound.decide, Mutator) and len(bound.decide.tests(bound.compiled, kind)) > 0


def _differs(condition: Expression) -> bool:
    """Whether a match condition sees something else than a validation does."""
    return condition.reads("request") or condition.reads("namespaceObject")


def _looks_at_all(match: MatchResources) -> bool:
    names = any(rule.resource_names for rule in (*match.rules, *match.exclude_rules))
    return match.object_selector.empty and not names


def _expressions(compiled: CompiledPolicy) -> Iterator[Expression]:
    """What is evaluated for an object that passes."""
    yield from (expression for _, expression in compiled.conditions)
    yield from (expression for _, expression, _ in compiled.validations)
    yield from compiled.annotations
    yield from compiled.mutations


def _function(expression: Expression) -> Passes:
    program = expression.program
    if program is None:
        raise TypeError
    return program.generate() or program.evaluate


def _evaluating(expression: Expression) -> Passes:
    program = expression.program
    if program is None:
        raise TypeError
    return program.evaluate


def _outermost(paths: Iterable[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """The paths that are not inside another one."""
    found: list[tuple[str, ...]] = []
    for path in sorted(set(paths)):
        if not any(path[: len(outer)] == outer for outer in found):
            found.append(path)
    return tuple(found)


def _part(value: object, path: tuple[str, ...]) -> object:
    """What is under a path, or all of the list that the path leads through."""
    for key in path:
        if not isinstance(value, dict):
            return value
        value = value.get(key)
    return value


def _added(one: cel.Extent, other: cel.Extent) -> cel.Extent:
    return cel.Extent(*(left + right for left, right in zip(one, other, strict=True)))
