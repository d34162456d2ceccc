"""Decides whether an expression copies or computes from a secret of the object, its param or its namespace.

Derived from the expression and the objects alone, before the evaluation: this covers every part, form and encoding of a value.
`sensitive_fields` defines the secrets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from scanner import cel
from scanner.admission.compiled import CompiledPolicy, Expression
from scanner.admission.dispatch import InvocationResult
from scanner.audit.sensitive_fields import MAPPINGS, Trail, anything_sensitive, is_sensitive, items, may_be_sensitive
from scanner.model.json import Json

_Path: TypeAlias = "tuple[str, ...]"
_EVERYTHING = frozenset({("object",), ("params",), ("namespaceObject",)})
_TOO_MUCH = cel.Flow(frozenset(), _EVERYTHING)
_REMEMBERED = 2048
_DOCUMENTS = 4
# Shorter values of environment variables are settings, not secrets.
_SHORTEST_ENV = 6


class Taint(NamedTuple):
    """The use of secrets by an expression: `carries` if it copies them, `computes` if it computes a value from them."""

    carries: bool
    computes: bool

    def __bool__(self) -> bool:
        """Return whether the result may contain a secret."""
        return self.carries or self.computes


CLEAN = Taint(carries=False, computes=False)


class _Places(NamedTuple):
    """The places that an expression copies, and those that it computes from: the name of a document and the steps in it."""

    carried: tuple[tuple[str, _Path], ...]
    computed: tuple[tuple[str, _Path], ...]


class _Flows:
    """The data flows of policy expressions, computed once."""

    def __init__(self) -> None:
        self._places: dict[tuple[int, int], tuple[CompiledPolicy, Expression, _Places]] = {}

    def of(self, compiled: CompiledPolicy, expression: Expression) -> _Places:
        key = (id(compiled), id(expression))
        entry = self._places.get(key)
        if entry is None:
            if len(self._places) >= _REMEMBERED:
                self._places.clear()
            # The entry keeps both objects alive, so that no other object gets their ids.
            places = _places(_flow_with_variables(compiled, expression))
            entry = self._places[key] = (compiled, expression, places)
        return entry[2]


_FLOWS = _Flows()


def _places(flow: cel.Flow) -> _Places:
    return _Places(tuple(map(_place, flow.carried)), tuple(map(_place, flow.computed)))


def _place(path: _Path) -> tuple[str, _Path]:
    """The document and the steps of a path. Kyverno's request contains the object."""
    root, *steps = (path[1:] or ("object",)) if path[0] == "request" else path
    return root, tuple(steps)


def _flow_with_variables(compiled: CompiledPolicy, expression: Expression) -> cel.Flow:
    if expression.program is None:
        return cel.Flow(frozenset(), frozenset())

    def variables(name: str) -> Iterator[cel.Flow]:
        chosen = (
            [compiled.variables[name]] if name in compiled.variables else () if name else compiled.variables.values()
        )
        yield from (_flow(variable.program) for variable in chosen if variable.program is not None)

    return cel.followed(_flow(expression.program), variables) or _TOO_MUCH


@lru_cache(maxsize=_REMEMBERED)
def _flow(program: cel.Program) -> cel.Flow:
    return program.flow()


class Documents:
    """The documents that expressions read, by their names in expressions, and what is known about the secrets in them.

    A document that does not exist is None.
    """

    __slots__ = ("by_name", "taints")

    def __init__(self, body: Json, param: Json, namespace: Json) -> None:
        """Take the bodies of an object and its param, and the namespace of the request."""
        self.by_name: Mapping[str, Json] = {
            "object": body,
            "oldObject": body,
            "params": param,
            "namespaceObject": namespace,
        }
        self.taints: dict[_Places, Taint] = {}
        """What was found so far: the messages of many policies have the same parts of the object."""

    def are(self, body: Json, param: Json, namespace: Json) -> bool:
        """Return whether these are the documents of an object, a param and a namespace."""
        own = self.by_name
        return own["object"] is body and own["params"] is param and own["namespaceObject"] is namespace


class _Latest:
    """The latest documents: several findings concern one object."""

    def __init__(self) -> None:
        self._documents = Documents(None, None, None)

    def of(self, body: Json, param: Json, namespace: Json) -> Documents:
        if not self._documents.are(body, param, namespace):
            self._documents = Documents(body, param, namespace)
        return self._documents


_LATEST = _Latest()


def documents_of(invocation_result: InvocationResult) -> Documents:
    """The documents that the expressions of an invocation read."""
    param, request = invocation_result.invocation.param, invocation_result.request
    return _LATEST.of(
        invocation_result.resource.body,
        None if param is None else param.body,
        None if request is None else request.namespace_object,
    )


def taint(compiled: CompiledPolicy, expression: Expression | None, documents: Documents) -> Taint:
    """The use of secrets in some documents by an expression; `CLEAN` for no expression."""
    if expression is None:
        return CLEAN
    places = _FLOWS.of(compiled, expression)
    found = documents.taints.get(places)
    if found is None:
        by_name = documents.by_name
        found = Taint(carries=_any_secret(places.carried, by_name), computes=_any_secret(places.computed, by_name))
        documents.taints[places] = found
    return found


def _any_secret(places: Iterable[tuple[str, _Path]], documents: Mapping[str, Json]) -> bool:
    for root, steps in places:  # noqa: SIM110 - any() of a generator takes twice as long, for every message
        if _leads_to_secret(documents.get(root), steps, ()):
            return True
    return False


def _leads_to_secret(value: Json, steps: _Path, trail: Trail) -> bool:
    for at, step in enumerate(steps):
        if step == cel.SHAPE:
            return False
        if step == cel.ELEMENTS:
            place, rest = (*trail, *steps[:at]), steps[at + 1 :]
            return any(
                is_sensitive(value, key, place) or _leads_to_secret(item, rest, (*place, key))
                for key, item in items(value)
            )
        if isinstance(value, list):
            return anything_sensitive(value, (*trail, *steps[:at]))
        if not isinstance(value, MAPPINGS):
            return False
        if may_be_sensitive(step) and is_sensitive(value, step, (*trail, *steps[:at])):
            return True
        value = value.get(step)
    return anything_sensitive(value, (*trail, *steps))


def carried_texts(documents: Documents) -> frozenset[str]:
    """The texts in all sensitive fields of the documents, by which copied secrets are recognised."""
    different = {id(document): document for document in documents.by_name.values() if document is not None}
    return frozenset().union(*map(_CARRIED.of, different.values()))


class _Carried:
    """The sensitive texts of the latest documents: several findings concern one object, many concern one namespace."""

    def __init__(self) -> None:
        self._latest: list[tuple[Json, frozenset[str]]] = []

    def of(self, document: Json) -> frozenset[str]:
        latest = next((texts for other, texts in self._latest if other is document), None)
        if latest is None:
            latest = frozenset(_texts(document))
            self._latest = [(document, latest), *self._latest[: _DOCUMENTS - 1]]
        return latest


_CARRIED = _Carried()


def _texts(document: Json) -> Iterator[str]:
    stack: list[tuple[Json, Trail, bool]] = [(document, (), False)]
    while stack:
        value, trail, hidden = stack.pop()
        is_variable = trail[-2:-1] == ("env",)
        for key, item in items(value):
            hides = hidden or (may_be_sensitive(key) and is_sensitive(value, key, trail))
            if not isinstance(item, str):
                if item and not isinstance(item, int | float):
                    stack.append((item, (*trail, key), hides))
            elif hides and not (is_variable and len(item) < _SHORTEST_ENV):
                yield item
