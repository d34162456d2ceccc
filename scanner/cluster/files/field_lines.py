"""The lines of fields in files of manifests: where a person edits the value that decided a finding.

The events of PyYAML have the lines. They are read a second time, for objects with findings alone: a scan needs no line. JSON is read
as YAML, whose flow style it is.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct, field
from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    DocumentEndEvent,
    Event,
    MappingStartEvent,
    ScalarEvent,
    SequenceStartEvent,
)

from scanner.cluster.yaml import MalformedDocument, read_events

_STEP: Final = re.compile(r"\[(?P<index>\d+)\]|\['(?P<quoted>(?:[^'\\]|\\.)*)'\]|\.?(?P<name>[A-Za-z_][A-Za-z0-9_-]*)")
_PART: Final = 1 << 20
_ESCAPE: Final = re.compile(r"\\(.)")
_Step: TypeAlias = "str | int"


class WantedLines(NamedTuple):
    """The fields of an object whose lines are wanted, as `cel` writes paths: `spec.containers[2].image`.

    `line` is that of its document, and `items` are the numbers of its item in lists, from 1.
    """

    line: int
    items: tuple[int, ...]
    paths: Sequence[str]


class _WantedField(Struct):
    """A field that is wanted, or that has a wanted one in it. `line` is 0 until it is read."""

    line: int = 0
    fields: dict[_Step, _WantedField] = field(default_factory=dict)

    def add_path(self, steps: Sequence[_Step]) -> _WantedField:
        """The field at the end of some steps, which is added."""
        place = self
        for step in steps:
            place = place.fields.setdefault(step, _WantedField())
        return place


def has_lines(file: Path) -> bool:
    """Return whether a file has more than one line, as one with JSON for programs has not; True if it cannot be read any more."""
    try:
        with file.open("rb") as opened:
            ended = False
            while part := opened.read(_PART):
                if ended or b"\n" in part[:-1]:
                    return True
                ended = part.endswith(b"\n")
    except OSError:
        return True
    return False


def find_field_lines(file: Path, wanted: Sequence[WantedLines]) -> Iterator[Mapping[str, int]]:
    """For each object the line of its beginning, under an empty path, and those of its fields, from 1.

    A field that the file does not have has the line of the nearest field around it, or none. A file that cannot be read any more
    has the lines of documents alone.
    """
    documents: defaultdict[int, _WantedField] = defaultdict(_WantedField)
    for each in wanted:
        for path in ("", *each.paths):
            documents[each.line].add_path((*_item_steps(each), *_split_path(path)))
    for line, root in zip(documents, _read_texts(file, list(documents)), strict=True):
        _read_lines(root, documents[line], line)
    for each in wanted:
        yield _list_lines(each, documents[each.line])


def _item_steps(wanted: WantedLines) -> tuple[_Step, ...]:
    return tuple(step for number in wanted.items for step in ("items", number - 1))


def _split_path(path: str) -> tuple[_Step, ...]:
    """The steps of a path; those before a part that is no step."""
    steps: list[_Step] = []
    position = 0
    while match := _STEP.match(path, position):
        index, quoted, name = match.groups()
        steps.append(int(index) if index else name or _ESCAPE.sub(r"\1", quoted))
        position = match.end()
    return tuple(steps)


def _list_lines(wanted: WantedLines, document: _WantedField) -> dict[str, int]:
    object_field = document.add_path(_item_steps(wanted))
    lines = {"": object_field.line or wanted.line}
    for path in wanted.paths:
        place, line = object_field, 0
        for step in _split_path(path):
            place = place.fields[step]
            if not place.line:
                break
            line = place.line
        if line:
            lines[path] = line
    return lines


def _read_texts(file: Path, lines: Sequence[int]) -> Iterator[str]:
    """The text from each line to the end of its document; empty if the file cannot be read any more."""
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        yield from ("" for _ in lines)
        return
    every = text.split("\n")
    separators = [number for number, each in enumerate(every) if each.startswith("---")]
    for line in lines:
        at = bisect_left(separators, line)
        yield "\n".join(every[line - 1 : separators[at] if at < len(separators) else None])


def _read_lines(text: str, root: _WantedField, line: int) -> None:
    """Set the lines of the wanted fields of the first document in a text that begins at a line of its file."""
    walk = _LineSetter([_OpenCollection(root, is_list=False, is_root=True)], line)
    try:
        for event in read_events(text):
            if isinstance(event, DocumentEndEvent):
                return
            walk.feed(event)
    except MalformedDocument:
        return


class _OpenCollection(Struct):
    """An unfinished collection; `wanted` is None inside a field whose lines are not wanted. `key` is None until a key is read."""

    wanted: _WantedField | None
    is_list: bool
    is_root: bool = False
    number: int = 0
    has_key: bool = False
    value: _WantedField | None = None


class _LineSetter(Struct):
    """Follows the events of a document, and sets the lines of the wanted fields."""

    stack: list[_OpenCollection]
    first: int

    def feed(self, event: Event) -> None:
        match event:
            case ScalarEvent() | AliasEvent():
                self._add_scalar(event)
            case MappingStartEvent() | SequenceStartEvent():
                self.stack.append(_OpenCollection(self._begin_value(event), isinstance(event, SequenceStartEvent)))
            case CollectionEndEvent():
                self.stack.pop()
            case _:
                pass

    def _add_scalar(self, event: ScalarEvent | AliasEvent) -> None:
        frame = self.stack[-1]
        if frame.is_list or frame.is_root or frame.has_key:
            self._begin_value(event)
            return
        frame.has_key = True
        frame.value = self._find_field(frame, event.value if isinstance(event, ScalarEvent) else "", event)

    def _begin_value(self, event: Event) -> _WantedField | None:
        """The wanted field whose value begins, or None."""
        frame = self.stack[-1]
        if frame.is_root:
            if frame.wanted is not None:
                frame.wanted.line = _get_line(event) + self.first
            return frame.wanted
        if frame.is_list:
            frame.number += 1
            return self._find_field(frame, frame.number - 1, event)
        frame.has_key = False
        return frame.value

    def _find_field(self, frame: _OpenCollection, step: _Step, event: Event) -> _WantedField | None:
        """The wanted field at a key or an index, whose line is that of the key or of the item."""
        wanted_field = frame.wanted.fields.get(step) if frame.wanted is not None else None
        if wanted_field is not None:
            wanted_field.line = _get_line(event) + self.first
        return wanted_field


def _get_line(event: Event) -> int:
    return event.start_mark.line if event.start_mark else 0
