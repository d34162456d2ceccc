"""Reads test suites and the files that they name.

Source of truth: `kyverno test` for which files are suites and what is relative to what; hidden folders are included,
because policy libraries keep suites there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from scanner.cluster.definitions import BrokenDefinition, is_definition, read_definition
from scanner.cluster.files.other_tools import SUITES
from scanner.cluster.files.streams import Piece, read_pieces
from scanner.cluster.schemas import KnownSchemas, read_custom_schemas
from scanner.errors import AssayError, UsageError
from scanner.files import SETTINGS, read_file
from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig
from scanner.suite import BrokenSuite, Suite, form, kyverno

RESULTS: Final = ("pass", "fail", "warn", "error", "skip")
_KYVERNO: Final = "Test"
_FILES: Final = {
    _KYVERNO: {
        "policies": "policies",
        "resources": "resources",
        "exceptions": "exceptions",
        "paramResources": "paramResources",
        "clusterResources": "clusterResources",
        "variables": "values",
        "userinfo": "userinfo",
        "context": "given",
    },
    form.KIND: {name: name for name in ("policies", "params", "resources", "namespaces")},
}
"""The fields of a suite that name files, and the names of their contents."""
_PAYLOADS: Final = ("jsonPayload", "jsonPayloads", "httpPayloads", "envoyPayloads")


def read_suites(path: Path) -> tuple[Suite | BrokenSuite, ...]:
    """The suites in a file, or in the files below a folder. Raises UsageError if there is none.

    A suite that cannot be read ends no other one.
    """
    if not path.exists():
        raise UsageError(f"there is no file or folder {path}: check the path")
    files = sorted(file for file in path.rglob("*") if file.name in SUITES) if path.is_dir() else [path]
    if not files:
        raise UsageError(f"{path} has no suite: name one {SUITES[0]} or {SUITES[2]}")
    return tuple(suite for file in files for suite in _read_suites_of_file(file))


def _read_suites_of_file(file: Path) -> Iterator[Suite | BrokenSuite]:
    try:
        pieces = tuple(_read_pieces(file))
    except UsageError as error:
        yield BrokenSuite(str(file), str(error))
        return
    for piece in pieces:
        name = f"{file}, document {piece.number}" if piece.number > 1 else str(file)
        try:
            yield from _read_suites_of_piece(piece, file, name)
        except AssayError as error:
            yield BrokenSuite(name, str(error))


def _read_suites_of_piece(piece: Piece, file: Path, name: str) -> Iterator[Suite]:
    for document in _list_documents(piece, file):
        kind = as_text(document.get("kind"))
        if kind not in _FILES:
            raise UsageError(f"{name}: kind {kind or '(none)'} is no suite: it must be {_KYVERNO} or {form.KIND}")
        _reject_results(document, name)
        contents = _read_contents(file.parent, document, kind)
        fields: dict[str, Json] = {**contents, "results": document.get("results")}
        if kind == form.KIND:
            suite = form.suite_of(name, {**fields, "user": document.get("user")})
        else:
            suite = kyverno.suite_of(name, fields)
        payloads = next((field for field in _PAYLOADS if document.get(field)), "")
        yield _with_definitions(replace(suite, payloads=payloads), contents)


def _with_definitions(suite: Suite, contents: Mapping[str, Json]) -> Suite:
    """The suite with the kinds and the schemas of the CustomResourceDefinitions in its files."""
    documents = [as_object(document) for content in contents.values() for document in as_list(content)]
    definitions = [document for document in (*documents, *suite.given) if is_definition(document)]
    try:
        kinds = [kind for definition in definitions for kind in read_definition(definition).kinds]
    except BrokenDefinition as error:
        raise UsageError(f"{suite.name}: a CustomResourceDefinition defines no kind: {error}") from None
    schemas = [read_custom_schemas(definition) for definition in definitions]
    known = KnownSchemas({key: schema for part in schemas for key, schema in part.items()})
    return replace(suite, kinds=tuple(dict.fromkeys(kinds)), schemas=known)


def _reject_results(document: JsonObject, name: str) -> None:
    for number, expectation in enumerate(as_list(document.get("results")), start=1):
        result = as_text(dig(expectation, "result"))
        if result not in RESULTS:
            raise UsageError(f"{name}: result {number}: {result or '(none)'} must be one of {', '.join(RESULTS)}")


def _read_contents(folder: Path, document: JsonObject, kind: str) -> dict[str, Json]:
    contents: dict[str, Json] = {}
    for field, name in _FILES[kind].items():
        value = document.get(field)
        paths = [value] if isinstance(value, str) else as_list(value)
        contents[name] = [content for path in paths for content in _read_below(folder / as_text(path))]
    if kind == _KYVERNO and document.get("values"):
        contents["values"] = [*as_list(contents["values"]), as_object(document["values"])]
    if kind == _KYVERNO:
        clusters = as_list(contents["clusterResources"])
        contents["definitions"] = [
            definition
            for cluster in clusters
            for path in as_list(dig(cluster, "spec", "crds"))
            for definition in _read_below(folder / as_text(path))
        ]
        contents["apiCallResponses"] = document.get("apiCallResponses")
        contents["globalContextEntries"] = [
            _read_entry(folder, context_entry) for context_entry in as_list(document.get("globalContextEntries"))
        ]
    return contents


def _read_entry(folder: Path, context_entry: Json) -> JsonObject:
    """An entry of the global context, with the contents of its files."""
    files = as_list(dig(context_entry, "resourceFiles"))
    inline = dig(context_entry, "resources")
    if not files and inline is None:
        return as_object(context_entry)
    objects = [*as_list(inline), *(document for path in files for document in _read_below(folder / as_text(path)))]
    return {**as_object(context_entry), "resources": objects}


def _read_below(path: Path) -> Iterator[JsonObject]:
    """The documents of a file, or of the files in a folder."""
    if not path.exists():
        raise UsageError(f"the suite names {path}, which does not exist")
    files = (
        sorted(file for file in path.rglob("*") if file.suffix in (".yaml", ".yml", ".json"))
        if path.is_dir()
        else [path]
    )
    for file in files:
        yield from _read_documents(file)


def _read_documents(file: Path) -> Iterator[JsonObject]:
    for piece in _read_pieces(file):
        yield from _list_documents(piece, file)


def _read_pieces(file: Path) -> Iterator[Piece]:
    try:
        data = read_file(file, SETTINGS)
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from error
    yield from read_pieces(data)


def _list_documents(piece: Piece, file: Path) -> Iterator[JsonObject]:
    """The document of a piece of a file, or the items of a list. Raises UsageError for a piece that cannot be read."""
    if piece.fault:
        raise UsageError(f"{file}, document {piece.number}: {piece.fault}")
    body = as_object(piece.value)
    items = as_list(body.get("items")) if as_text(body.get("kind")).endswith("List") else (piece.value,)
    yield from map(as_object, items)
