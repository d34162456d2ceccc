"""Reads documents from files as `kubectl -f` does, with a gap for every document that it would reject.

Source of truth: the resource builder of kubectl for which files are read and how lists unfold, `streams` for the text.
In folders, hidden files and folders are ignored.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from scanner.cluster.streams import pieces
from scanner.errors import UsageError
from scanner.model.json import Json, JsonObject, as_list, as_object, as_text
from scanner.model.outcome import Gap, GapKind

_SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})
_STDIN: Final = Path("-")
_TYPES: Final[dict[type, str]] = {bool: "a boolean", int: "a number", float: "a number", str: "a string"}


@dataclass(frozen=True, slots=True)
class Document:
    """An object in a file. `source` is such as `pods.yaml, document 2`, with `, item 3` for an item of a list.

    `file` is the path, or `-` for standard input, and `line` the line where the document begins, from 1. `items` has the numbers,
    from 1, of the item in its list, of that list in its own list, and so on from the outside.
    """

    source: str
    body: JsonObject
    file: str = ""
    line: int = 1
    items: tuple[int, ...] = ()


def read_documents(path: Path) -> tuple[tuple[Document, ...], tuple[Gap, ...]]:
    """The documents under a folder, in a file, or (`-`) on standard input, in order of file names.

    A document that cannot be read is a gap with file, document and field. Raises UsageError only for a missing `path`.
    """
    items = list(stream_documents(path))
    documents = tuple(item for item in items if isinstance(item, Document))
    return documents, tuple(item for item in items if isinstance(item, Gap))


def stream_documents(path: Path) -> Iterator[Document | Gap]:
    """What `read_documents` returns, one file in memory at a time: gaps of folders come first. Raises UsageError."""
    files, gaps = _files(path)
    yield from gaps
    for file in files:
        yield from _read(file)


def _files(path: Path) -> tuple[list[Path], list[Gap]]:
    if path != _STDIN and not os.path.lexists(path):
        raise UsageError(
            f"there is no file or folder {path}: {_hint(path)}check the path, or give - to read standard input"
        )
    return _within(path) if os.path.isdir(path) else ([path], [])  # noqa: PTH112 - Path.is_dir raises without permission


def _hint(path: Path) -> str:
    """The name beside a missing path that is most like it, as a question; empty if none is."""
    with suppress(OSError):
        if alike := get_close_matches(path.name, [beside.name for beside in path.parent.iterdir()], n=1):
            return f"did you mean {path.parent / alike[0]}? Otherwise "
    return ""


def _within(folder: Path) -> tuple[list[Path], list[Gap]]:
    """The files to read below a folder, and the folders that may not be read."""
    files: list[Path] = []
    refused: list[OSError] = []
    for place, folders, names in os.walk(folder, onerror=refused.append):
        folders[:] = [name for name in folders if not name.startswith(".")]
        files.extend(Path(place, name) for name in names if _is_manifest(name))
    return sorted(files), [_gap(str(error.filename), _unreadable(error)) for error in refused]


def _is_manifest(name: str) -> bool:
    return Path(name).suffix in _SUFFIXES and not name.startswith(".")


def _unreadable(error: OSError) -> str:
    return f"cannot be read: {error.strerror or error}"


def _read(file: Path) -> Iterator[Document | Gap]:
    name = "standard input" if file == _STDIN else str(file)
    try:
        data = sys.stdin.buffer.read() if file == _STDIN else file.read_bytes()
    except OSError as error:
        yield _gap(name, _unreadable(error))
        return
    for piece in pieces(data):
        where = f"{name}, document {piece.number}"
        if piece.fault:
            yield _gap(where, piece.fault)
        else:
            for item in _unfolded(piece.value, where):
                yield item if isinstance(item, Gap) else replace(item, file=str(file), line=piece.line)


def _unfolded(value: Json, where: str, items: tuple[int, ...] = ()) -> Iterator[Document | Gap]:
    body = as_object(value)
    if not _is_list(body):
        yield _document(value, where, items)
        return
    for number, item in enumerate(as_list(body["items"]), start=1):
        yield from _unfolded(_typed(item, body), f"{where}, item {number}", (*items, number))


def _is_list(body: JsonObject) -> bool:
    """Return whether the object is a list of objects; `items: null` is an empty list only if the kind's name ends in List."""
    if "items" not in body:
        return False
    items = body["items"]
    return isinstance(items, list) or (items is None and as_text(body.get("kind")).endswith("List"))


def _typed(item: Json, parent: JsonObject) -> Json:
    """The item with apiVersion and kind of its typed list if it has neither, as in responses to list requests."""
    kind = as_text(parent.get("kind")).removesuffix("List")
    body = as_object(item)
    if not kind or not body or body.get("kind") or body.get("apiVersion"):
        return item
    return {"apiVersion": parent.get("apiVersion"), "kind": kind, **body}


def _document(value: Json, where: str, items: tuple[int, ...]) -> Document | Gap:
    if not isinstance(value, dict):
        return _gap(where, f"is {_type_of(value)}, not an object: a manifest begins with apiVersion and kind")
    fault = next(_faults(value), "")
    return _gap(where, fault) if fault else Document(where, value, items=items)


def _faults(body: JsonObject) -> Iterator[str]:
    """The error for which the API rejects a document of any kind, or an empty string."""
    for field in ("apiVersion", "kind"):
        if not as_text(body.get(field)):
            yield f"{field}: Required value: every manifest names its apiVersion and kind"
    if as_text(body.get("apiVersion")).count("/") > 1:
        yield f"apiVersion: Invalid value: {body['apiVersion']}: write group/version, such as apps/v1"
    metadata = body.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        yield f"metadata: must be an object, not {_type_of(metadata)}"
    yield from _metadata_faults(as_object(metadata))


def _metadata_faults(metadata: JsonObject) -> Iterator[str]:
    for field in ("name", "namespace"):
        value = metadata.get(field)
        if value is not None and not isinstance(value, str):
            yield f"metadata.{field}: must be a string, not {_type_of(value)}: quote it"
    if not metadata.get("name"):
        yield "metadata.name: Required value: Assay reports objects by name"
    for field in ("labels", "annotations"):
        yield from _map_faults(metadata.get(field), f"metadata.{field}")


def _map_faults(value: Json, field: str) -> Iterator[str]:
    if value is not None and not isinstance(value, dict):
        yield f"{field}: must be an object, not {_type_of(value)}"
    for key, item in as_object(value).items():
        if item is not None and not isinstance(item, str):
            yield f"{field}[{key}]: must be a string, not {_type_of(item)}: quote it"


def _type_of(value: Json) -> str:
    if value is None:
        return "null"
    return _TYPES.get(type(value), "an object" if isinstance(value, dict) else "a list")


def _gap(where: str, why: str) -> Gap:
    return Gap(GapKind.DOCUMENT, where, why)
