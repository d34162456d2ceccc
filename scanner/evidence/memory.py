"""Evidence that was found before: of objects that are alike where a check looks, each is violated for the same reasons.

Most objects of a cluster are copies of a few: the Pods of a Deployment, the Deployments of a chart. What decides is what the
expressions read, and what may be said of it depends on which values of the object are secrets: both are the key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TypeAlias

import orjson

from scanner.evaluate import CompiledPolicy
from scanner.evidence.hidden import HIDDEN
from scanner.model.evidence import Evidence
from scanner.model.json import Json
from scanner.model.outcome import Check, Judgement
from scanner.policies.validating import Ruling
from scanner.redact import is_secret

_REMEMBERED = 2048
_ROOTS = frozenset({"object", "oldObject", "params", "namespaceObject"})
_Path: TypeAlias = "tuple[str, ...]"
_Key: TypeAlias = "tuple[object, ...]"


class Memory:
    """Evidence by what it was found in; forgets everything when there is too much of it."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._known: dict[_Key, Evidence] = {}
        self._paths: dict[tuple[int, Check], tuple[CompiledPolicy, tuple[_Path, ...] | None]] = {}

    def key(self, ruling: Ruling, judgement: Judgement, compiled: CompiledPolicy) -> _Key | None:
        """What the evidence depends on; None where that cannot be told, or is never the same twice."""
        request, check = ruling.request, judgement.check
        paths = self._looked_at(compiled, check)
        if request is None or paths is None or is_secret(ruling.resource) or is_secret(ruling.invocation.param):
            return None
        body, param = ruling.resource.body, ruling.invocation.param
        documents: dict[str, Json] = {
            "object": body if request.current is None else request.current,
            "oldObject": body if request.operation == "UPDATE" else None,
            "params": None if param is None else param.body,
            "namespaceObject": request.namespace_object,
        }
        hidden = sorted(HIDDEN.of(ruling.resource, param))
        try:
            read = orjson.dumps([hidden, *(_leading_to(documents[path[0]], path[1:]) for path in paths)])
        except TypeError:
            return None
        return id(compiled), check, type(judgement.outcome), hashlib.blake2b(read, digest_size=16).digest()

    def _looked_at(self, compiled: CompiledPolicy, check: Check) -> tuple[_Path, ...] | None:
        """The places that a check looks at, None for one that looks at a whole document or at something else."""
        known = self._paths.get((id(compiled), check))
        if known is None:
            if len(self._paths) >= _REMEMBERED:
                self._forget()
            # The policy is kept as well: as long as it is there, no other has its number.
            known = self._paths[id(compiled), check] = (compiled, _paths(compiled.reads(check)))
        return known[1]

    def get(self, key: _Key) -> Evidence | None:
        """The evidence for a key, if it was found before."""
        return self._known.get(key)

    def keep(self, key: _Key, evidence: Evidence) -> Evidence:
        """Remember evidence, and return it."""
        if len(self._known) >= _REMEMBERED:
            self._forget()
        else:
            self._known[key] = evidence
        return evidence

    def _forget(self) -> None:
        self._known.clear()
        self._paths.clear()


def _paths(reads: Iterable[_Path]) -> tuple[_Path, ...] | None:
    paths = sorted(path for path in reads if path[0] != "variables")
    if any(path[0] not in _ROOTS or len(path) == 1 for path in paths):
        return None
    return tuple(path for path in paths if not any(path[:end] in paths for end in range(2, len(path))))


def _leading_to(document: Json, path: _Path) -> Json:
    """What stands at the end of a path, or where the path ends: a missing field is not one that is null."""
    for depth, step in enumerate(path):
        if not isinstance(document, dict) or step not in document:
            return [None if isinstance(document, dict) else document, depth]
        document = document[step]
    return {"": document}
