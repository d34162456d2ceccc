"""Which fields an object could have, and does not, by the schema of its kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from scanner.model.json import Json, JsonObject
from scanner.model.resource import Kind
from scanner.mutate.schema import Schema, Schemas


def absent_fields(schemas: Schemas, kind: Kind, document: JsonObject) -> Mapping[str, tuple[str, ...]]:
    """The names of fields that are not there, by the path of their owner."""
    schema = schemas.schema(kind)
    return dict(_absent(schema, schema.root, document, "")) if schema else {}


def _absent(schema: Schema, ref: Json, value: Json, path: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    atom = schema.resolve(ref)
    if isinstance(value, Mapping) and atom.map:
        yield path, tuple(sorted(atom.map.fields.keys() - value.keys()))
        for name, item in value.items():
            below = atom.map.of(name)
            if below is not None and name != "managedFields":
                yield from _absent(schema, below, item, f"{path}/{name}")
    elif isinstance(value, list) and atom.list:
        for at, item in enumerate(value):
            yield from _absent(schema, atom.list.element, item, f"{path}/{at}")
