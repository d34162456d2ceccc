"""A cache of evidence: objects with equal values in the fields that a check reads are violated for the same reasons.

Most objects of a cluster are copies of a few: the Pods of a Deployment, the Deployments of a chart. The key has the values that
the expressions read, and the secret values of the object, because those decide which values the evidence may show.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from operator import is_
from typing import Final, NamedTuple, TypeAlias

import orjson

from scanner import cel
from scanner.admission.compiled import CompiledPolicy, Expression
from scanner.admission.dispatch import InvocationResult
from scanner.admission.request import Request
from scanner.audit.secret_values import HIDDEN, is_secret
from scanner.audit.sensitive_fields import Trail
from scanner.model.evidence import Reason
from scanner.model.json import Json
from scanner.model.outcome import Check, Errored, Violated

_MOST = 2048
_VARIABLES = "variables"
_SECRET_BY_CONTEXT = frozenset({"data", "value"})
"""Fields that are secret or not depending on the kind or the name beside them, which the expression may not read."""
_ROOTS = frozenset({"object", "oldObject", "params", "namespaceObject"})
_Path: TypeAlias = "tuple[str, ...]"
_Key: TypeAlias = "tuple[object, ...]"


class Explained(NamedTuple):
    """The content of evidence without an excerpt, and the trail of the field around which the excerpt of each object is made."""

    reasons: tuple[Reason, ...]
    left_out: int
    trail: Trail


UNEXPLAINED: Final = Explained((), 0, ())


class EvidenceCache:
    """Evidence by key, at most 2048 items; the cache is cleared when it is full."""

    def __init__(self) -> None:
        """An empty cache."""
        self._evidence: dict[_Key, Explained] = {}
        self._paths: dict[tuple[int, Check], tuple[CompiledPolicy, tuple[_Path, ...] | None]] = {}
        self._latest: tuple[object, ...] = ()
        self._digests: dict[tuple[_Path, ...], bytes] = {}

    def key(
        self,
        invocation_result: InvocationResult,
        check: Check,
        outcome: Violated | Errored,
        compiled: CompiledPolicy,
    ) -> _Key | None:
        """The key of the evidence; None if the check reads whole documents or other inputs, or if a Secret is involved."""
        request = invocation_result.request
        paths = self._paths_of(compiled, check)
        if (
            request is None
            or paths is None
            or is_secret(invocation_result.resource)
            or is_secret(invocation_result.invocation.param)
        ):
            return None
        param = invocation_result.invocation.param
        latest = invocation_result.resource, param, request.current, request.namespace_object, request.operation
        if len(self._latest) != len(latest) or not all(map(is_, latest, self._latest)):
            self._latest = latest
            self._digests.clear()
        digest = self._digests.get(paths)
        if digest is None:
            try:
                digest = self._digests[paths] = _digest(invocation_result, request, paths)
            except TypeError:
                return None
        return id(compiled), check, type(outcome), digest

    def _paths_of(self, compiled: CompiledPolicy, check: Check) -> tuple[_Path, ...] | None:
        """The paths that a check reads; None for a check that reads a whole document or other inputs."""
        policy_and_paths = self._paths.get((id(compiled), check))
        if policy_and_paths is None:
            if len(self._paths) >= _MOST:
                self._clear()
            # The entry keeps the policy alive, so that no other policy gets its id.
            policy_and_paths = self._paths[id(compiled), check] = (compiled, _of_check(compiled, check))
        return policy_and_paths[1]

    def get(self, key: _Key) -> Explained | None:
        """The evidence for a key; None if the cache does not have it."""
        return self._evidence.get(key)

    def keep(self, key: _Key, explained: Explained) -> None:
        """Keep evidence; a full cache is cleared instead."""
        if len(self._evidence) >= _MOST:
            self._clear()
        else:
            self._evidence[key] = explained

    def _clear(self) -> None:
        self._evidence.clear()
        self._paths.clear()


def _digest(invocation_result: InvocationResult, request: Request, paths: Iterable[_Path]) -> bytes:
    """The digest of the values at some paths, and of the values to hide. Raises TypeError for values that are no JSON."""
    body, param = invocation_result.resource.body, invocation_result.invocation.param
    documents: dict[str, Json] = {
        "object": body if request.current is None else request.current,
        "oldObject": body if request.operation == "UPDATE" else None,
        "params": None if param is None else param.body,
        "namespaceObject": request.namespace_object,
    }
    hidden = sorted(HIDDEN.of(invocation_result.resource, param))
    read = orjson.dumps([hidden, *(_read(documents[path[0]], path[1:]) for path in paths)])
    return hashlib.blake2b(read, digest_size=16).digest()


def _of_check(compiled: CompiledPolicy, check: Check) -> tuple[_Path, ...] | None:
    programs = (expression.program for expression in compiled.deciding(check) if expression.program is not None)
    return _paths(programs, compiled.variables)


def _paths(programs: Iterable[cel.Program], variables: Mapping[str, Expression]) -> tuple[_Path, ...] | None:
    """The paths of some programs and of the variables they use; None where they lead to more than parts of documents."""
    paths: set[_Path] = set()
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
    if any(path[0] not in _ROOTS or len(path) == 1 or _SECRET_BY_CONTEXT.intersection(path[2:]) for path in paths):
        return None
    return tuple(path for path in sorted(paths) if not any(path[:end] in paths for end in range(2, len(path))))


def _read(value: Json, path: _Path) -> object:
    """The value at the end of a path, in a form that distinguishes all values and marks a missing field."""
    for at, step in enumerate(path):
        if step in (cel.ELEMENTS, cel.SHAPE):
            return _read_all(value, path[at + 1 :], shape=step == cel.SHAPE)
        if not isinstance(value, dict) or step not in value:
            return [None if isinstance(value, dict) else value, at]
        value = value[step]
    return {"": value}


def _read_all(value: Json, path: _Path, *, shape: bool) -> object:
    if isinstance(value, list):
        return len(value) if shape else [_read(item, path) for item in value]
    if isinstance(value, dict):
        return list(value) if shape else [[key, _read(item, path)] for key, item in value.items()]
    return {"": value}
