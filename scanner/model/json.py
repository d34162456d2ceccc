"""Kubernetes objects as decoded JSON values, which are never changed.

The accessors return an empty value for a value of another type, so that callers can read a malformed object without a check
at every step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

Json: TypeAlias = bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"] | None
JsonObject: TypeAlias = Mapping[str, Json]

EMPTY: JsonObject = {}
OMITTED_IF_DEFAULT: Mapping[str, bool] = {"omitted if default": True}
"""The metadata of a dataclass field whose default is not stored: texts of older versions and of this one are equal."""


def dig(value: Json, *path: str) -> Json:
    """The value at `path`, or None as soon as a step is missing."""
    for step in path:
        if type(value) is dict or (value is not None and isinstance(value, Mapping)):
            value = value.get(step)
        else:
            return None
    return value


def as_object(value: Json) -> JsonObject:
    """The value if it is an object, else an empty one."""
    if type(value) is dict:  # decoders make dicts alone, and this test is much faster
        return value
    return value if value is not None and isinstance(value, Mapping) else EMPTY


def as_list(value: Json) -> Sequence[Json]:
    """The value if it is a list, else an empty one."""
    if type(value) is list:
        return value
    return value if value is not None and isinstance(value, Sequence) and not isinstance(value, str) else ()


def as_text(value: Json) -> str:
    """The value if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def texts(value: Json) -> tuple[str, ...]:
    """The strings of a list of strings; other items are left out."""
    return tuple(item for item in as_list(value) if isinstance(item, str))


def text_map(value: Json) -> dict[str, str]:
    """The entries of an object whose values are strings, such as labels."""
    return {key: item for key, item in as_object(value).items() if isinstance(item, str)}


def compact(data: bytes) -> bytes:
    """The same bytes in memory of their size, to be kept: a short text of `orjson.dumps` holds four kilobytes."""
    return bytes(memoryview(data))
