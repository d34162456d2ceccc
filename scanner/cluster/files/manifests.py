"""Reads documents from files as `kubectl -f` does, with a gap for every document that it would reject.

Source of truth: the resource builder of kubectl for which files are read and how lists unfold, `streams` for the text; the
`SimpleNameGenerator` of apiserver for the names of objects with `generateName`. In folders, hidden files and folders are ignored.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from scanner.cluster.files.other_tools import (
    OtherToolFile,
    find_kustomize_inputs,
    make_absolute,
    recognise_document,
    recognise_file,
    suggest_rendering,
)
from scanner.cluster.files.streams import read_pieces
from scanner.errors import UsageError
from scanner.files import OBJECTS, OR_STDIN, read_file, read_standard_input
from scanner.model.json import Json, JsonObject, as_list, as_object, as_text
from scanner.model.outcome import Gap, GapKind
from scanner.model.population import GroupKind
from scanner.model.scans.out_of_scope import Unneeded

_SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})
_STDIN: Final = Path("-")
_KEY: Final = re.compile(r"[\w./-]+")
_ALPHABET: Final = "xbcdfghjklmnpqrstvwz2456789"
"""The letters of random endings (`util/rand`), `x` first."""
_SUFFIX_LENGTH: Final = 5
_LONGEST_PREFIX: Final = 58
_TYPES: Final[dict[type, str]] = {bool: "a boolean", int: "a number", float: "a number", str: "a string"}


@dataclass(frozen=True, slots=True)
class FileDocument:
    """An object in a file. `source` is such as `pods.yaml, document 2`, with `, item 3` for an item of a list.

    `file` is the path, or `-` for standard input, and `line` the line where the document begins, from 1. With `generates_name` the
    object has a `generateName` and no name: the server makes the name. `items` has the numbers,
    from 1, of the item in its list, of that list in its own list, and so on from the outside.
    """

    source: str
    body: JsonObject
    file: str = ""
    line: int = 1
    generates_name: bool = False
    items: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class UnreadDocument:
    """A document or a file that is not read as a manifest.

    `concerns` is the group and the kind that the document names, as far as it names them: the kind may be empty, and without a group
    it is None. `other_tool` is set if no API server could store it, because it is a file of another tool. `text` is the text in which it
    may name its kind: its kind, or all of a text that could not be parsed; None for a file that could not be opened.
    """

    gap: Gap
    concerns: GroupKind | None = None
    other_tool: OtherToolFile | None = None
    text: str | None = ""


class ReadFiles:
    """The files that a command has read, so that none is read twice, and the names that the server would generate."""

    def __init__(self) -> None:
        self._names: dict[tuple[int, int], Path] = {}
        self._generated: Counter[tuple[str, ...]] = Counter()

    def find_earlier(self, file: Path) -> Path | None:
        """The name under which the same file was read before; None for a new file, which counts as read now."""
        try:
            status = file.stat()
        except OSError:
            return None
        first = self._names.setdefault((status.st_dev, status.st_ino), file)
        return None if first is file else first

    def includes(self, file: Path) -> bool:
        """Return whether a file was read, under any name."""
        try:
            status = file.stat()
        except OSError:
            return False
        return (status.st_dev, status.st_ino) in self._names

    def name_document(self, document: FileDocument) -> FileDocument:
        """The document with a name that the server could generate; each of several documents with one prefix has another."""
        body, metadata = document.body, as_object(document.body["metadata"])
        prefix = as_text(metadata["generateName"])[:_LONGEST_PREFIX]
        key = (as_text(body["apiVersion"]), as_text(body["kind"]), as_text(metadata.get("namespace")), prefix)
        name = f"{prefix}{_make_suffix(self._generated[key])}"
        self._generated[key] += 1
        return replace(document, body={**body, "metadata": {**metadata, "name": name}})


def _make_suffix(number: int) -> str:
    """A random ending of a name, for the object with a number: `xxxxx` for the first."""
    letters: list[str] = []
    for _ in range(_SUFFIX_LENGTH):
        number, digit = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[digit])
    return "".join(reversed(letters))


def read_documents(path: Path) -> tuple[tuple[FileDocument, ...], tuple[Gap, ...]]:
    """The documents under a folder, in a file, or (`-`) on standard input, in order of file names.

    A document that cannot be read is a gap with file, document and field. Raises UsageError only for a missing `path`.
    """
    items = list(stream_documents(path))
    documents = tuple(item for item in items if isinstance(item, FileDocument))
    return documents, tuple(item.gap for item in items if isinstance(item, UnreadDocument))


def stream_documents(path: Path, read_files: ReadFiles | None = None) -> Iterator[FileDocument | UnreadDocument]:
    """The documents of `read_documents`, one file in memory at a time: gaps of folders come first. Raises UsageError.

    A file of `read` is not read again.
    """
    files, gaps = _list_files(path)
    read_files = read_files or ReadFiles()
    yield from (UnreadDocument(gap, text=None) for gap in gaps)
    inputs = find_kustomize_inputs(files)
    for file in files:
        if file != _STDIN and (earlier := read_files.find_earlier(file)):
            yield _set_aside(
                str(file), OtherToolFile(Unneeded.REPEATED, f"this is the same file as {earlier}, which is read")
            )
        elif inputs and (other_tool := inputs.get(make_absolute(file))):
            yield _set_aside(str(file), other_tool)
        else:
            for item in _read(file):
                yield read_files.name_document(item) if isinstance(item, FileDocument) and item.generates_name else item


def _set_aside(where: str, other_tool: OtherToolFile) -> UnreadDocument:
    return UnreadDocument(_make_gap(where, other_tool.why), other_tool=other_tool)


def _list_files(path: Path) -> tuple[list[Path], list[Gap]]:
    if path != _STDIN and not os.path.lexists(path):
        raise UsageError(
            f"there is no file or folder {path}: {_suggest_path(path)}check the path, or give - to read standard input"
        )
    return _list_below(path) if os.path.isdir(path) else ([path], [])  # noqa: PTH112 - Path.is_dir raises without permission


def _suggest_path(path: Path) -> str:
    """The name beside a missing path that is most like it, as a question; empty if none is."""
    with suppress(OSError):
        if alike := get_close_matches(path.name, [beside.name for beside in path.parent.iterdir()], n=1):
            return f"did you mean {path.parent / alike[0]}? Otherwise "
    return ""


def _list_below(folder: Path) -> tuple[list[Path], list[Gap]]:
    """The files to read below a folder, and the folders that may not be read."""
    files: list[Path] = []
    errors: list[OSError] = []
    for place, folders, names in os.walk(folder, onerror=errors.append):
        folders[:] = [name for name in folders if not name.startswith(".")]
        files.extend(Path(place, name) for name in names if _is_manifest(name))
    return sorted(files), [_make_gap(str(error.filename), _explain_error(error)) for error in errors]


def _is_manifest(name: str) -> bool:
    return Path(name).suffix in _SUFFIXES and not name.startswith(".")


def _explain_error(error: OSError) -> str:
    return f"cannot be read: {error.strerror or error}"


def _read(file: Path) -> Iterator[FileDocument | UnreadDocument]:
    name = "standard input" if file == _STDIN else str(file)
    try:
        data = read_standard_input(OBJECTS) if file == _STDIN else read_file(file, OBJECTS, instead=OR_STDIN)
    except OSError as error:
        yield UnreadDocument(_make_gap(name, _explain_error(error)), text=None)
        return
    if other_tool := recognise_file(file, data):
        yield _set_aside(name, other_tool)
        return
    for piece in read_pieces(data):
        where = f"{name}, document {piece.number}"
        if piece.fault:
            why = f"{piece.fault}{suggest_rendering(data)}"
            yield UnreadDocument(_make_gap(where, why), text=data.decode(errors="replace"))
        else:
            for item in _unfold(piece.value, where, file):
                yield replace(item, file=str(file), line=piece.line) if isinstance(item, FileDocument) else item


def _unfold(
    value: Json, where: str, file: Path, items: tuple[int, ...] = ()
) -> Iterator[FileDocument | UnreadDocument]:
    body = as_object(value)
    if not _is_list(body):
        yield _make_document(value, where, file, items)
        return
    for number, item in enumerate(as_list(body["items"]), start=1):
        yield from _unfold(_add_type(item, body), f"{where}, item {number}", file, (*items, number))


def _is_list(body: JsonObject) -> bool:
    """Return whether the object is a list of objects; `items: null` is an empty list only if the kind's name ends in List."""
    if "items" not in body:
        return False
    items = body["items"]
    return isinstance(items, list) or (items is None and as_text(body.get("kind")).endswith("List"))


