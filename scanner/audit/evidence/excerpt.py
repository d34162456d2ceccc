"""The excerpt of an object around the field that decided a check: its path, the field, and the fields beside it.

Lists and maps beside the field are not opened. Like the values of evidence, the text has no secret: see `redaction`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache

from scanner import cel
from scanner.admission.dispatch import InvocationResult
from scanner.audit.evidence.text import value_text
from scanner.audit.secret_values import HIDDEN, is_secret, without
from scanner.audit.sensitive_fields import MASK, Trail, is_sensitive, may_be_sensitive
from scanner.cel.explanation.explained import path_of
from scanner.model.json import Json

LONGEST = 512
"""Bytes of an excerpt."""
_CUT = "…"
_SHORTEST_TRAIL = 2


class _LatestExcerpts:
    """The excerpts of the latest object: several of its findings are often about the same field."""

    def __init__(self) -> None:
        self._of: tuple[object, object] = (None, None)
        self._texts: dict[Trail, str] = {}

    def of(self, invocation_result: InvocationResult, trail: Trail) -> str:
        """The excerpt of the object around a field."""
        resource, param = invocation_result.resource, invocation_result.invocation.param
        if self._of[0] is not resource or self._of[1] is not param:
            self._of, self._texts = (resource, param), {}
        if trail not in self._texts:
            self._texts[trail] = excerpt_of(resource.body, trail, HIDDEN.of(resource, param))
        return self._texts[trail]


_EXCERPTS = _LatestExcerpts()


def excerpt(invocation_result: InvocationResult, trail: Trail) -> str:
    """The excerpt around a field, at most `LONGEST` bytes; empty for a Secret, and where nothing stands beside the field."""
    request = invocation_result.request
    if not trail or request is None or request.current is not None or is_secret(invocation_result.resource):
        return ""
    return _EXCERPTS.of(invocation_result, trail)


def excerpt_of(body: Json, trail: Trail, hidden: frozenset[str]) -> str:
    """The excerpt of an object around the field at the end of a trail, without `hidden` values and sensitive fields.

    Empty for fields of the object itself and of its metadata, which has the name of the object, and inside sensitive fields.
    """
    *outer, last = trail
    parent = _container(body, tuple(outer)) if len(outer) > 0 and outer != ["metadata"] else None
    if parent is None or not isinstance(last, str) or not parent.keys() - {last}:
        return ""
    path = without(path_of(("object", *outer)), hidden)
    return _cut(f"{path}: {{{', '.join(_entries(parent, last, hidden, tuple(outer)))}}}")


def deciding_trail(places: Iterable[cel.Place]) -> Trail:
    """The trail of the first place that is a field of the object, inside another field; empty if there is none."""
    for place in places:
        if len(place) <= _SHORTEST_TRAIL:
            continue
        steps = place[1:] if place[0] == "request" else place
        if steps[0] == "object" and len(steps) > _SHORTEST_TRAIL and isinstance(steps[-1], str):
            return steps[1:]
    return ()


def _container(body: Json, outer: Trail) -> Mapping[str, Json] | None:
    """The map at the end of a trail; None for any other value, and inside a sensitive field."""
    value = body
    for at, step in enumerate(outer):
        if is_sensitive(value, step, outer[:at]):
            return None
        if isinstance(value, Mapping) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value):
            value = value[step]
        else:
            return None
    return value if isinstance(value, Mapping) else None


def _entries(parent: Mapping[str, Json], last: str, hidden: frozenset[str], trail: Trail) -> Iterator[str]:
    """The deciding field first, then the others."""
    name_of = _name_of(parent, hidden)
    for key in (*(key for key in parent if key == last), *(key for key in parent if key != last)):
        value, name = parent[key], name_of(key)
        if may_be_sensitive(key) and is_sensitive(parent, key, trail):
            yield f'{name}: "{MASK}"'
        elif key != last and isinstance(value, dict | list) and value:
            yield f"{name}: {'{…}' if isinstance(value, dict) else '[…]'}"
        else:
            yield f"{name}: {value_text(value, hidden, (*trail, key))}"


def _name_of(parent: Iterable[str], hidden: frozenset[str]) -> Callable[[str], str]:
    """The function that writes the keys of a map: from memory, unless a key has a hidden value."""
    keys = "\n".join(parent)
    if any(value in keys for value in hidden):
        return lambda key: value_text(key, hidden, None)
    return _name


@lru_cache(maxsize=4096)
def _name(key: str) -> str:
    return value_text(key, frozenset(), None)


def _cut(text: str) -> str:
    """The text, or as much of its beginning as fits into `LONGEST` bytes."""
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= LONGEST:
        return text
    return data[: LONGEST - len(_CUT.encode())].decode("utf-8", "ignore") + _CUT
