"""Reads the settings in a file, in the files of a folder, or on standard input.

In folders, hidden files and folders are ignored, and so are files whose names do not end in .yaml, .yml or .json.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NoReturn

from scanner.documents.composer import compose
from scanner.documents.nodes import BadDocument, Node, Position
from scanner.errors import UsageError
from scanner.files import OR_STDIN, SETTINGS, read_file, read_standard_input
from scanner.model.nearest import did_you_mean

_SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})
_STDIN: Final = Path("-")


def read(path: Path) -> Iterator[Node]:
    """The documents at a path, in order of file names.

    Raises UsageError for a path that does not exist or cannot be read, BadDocument for an error in a file.
    """
    for file in list_files(path):
        name = "standard input" if file == _STDIN else str(file)
        yield from compose(_read_bytes(file), name)


def read_only(path: Path) -> Node:
    """The only document of a file. Raises UsageError and BadDocument as `read`, and BadDocument for none or several."""
    nodes = list(read(path))
    if not nodes:
        raise BadDocument(Position(str(path), 1, 1), "the file is empty")
    if len(nodes) > 1:
        nodes[1].fail("the file has a second document: only one is read")
    return nodes[0]


def list_files(path: Path) -> tuple[Path, ...]:
    """The files of a folder, or the file. Raises UsageError for a path that does not exist or cannot be read."""
    if path == _STDIN:
        return (path,)
    if not os.path.lexists(path):
        raise UsageError(f"there is no file or folder {path}: check the path.{_suggest_path(path)}")
    return _list_below(path) if os.path.isdir(path) else (path,)  # noqa: PTH112 - Path.is_dir raises without permission


def _list_below(folder: Path) -> tuple[Path, ...]:
    files: list[Path] = []
    for place, folders, names in os.walk(folder, onerror=_refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        files.extend(Path(place, name) for name in names if _is_settings_file(name))
    return tuple(sorted(files))


def _is_settings_file(name: str) -> bool:
    return Path(name).suffix in _SUFFIXES and not name.startswith(".")


def _read_bytes(file: Path) -> bytes:
    """The content of a file: enough of it to see that it is too large."""
    try:
        return read_standard_input(SETTINGS) if file == _STDIN else read_file(file, SETTINGS, instead=OR_STDIN)
    except OSError as error:
        _refuse(error)


def _refuse(error: OSError) -> NoReturn:
    raise UsageError(f"{error.filename or 'standard input'} cannot be read: {error.strerror or error}") from error


def _suggest_path(path: Path) -> str:
    try:
        return did_you_mean(path.name, [beside.name for beside in path.parent.iterdir()])
    except OSError:
        return ""
