"""Decodes a YAML document as kubectl does: YAML 1.1 in Go's dialect, converted to JSON.

Source of truth: `sigs.k8s.io/yaml.YAMLToJSON`, which is `Unmarshal` of go.yaml.in/yaml/v2 and a conversion to JSON.
PyYAML scans and parses; its resolvers and constructors are not used. Of a repeated key the last value
counts, and a merge key overrides the keys before it, because kubectl sends these values to the server.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NoReturn, Protocol, TypeAlias

import yaml as pyyaml
from msgspec import Struct, field
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

from scanner.cluster.scalars import BadScalar, Scalar, convert_to_json, resolve, write_key
from scanner.model.json import Json

MAX_DEPTH: Final = 240
_LOADER: Final = getattr(pyyaml, "CSafeLoader", pyyaml.SafeLoader)
_COLLECTION_KEY: Final = "a mapping key is a collection, and JSON has no such keys"
_QUOTED: Final = re.compile(r""""[^"\s]{2,}"|'[^'\s<][^'\s]+'""")
"""A text of the document in a problem, which has no blank in it; a token such as `'<scalar>'` or `','` is none."""
_MERGE_TAG: Final = "tag:yaml.org,2002:merge"

# The share of alias expansions that yaml.v2 allows: nearly all in small documents, a tenth in very large ones.
_FREE_ALIASES: Final = 100
_FREE_NODES: Final = 1_000
_SMALL: Final = 400_000
_LARGE: Final = 4_000_000


class MalformedDocument(ValueError):
    """A document that cannot be read; `line` and `column` count from 1 in the file, 0 where unknown."""

    def __init__(self, problem: str, line: int = 0, column: int = 0) -> None:
        where = f"line {line}, column {column}: " if line else ""
        super().__init__(f"{where}{problem}")
        self.problem = problem
        self.line = line
        self.column = column


_Built: TypeAlias = "Scalar | list[_Built] | dict[str, _Built]"


class _Mark(Protocol):
    """The line and column of an event, from 0."""

    line: int
    column: int


class _OpenValue(Struct):
    """An unfinished collection. `merging` is true if the next value belongs to a merge key."""

    value: list[_Built] | dict[str, _Built]
    anchor: str | None
    nodes_before: int
    key: str | None = None
    merging: bool = False


