"""What a snapshot withholds from an object: all that a report about it would not show.

Rules: the sensitive fields and texts of `sensitive_fields` and `secret_values`, and every other place in the object that has one of
their values. A label is an identifier, and often equal to a plain environment variable: it is withheld as `population` redacts it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Final

from scanner.audit.secret_values import (
    SHORTEST_SECRET,
    get_fields,
    is_secret,
    list_hidden_values,
    list_secret_variables,
    mask_values,
)
from scanner.audit.sensitive_fields import MASK, SensitiveFields, holds_secret, mask_named_secrets, may_be_sensitive
from scanner.audit.taint import list_sensitive_texts
from scanner.model.json import Json
from scanner.model.resource import Resource
from scanner.model.withheld import Place

_FIELD: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*\Z")
"""A name that a field of the API has. Keys of data may have any."""
_IDENTITY: Final = frozenset({
    ("apiVersion",),
    ("kind",),
    *(
        ("metadata", field)
        for field in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "generation", "ownerReferences")
    ),
})  # fmt: skip
"""The fields by which every report names an object."""
_LABELS: Final = ("metadata", "labels")
_DEEPEST: Final = 200


def withhold(resource: Resource, *, is_policy: bool = False) -> tuple[Place, ...]:
    """Withhold the secrets of a decoded object in its body, and return their places.

    The body is changed: its parts are dicts and lists that nothing else has. Of a policy, whose text every report shows, only the metadata
    are searched.
    """
    return tuple(_Search(resource, is_policy=is_policy).run())


@dataclass(frozen=True, slots=True)
class _Part:
    """A map or list to search, its place, and a function that replaces it in its parent."""

    value: dict[str, Json] | list[Json]
    place: Place


class _Search:
    """The search of one object. `_strong` are values of secrets; `_weak` are those of all environment variables, too."""

    def __init__(self, resource: Resource, *, is_policy: bool) -> None:
        self._body = resource.body
        self._fields: SensitiveFields = get_fields(resource)
        self._is_policy = is_policy
        self._is_secret = is_secret(resource)
        sensitive = frozenset() if self._is_secret else list_sensitive_texts(resource.body)
        hidden = list_hidden_values(resource)
        named = hidden if self._is_secret else frozenset(list_secret_variables(resource.body))
        self._strong = frozenset(text for text in sensitive | named if len(text) >= SHORTEST_SECRET)
        self._weak = frozenset(hidden | self._strong)

    def run(self) -> Iterator[Place]:
        """Replace what is withheld, and yield its places."""
        stack: list[_Part] = [_Part(self._body, ())]  # type: ignore[arg-type] # decoders make dicts
        while stack:
            part = stack.pop()
            items = list(part.value.items()) if isinstance(part.value, dict) else list(enumerate(part.value))
            for step, value in items:
                place = (*part.place, step)
                if place in _IDENTITY or (self._is_policy and not part.place and step != "metadata"):
                    continue
                kept = self._withhold(part, step, value, place)
                if kept != value:
                    part.value[step] = kept  # type: ignore[index] # a step of this very part
                    yield place
                elif isinstance(value, dict | list) and value:
                    stack.append(_Part(value, place))

    def _withhold(self, part: _Part, step: str | int, value: Json, place: Place) -> Json:
        """The value as the snapshot has it: the same one, if nothing of it is withheld."""
        match value:
            case bool() | None:
                return MASK if self._hides(part, step) and value is not None else value
            case str():
                return self._withhold_text(part, step, value)
            case int() | float():
                return MASK if self._hides(part, step) or str(value) in self._weak else value
            case dict():
                return {} if value and (self._hides(part, step) or self._has_secret_key(value, place)) else value
            case list():
                return [] if value and self._hides(part, step) else value
            case _:
                return value

    def _hides(self, part: _Part, step: str | int) -> bool:
        hides: Callable[[object, object, Place], bool] = self._fields.hides
        return (self._is_secret or may_be_sensitive(step)) and hides(part.value, step, part.place)

    def _withhold_text(self, part: _Part, step: str | int, text: str) -> str:
        if not text:
            return text
        if self._hides(part, step):
            return MASK
        hidden = self._strong if part.place == _LABELS else self._weak
        if text in hidden:
            return MASK
        redacted = mask_named_secrets(text) if holds_secret(text) else text
        if self._is_secret and self._fields.holds_secret(text):
            return MASK
        return mask_values(redacted, hidden) if hidden else redacted

    def _has_secret_key(self, value: dict[str, Json], place: Place) -> bool:
        """Return whether a key of a map has a secret: then the map is withheld as a whole."""
        if len(place) >= _DEEPEST:
            return True
        return any(self._is_secret_key(key) for key in value)

    def _is_secret_key(self, key: str) -> bool:
        if _FIELD.match(key):
            return len(self._strong) > 0 and key in self._strong
        return _contains(key, self._weak) or holds_secret(key)


def _contains(text: str, values: Collection[str]) -> bool:
    return any(value in text for value in values)
