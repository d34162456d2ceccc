"""Decides whether an expression copies or computes from a secret: of the object, its param or its namespace, or of anything else.

Derived from the expression and the objects alone, before the evaluation: this covers every part, form and encoding of a value.
`sensitive_fields` defines the secrets of the documents. Of other objects that an expression reads only the names are shown; all
that it reads from elsewhere is a secret, unless the policy's language declares that it is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from scanner import cel
from scanner.admission.compiled import CompiledPolicy, Expression
from scanner.admission.dispatch import InvocationResult
from scanner.audit.secret_values import SHORTEST_ENV, SHORTEST_SECRET, get_fields
from scanner.audit.sensitive_fields import (
    FIELDS,
    MAPPINGS,
    SensitiveFields,
    Trail,
    holds_secret,
    iterate_items,
    names_secret,
)
from scanner.model.json import Json, as_text
from scanner.model.resource import Resource

_Path: TypeAlias = "tuple[str, ...]"
_DOCUMENTS = frozenset({"object", "oldObject", "params", "namespaceObject"})
_EVERYTHING = frozenset({("object",), ("params",), ("namespaceObject",)})
_TOO_MUCH = cel.Flow(frozenset(), _EVERYTHING)
_REMEMBERED = 2048
_KEPT = 4
_OPEN_ROOTS = frozenset({"authorizer", "authorizer.requestResource"})
"""Decisions of the API server about the requester, with its reasons."""
_IDENTITY = (("request", "userInfo", "extra"), ("request", "userInfo", "uid"))
"""The facts of an authenticator about the requester, besides the name and the groups."""
_NAMES = (("apiVersion",), ("kind",), *(("metadata", field) for field in ("name", "namespace", "uid")))
"""The fields of objects besides the documents that are shown."""


class Taint(NamedTuple):
    """The use of secrets by an expression.

    `carries` if it copies them, `computes` if it computes a value from them; `of_secret` if one of them is a part of a Secret.
    `elsewhere` are the variables, besides the documents, through which it reads secrets.
    """

    carries: bool
    computes: bool
    of_secret: bool = False
    elsewhere: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        """Return whether the result may contain a secret."""
        return self.carries or self.hides

    @property
    def hides(self) -> bool:
        """Return whether the result may contain a secret in a form that cannot be recognised."""
        return self.computes or bool(self.elsewhere)


CLEAN = Taint(carries=False, computes=False)


class _FlowPlaces(NamedTuple):
    """The places in documents that an expression copies, and those that it computes from; `elsewhere` as in `Taint`."""

    carried: tuple[tuple[str, _Path], ...]
    computed: tuple[tuple[str, _Path], ...]
    elsewhere: frozenset[str]


class _Flows:
    """The data flows of policy expressions, computed once."""

    def __init__(self) -> None:
        self._places: dict[tuple[int, int], tuple[CompiledPolicy, Expression, _FlowPlaces]] = {}

    def get(self, compiled: CompiledPolicy, expression: Expression) -> _FlowPlaces:
        key = (id(compiled), id(expression))
        flow_places = self._places.get(key)
        if flow_places is None:
            if len(self._places) >= _REMEMBERED:
                self._places.clear()
            # The entry keeps both objects alive, so that no other object gets their ids.
            places = _find_flow_places(_find_flow_with_variables(compiled, expression), compiled)
            flow_places = self._places[key] = (compiled, expression, places)
        return flow_places[2]


_FLOWS = _Flows()


def _find_flow_places(flow: cel.Flow, compiled: CompiledPolicy) -> _FlowPlaces:
    carried, computed = ([locate_in_document(path) for path in paths] for paths in (flow.carried, flow.computed))
    return _FlowPlaces(
        tuple((root, steps) for root, steps in carried if root in _DOCUMENTS),
        tuple((root, steps) for root, steps in computed if root in _DOCUMENTS),
        frozenset(root for root, steps in (*carried, *computed) if is_secret_elsewhere(root, steps, compiled)),
    )


def locate_in_document(path: _Path) -> tuple[str, _Path]:
    """The document and the steps of a path. Kyverno's request contains the object."""
    root, *steps = path[1:] if path[:2] in (("request", "object"), ("request", "oldObject")) else path
    return root, tuple(steps)