def _add_type(item: Json, parent: JsonObject) -> Json:
    """The item with apiVersion and kind of its typed list if it has neither, as in responses to list requests."""
    kind = as_text(parent.get("kind")).removesuffix("List")
    body = as_object(item)
    if not kind or not body or body.get("kind") or body.get("apiVersion"):
        return item
    return {"apiVersion": parent.get("apiVersion"), "kind": kind, **body}


def _make_document(value: Json, where: str, file: Path, items: tuple[int, ...]) -> FileDocument | UnreadDocument:
    if isinstance(value, dict):
        fault = next(_find_faults(value), "")
    else:
        fault = f"is {_name_type(value)}, not an object: a manifest begins with apiVersion and kind"
    other_tool = recognise_document(file, value)
    if fault or other_tool or not isinstance(value, dict):
        gap = _make_gap(where, fault or (other_tool.why if other_tool else ""))
        return UnreadDocument(
            gap, _find_group_kind(as_object(value)), other_tool, as_text(as_object(value).get("kind"))
        )
    return FileDocument(where, value, items=items, generates_name=not as_object(value["metadata"]).get("name"))


def _find_group_kind(body: JsonObject) -> GroupKind | None:
    """The group and the kind that a document names, the kind as far as it names one; None if it names no group."""
    api_version, kind = body.get("apiVersion"), body.get("kind")
    if not isinstance(api_version, str) or not api_version or api_version.count("/") > 1:
        return None
    return api_version.rpartition("/")[0], as_text(kind)


