"""The excerpt of an object around the field that decided a check: its path, the field, and the fields beside it.

Lists and maps beside the field are not opened. Like the values of evidence, the text has no secret: see `redaction`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias

import orjson

from scanner import cel
from scanner.admission.dispatch import InvocationResult
from scanner.audit.evidence.text import write_value
from scanner.audit.secret_values import HIDDEN, is_secret, mask_values
from scanner.audit.sensitive_fields import MAPPINGS, MASK, Trail, is_sensitive, may_be_sensitive
from scanner.cel.explanation.explained import write_path
from scanner.model.json import Json, compact
from scanner.model.withheld import is_withheld

LONGEST = 512
"""Bytes of an excerpt."""
_CUT = "…"
_SHORTEST_TRAIL = 2
_METADATA: Trail = ("metadata",)
_NESTED = (dict, list)
_NONE: Final[frozenset[str]] = frozenset()
_MOST = 1024
_LONGEST_KEPT = 256
_Field: TypeAlias = "str | tuple[type, Json]"
_Key: TypeAlias = tuple[Trail, frozenset[str], bytes, tuple[str, ...], tuple[_Field, ...]]
_TEXTS: Final[dict[_Key, str]] = {}
"""Excerpts by all that they depend on: the field, the values to hide, the JSON of a list or map in the field, and the keys and
the values of the map around the field.

Objects of one workload have many maps in common.
"""


def make_excerpt(invocation_result: InvocationResult, trail: Trail) -> str:
    """The excerpt around a field, at most `LONGEST` bytes; empty for a Secret, and where nothing stands beside the field."""
    request, resource = invocation_result.request, invocation_result.resource
    if not trail or request is None or request.current is not None or is_secret(resource):
        return ""
    return cut_excerpt(
        resource.marked or resource.body, trail, HIDDEN.get(resource, invocation_result.invocation.param, request.old)
    )


def cut_excerpt(body: Json, trail: Trail, hidden: frozenset[str]) -> str:
    """The excerpt of an object around the field at the end of a trail, without `hidden` values and sensitive fields.

    Empty for fields of the object itself and of its metadata, which has the name of the object, and inside sensitive fields.
    """
    outer, last = trail[:-1], trail[-1]
    parent = _find_container(body, outer) if outer and outer != _METADATA else None
    if parent is None or not isinstance(last, str) or len(parent) == (last in parent):
        return ""
    field = parent.get(last)
    try:
        content = orjson.dumps(field) if isinstance(field, _NESTED) else b""
    except TypeError:  # no JSON
        return _write(parent, trail, hidden)
    if len(content) > _LONGEST_KEPT:
        return _write(parent, trail, hidden)
    fields = tuple([value if value.__class__ is str else _make_key_part(value) for value in parent.values()])
    key = trail, hidden, content, tuple(parent), fields
    text = _TEXTS.get(key)
    if text is None:
        text = _write(parent, trail, hidden)
        _keep(key, text)
    return text


def _make_key_part(value: Json) -> _Field:
    """A value beside the field, as a part of a key: of a list or map only its type and whether it is empty."""
    value_type = value.__class__
    if isinstance(value, _NESTED):
        return value_type, bool(value)
    return value_type, repr(value) if value_type is float else value  # 0.0 and -0.0 are equal keys


def _keep(key: _Key, text: str) -> None:
    """Keep an excerpt of short values. A full cache is cleared first."""
    trail, hidden, opened, names, fields = key
    if all(not isinstance(value, str) or len(value) <= _LONGEST_KEPT for value in (*hidden, *fields)):
        if len(_TEXTS) >= _MOST:
            _TEXTS.clear()
        _TEXTS[trail, hidden, compact(opened), names, fields] = text


def _write(parent: Mapping[str, Json], trail: Trail, hidden: frozenset[str]) -> str:
    outer, last = trail[:-1], trail[-1]
    path = mask_values(write_path(("object", *outer)), hidden)
    return _cut(f"{path}: {{{', '.join(_write_entries(parent, last, hidden, outer))}}}")


def find_deciding_trail(places: Iterable[cel.Place]) -> Trail:
    """The trail of the first place that is a field of the object, inside another field; empty if there is none."""
    for place in places:
        if len(place) <= _SHORTEST_TRAIL:
            continue
        steps = place[1:] if place[0] == "request" else place
        if steps[0] == "object" and len(steps) > _SHORTEST_TRAIL and isinstance(steps[-1], str):
            return steps[1:]
    return ()


def _find_container(body: Json, outer: Trail) -> Mapping[str, Json] | None:
    """The map at the end of a trail; None for any other value, and inside a sensitive field."""
    if not _may_pass_sensitive(outer):
        return _find_map(body, outer)
    value = body
    for at, step in enumerate(outer):
        if may_be_sensitive(step) and is_sensitive(value, step, outer[:at]):
            return None
        if isinstance(value, MAPPINGS) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value):
            value = value[step]
        else:
            return None
    return value if isinstance(value, MAPPINGS) else None


@lru_cache(maxsize=_MOST)
def _may_pass_sensitive(trail: Trail) -> bool:
    return any(may_be_sensitive(step) for step in trail if isinstance(step, str))


def _find_map(value: Any, trail: Trail) -> Mapping[str, Json] | None:
    try:
        for step in trail:
            value = value[step]
    except (KeyError, IndexError, TypeError):
        return None
    return value if isinstance(value, MAPPINGS) else None


def _write_entries(parent: Mapping[str, Json], last: str | int, hidden: frozenset[str], trail: Trail) -> list[str]:
    """The deciding field first, then the others."""
    entries: list[str] = []
    hidden_here = _select_occurring(parent, hidden)
    for key, value in parent.items():
        if may_be_sensitive(key) and is_sensitive(parent, key, trail):
            text = f'"{MASK}"'
        elif not isinstance(value, _NESTED) or not (value or is_withheld(value)):
            text = write_value(value, hidden_here, None)
        elif key == last:
            text = write_value(value, hidden, (*trail, key))
        else:
            text = "{…}" if isinstance(value, dict) else "[…]"
        line = f"{write_value(key, hidden_here, None)}: {text}"
        if key == last:
            entries.insert(0, line)
        else:
            entries.append(line)
    return entries


def _select_occurring(parent: Mapping[str, Json], hidden: frozenset[str]) -> frozenset[str]:
    """The hidden values that occur in the keys of a map and in its values besides lists and maps; nearly always none."""
    if not hidden:
        return hidden
    values = [value for value in parent.values() if not isinstance(value, _NESTED)]
    texts = [value if isinstance(value, str) else write_value(value, _NONE, None) for value in values]
    text = "\n".join([*parent, *texts])
    return hidden if any(value in text for value in hidden) else _NONE


def _cut(text: str) -> str:
    """The text, or as much of its beginning as fits into `LONGEST` bytes."""
    if len(text) <= LONGEST and text.isascii():
        return text
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= LONGEST:
        return text
    return data[: LONGEST - len(_CUT.encode())].decode("utf-8", "ignore") + _CUT
