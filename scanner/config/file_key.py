"""A key of the file that has no flag."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from scanner.documents.nodes import Node
from scanner.model.json import Json, JsonObject


@dataclass(frozen=True, slots=True)
class FileKey:
    """A key of the file without a flag. `field` is that of the record that gets the value, `schema` the JSON Schema of its values.

    `read` raises BadDocument. `default` is the value without the key; None for none.
    """

    key: str
    field: str
    help: str
    example: str
    schema: JsonObject
    read: Callable[[Node], object]
    default: Json = None
