"""Metadata as its Go type reads and writes it."""

from __future__ import annotations

import pytest

from scanner.model.json import Json
from scanner.mutate.custom import read_object_meta


@pytest.mark.parametrize(
    ("name", "value"), [("finalizers", ""), ("managedFields", {}), ("generateName", []), ("labels", 0), ("uid", 1.5)]
)
def test_malformed_metadata_of_an_embedded_object_is_kept_to_be_refused(name: str, value: Json) -> None:
    """Validation refuses it; in the metadata of the object itself it is dropped."""
    written = {"name": "x", name: value}

    assert written == read_object_meta(written, keeps_malformed=True)
    assert {"name": "x"} == read_object_meta(written)


@pytest.mark.parametrize(("name", "value"), [("finalizers", []), ("labels", {}), ("generateName", ""), ("uid", None)])
def test_empty_metadata_is_not_written(name: str, value: Json) -> None:
    """Empty metadata are left out, also of embedded objects."""
    assert {"name": "x"} == read_object_meta({"name": "x", name: value}, keeps_malformed=True)
