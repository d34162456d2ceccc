"""Objects of an aggregated API server, whose OpenAPI document is the only known schema."""

from __future__ import annotations

from typing import Any

import pytest

from scanner.model.json import Json
from scanner.mutate.difference import find_changes
from scanner.mutate.openapi import read_schemas
from scanner.mutate.storing import read_mutated, store_update

KIND = {"group": "g", "version": "v1", "kind": "Flunder"}
DOCUMENT: Any = {
    "components": {
        "schemas": {
            "g.Flunder": {
                "type": "object",
                "x-kubernetes-group-version-kind": [KIND],
                "properties": {
                    "apiVersion": {"type": "string"},
                    "kind": {"type": "string"},
                    "metadata": {"type": "object"},
                    "spec": {"allOf": [{"$ref": "#/components/schemas/g.FlunderSpec"}]},
                },
            },
            "g.FlunderSpec": {
                "type": "object",
                "properties": {"size": {"type": "integer", "default": 3}, "text": {"type": "string"}},
            },
        }
    }
}
FLUNDER = read_schemas(DOCUMENT, builtin=False)["g", "v1", "Flunder"]
STORED: Any = {"apiVersion": "g/v1", "kind": "Flunder", "metadata": {"name": "f", "uid": "u"}, "spec": {"size": 3}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"size": 4}, ["~ /spec/size: 3 → 4"]),
        ({}, []),
        ({"size": 3, "unknown": 1}, []),
        ({"size": 3, "text": None}, []),
    ],
)
def test_what_its_document_says_decides_what_is_left(spec: Json, expected: list[str]) -> None:
    """Unknown fields are removed, a default is restored, and server-set metadata stay."""
    changed = read_mutated(FLUNDER, STORED, {**STORED, "metadata": {"name": "f", "uid": "other"}, "spec": spec})
    stored_object: Any = store_update(FLUNDER, STORED, changed)

    assert FLUNDER.custom is None
    assert expected == [*map(str, find_changes(STORED, stored_object))]
