"""Objects of many kinds with many of their fields set, so that removing a field shows its default.

Each is as a client creates it in the namespace `default`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml

from scanner.model.json import JsonObject, as_object

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_COMMON: JsonObject = {"labels": {"app": "a"}, "annotations": {"note": "n"}}


def _objects() -> Iterator[JsonObject]:
    for path in sorted(Path(__file__).parent.glob("*.yaml")):
        for document in yaml.load(path.read_bytes(), LOADER):  # noqa: S506 - a safe loader
            yield {**document, "metadata": {**_COMMON, **as_object(document["metadata"])}}


STORABLE: tuple[JsonObject, ...] = tuple(_objects())
