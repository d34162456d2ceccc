"""Objects that real servers stored have all their defaults, so that setting defaults changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scanner.cluster.schemas import builtin_schemas
from scanner.model.json import JsonObject, as_text, dig
from scanner.mutate.defaulting import set_defaults
from scanner.mutate.schema import Schema
from tests.conformance.cases import load, parameters

AT_LEAST = 50


def stored_objects(data: Any) -> Iterator[tuple[Schema, JsonObject]]:
    """Yield all objects of built-in kinds in recorded data that have a uid and a time from a server, with their schemas."""
    if isinstance(data, dict):
        group, _, version = as_text(data.get("apiVersion")).rpartition("/")
        schema = builtin_schemas().get((group, version, as_text(data.get("kind"))))
        if schema and dig(data, "metadata", "uid") and dig(data, "metadata", "creationTimestamp"):
            yield schema, data
    inside = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    for part in inside:
        yield from stored_objects(part)


@pytest.mark.parametrize("path", parameters("costs", "matching", "mutations", "policies"))
def test_recorded_objects_have_their_defaults(path: Path) -> None:
    """Setting the defaults of an object that a server stored gives back the very same object."""
    completed = [(document, set_defaults(schema, document)) for schema, document in stored_objects(load(path))]
    assert AT_LEAST < len(completed)
    assert [] == [document for document, after in completed if after is not document]
