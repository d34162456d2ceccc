"""Native values as expressions read them from Kubernetes 1.37 on: wrapped, if an expression can detect the difference.

Source of truth: `common.SchemalessTypedToVal` of apiserver 1.37: objects of compiled-in kinds, `request` and `namespaceObject`
are wrapped, params and custom resources are plain. Few expressions can detect the difference, and the schema of a kind identifies
them; all others are evaluated without wrapping.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias, cast

from scanner.admission.compiled import CompiledPolicy
from scanner.admission.evaluate import evaluate, make_check_inputs
from scanner.admission.evaluator import ADMISSION as UNWRAPPED
from scanner.admission.evaluator import Evaluator, FastForm
from scanner.admission.request import Request
from scanner.cel import DYN, STRING, Environment, Struct, Type, Value, WrapperDifference, find_wrapper_differences
from scanner.cel.checking.env import ADMISSION, AUTHORIZATION, PARAMS
from scanner.cel.releases import WRAPPED_OBJECTS
from scanner.cel.types.type_system import BOOL, INT, list_of, map_of, object_type
from scanner.cel.values.wrapped_values import wrap_values
from scanner.model.json import Json
from scanner.model.outcome import Check, CheckResult
from scanner.model.release import Minor
from scanner.model.resource import NAMESPACES, Kind, Resource
from scanner.mutate.goread import is_same_quantity
from scanner.mutate.origin import RequestData
from scanner.mutate.schema import Atom, MergedMapType, Schema, Schemas

_SCALARS: Final = {"string": STRING, "boolean": BOOL, "int32": INT, "int64": INT}
_DEEPEST: Final = 40
_STRUCTURE: Final = "struct type "
_REQUEST: Final = "struct type v1.AdmissionRequest"


Differences: TypeAlias = Mapping[str, tuple[WrapperDifference, ...]]


def make_evaluator(schemas: Schemas | None, rules: Minor) -> Evaluator:
    """The evaluator of validating policies by the rules of a release; without schemas no value is known to be native."""
    return WrappedEvaluator(schemas, rules) if schemas is not None and WRAPPED_OBJECTS.holds(rules) else UNWRAPPED


class WrappedEvaluator:
    """Evaluates requests as from 1.37 on."""

    reads_whole_object = False

    def __init__(self, schemas: Schemas, rules: Minor) -> None:
        """Identify native kinds by their schemas."""
        self._schemas = schemas
        self._rules = rules
        self._typed: dict[Kind, _KindTypes] = {}
        self._differences: dict[tuple[int, Kind], Differences] = {}

    def evaluate(self, compiled: CompiledPolicy, request: Request, param: Resource | None) -> tuple[CheckResult, ...]:
        """See Evaluator."""
        if not self.differs(compiled, request.matched):
            return evaluate(compiled, request, param)
        watch = _WrappedValuesOfRequest(
            self._get_types(request.matched), self._get_types(NAMESPACES), request.resource.body
        )
        with wrap_values(watch.holds, watch):
            return evaluate(replace(compiled, watch=watch.add), request, param)

    def inputs(
        self, compiled: CompiledPolicy, request: Request, param: Resource | None, check: Check
    ) -> dict[str, object]:
        """See Evaluator."""
        return make_check_inputs(compiled, request, param, check)

    def fast_form(self, compiled: CompiledPolicy, kind: Kind) -> FastForm | None:
        """See Evaluator: generated functions do not support wrapped values."""
        return None if self.differs(compiled, kind) else FastForm()

    def differs(self, compiled: CompiledPolicy, kind: Kind) -> bool:
        """Return whether some expression can detect that objects of a kind, or the rest of the request, are wrapped."""
        return bool(self.differences(compiled, kind))

    def differences(self, compiled: CompiledPolicy, kind: Kind) -> Differences:
        """The differences that the expressions of a policy can detect in objects of a kind, by the expression's path."""
        key = (id(compiled), kind)
        if key not in self._differences:
            self._differences[key] = {
                path: differences
                for path, differences in self._get_types(kind).differences(compiled, self._rules)
                if differences
            }
        return self._differences[key]

    def _get_types(self, kind: Kind) -> _KindTypes:
        if kind not in self._typed:
            schema = self._schemas.schema(kind)
            self._typed[kind] = _KindTypes(schema if schema and schema.builtin else None)
        return self._typed[kind]


class _KindTypes:
    """A kind with the types of its objects; custom resources are plain and have no types."""

    def __init__(self, schema: Schema | None) -> None:
        self.schema = schema
        self._types = _Types(schema) if schema else None

    def differences(
        self, compiled: CompiledPolicy, rules: Minor
    ) -> Iterator[tuple[str, tuple[WrapperDifference, ...]]]:
        """The differences that each expression can detect, with its path."""
        environment = self._get_environment(compiled, rules)
        names = (variable.name for variable in compiled.policy.variables)
        for path, expression in compiled.expressions():
            type_, differences = (
                (DYN, ()) if expression.fault else find_wrapper_differences(expression.text, environment)
            )
            if path.startswith("spec.variables["):
                environment = replace(environment, composed=environment.composed.declare(next(names), type_))
            yield path, differences

    def _get_environment(self, compiled: CompiledPolicy, rules: Minor) -> Environment:
        roots = {"object": self._types.root, "oldObject": self._types.root} if self._types else {}
        variables = tuple((name, roots.get(name, type_)) for name, type_ in ADMISSION)
        environment = Environment(variables=variables, version=rules, structs=self._types).extend(AUTHORIZATION)
        return environment.extend(PARAMS) if compiled.policy.param_kind else environment

    def wrapped(self, body: object) -> list[tuple[Schema, object]]:
        """An object of the kind, if such objects are wrapped."""
        return [(self.schema, body)] if self.schema else []


