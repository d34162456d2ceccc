"""The types of columns of findings and problems, as JSON schemas."""

from __future__ import annotations

from typing import Final

from scanner.model.json import JsonObject

TEXT: Final[JsonObject] = {"type": "string"}
TEXT_OR_NULL: Final[JsonObject] = {"type": ["string", "null"]}
TEXTS: Final[JsonObject] = {"type": "array", "items": TEXT}
NUMBER: Final[JsonObject] = {"type": "integer", "minimum": 0}
BOOLEAN: Final[JsonObject] = {"type": "boolean"}
TIME: Final[JsonObject] = {**TEXT, "format": "date-time"}
TIME_OR_NULL: Final[JsonObject] = {**TEXT_OR_NULL, "format": "date-time"}


def choice(*values: str | None) -> JsonObject:
    """One of some values; None is null."""
    return {"enum": [*values]}


def defined(name: str) -> JsonObject:
    """A value that a definition of the report's schema describes."""
    return {"$ref": f"#/$defs/{name}"}


def defined_or_null(name: str) -> JsonObject:
    """Such a value, or null."""
    return {"oneOf": [defined(name), {"type": "null"}]}


SEVERITY: Final = choice("critical", "high", "medium", "low", "info")