def is_secret_elsewhere(root: str, steps: Sequence[str | int], compiled: CompiledPolicy) -> bool:
    """Return whether the value at a path is a secret that is no part of a document: an unknown root is one."""
    if root in _DOCUMENTS or root in _OPEN_ROOTS or root in compiled.open_roots or cel.SHAPE in steps:
        return False
    if root == "request":
        return any(overlaps((root, *steps), area) for area in _IDENTITY)
    if root not in compiled.object_roots:
        return True
    inside = tuple(steps[2:] if steps[:1] == ("items",) else steps)
    return not any(inside[: len(names)] == names for names in _NAMES)


def overlaps(place: Sequence[str | int], area: tuple[str, ...]) -> bool:
    """Return whether a place is an area, a parent of an area, or inside an area."""
    return all(step == area_step for step, area_step in zip(place, area, strict=False))


def _find_flow_with_variables(compiled: CompiledPolicy, expression: Expression) -> cel.Flow:
    if expression.program is None:
        return cel.Flow(frozenset(), frozenset())

    def variables(name: str) -> Iterator[cel.Flow]:
        expressions = (
            [compiled.variables[name]] if name in compiled.variables else () if name else compiled.variables.values()
        )
        yield from (_find_flow(variable.program) for variable in expressions if variable.program is not None)

    return cel.follow_variables(_find_flow(expression.program), variables) or _TOO_MUCH


def list_read_places(compiled: CompiledPolicy, expression: Expression) -> frozenset[_Path]:
    """The places in all documents that may decide the result of an expression, through loops and the variables of its policy."""
    flow = _find_flow_with_variables(compiled, expression)
    return flow.carried | flow.computed


@lru_cache(maxsize=_REMEMBERED)
def _find_flow(program: cel.Program) -> cel.Flow:
    return program.flow()


class TaintDocuments:
    """The documents that expressions read, by their names in expressions, and what is known about the secrets in them.

    A document that does not exist is None.
    """

    __slots__ = ("_namespace", "by_name", "fields", "old", "param", "resource", "secrets", "taints")

    def __init__(self, resource: Resource, param: Resource | None, namespace: Json, old: Resource | None) -> None:
        """Take an object, its param, the namespace of the request, and the object that the request replaces by another."""
        self.resource, self.param, self._namespace, self.old = resource, param, namespace, old
        self.by_name: Mapping[str, Json] = {
            "object": resource.body,
            "oldObject": (old or resource).body,
            "params": None if param is None else param.body,
            "namespaceObject": namespace,
        }
        self.fields: Mapping[str, SensitiveFields] = {
            "object": get_fields(resource),
            "oldObject": get_fields(old or resource),
            "params": get_fields(param),
            "namespaceObject": FIELDS,
        }
        self.secrets = frozenset(name for name, fields in self.fields.items() if fields is not FIELDS)
        """The names of the documents that are Secrets."""
        self.taints: dict[_FlowPlaces, Taint] = {}
        """The results so far: the messages of many policies have the same parts of the object."""

    def are_of(self, resource: Resource, param: Resource | None, namespace: Json, old: Resource | None) -> bool:
        """Return whether these are the documents of an object, a param, a namespace and an object that is replaced."""
        same = self.resource is resource and self.param is param and self._namespace is namespace
        return same and self.old is old


class _LatestDocuments:
    """The latest documents: several findings concern one object."""

    def __init__(self) -> None:
        self._documents: TaintDocuments | None = None

    def get(self, resource: Resource, param: Resource | None, namespace: Json, old: Resource | None) -> TaintDocuments:
        if self._documents is None or not self._documents.are_of(resource, param, namespace, old):
            self._documents = TaintDocuments(resource, param, namespace, old)
        return self._documents


_LATEST = _LatestDocuments()


def get_documents(invocation_result: InvocationResult) -> TaintDocuments:
    """The documents that the expressions of an invocation read; the same instance until one of them is another."""
    request = invocation_result.request
    namespace, old = (None, None) if request is None else (request.namespace_object, request.old)
    return _LATEST.get(invocation_result.resource, invocation_result.invocation.param, namespace, old)