class _WrappedValuesOfRequest:
    """The wrapped values of one request: of the object, and of every activation of its evaluation."""

    def __init__(self, kind: _KindTypes, namespaces: _KindTypes, body: object) -> None:
        self._namespaces = namespaces
        self._roots = kind.wrapped(body)
        self._known = [RequestData((), wrapped=self._roots)]
        self._places: dict[int, tuple[Schema, Json]] = {}
        self._requests: list[object] = []

    def add(self, activation: Mapping[str, object]) -> None:
        """Store the request and the namespace of an activation."""
        namespace = self._namespaces.wrapped(activation["namespaceObject"])
        self._roots = [*self._roots, *namespace]
        self._places = {}
        self._requests.append(activation["request"])
        self._known.append(RequestData((), wrapped=namespace, request=activation["request"]))

    def holds(self, value: object) -> bool:
        """Return whether a value is wrapped."""
        return bool(self._find_go_type(value))

    def is_structure(self, value: object) -> bool:
        """See Structures."""
        return self._find_go_type(value).startswith(_STRUCTURE)

    def same(self, left: object, right: object) -> bool:
        """See Structures."""
        if self._find_go_type(left) != self._find_go_type(right):
            return False
        if not self._places:
            self._places = {id_: place for root in self._roots for id_, place in _list_places(*root)}
        place = self._places.get(id(left))
        return left == right if place is None else _are_alike(*place, left, right)

    def _find_go_type(self, value: object) -> str:
        if any(value is request for request in self._requests):
            return _REQUEST
        return next(filter(None, (data.find_go_types(value) for data in self._known)), "")


def _list_places(schema: Schema, body: object) -> Iterator[tuple[int, tuple[Schema, Json]]]:
    """The schema of every structure of an object, by its identity."""
    stack: list[tuple[Json, object]] = [(schema.root, body)]
    while stack:
        ref, value = stack.pop()
        atom = schema.resolve(ref)
        if isinstance(value, dict) and atom.map:
            yield id(value), (schema, ref)
            stack.extend((below, member) for key, member in value.items() if (below := atom.map.of(key)) is not None)
        elif isinstance(value, list) and atom.list:
            stack.extend((atom.list.element, element) for element in value)


def _are_alike(schema: Schema, ref: Json, left: object, right: object) -> bool:
    """Return whether two values are equal by `equality.Semantic` of apimachinery: quantities by number, empty values as none."""
    if ref is None:
        return left == right
    atom = schema.resolve(ref)
    if left is None or right is None:
        return _is_nothing(atom, left) and _is_nothing(atom, right)
    if atom.scalar == "quantity":
        return is_same_quantity(cast("Json", left), cast("Json", right))
    if isinstance(left, dict) and isinstance(right, dict) and atom.map:
        return all(_are_alike(schema, atom.map.of(key), left.get(key), right.get(key)) for key in {**left, **right})
    if isinstance(left, list) and isinstance(right, list) and atom.list:
        element = atom.list.element
        return len(left) == len(right) and all(
            _are_alike(schema, element, *pair) for pair in zip(left, right, strict=True)
        )
    return type(left) is type(right) and left == right


def _is_nothing(atom: Atom, value: object) -> bool:
    """Return whether a field has no value, or an empty list or map; a structure without fields is a value."""
    is_structure = atom.map is not None and bool(atom.map.fields)
    return value is None or (value in ([], {}) and not is_structure)


class _Types:
    """The types of a schema: the name of a structure is its path, or its name in the schema."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._maps: dict[str, MergedMapType] = {}
        self.root = self._make_type(schema.root, "root", 0)

    def find_type(self, name: str) -> Type | None:
        """See Structs."""
        return object_type(name) if name in self._maps else None

    def field(self, type_name: str, name: str) -> Type | None:
        """See Structs."""
        map_type = self._maps.get(type_name)
        if map_type is None or name not in map_type.fields:
            return None
        return self._make_type(map_type.fields[name], f"{type_name}.{name}", 0)

    def maker(self, type_: Type) -> Callable[[dict[str, Value]], Value]:
        """See Structs: no structure can be created here."""
        return partial(Struct, type_)

    def _make_type(self, ref: Json, path: str, depth: int) -> Type:
        atom = self._schema.resolve(ref)
        if depth > _DEEPEST or sum(part is not None for part in (atom.scalar, atom.list, atom.map)) != 1:
            return DYN
        if atom.list:
            return list_of(self._make_type(atom.list.element, f"{path}.@", depth + 1))
        if atom.map:
            return self._make_map(atom, atom.map, path, depth)
        return _SCALARS.get(atom.scalar or "", DYN)

    def _make_map(self, atom: Atom, map_type: MergedMapType, path: str, depth: int) -> Type:
        if not map_type.fields:
            return (
                DYN
                if map_type.element is None
                else map_of(STRING, self._make_type(map_type.element, f"{path}.@", depth + 1))
            )
        if map_type.element is not None:
            return DYN
        name = f"schema:{atom.name or path}"
        self._maps[name] = map_type
        return object_type(name)
