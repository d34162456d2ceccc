"""The ordinary case in front of the judge: what passes a policy is only counted.

Most objects pass most policies, and most of what decides whether a policy looks at an object (rules, selectors of
namespaces, bindings, the size below which nothing has to be counted) is the same for all objects of a kind in a
namespace. It is decided once. What is left for an object is to call a few generated functions. Whatever does not simply
pass, a violation, an error, a false match condition, goes to the judge, which knows nothing of this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from scanner import cel
from scanner.budget import Variables
from scanner.evaluate import CompiledPolicy, Expression, Request, filtered_namespace, request_map
from scanner.model.policy import BindingKey, MatchResources, Operation
from scanner.model.resource import Kind, Resource
from scanner.model.scan import OutcomeName, TallyKey
from scanner.plan import KindPlan
from scanner.policies.kyverno.decide import Decision
from scanner.policies.validating import Bound, World, select

Passes: TypeAlias = Callable[[Mapping[str, object]], object]
_PATIENCE = 200
"""A policy that most objects do not pass, after so many, is left to the judge."""
_NAMES = cel.Extent(64.0, 1024.0, 64.0)
"""What the names of an object add to a request."""


class Entry(NamedTuple):
    """A policy that may judge an object, and how to tell that the object simply passes it, where there is a way.

    `closely`: first it has to be seen that this object is no larger where the policy looks than what need not be counted.
    """

    bound: Bound
    original: Kind
    quick: Quick | None
    closely: bool


class Sieve:
    """The policies of one list, by namespace and size of objects. Counts what passes, until it is emptied."""

    def __init__(self, world: World, plan: KindPlan) -> None:
        """Take the policies of a list."""
        self._world = world
        self._plan = plan
        self._quick: dict[tuple[int, str], Quick | None] = {}
        self._meshes: dict[tuple[str, int], tuple[Entry, ...]] = {}

    def mesh(self, namespace: str, size: int) -> tuple[Entry, ...]:
        """The policies for an object of a namespace whose JSON text has so many bytes, in the order of the plan."""
        key = (namespace, size.bit_length())
        mesh = self._meshes.get(key)
        if mesh is None:
            mesh = self._meshes[key] = tuple(self._entries(namespace, 1 << key[1]))
        return mesh

    def _entries(self, namespace: str, size: int) -> Iterator[Entry]:
        for number, (bound, original) in enumerate(self._plan.policies):
            key = (number, namespace)
            if key not in self._quick:
                self._quick[key] = _quick(bound, original, self._plan.kind, namespace, self._world)
            quick = self._quick[key]
            yield Entry(bound, original, quick, closely=quick is not None and not quick.is_cheap(size))

    def emptied(self) -> tuple[Counter[TallyKey], Counter[BindingKey]]:
        """What has passed since the last time: outcomes, and the objects that each binding matched."""
        tallies: Counter[TallyKey] = Counter()
        matched: Counter[BindingKey] = Counter()
        for quick in self._quick.values():
            if quick is not None and quick.passed:
                tallies.update(dict.fromkeys(quick.keys, quick.passed))
                matched.update(dict.fromkeys(quick.pairs, quick.passed))
                quick.passed = 0
        return tallies, matched


class Scene:
    """What the expressions of all policies may name, for one object: made once, and only what somebody asks for."""

    __slots__ = ("_known", "_user", "resource")

    def __init__(self, resource: Resource, world: World) -> None:
        """Begin with nothing."""
        self.resource = resource
        self._user = world.user
        self._known: dict[tuple[object, ...], dict[str, object]] = {}

    def inputs(self, quick: Quick) -> dict[str, object]:
        """The variables of the environment; `request` is empty for those who do not read it."""
        known = self._known.get(quick.needs)
        if known is None:
            known = self._known[quick.needs] = self._made(quick)
        return known

    def _made(self, quick: Quick) -> dict[str, object]:
        body, resource = self.resource.body, self.resource
        asked = Request(
            quick.operation, quick.original, resource.kind, resource, resource.namespace, quick.namespace, self._user
        )
        if quick.decision is not None:
            return quick.decision.inputs(asked)
        request = request_map(asked) if quick.reads_request else None
        return {
            "object": body,
            "oldObject": body if quick.operation == "UPDATE" else None,
            "request": request,
            "namespaceObject": quick.namespace,
        }


class Quick:
    """How to tell that an object of a kind in a namespace simply passes a policy: each check is true, nothing else matters."""

    __slots__ = (
        "_compiled",
        "_conditions",
        "_fallen",
        "_fixed",
        "_paths",
        "_validations",
        "_values",
        "decision",
        "keys",
        "namespace",
        "needs",
        "operation",
        "original",
        "pairs",
        "passed",
        "reads_request",
    )

    def __init__(self, bound: Bound, original: Kind, resource: Resource, operation: Operation, world: World) -> None:
        """Get the functions of a policy that looks at all objects like this one."""
        compiled = bound.compiled
        asked = tuple(_expressions(compiled))
        self._compiled = compiled
        self._conditions = tuple(_function(expression) for _, expression in compiled.conditions)
        self._validations = tuple(_function(expression) for _, expression, _ in compiled.validations)
        self._values = tuple(_function(expression) for expression in compiled.annotations)
        self._fallen = 0
        self._paths = _outermost(path[1:] for one in asked for path in one.paths if path[0] in ("object", "oldObject"))
        self.original, self.operation = original, operation
        self.reads_request = any(expression.reads("request") for expression in asked)
        self.decision = bound.decide if isinstance(bound.decide, Decision) else None
        namespace = world.namespace(resource.namespace) if resource.namespace else None
        self.namespace = namespace if self.decision else filtered_namespace(namespace)
        self.needs = (operation, original, self.reads_request, self.decision is not None)
        request = Request(operation, original, resource.kind, resource, resource.namespace, None, world.user)
        self._fixed = {
            "request": _added(cel.extent_of_document(request_map(request)), _NAMES),
            "namespaceObject": cel.extent_of_document(self.namespace),
        }
        self.passed = 0
        self.keys: tuple[TallyKey, ...] = ()
        self.pairs: tuple[BindingKey, ...] = ()

    def is_cheap(self, size: int) -> bool:
        """Whether no limit of cost can be reached by any object whose JSON text has so many bytes."""
        return self._fits(cel.Extent(size / 2, float(size), size / 2))

    def _fits(self, extent: cel.Extent) -> bool:
        outlay = self._compiled.outlay
        return outlay is not None and outlay.is_within({"object": extent, "oldObject": extent, **self._fixed})

    def passes(self, scene: Scene, *, closely: bool) -> bool:
        """Whether the object passes; False says only that somebody else has to find out."""
        if self._fallen > self.passed + _PATIENCE:
            return False
        if (not closely or self._is_small(scene.resource.body)) and self._holds(scene):
            self.passed += 1
            return True
        self._fallen += 1
        return False

    def _is_small(self, body: object) -> bool:
        return self._fits(cel.extent_of_document([_part(body, path) for path in self._paths]))

    def _holds(self, scene: Scene) -> bool:
        inputs = scene.inputs(self)
        if self._compiled.variables:
            inputs = {**inputs}
            inputs["variables"] = Variables(self._compiled.variables, inputs)
        try:
            for holds in self._conditions:
                if holds(inputs) is not True:
                    return False
            for holds in self._validations:
                if holds(inputs) is not True:
                    return False
            for value in self._values:
                annotation = value(inputs)
                if annotation.__class__ is not str and (annotation is not None or self.decision is not None):
                    return False
        except Exception:  # noqa: BLE001 - whatever it is, the judge will meet it again and say what it means
            return False
        return True


def _quick(bound: Bound, original: Kind, kind: Kind, namespace: str, world: World) -> Quick | None:
    """The quick way for a policy, if it looks at all objects of a kind in a namespace alike, and can be asked quickly."""
    if not _is_plain(bound, kind) or (kind.group, kind.plural) == ("", "namespaces"):
        return None
    resource = Resource(kind, namespace, "", "", "", {})
    operations: set[Operation] = set()
    bindings: list[str] = []
    for binding in bound.bindings:
        found = (select(bound.policy, binding, resource, original, operation, world) for operation in world.operations)
        selection = next((one for one in found if one), None)
        if selection is None or selection.matched != kind:
            continue
        if selection.fault:
            return None
        operations.add(selection.target.operation)
        bindings.append(binding.name)
    if len(operations) != 1:
        return None
    quick = Quick(bound, original, resource, operations.pop(), world)
    quick.pairs = tuple((*bound.policy.key, name) for name in bindings)
    quick.keys = tuple(_keys(bound, bindings, kind, namespace))
    return quick


def _is_plain(bound: Bound, kind: Kind) -> bool:
    """Whether nothing about an object but its kind, namespace and content decides what the policy makes of it."""
    compiled, policy = bound.compiled, bound.policy
    narrowings = (policy.match, *(binding.match for binding in bound.bindings))
    return (
        (bound.decides_plainly(kind) or _is_plain_kyverno(bound))
        and not bound.reading.reason
        and not bound.namespace
        and policy.param_kind is None
        and not policy.mutations
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


def _function(expression: Expression) -> Passes:
    program = expression.program
    if program is None:
        raise TypeError
    return program.generate() or program.evaluate


def _keys(bound: Bound, bindings: Iterable[str], kind: Kind, namespace: str) -> Iterator[TallyKey]:
    for binding in bindings:
        for check in bound.compiled.checks:
            yield TallyKey(
                policy=bound.policy.name,
                binding=binding,
                param_namespace="",
                param_name="",
                check=check,
                api_version=kind.api_version,
                kind=kind.kind,
                namespace=namespace,
                outcome=OutcomeName.PASSED,
                requester=check in bound.requester,
                language=bound.policy.language,
            )


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