def find_taint(compiled: CompiledPolicy, expression: Expression | None, documents: TaintDocuments) -> Taint:
    """The use of secrets by an expression that reads some documents; `CLEAN` for no expression."""
    if expression is None:
        return CLEAN
    places = _FLOWS.get(compiled, expression)
    known_taint = documents.taints.get(places)
    if known_taint is None:
        known_taint = documents.taints[places] = _compute_taint(places, documents)
    return known_taint


def _compute_taint(places: _FlowPlaces, documents: TaintDocuments) -> Taint:
    carried, computed = (_list_secret_roots(each, documents) for each in (places.carried, places.computed))
    of_secret = bool(documents.secrets) and not documents.secrets.isdisjoint([*carried, *computed])
    return Taint(bool(carried), bool(computed), of_secret, places.elsewhere)


def _list_secret_roots(places: Iterable[tuple[str, _Path]], documents: TaintDocuments) -> list[str]:
    """The names of the documents of the places that lead to secrets; the first is enough where no document is a Secret."""
    roots: list[str] = []
    for root, steps in places:
        if leads_to_secret(documents.by_name[root], steps, (), documents.fields[root]):
            roots.append(root)
            if not documents.secrets:
                break
    return roots


def leads_to_secret(value: Json, steps: _Path, trail: Trail, fields: SensitiveFields) -> bool:
    """Return whether the value at a path is, contains or lies in a sensitive field or text."""
    for at, step in enumerate(steps):
        if step == cel.SHAPE:
            return False
        if step == cel.ELEMENTS:
            place, rest = (*trail, *steps[:at]), steps[at + 1 :]
            return any(
                fields.hides(value, key, place) or leads_to_secret(item, rest, (*place, key), fields)
                for key, item in iterate_items(value)
            )
        if isinstance(value, list):
            return fields.has_any(value, (*trail, *steps[:at]))
        if not isinstance(value, MAPPINGS):
            return False
        if step in value and fields.hides(value, step, (*trail, *steps[:at])):
            return True
        value = value.get(step)
    return fields.has_any(value, (*trail, *steps))


def list_carried_texts(documents: TaintDocuments) -> frozenset[str]:
    """The texts and numbers in all sensitive fields, and the sensitive texts: copied secrets are recognised by them."""
    different = {id(document): document for document in documents.by_name.values() if document is not None}
    return frozenset().union(*map(list_sensitive_texts, different.values()))


class _SensitiveTexts:
    """The sensitive texts of the latest documents: several findings concern one object, many concern one namespace."""

    def __init__(self) -> None:
        self._latest: list[tuple[Json, frozenset[str]]] = []

    def get(self, document: Json) -> frozenset[str]:
        latest = next((texts for other, texts in self._latest if other is document), None)
        if latest is None:
            latest = frozenset(_find_sensitive_texts(document))
            self._latest = [(document, latest), *self._latest[: _KEPT - 1]]
        return latest


_TEXTS = _SensitiveTexts()


def list_sensitive_texts(document: Json) -> frozenset[str]:
    """The texts and numbers in all sensitive fields of a document, and its sensitive texts."""
    return _TEXTS.get(document)


def _find_sensitive_texts(document: Json) -> Iterator[str]:
    stack: list[tuple[Json, Trail, bool]] = [(document, (), False)]
    while stack:
        value, trail, hidden = stack.pop()
        shortest = SHORTEST_ENV if trail[-2:-1] == ("env",) and not _names_secret(value) else SHORTEST_SECRET
        for key, item in iterate_items(value):
            hides = hidden or FIELDS.hides(value, key, trail)
            if isinstance(item, str):
                if (hides and len(item) >= shortest) or holds_secret(item):
                    yield item
            elif isinstance(item, bool | None):
                continue
            elif not isinstance(item, int | float):
                stack.append((item, (*trail, key), hides))
            elif hides and len(str(item)) >= shortest:
                yield str(item)


def _names_secret(variable: Json) -> bool:
    return isinstance(variable, MAPPINGS) and names_secret(as_text(variable.get("name")))
