"""Reads the content of `assay.yaml`. Every error names file, line and column.

Only a command that has a file imports this: most of it is about settings that few files have.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final, TypeVar

from scanner.config.file import File
from scanner.config.masking import mask_document
from scanner.config.notifications import read_routes
from scanner.config.setting import Plain, Setting, parse_node
from scanner.config.unflagged import UNFLAGGED_KEYS, read_settings, read_tokens
from scanner.documents.files import read
from scanner.documents.nodes import BadDocument, Node, Position, shorten_key
from scanner.errors import UsageError
from scanner.model.access_token import AccessToken
from scanner.model.json import Json
from scanner.model.nearest import did_you_mean
from scanner.posture.routes import Route
from scanner.posture.settings import DEFAULT_SETTINGS

_STDIN: Final = Path("-")
_Read = TypeVar("_Read")


def read_file(path: Path, settings: tuple[Setting, ...]) -> File:
    """The content of a file. Raises UsageError for a file that cannot be read, BadDocument for one that is not YAML."""
    if path == _STDIN or os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises without permission
        raise UsageError(f"the configuration {path} is no file: name the path of a file")
    documents = list(read(path))
    if not documents:
        return File(str(path), _compute_digest({}))
    if len(documents) > 1:
        documents[1].fail("the file has a second document: write one")
    return _FileReader(settings).read(path, documents[0])


@dataclass(slots=True)
class _FileReader:
    """The values and errors of a document, as far as it is read."""

    settings: tuple[Setting, ...]
    values: dict[str, tuple[Plain, Position]] = field(default_factory=dict)
    unflagged: dict[str, Node] = field(default_factory=dict)
    errors: list[UsageError] = field(default_factory=list)

    def read(self, path: Path, document: Node) -> File:
        """The content of the document at a path. Raises BadDocument if it is no object."""
        known = {setting.key: setting for setting in self.settings}
        self._read_keys("", document, known)
        posture = self._collect_error(read_settings, DEFAULT_SETTINGS)
        tokens: tuple[AccessToken, ...] = self._collect_error(read_tokens, ())
        routes: tuple[Route, ...] = self._collect_error(read_routes, ())
        errors = tuple(sorted(self.errors, key=_get_position))
        unflagged_values = {key: (node.json(), node.place) for key, node in self.unflagged.items()}
        return File(
            str(path), _compute_digest(document.json()), self.values, posture, tokens, routes, unflagged_values, errors
        )

    def _collect_error(self, read: Callable[[Mapping[str, Node]], _Read], default: _Read) -> _Read:
        """The values of keys without a flag; the default, and an error, if one of them cannot be read."""
        try:
            return read(self.unflagged)
        except BadDocument as error:
            self.errors.append(error)
            return default

    def _read_keys(self, above: str, node: Node, known: Mapping[str, Setting]) -> None:
        """Read the keys of an object that is the value of the key `above`, or the document."""
        for name, value in node.entries().items():
            key = f"{above}.{name}" if above else name
            if key in known:
                self._read_value(known[key], value)
            elif key in _UNFLAGGED:
                self._add_unflagged(key, value)
            elif any(each.startswith(f"{key}.") for each in known):
                self._read_section(key, value, known)
            else:
                self._report_unknown(node.keys[name], above, name, (*known, *_UNFLAGGED))

    def _read_value(self, setting: Setting, node: Node) -> None:
        try:
            self.values[setting.key] = parse_node(setting, node), node.place
        except BadDocument as error:
            self.errors.append(error)
        except UsageError as error:
            self.errors.append(BadDocument(node.place, str(error).removeprefix(f"{node.place}: ")))

    def _add_unflagged(self, key: str, node: Node) -> None:
        if node.value is None:
            self.errors.append(BadDocument(node.place, f"{key}: has no value: write one, or remove the key"))
        else:
            self.unflagged[key] = node

    def _read_section(self, key: str, node: Node, known: Mapping[str, Setting]) -> None:
        try:
            self._read_keys(key, node, known)
        except BadDocument as error:
            self.errors.append(error)

    def _report_unknown(self, place: Position, above: str, name: str, known: tuple[str, ...]) -> None:
        beginning = f"{above}." if above else ""
        choices = list(
            dict.fromkeys(key.removeprefix(beginning).partition(".")[0] for key in known if key.startswith(beginning))
        )
        hint = did_you_mean(name, choices) or (
            f" The keys are {', '.join(choices)}." if above else " `assay config view` lists the keys."
        )
        self.errors.append(BadDocument(place, f"unknown key {shorten_key(beginning + name)}.{hint}"))


_UNFLAGGED: Final = {each.key for each in UNFLAGGED_KEYS}


def _get_position(error: UsageError) -> tuple[int, int]:
    return (error.place.line, error.place.column) if isinstance(error, BadDocument) else (0, 0)


def _compute_digest(document: Json) -> str:
    """The digest of a document without its secrets: a digest of a password would let others test guesses."""
    content = json.dumps(mask_document(document), sort_keys=True, ensure_ascii=False)
    return f"sha256:{sha256(content.encode(errors='surrogatepass')).hexdigest()}"
