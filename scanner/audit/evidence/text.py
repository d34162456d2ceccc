"""A value as text for readers: close to CEL's notation, without hidden values, and cut to a readable length."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final

from scanner import cel
from scanner.audit.secret_values import mask_values
from scanner.audit.sensitive_fields import MASK, Trail, is_sensitive, mask_named_secrets
from scanner.cel.memo import ResultCache
from scanner.cel.values.runtime import print_value
from scanner.cel.values.values import Opaque

LONGEST = 240
_LONGEST_TEXT = 20_000
_DEEPEST = 12
_MOST = 16
_LEAVES = frozenset({str, bool, int, float, type(None)})
_SCALARS = frozenset({bool, int, type(None)})
_quoted: Final = json.JSONEncoder(ensure_ascii=False).encode


def write_error(text: str, hidden: Iterable[str]) -> str:
    """The text of an error without hidden values, cut to `LONGEST` characters."""
    return cut(_mask(text, hidden), LONGEST)


def write_value(value: cel.Value, hidden: frozenset[str], trail: Trail | None) -> str:
    """The text of a value, without `hidden` values and without sensitive fields, cut to `LONGEST` characters.

    `trail` leads to the value in its document; None if its place is unknown.
    """
    if not hidden and isinstance(value, str):
        text = TEXTS[value]
        return text if len(text) <= LONGEST else f"{text[:LONGEST]}…{_write_size(value)}"
    if not hidden and type(value) in _SCALARS:
        return _write_plain(value)
    if isinstance(value, list | dict):
        return _LATEST_TEXTS.get(value, hidden, trail) if value else str(value)
    return _write_value(value, hidden, trail)


class _LatestTexts:
    """The texts of the latest lists and maps: policies often fail on the same part of an object."""

    def __init__(self) -> None:
        self._texts: dict[tuple[int, Trail | None], tuple[cel.Value, frozenset[str], str]] = {}

    def get(self, value: cel.Value, hidden: frozenset[str], trail: Trail | None) -> str:
        """See `write_value`. An entry keeps its value alive, so that no other value gets the id."""
        key = id(value), trail
        latest = self._texts.get(key)
        if latest is not None and latest[1] == hidden:
            return latest[2]
        if len(self._texts) >= _MOST:
            self._texts.clear()
        text = _write_value(value, hidden, trail)
        self._texts[key] = value, hidden, text
        return text


_LATEST_TEXTS = _LatestTexts()


def _write_value(value: cel.Value, hidden: Iterable[str], trail: Trail | None) -> str:
    text = ""
    for piece in (_write_leaf(value, hidden),) if type(value) in _LEAVES else _write_pieces(value, hidden, trail, 0):
        text += piece
        if len(text) > LONGEST:
            return f"{text[:LONGEST]}…{_write_size(value)}"
    return text


def cut(text: str, longest: int) -> str:
    """The text, or its first `longest` characters and its length."""
    return text if len(text) <= longest else f"{text[:longest]}…{_write_size(text)}"


def _write_size(value: cel.Value) -> str:
    match value:
        case str():
            return f" [{len(value):,} characters]"
        case list():
            return f" [{len(value):,} elements]"
        case dict() | cel.KeyedMap():
            return f" [{len(value):,} entries]"
        case _:
            return ""


def _mask(text: str, hidden: Iterable[str]) -> str:
    if len(text) > _LONGEST_TEXT:
        return f"[a text of {len(text):,} characters]"
    return mask_named_secrets(mask_values(text, hidden))


def _write_pieces(value: cel.Value, hidden: Iterable[str], trail: Trail | None, depth: int) -> Iterator[str]:
    """The text of a value in pieces, so that the caller can stop before the end of a long value."""
    if depth > _DEEPEST:
        yield "…"
        return
    match value:
        case str():
            yield _write_leaf(value, hidden)
        case list():
            yield "["
            for at, item in enumerate(value):
                yield ", " if at else ""
                if is_sensitive(value, at, trail):
                    yield json.dumps(MASK)
                else:
                    yield from _write_inside(item, hidden, _extend_trail(trail, at), depth)
            yield "]"
        case dict() | cel.KeyedMap():
            yield from _write_entries(value, hidden, trail, depth)
        case cel.Struct() | cel.Message():
            yield value.type.name
            yield from _write_entries(value.fields, hidden, trail, depth)
        case cel.Optional() if value.present:
            yield "optional.of("
            yield from _write_pieces(value.value, hidden, trail, depth + 1)
            yield ")"
        case _:
            yield _write_leaf(value, hidden)


def _write_inside(value: cel.Value, hidden: Iterable[str], trail: Trail | None, depth: int) -> Iterable[str]:
    """The pieces of a value inside another one, at once for a value without parts."""
    if type(value) in _LEAVES and depth < _DEEPEST:
        return (_write_leaf(value, hidden),)
    return _write_pieces(value, hidden, trail, depth + 1)


def _write_leaf(value: cel.Value, hidden: Iterable[str]) -> str:
    """The text of a value without parts, and without hidden values."""
    if not isinstance(value, str):
        return _mask(_write_plain(value), hidden)
    return _quoted(_mask(value, hidden)) if hidden else TEXTS[value]


TEXTS: Final = ResultCache(lambda text: _quoted(_mask(text, ())))
"""The quoted forms of texts in which no value is hidden, because objects have many texts in common."""


def _write_entries(
    value: dict[str, cel.Value] | cel.KeyedMap, hidden: Iterable[str], trail: Trail | None, depth: int
) -> Iterator[str]:
    yield "{"
    for at, (key, item) in enumerate(value.items()):
        yield ", " if at else ""
        yield from _write_inside(key, hidden, None, depth)
        yield ": "
        if is_sensitive(value, key, trail):
            yield json.dumps(MASK)
        else:
            yield from _write_inside(item, hidden, _extend_trail(trail, key), depth)
    yield "}"


def _extend_trail(trail: Trail | None, key: cel.Value) -> Trail | None:
    return None if trail is None or not isinstance(key, str | int) else (*trail, key)


def _write_plain(value: cel.Value) -> str:
    """The text of a value without parts that is not a text itself."""
    match value:
        case None:
            return "null"
        case cel.UInt():
            return f"{value}u"
        case bytes():
            return f"[{len(value):,} bytes]"
        case cel.Optional():
            return "optional.none()"
        case Opaque():
            return str(value)
        case _:
            return print_value(value)