def _find_faults(body: JsonObject) -> Iterator[str]:
    """The error for which the API rejects a document of any kind, or an empty string."""
    for field in ("apiVersion", "kind"):
        if not as_text(body.get(field)):
            yield f"{field}: Required value: every manifest names its apiVersion and kind"
    if as_text(body.get("apiVersion")).count("/") > 1:
        yield "apiVersion: Invalid value: write group/version, such as apps/v1"
    metadata = body.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        yield f"metadata: must be an object, not {_name_type(metadata)}"
    yield from _find_metadata_faults(as_object(metadata))


def _find_metadata_faults(metadata: JsonObject) -> Iterator[str]:
    for field in ("name", "generateName", "namespace"):
        value = metadata.get(field)
        if value is not None and not isinstance(value, str):
            yield f"metadata.{field}: must be a string, not {_name_type(value)}: quote it"
    if not metadata.get("name") and not metadata.get("generateName"):
        yield "metadata.name: Required value: Assay reports objects by name"
    for field in ("labels", "annotations"):
        yield from _find_map_faults(metadata.get(field), f"metadata.{field}")


def _find_map_faults(value: Json, field: str) -> Iterator[str]:
    if value is not None and not isinstance(value, dict):
        yield f"{field}: must be an object, not {_name_type(value)}"
    for key, item in as_object(value).items():
        if item is not None and not isinstance(item, str):
            yield f"{field}[{_show_key(key)}]: must be a string, not {_name_type(item)}: quote it"


def _show_key(key: str) -> str:
    """A key that can be one of a label; an ellipsis for another, which may hold a value, such as `password:x` without a space."""
    return key if _KEY.fullmatch(key) else "…"


def _name_type(value: Json) -> str:
    if value is None:
        return "null"
    return _TYPES.get(type(value), "an object" if isinstance(value, dict) else "a list")


def _make_gap(where: str, why: str) -> Gap:
    return Gap(GapKind.DOCUMENT, where, why)
