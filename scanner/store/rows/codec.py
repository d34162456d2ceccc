"""Encodes dataclasses of the model as JSON text and decodes them, so that reading a stored scan parses no manifests.

Fields that an older version did not write get their defaults; unknown fields of a newer version are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date
from enum import Enum
from functools import cache, lru_cache
from types import NoneType, UnionType
from typing import Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from scanner.model.json import OMITTED_IF_DEFAULT, Json

_Noun = TypeVar("_Noun")
_MOST_KEPT: Final = 1_024
_LONGEST_KEPT: Final = 8_192
"""The characters of the longest text whose dataclass is kept: kept texts need a few megabytes at most."""


def to_text(noun: object) -> str:
    """JSON of a dataclass in ASCII, which every database stores unchanged."""
    return json.dumps(_encode(noun), separators=(",", ":"))


def from_text(noun: type[_Noun], text: str) -> _Noun:
    """The dataclass that `to_text` wrote. Raises ValueError for any other text.

    Equal short texts may give one object, because scans share most of their rules; its JSON is read-only.
    """
    form: object = noun
    value = _decode_kept(form, text) if len(text) <= _LONGEST_KEPT else _decode_text(form, text)
    if not isinstance(value, noun):
        raise ValueError(f"not a stored {noun.__name__}")  # noqa: TRY004 -- the text is wrong, not a caller's type
    return value


def _decode_text(form: object, text: str) -> object:
    return _decode(form, json.loads(text))


_decode_kept: Final = lru_cache(_MOST_KEPT)(_decode_text)


def _encode(value: object) -> object:
    if is_dataclass(value):
        return {
            item.name: _encode(getattr(value, item.name))
            for item in fields(value)
            if not (item.metadata == OMITTED_IF_DEFAULT and getattr(value, item.name) == item.default)
        }
    if isinstance(value, Mapping):
        return {str(key): _encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_encode(item) for item in value]
    if isinstance(value, date):
        return value.isoformat()
    return value


def _decode(form: object, value: Json) -> object:
    origin = get_origin(form)
    if isinstance(form, type) and is_dataclass(form) and isinstance(value, Mapping):
        hints = _read_hints(form)
        return form(**{name: _decode(hint, value[name]) for name, hint in hints.items() if name in value})
    if isinstance(form, type) and issubclass(form, Enum):
        return form(value)
    if form is date and isinstance(value, str):
        return date.fromisoformat(value)
    if origin is tuple and isinstance(value, list):
        return tuple(_decode(get_args(form)[0], item) for item in value)
    if origin in {Union, UnionType} and value is not None:
        return _decode(next(item for item in get_args(form) if item is not NoneType), value)
    return value


@cache
def _read_hints(form: type) -> dict[str, object]:
    """The fields of a dataclass and their types; the alias `Json` stands for any object, because JSON is not converted."""
    return get_type_hints(form, localns={"Json": object, "Literal": Literal})
