"""Merge schemas from the cluster's own OpenAPI v3 documents, one for each group version, read when it is first needed.

Source of truth: `TypeConverterManager` of apiserver 1.36: schemas that are compiled in, and `/openapi/v3` for all others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote

import msgspec
from msgspec import Struct

from scanner.cluster.definitions import builtin_kinds
from scanner.cluster.requests.session import ApiSession, HttpResponse, NoResponse
from scanner.cluster.schemas import find_conversion, read_versions
from scanner.errors import ClusterError
from scanner.model.json import JsonObject, as_list, as_text, dig
from scanner.model.resource import Kind
from scanner.mutate.openapi import read_schemas
from scanner.mutate.schema import Conversion, DefinedVersions, Schema

_OK = 200
_NOT_FOUND = 404
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_ATTEMPTS = 2


_GROUP_VERSION_KIND = "x-kubernetes-group-version-kind"


class _Components(Struct):
    schemas: dict[str, Any] = {}  # the decoder does not know types that contain themselves, as Json does


class _Document(Struct):
    """The part of an OpenAPI document that describes built-in kinds: four fifths of it are paths, which take longest to decode."""

    components: _Components = msgspec.field(default_factory=_Components)


_DECODER: Final = msgspec.json.Decoder(_Document)


class ServedSchemas:
    """The schemas of a server. `several` are the custom kinds, as group and kind, that it serves in several versions.

    Of these alone it also reads the CustomResourceDefinitions, which say how an object is converted and stored.
    """

    def __init__(self, session: ApiSession, several: Callable[[], AbstractSet[tuple[str, str]]] = frozenset) -> None:
        self._session = session
        self._several = several
        self._schemas: dict[Kind, Schema | None] = {}
        self._compiled = frozenset((kind.group, kind.kind) for kind in builtin_kinds())
        self._known: dict[str, Mapping[tuple[str, str, str], Schema]] = {}
        self._definitions: dict[tuple[str, str], HttpResponse | None] = {}

    def schema(self, kind: Kind) -> Schema | None:
        """The schema of a kind, or None if the server has none. Raises ClusterError for expired credentials."""
        if kind not in self._schemas:
            self._schemas[kind] = self._find_schema(kind)
        return self._schemas[kind]

    def _find_schema(self, kind: Kind) -> Schema | None:
        path = f"/openapi/v3/apis/{kind.group}/{kind.version}" if kind.group else f"/openapi/v3/api/{kind.version}"
        if path not in self._known:
            self._known[path] = self._read(path, builtin=(kind.group, kind.kind) in self._compiled)
        schema = self._known[path].get((kind.group, kind.version, kind.kind))
        if schema is None or schema.custom is None or (kind.group, kind.kind) not in self._several():
            return schema
        return replace(schema, custom=replace(schema.custom, versions=self._find_versions(kind)))

    def conversion(self, kind: Kind) -> Conversion:
        """The conversion in the definition of a kind. An aggregated API server, whose kinds have none, converts as it likes."""
        answer = self._get_definition(kind)
        if answer is not None and answer.status == _NOT_FOUND:
            return "server"
        versions = self._find_versions(kind)
        return "unknown" if versions is None else find_conversion(versions)

    def _find_versions(self, kind: Kind) -> DefinedVersions | None:
        """The versions of a custom kind, None if its definition cannot be read."""
        answer = self._get_definition(kind)
        return read_versions(answer.body()) if answer is not None and answer.status == _OK else None

    def _get_definition(self, kind: Kind) -> HttpResponse | None:
        """The response to the request for the definition of a kind, which is sent once; None without one."""
        name = (kind.plural, kind.group)
        if name not in self._definitions:
            try:
                answer = self._session.get(f"{_DEFINITIONS}/{quote('.'.join(name), safe='')}")
            except NoResponse:
                answer = None
            self._definitions[name] = answer
        return self._definitions[name]

    def _read(self, path: str, *, builtin: bool) -> Mapping[tuple[str, str, str], Schema]:
        try:
            answer = self._session.get(path)
        except NoResponse:
            return {}
        if answer.status != _OK:
            return {}
        return read_schemas(_decode_definitions(answer.data) if builtin else answer.body(), builtin=builtin)


def _decode_definitions(data: bytes) -> JsonObject:
    """An OpenAPI document without its paths, an empty object if it is not one."""
    try:
        schemas = _DECODER.decode(data).components.schemas
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return {"components": {"schemas": schemas}}


def read_list_kind(session: ApiSession, kind: Kind) -> str:
    """The kind of the lists of a kind, which a CustomResourceDefinition may choose; empty if the server does not declare it."""
    path = f"/openapi/v3/{kind.path.removesuffix(f'/{kind.plural}').removeprefix('/')}"
    try:
        answer = session.get(path, attempts=_ATTEMPTS)
    except (NoResponse, ClusterError):
        return ""
    document = answer.body()
    reference = dig(
        document, "paths", kind.path, "get", "responses", "200", "content", "application/json", "schema", "$ref"
    )
    name = as_text(reference).rpartition("/")[2]
    stated = as_list(dig(document, "components", "schemas", name, _GROUP_VERSION_KIND))
    return as_text(dig(stated[0], "kind")) if len(stated) == 1 else ""