class _ValueComposer(Struct):
    """Builds the value of one document from its events, without recursion."""

    line_offset: int
    stack: list[_OpenValue] = field(default_factory=list)
    anchors: dict[str, tuple[_Built, int] | None] = field(default_factory=dict)
    nodes: int = 0
    aliased: int = 0
    result: _Built = None

    def feed(self, event: Event) -> None:
        match event:
            case ScalarEvent():
                self._add_scalar(event)
            case AliasEvent():
                self._add_alias(event)
            case CollectionStartEvent():
                self._open(event)
            case SequenceEndEvent() | MappingEndEvent():
                self._close(event)
            case _:
                pass

    def _add_scalar(self, event: ScalarEvent) -> None:
        if self._expects_key() and _is_merge(event):
            self.stack[-1].merging = True
            return
        self.nodes += 1
        try:
            value = resolve(event.value, event.tag, plain=event.implicit[0])
            if event.anchor is not None:
                self.anchors[event.anchor] = (value, 1)
            self._place_scalar(value, event)
        except BadScalar as error:
            self._fail(str(error), event)

    def _place_scalar(self, value: Scalar, event: Event) -> None:
        if self._expects_key():
            self.stack[-1].key = write_key(value)
        else:
            self._place(convert_to_json(value), event)

    def _add_alias(self, event: AliasEvent) -> None:
        if event.anchor not in self.anchors:
            self._fail("unknown anchor referenced: quote a value that begins with *", event)
        anchored = self.anchors[event.anchor]
        if anchored is None:
            self._fail("an anchor's value contains itself", event)
        value, size = anchored
        self.nodes += 1 + size
        self.aliased += size
        self._limit_aliases(event)
        if not isinstance(value, list | dict):
            self._add_alias_of_scalar(value, event)
        elif self._expects_key():
            self._fail(_COLLECTION_KEY, event)
        elif self.stack and self.stack[-1].merging and isinstance(value, list):
            self._fail("map merge requires map or sequence of maps as the value", event)
        else:
            self._place(value, event)

    def _add_alias_of_scalar(self, value: Scalar, event: Event) -> None:
        try:
            self._place_scalar(value, event)
        except BadScalar as error:
            self._fail(str(error), event)

    def _open(self, event: CollectionStartEvent) -> None:
        if self._expects_key():
            self._fail(_COLLECTION_KEY, event)
        if len(self.stack) >= MAX_DEPTH:
            self._fail(f"nested deeper than {MAX_DEPTH} levels", event)
        self.nodes += 1
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        value: list[_Built] | dict[str, _Built] = {} if isinstance(event, MappingStartEvent) else []
        self.stack.append(_OpenValue(value, event.anchor, self.nodes))

    def _close(self, event: Event) -> None:
        frame = self.stack.pop()
        if frame.anchor is not None:
            self.anchors[frame.anchor] = (frame.value, self.nodes - frame.nodes_before + 1)
        self._place(frame.value, event)

    def _place(self, value: _Built, event: Event) -> None:
        if self.aliased:
            self._limit_aliases(event)
        if not self.stack:
            self.result = value
            return
        frame = self.stack[-1]
        if isinstance(frame.value, list):
            frame.value.append(value)
        elif frame.merging:
            self._merge(frame.value, value, event)
            frame.merging = False
        else:
            frame.value[frame.key or ""] = value
            frame.key = None

    def _merge(self, target: dict[str, _Built], value: _Built, event: Event) -> None:
        sources = list(reversed(value)) if isinstance(value, list) else [value]
        for source in sources:
            if not isinstance(source, dict):
                self._fail("map merge requires map or sequence of maps as the value", event)
            target.update(source)

    def _expects_key(self) -> bool:
        if not self.stack:
            return False
        frame = self.stack[-1]
        return isinstance(frame.value, dict) and frame.key is None and not frame.merging

    def _limit_aliases(self, event: Event) -> None:
        if self.aliased <= _FREE_ALIASES or self.nodes <= _FREE_NODES:
            return
        if self.aliased / self.nodes > _compute_allowed_ratio(self.nodes):
            self._fail("document contains excessive aliasing", event)

    def _fail(self, problem: str, event: Event) -> NoReturn:
        raise _make_error(problem, event.start_mark, self.line_offset)


def load(text: str, *, line_offset: int = 0) -> Json:
    """The JSON value of the first document in `text`; None when there is none.

    `line_offset` is added to the lines that errors name. Raises Malformed.
    """
    composer = _ValueComposer(line_offset)
    for event in read_events(text, line_offset=line_offset):
        if isinstance(event, DocumentEndEvent):
            break
        composer.feed(event)
    return composer.result


def read_events(text: str, *, line_offset: int = 0) -> Iterator[Event]:
    """The events of all documents in a text. Raises Malformed, with the place and without a text of the document."""
    try:
        yield from pyyaml.parse(text, Loader=_LOADER)
    except pyyaml.MarkedYAMLError as error:
        # Some messages quote the document, such as a tag: a value that begins with ! or *.
        problem = _QUOTED.sub("a text", error.problem or error.context or "malformed YAML")
        raise _make_error(problem, error.problem_mark or error.context_mark, line_offset) from error
    except pyyaml.YAMLError as error:
        raise MalformedDocument(" ".join(str(error).split())) from error


def _make_error(problem: str, mark: _Mark | None, line_offset: int) -> MalformedDocument:
    if mark is None:
        return MalformedDocument(problem)
    return MalformedDocument(problem, mark.line + 1 + line_offset, mark.column + 1)


def _is_merge(event: ScalarEvent) -> bool:
    return event.value == "<<" and (event.implicit[0] or event.tag == _MERGE_TAG)


def _compute_allowed_ratio(nodes: int) -> float:
    if nodes <= _SMALL:
        return 0.99
    if nodes >= _LARGE:
        return 0.10
    return 0.99 - 0.89 * (nodes - _SMALL) / (_LARGE - _SMALL)
