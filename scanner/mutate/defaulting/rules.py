"""How a default rule fills fields. A null counts as absent, as Go's decoder takes it."""

from __future__ import annotations

from scanner.model.json import Json, JsonObject
from scanner.mutate.walk import Rule


def when_absent(**defaults: Json) -> Rule:
    """Fill pointer fields, which keep a zero that was given."""
    return lambda value: _filled(value, {name: one for name, one in defaults.items() if value.get(name) is None})


def when_zero(**defaults: Json) -> Rule:
    """Fill plain fields, whose zero is as if no value was given."""
    return lambda value: _filled(value, {name: one for name, one in defaults.items() if not value.get(name)})


def _filled(value: JsonObject, missing: JsonObject) -> JsonObject:
    return {**value, **missing} if missing else value
