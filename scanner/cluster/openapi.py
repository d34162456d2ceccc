"""Merge schemas from the cluster's own OpenAPI v3 documents, one for each group version, read when it is first needed.

Source of truth: `TypeConverterManager` of apiserver 1.36: schemas that are compiled in, and `/openapi/v3` for all others.
"""

from __future__ import annotations

from collections.abc import Mapping

from scanner.cluster.definitions import builtin_kinds
from scanner.cluster.session import Session, Unanswered
from scanner.errors import ClusterError
from scanner.model.json import as_list, as_text, dig
from scanner.model.resource import Kind
from scanner.mutate.openapi import schemas_of
from scanner.mutate.schema import Schema

_OK = 200
_ATTEMPTS = 2


_GROUP_VERSION_KIND = "x-kubernetes-group-version-kind"


class ServedSchemas:
    """The schemas of a server."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._compiled = frozenset((kind.group, kind.kind) for kind in builtin_kinds())
        self._known: dict[str, Mapping[tuple[str, str, str], Schema]] = {}

    def schema(self, kind: Kind) -> Schema | None:
        """The schema of a kind, or None if the server has none. Raises ClusterError for expired credentials."""
        path = f"/openapi/v3/apis/{kind.group}/{kind.version}" if kind.group else f"/openapi/v3/api/{kind.version}"
        if path not in self._known:
            self._known[path] = self._read(path, builtin=(kind.group, kind.kind) in self._compiled)
        return self._known[path].get((kind.group, kind.version, kind.kind))

    def _read(self, path: str, *, builtin: bool) -> Mapping[tuple[str, str, str], Schema]:
        try:
            answer = self._session.get(path)
        except Unanswered:
            return {}
        return schemas_of(answer.body(), builtin=builtin) if answer.status == _OK else {}


def list_kind(session: Session, kind: Kind) -> str:
    """The kind of the lists of a kind, which a CustomResourceDefinition may choose; empty if the server does not declare it."""
    path = f"/openapi/v3/{kind.path.removesuffix(f'/{kind.plural}').removeprefix('/')}"
    try:
        answer = session.get(path, attempts=_ATTEMPTS)
    except (Unanswered, ClusterError):
        return ""
    document = answer.body()
    read = dig(document, "paths", kind.path, "get", "responses", "200", "content", "application/json", "schema", "$ref")
    name = as_text(read).rpartition("/")[2]
    stated = as_list(dig(document, "components", "schemas", name, _GROUP_VERSION_KIND))
    return as_text(dig(stated[0], "kind")) if len(stated) == 1 else ""
