"""Reads YAML, and so JSON, with the place of every key and value, and refuses all that settings do not need.

Source of truth: `cluster.scalars` for the values of scalars: `yes` is true, and a date is a string, as in manifests. Unlike
kubectl, this reader accepts a key once, and neither tags, aliases, merge keys nor keys that are collections. So a document
cannot be larger in memory than its text suggests, nor contain itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NoReturn

from yaml.events import (
    AliasEvent,
    CollectionStartEvent,
    DocumentEndEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
)

from scanner.cluster.scalars import BadScalar, convert_to_json, resolve
from scanner.cluster.yaml import MalformedDocument, read_events
from scanner.documents.nodes import BadDocument, Node, Position, shorten_key
from scanner.files import SETTINGS

DEEPEST: Final = 32
_BREAK: Final = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_UNREADABLE: Final = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BOM: Final = b"\xef\xbb\xbf"


@dataclass(slots=True)
class _OpenNode:
    """An unfinished collection."""

    place: Position
    path: str
    value: list[Node] | dict[str, Node]
    keys: dict[str, Position] = field(default_factory=dict)
    key: str | None = None


@dataclass(slots=True)
class _NodeComposer:
    """Builds the node of one document from its events, without recursion."""

    source: str
    stack: list[_OpenNode] = field(default_factory=list)
    root: Node | None = None

    def feed(self, event: Event) -> None:
        match event:
            case ScalarEvent():
                self._add_scalar(event)
            case CollectionStartEvent():
                self._open(event)
            case SequenceEndEvent() | MappingEndEvent():
                frame = self.stack.pop()
                self._add_node(Node(frame.place, frame.path, frame.value, keys=frame.keys))
            case AliasEvent():
                self._fail("an alias is not supported: quote a value that begins with *", event)
            case _:
                pass

    def _add_scalar(self, event: ScalarEvent) -> None:
        self._reject_tag(event)
        place = self._find_position(event)
        if self._expects_key():
            self._add_key(event.value, place)
            return
        try:
            value = convert_to_json(resolve(event.value, None, plain=event.implicit[0]))
        except BadScalar as error:
            self._fail(str(error), event)
        self._add_node(Node(place, self._make_path(), value, text=event.value))

    def _add_key(self, key: str, place: Position) -> None:
        frame = self.stack[-1]
        if key in frame.keys:
            raise BadDocument(place, f"the key {shorten_key(key)} is repeated: line {frame.keys[key].line} has it, too")
        frame.key = key
        frame.keys[key] = place

    def _open(self, event: CollectionStartEvent) -> None:
        self._reject_tag(event)
        if self._expects_key():
            self._fail("a key is a list or an object: write a string", event)
        if len(self.stack) >= DEEPEST:
            self._fail(f"the document is nested deeper than {DEEPEST} levels", event)
        value: list[Node] | dict[str, Node] = {} if isinstance(event, MappingStartEvent) else []
        self.stack.append(_OpenNode(self._find_position(event), self._make_path(), value))

    def _add_node(self, node: Node) -> None:
        if not self.stack:
            self.root = node
            return
        frame = self.stack[-1]
        if isinstance(frame.value, list):
            frame.value.append(node)
        else:
            frame.value[frame.key or ""] = node
            frame.key = None

    def _make_path(self) -> str:
        """The path of the value that comes next."""
        if not self.stack:
            return ""
        frame = self.stack[-1]
        if isinstance(frame.value, list):
            return f"{frame.path}[{len(frame.value)}]"
        key = shorten_key(frame.key or "")
        return f"{frame.path}.{key}" if frame.path else key

    def _expects_key(self) -> bool:
        return bool(self.stack) and isinstance(self.stack[-1].value, dict) and self.stack[-1].key is None

    def _reject_tag(self, event: ScalarEvent | CollectionStartEvent) -> None:
        if event.tag is not None:
            self._fail("a tag is not supported: quote a value that begins with !", event)

    def _find_position(self, event: Event) -> Position:
        mark = event.start_mark
        return Position(self.source, mark.line + 1, mark.column + 1) if mark else Position(self.source, 1, 1)

    def _fail(self, problem: str, event: Event) -> NoReturn:
        raise BadDocument(self._find_position(event), problem)


def compose(data: bytes, source: str) -> Iterator[Node]:
    """Every document of a text that is not empty. `source` is the name of the text in places.

    Raises BadDocument, also for more than `SETTINGS` bytes.
    """
    text = _decode(data, source)
    composer = _NodeComposer(source)
    try:
        for event in read_events(text):
            composer.feed(event)
            if isinstance(event, DocumentEndEvent):
                if composer.root is not None and composer.root.value is not None:
                    yield composer.root
                composer = _NodeComposer(source)
    except MalformedDocument as error:
        place = Position(source, error.line or 1, error.column or 1)
        raise BadDocument(place, f"this is not YAML: {error.problem}") from error


def _decode(data: bytes, source: str) -> str:
    """The text of a file. Raises BadDocument for a text that is too long, not UTF-8 or has control characters."""
    if len(data) > SETTINGS:
        place = _find_end(data[:SETTINGS].decode("utf-8", "replace"), source)
        raise BadDocument(place, f"the file has more than {SETTINGS >> 20} MiB: split it")
    try:
        text = data.removeprefix(_BOM).decode("utf-8")
    except UnicodeDecodeError as error:
        before = data.removeprefix(_BOM)[: error.start].decode("utf-8")
        raise BadDocument(_find_end(before, source), "a byte is not UTF-8: save the file as UTF-8") from error
    if character := _UNREADABLE.search(text):
        code = f"U+{ord(character[0]):04X}"
        raise BadDocument(
            _find_end(text[: character.start()], source),
            f"the character {code} is not allowed: is this a text file? Write it as an escape in double quotes",
        )
    return text


def _find_end(before: str, source: str) -> Position:
    """The place behind a text."""
    lines = 1
    start = 0
    for line_break in _BREAK.finditer(before):
        lines += 1
        start = line_break.end()
    return Position(source, lines, len(before) - start + 1)
