"""Values that an earlier chart does not have: with `helm upgrade --reuse-values`, they are missing in the values of the release."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from scanner.model.json import Json, JsonObject, as_object
from scripts.generate_chart import DEFAULTS, defaults
from tests.deploy.matrix import MATRIX
from tests.deploy.programs import CHART, rendered


def test_the_defaults_of_the_templates_are_current() -> None:
    """They are made from values.yaml: run `make docs`."""
    assert defaults() == DEFAULTS.read_text()


@pytest.mark.parametrize("case", MATRIX.values(), ids=MATRIX)
def test_a_missing_value_has_its_default(case: JsonObject, tmp_path: Path) -> None:
    """A chart whose values.yaml has the maps alone into which users put keys renders the same: those of every earlier chart are enough."""
    bare = tmp_path / "chart"
    shutil.copytree(CHART, bare)
    maps: dict[str, Json] = {
        key: value for key, value in yaml.safe_load(defaults()).items() if isinstance(value, dict) and value
    }
    (bare / "values.yaml").write_text(yaml.safe_dump(nested(maps)))
    assert rendered(case) == rendered(case, chart=bare)


TEMPLATES = [path for path in sorted((CHART / "templates").rglob("*.*")) if path.suffix in (".yaml", ".txt")]


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_every_template_begins_with_the_defaults(template: Path) -> None:
    """Helm promises no order in which it renders templates."""
    assert template.read_text().startswith('{{- include "assay.defaults" . -}}\n')


def nested(values: dict[str, Json]) -> JsonObject:
    """Values by their keys in place of their paths."""
    document: dict[str, Json] = {}
    for path, value in values.items():
        first, dot, rest = path.partition(".")
        document[first] = {**as_object(document.get(first)), **nested({rest: value})} if dot else value
    return document


def test_a_missing_map_has_its_default(tmp_path: Path) -> None:
    """With values that have no key at all, the chart renders the objects of its defaults."""
    bare = tmp_path / "chart"
    shutil.copytree(CHART, bare)
    (bare / "values.yaml").write_text("{}\n")
    assert rendered() == rendered(chart=bare)


def test_a_map_of_the_user_gets_no_keys_of_the_default() -> None:
    """The value null takes a key of `config` away for good."""
    [config] = [document for document in rendered({"config": {"skipKind": None}}) if document["kind"] == "ConfigMap"]
    assert "skipKind" not in str(config)
