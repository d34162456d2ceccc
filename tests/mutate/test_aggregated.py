"""Objects of an aggregated API server, whose OpenAPI document is the only known schema."""

from __future__ import annotations

from typing import Any

import pytest

from scanner.model.json import Json
from scanner.mutate.difference import difference
from scanner.mutate.openapi import schemas_of
from scanner.mutate.storing import mutated, stored

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
FLUNDER = schemas_of(DOCUMENT, builtin=False)["g", "v1", "Flunder"]
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
    changed = mutated(FLUNDER, STORED, {**STORED, "metadata": {"name": "f", "uid": "other"}, "spec": spec})
    stored_object: Any = stored(FLUNDER, STORED, changed)

    assert FLUNDER.custom is None
    assert expected == [*map(str, difference(STORED, stored_object))]
