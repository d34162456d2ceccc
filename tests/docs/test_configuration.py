"""The page and the schema of the configuration follow from the flags, and its examples are valid."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest

from scanner.cli.commands.catalog import list_settings
from scanner.config.file_reader import read_file
from scanner.documents.composer import compose
from scripts.generate_configuration import PAGE, SCHEMA, page, schema
from tests.docs.pages import ROOT

EXAMPLES = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def test_the_page_lists_every_key() -> None:
    """A flag that is added or reworded is in the page after `make docs`."""
    assert page() == PAGE.read_text(), "docs/configuration.md is out of date: run make docs"


def test_the_schema_has_every_key() -> None:
    """The schema is what JSON Schema allows."""
    assert schema() == SCHEMA.read_text(), "docs/config.schema.json is out of date: run make docs"
    jsonschema.Draft202012Validator.check_schema(json.loads(schema()))


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_is_valid(example: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """For Assay and for an editor."""
    path = tmp_path_factory.mktemp("example") / "assay.yaml"
    path.write_text(example)
    assert () == read_file(path, list_settings()).errors
    [document] = compose(example.encode(), "example")
    jsonschema.Draft202012Validator(json.loads(schema())).validate(document.json())


@pytest.mark.parametrize(
    "document",
    [{"failOn": "new"}, {"failOn": ["nwe"]}, {"chunkSize": 0}, {"zzz": 1}, {"schedule": {"zone": "x"}}, {"db": ""}],
)
def test_an_editor_finds_what_assay_rejects(document: object) -> None:
    """Types, choices, bounds, unknown keys."""
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(json.loads(schema())).validate(document)


def test_the_schema_is_in_the_wheel() -> None:
    """`assay config init` names its path."""
    assert '"docs/config.schema.json" = "scanner/_data/config.schema.json"' in (ROOT / "pyproject.toml").read_text()
