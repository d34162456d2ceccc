"""Writes the merge schemas of the kinds that a Kubernetes 1.36 server has by itself, out of its recorded OpenAPI documents.

Run it as `python -m scripts.generate_merge_schemas`; the recording is found through ASSAY_RECORDINGS.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from scanner.cluster.definitions import builtin_kinds, builtin_version
from scanner.model.json import Json, JsonObject, as_object, dig
from scanner.mutate.openapi import Compactor, read_kinds

TARGET = Path(__file__).parent.parent / "scanner" / "cluster" / "schemas.json"


def table(documents: JsonObject) -> JsonObject:
    """Return the table: its Kubernetes version, the types, their names, and the type of each kind's objects."""
    definitions = {
        name: schema
        for document in documents.values()
        for name, schema in as_object(dig(document, "components", "schemas")).items()
    }
    names = {key: name for document in documents.values() for key, name in read_kinds(as_object(document)).items()}
    compactor = Compactor(definitions)
    kinds = {}
    for kind in sorted(builtin_kinds()):
        name = names.get((kind.group, kind.version, kind.kind))
        if name:
            kinds[f"{kind.api_version}/{kind.kind}"] = compactor.get_number(name)
    keys = frozenset(key for shape in compactor.types for key in _keys(shape))
    types = [_without_defaults(shape, keys) for shape in compactor.types]
    return {"kubernetes": builtin_version(), "kinds": kinds, "names": compactor.names, "types": types}


def _keys(shape: Json) -> Iterator[Json]:
    """Yield the key fields of merged lists."""
    if isinstance(shape, dict):
        yield from as_object(shape).get("k") or ()  # type: ignore[misc]
        for part in shape.values():
            yield from _keys(part)


def _without_defaults(shape: Json, keys: frozenset[Json]) -> Json:
    """Return a type without the defaults of fields that are not keys; the server's own defaults are not in the type."""
    if not isinstance(shape, dict):
        return shape
    kept = {name: _without_defaults(part, keys) for name, part in shape.items() if name != "d"}
    if isinstance(shape.get("f"), dict):
        kept["f"] = {name: _without_defaults(part, keys) for name, part in shape["f"].items()}
    defaults = {name: value for name, value in as_object(shape.get("d")).items() if name in keys}
    return {**kept, "d": defaults} if defaults else kept


def main() -> int:
    """Write the table and print how many kinds it has."""
    source = Path(os.environ.get("ASSAY_RECORDINGS", "../shared/recordings")) / "openapi.json.gz"
    if not source.is_file():
        print(f"no recording at {source}: set ASSAY_RECORDINGS to the folder of recordings", file=sys.stderr)
        return 2
    made = table(json.loads(gzip.decompress(source.read_bytes()))["documents"])
    lines = ",\n".join(f"{json.dumps(key)}:{json.dumps(value, separators=(',', ':'))}" for key, value in made.items())
    TARGET.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
    print(f"{len(as_object(made['kinds']))} kinds written to {TARGET}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
