"""A cache of evidence: objects with equal values in the fields that a check reads are violated for the same reasons.

Most objects of a cluster are copies of a few: the Pods of a Deployment, the Deployments of a chart. The key has the values that
the expressions read, and the secret values of the object, because those decide which values the evidence may show.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from itertools import takewhile
from operator import is_
from typing import Any, Final, NamedTuple, TypeAlias

import orjson

from scanner import cel
from scanner.admission.compiled import CompiledPolicy, Expression
from scanner.admission.dispatch import InvocationResult
from scanner.admission.request import Request
from scanner.audit.secret_values import HIDDEN, is_secret
from scanner.audit.sensitive_fields import Trail, names_secret
from scanner.model.json import Json, compact
from scanner.model.outcome import Check, Errored, Reason, Violated
from scanner.model.resource import Resource

_MOST = 2048
_MOST_MISSES = 64
_SHORT = 512
_SCALARS = (str, bytes, bool, int, float, type(None), cel.EvaluationError)
_VARIABLES = "variables"
_METADATA = "metadata"
_ALL = (cel.ELEMENTS, cel.SHAPE)
_SECRET_BY_CONTEXT = frozenset({"data", "value"})
"""Fields that are secret or not depending on the kind or the name beside them, which the expression may not read."""
_ROOTS = frozenset({"object", "oldObject", "params", "namespaceObject"})
_Steps: TypeAlias = "tuple[str, ...]"
_Key: TypeAlias = tuple[int, type[Violated | Errored], bytes]


class EvidenceContent(NamedTuple):
    """The content of evidence without an excerpt, and the trail of the field around which the excerpt of each object is made."""

    reasons: tuple[Reason, ...]
    left_out: int
    trail: Trail


NO_CONTENT: Final = EvidenceContent((), 0, ())


class _Path(NamedTuple):
    """Fields, one inside another; if it `loops`, then all elements, with the path inside each, or None for their shape."""

    fields: _Steps
    loops: bool
    inside: _Path | None


_WHOLE: Final = _Path((), loops=False, inside=None)
_Paths: TypeAlias = tuple[tuple[str, _Path], ...]
"""Documents by the first name of a path, and the path in each."""


class _Reads:
    """The paths that a check reads; None for a check that reads a whole document or other inputs. The policy stays in memory.

    `repeat` is True where other objects often have the same values there: names and annotations differ. It is also False after
    many objects in a row whose values no other had.
    """

    __slots__ = ("_misses", "check", "compiled", "paths", "repeat")

    def __init__(self, compiled: CompiledPolicy, check: Check, paths: _Paths | None, *, repeat: bool) -> None:
        self.compiled, self.check, self.paths, self.repeat = compiled, check, paths, repeat
        self._misses = 0

    def count(self, *, found: bool) -> None:
        """Count an object, and whether evidence was found for its values."""
        self._misses = 0 if found else self._misses + 1
        if self._misses == _MOST_MISSES:
            self.repeat = False


class _EvaluatedDocuments:
    """The documents of an evaluation, and the values to hide."""

    def __init__(self, resource: Resource, param: Resource | None, request: Request) -> None:
        self.sources = resource, param, request.current, request.namespace_object, request.operation, request.old
        self.param, self.request = param, request
        self.secret = is_secret(resource) or is_secret(param) or is_secret(request.old)
        self._by_name: dict[str, Json] = {
            "object": resource.body if request.current is None else request.current,
            "oldObject": request.old_body if request.operation == "UPDATE" else None,
            "params": None if param is None else param.body,
            "namespaceObject": request.namespace_object,
        }
        self._hidden = sorted(HIDDEN.get(resource, param, request.old))
        self._digests: dict[int, bytes] = {}

    def digest(self, paths: _Paths) -> bytes:
        """The digest of the values at some paths, and of the values to hide; a short JSON text of them is its own digest.

        Raises TypeError for values that are no JSON.
        """
        digest = self._digests.get(id(paths))
        if digest is None:
            by_name = self._by_name
            content = orjson.dumps([self._hidden, *[_read(by_name[name], path) for name, path in paths]])
            digest = self._digests[id(paths)] = (
                content if len(content) <= _SHORT else hashlib.blake2b(content, digest_size=16).digest()
            )
        return digest


class EvidenceCache:
    """Evidence by key, at most 2048 items, and what is known about at most 2048 checks."""

    def __init__(self) -> None:
        """An empty cache."""
        self._evidence: dict[_Key, EvidenceContent] = {}
        self._reads: dict[tuple[int, int], _Reads] = {}
        self._paths: dict[_Paths | None, _Paths | None] = {}
        self._latest: _EvaluatedDocuments | None = None

    def key(
        self,
        invocation_result: InvocationResult,
        check: Check,
        outcome: Violated | Errored,
        compiled: CompiledPolicy,
    ) -> _Key | None:
        """The key of the evidence; None if the check reads whole documents or other inputs, or if a Secret is involved."""
        request, reads = invocation_result.request, self._get_reads(compiled, check)
        if request is None or reads.paths is None:
            return None
        documents = self._get_documents(invocation_result.resource, invocation_result.invocation.param, request)
        if documents.secret:
            return None
        try:
            return id(reads), type(outcome), documents.digest(reads.paths)
        except TypeError:
            return None

    def repeats(self, check: Check, compiled: CompiledPolicy) -> bool:
        """Return whether other objects often have the same values where a check reads."""
        return self._get_reads(compiled, check).repeat

    def determines(self, check: Check, compiled: CompiledPolicy, reasons: Iterable[cel.DecidingPart]) -> bool:
        """Return whether the values that a check reads determine what its reasons show: a list or a map may have other parts."""
        paths = self._get_reads(compiled, check).paths or ()
        nested = [reason.place for reason in reasons if not isinstance(reason.outcome, _SCALARS)]
        return all(
            any(name == place[0] and _covers(path, place[1:]) for name, path in paths) if place else False
            for place in nested
        )

    def _get_reads(self, compiled: CompiledPolicy, check: Check) -> _Reads:
        reads = self._reads.get((id(compiled), id(check)))
        if reads is None:
            if len(self._reads) >= _MOST:
                self._clear()
            paths = _find_paths_of_check(compiled, check)
            repeat = paths is not None and not any(_METADATA in path.fields for _, path in paths)
            # Equal paths are one tuple. The entry keeps policy and check alive, so that no others get their ids.
            reads = _Reads(compiled, check, self._paths.setdefault(paths, paths), repeat=repeat)
            self._reads[id(compiled), id(check)] = reads
        return reads

    def _get_documents(self, resource: Resource, param: Resource | None, request: Request) -> _EvaluatedDocuments:
        """The documents of an evaluation: the same instance while they are the same."""
        latest = self._latest
        if latest is not None and latest.request is request and latest.param is param:
            return latest
        of = resource, param, request.current, request.namespace_object, request.operation, request.old
        if latest is None or not all(map(is_, of, latest.sources)):
            latest = self._latest = _EvaluatedDocuments(resource, param, request)
        return latest

    def get(self, key: _Key, check: Check, compiled: CompiledPolicy) -> EvidenceContent | None:
        """The evidence of a check for a key; None if the cache does not have it."""
        content = self._evidence.get(key)
        self._get_reads(compiled, check).count(found=content is not None)
        return content

    def keep(self, key: _Key, content: EvidenceContent) -> None:
        """Keep evidence; all evidence of a full cache is dropped first."""
        if len(self._evidence) >= _MOST:
            self._evidence.clear()
        reads, outcome, digest = key
        self._evidence[reads, outcome, compact(digest)] = content

    def _clear(self) -> None:
        self._evidence.clear()
        self._reads.clear()
        self._paths.clear()
        self._latest = None


def _find_paths_of_check(compiled: CompiledPolicy, check: Check) -> _Paths | None:
    programs = (expression.program for expression in compiled.list_deciding(check) if expression.program is not None)
    paths = _find_paths(programs, compiled.variables)
    return None if paths is None else tuple((path[0], _make_path(path[1:])) for path in paths)


def _make_path(steps: _Steps) -> _Path:
    fields = tuple(takewhile(lambda step: step not in _ALL, steps))
    rest = steps[len(fields) :]
    inside = _make_path(rest[1:]) if rest and rest[0] == cel.ELEMENTS else None
    return _Path(fields, loops=bool(rest), inside=inside)


def _covers(path: _Path, steps: Trail) -> bool:
    """Return whether the whole value at the end of `steps` is among the values at the end of a path."""
    fields, loops, inside = path
    if steps[: len(fields)] != fields:
        return False
    if not loops or inside is None:
        return not loops
    return inside == _WHOLE or (len(steps) > len(fields) and _covers(inside, steps[len(fields) + 1 :]))


def _find_paths(programs: Iterable[cel.Program], variables: Mapping[str, Expression]) -> tuple[_Steps, ...] | None:
    """The paths of some programs and of the variables they use; None where they lead to more than parts of documents."""
    paths: set[_Steps] = set()
    stack, used = list(programs), set[str]()
    while stack:
        for path in stack.pop().depths():
            if path[0] != _VARIABLES:
                paths.add(path)
                continue
            names = set(path[1:2] or variables) - used
            used |= names
            stack += [
                variable.program
                for name, variable in variables.items()
                if name in names and variable.program is not None
            ]
    if any(path[0] not in _ROOTS or len(path) == 1 or _is_secret_by_context(path) for path in paths):
        return None
    return tuple(path for path in sorted(paths) if not any(path[:end] in paths for end in range(2, len(path))))


def _is_secret_by_context(path: _Steps) -> bool:
    """Return whether values that the path does not lead to decide whether its value is a secret."""
    return not _SECRET_BY_CONTEXT.isdisjoint(path[2:]) or any(map(names_secret, path[1:-1]))


def _read(value: Json, path: _Path) -> object:
    """The value at the end of a path, in a form that distinguishes all values and marks a missing field."""
    fields, loops, inside = path
    part: Any = value
    try:
        for field in fields:
            part = part[field]
    except (KeyError, TypeError):
        return _find_missing_field(value, fields)
    if loops and isinstance(part, list):
        return len(part) if inside is None else [_read(item, inside) for item in part]
    if loops and isinstance(part, dict):
        return list(part) if inside is None else [[key, _read(item, inside)] for key, item in part.items()]
    return {"": part}


def _find_missing_field(value: Json, fields: _Steps) -> object:
    """The place of the first field that is missing, and the value that has no fields there."""
    for at, field in enumerate(fields):
        if not isinstance(value, dict) or field not in value:
            return [None if isinstance(value, dict) else value, at]
        value = value[field]
    return [value, len(fields)]
