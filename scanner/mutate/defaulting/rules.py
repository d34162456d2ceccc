"""Default rules that fill fields. A null counts as absent, as in Go's decoder."""

from __future__ import annotations

from scanner.model.json import Json, JsonObject
from scanner.mutate.walk import Rule


def when_absent(**defaults: Json) -> Rule:
    """Fill pointer fields, which keep an explicit zero."""
    return lambda value: _filled(
        value, {name: default for name, default in defaults.items() if value.get(name) is None}
    )


def when_zero(**defaults: Json) -> Rule:
    """Fill plain fields, whose zero value counts as absent."""
    return lambda value: _filled(value, {name: default for name, default in defaults.items() if not value.get(name)})


def _filled(value: JsonObject, missing: JsonObject) -> JsonObject:
    return {**value, **missing} if missing else value
