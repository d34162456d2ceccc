"""A cache of evidence: objects with equal values in the fields that a check reads are violated for the same reasons.

Most objects of a cluster are copies of a few: the Pods of a Deployment, the Deployments of a chart. The key has the values that
the expressions read, and the secret values of the object, because those decide which values the evidence may show.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import TypeAlias

import orjson

from scanner import cel
from scanner.admission.compiled import CompiledPolicy, Expression
from scanner.admission.dispatch import InvocationResult
from scanner.audit.secret_values import HIDDEN, is_secret
from scanner.model.evidence import Evidence
from scanner.model.json import Json
from scanner.model.outcome import Check, CheckResult

_REMEMBERED = 2048
_VARIABLES = "variables"
_TOLD_BY_OTHERS = frozenset({"data", "value"})
"""Fields that are secret or not depending on the kind or the name beside them, which the expression may not read."""
_ROOTS = frozenset({"object", "oldObject", "params", "namespaceObject"})
_Path: TypeAlias = "tuple[str, ...]"
_Key: TypeAlias = "tuple[object, ...]"


class Memory:
    """Evidence by key; the cache is cleared when it is full."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._known: dict[_Key, Evidence] = {}
        self._paths: dict[tuple[int, Check], tuple[CompiledPolicy, tuple[_Path, ...] | None]] = {}

    def key(
        self, invocation_result: InvocationResult, check_result: CheckResult, compiled: CompiledPolicy
    ) -> _Key | None:
        """The key of the evidence; None if it depends on unknown inputs, or on inputs that differ at each evaluation."""
        request, check = invocation_result.request, check_result.check
        paths = self._looked_at(compiled, check)
        if (
            request is None
            or paths is None
            or is_secret(invocation_result.resource)
            or is_secret(invocation_result.invocation.param)
        ):
            return None
        body, param = invocation_result.resource.body, invocation_result.invocation.param
        documents: dict[str, Json] = {
            "object": body if request.current is None else request.current,
            "oldObject": body if request.operation == "UPDATE" else None,
            "params": None if param is None else param.body,
            "namespaceObject": request.namespace_object,
        }
        hidden = sorted(HIDDEN.of(invocation_result.resource, param))
        try:
            read = orjson.dumps([hidden, *(_read(documents[path[0]], path[1:]) for path in paths)])
        except TypeError:
            return None
        return id(compiled), check, type(check_result.outcome), hashlib.blake2b(read, digest_size=16).digest()

    def _looked_at(self, compiled: CompiledPolicy, check: Check) -> tuple[_Path, ...] | None:
        """The paths that a check reads; None for a check that reads a whole document or other inputs."""
        known = self._paths.get((id(compiled), check))
        if known is None:
            if len(self._paths) >= _REMEMBERED:
                self._forget()
            # The entry keeps the policy alive, so that no other policy gets its id.
            known = self._paths[id(compiled), check] = (compiled, _of_check(compiled, check))
        return known[1]

    def get(self, key: _Key) -> Evidence | None:
        """The evidence for a key, if it was found before."""
        return self._known.get(key)

    def keep(self, key: _Key, evidence: Evidence) -> Evidence:
        """Keep evidence, and return it."""
        if len(self._known) >= _REMEMBERED:
            self._forget()
        else:
            self._known[key] = evidence
        return evidence

    def _forget(self) -> None:
        self._known.clear()
        self._paths.clear()


def _of_check(compiled: CompiledPolicy, check: Check) -> tuple[_Path, ...] | None:
    programs = (it.program for it in compiled.deciding(check) if it.program is not None)
    return _paths(programs, compiled.variables)


def _paths(programs: Iterable[cel.Program], variables: Mapping[str, Expression]) -> tuple[_Path, ...] | None:
    """The paths of some programs and of the variables they use; None where they lead to more than parts of documents."""
    paths: set[_Path] = set()
    waiting, used = list(programs), set[str]()
    while waiting:
        for path in waiting.pop().depths():
            if path[0] != _VARIABLES:
                paths.add(path)
                continue
            names = set(path[1:2] or variables) - used
            used |= names
            waiting += [it.program for name, it in variables.items() if name in names and it.program is not None]
    if any(path[0] not in _ROOTS or len(path) == 1 or _TOLD_BY_OTHERS.intersection(path[2:]) for path in paths):
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
