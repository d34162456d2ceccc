"""Mappings of controls are read, and errors are named with line and column."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from scanner.documents.composer import compose
from scanner.documents.controls import read_framework, read_frameworks
from scanner.documents.files import read
from scanner.documents.nodes import BadDocument
from scanner.errors import UsageError
from scanner.policies import language as language_table
from scanner.posture.controls import Control, Framework, PolicySelector, SelectorKind

ROOT = Path(__file__).parents[2]
SCHEMA: Any = json.loads((ROOT / "docs" / "controls.schema.json").read_text("utf-8"))
LANGUAGES = tuple(name for language in language_table.LANGUAGES for name in language.names)
HEAD = "apiVersion: assay.dev/v1alpha1\nkind: ControlMapping\n"
WHOLE = (
    HEAD
    + """\
metadata:
  name: house-rules
spec:
  title: House rules
  version: "3"
  controls:
    - id: "1.1"
      title: One
      policies:
        - name: limits
        - {glob: "team-*", language: ValidatingPolicy}
        - {label: example.com/control, value: "1.1"}
        - {annotation: note}
    - {id: "1.2", title: Two}
"""
)


def framework(text: str) -> Framework:
    """The framework of the only document of a text."""
    [node] = compose(text.encode(), "f.yaml")
    return read_framework(node, languages=LANGUAGES)


def test_a_mapping_has_controls_and_selectors() -> None:
    """By name, glob, label and annotation."""
    selectors = (
        PolicySelector(SelectorKind.NAME, "limits"),
        PolicySelector(SelectorKind.GLOB, "team-*", language="ValidatingPolicy"),
        PolicySelector(SelectorKind.LABEL, "example.com/control", "1.1"),
        PolicySelector(SelectorKind.ANNOTATION, "note"),
    )
    controls = Control("1.1", "One", selectors), Control("1.2", "Two")
    assert Framework("house-rules", "House rules", "3", controls) == framework(WHOLE)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("v1alpha1", "v1", "f.yaml, line 1, column 13: apiVersion: must be assay.dev/v1alpha1$"),
        ("ControlMapping", "Waiver", "line 2, column 7: kind: must be ControlMapping$"),
        ("house-rules", "House/Rules", "line 4, column 9: metadata.name: must be the name of a framework"),
        ("  title: House", "  titel: House", r"line 6, column 3: unknown field spec.titel. Did you mean title\?"),
        ("  title: House rules\n", "", "line 6, column 3: spec: the field title is missing"),
        ('version: "3"', "version: 3.0", "line 7, column 12: spec.version: must be a string, not a number: quote it"),
        ('id: "1.1"', "id: 1.1", r"line 9, column 11: spec.controls\[0\].id: must be a string, not a number: quote it"),
        ('id: "1.2"', 'id: "1.1"', r"line 16, column 12: .*1.1 is the id of the control at f.yaml, line 9, column 11"),
        ("title: One", 'title: "a\\x1bb"', "must be one line of printable characters"),
        ("title: One", "title: " + "x" * 301, "must have at most 300 characters, not 301"),
        ("name: limits", "{}", "must have exactly one of name, glob, label, annotation"),
        ("name: limits", "{name: a, glob: b}", "must have exactly one of name, glob, label, annotation"),
        ("name: limits", "{name: a, value: b}", "value: belongs to a label or an annotation"),
        ("name: limits", "{name: [a]}", "must be a string, not a list"),
        ("name: limits", "limits", "must be an object, not a string"),
        ("ValidatingPolicy", "ValidatingPolice", r"must be one of .* Did you mean ValidatingPolicy\?"),
    ],
)
def test_an_error_has_its_line_and_column(before: str, after: str, message: str) -> None:
    """Nothing that is written in a mapping is ignored."""
    assert before in WHOLE
    with pytest.raises(BadDocument, match=message):
        framework(WHOLE.replace(before, after, 1))


def test_a_mapping_without_controls_is_an_error() -> None:
    """A report by no control would look like a clean one."""
    with pytest.raises(BadDocument, match=r"spec\.controls: must have at least one control"):
        framework(HEAD + "metadata: {name: a}\nspec: {title: A, controls: []}\n")


def test_frameworks_are_read_from_files_and_folders(tmp_path: Path) -> None:
    """In the order of the paths and of the files in a folder."""
    for name in ("b", "a", "c"):
        (tmp_path / f"{name}.yaml").write_text(WHOLE.replace("house-rules", name))
    paths = [tmp_path / "c.yaml"]
    assert ["c"] == [each.name for each in read_frameworks(paths, languages=LANGUAGES)]
    assert ["a", "b", "c"] == [each.name for each in read_frameworks([tmp_path], languages=LANGUAGES)]


def test_a_framework_is_described_once(tmp_path: Path) -> None:
    """Two documents of one name would contradict each other: also the same file, named twice."""
    path = tmp_path / "a.yaml"
    path.write_text(WHOLE)
    with pytest.raises(BadDocument, match=r"house-rules is described in .*a\.yaml, line 1, column 1 already"):
        read_frameworks([path, tmp_path], languages=LANGUAGES)


def test_a_path_without_a_document_is_an_error(tmp_path: Path) -> None:
    """An empty folder is no mapping."""
    with pytest.raises(UsageError, match="has no document: check the path"):
        read_frameworks([tmp_path], languages=LANGUAGES)


def test_the_schema_is_a_schema_of_mappings() -> None:
    """The committed schema accepts the mapping of this test and the examples, and knows the languages."""
    Draft202012Validator.check_schema(SCHEMA)
    examples = sorted((ROOT / "examples" / "controls").glob("*.yaml"))
    assert examples
    for node in (*compose(WHOLE.encode(), "f.yaml"), *(node for path in examples for node in read(path))):
        Draft202012Validator(SCHEMA).validate(node.json())
    assert LANGUAGES == tuple(SCHEMA["$defs"]["selector"]["properties"]["language"]["enum"])


@pytest.mark.parametrize(
    "change",
    [
        ("v1alpha1", "v1"),
        ("house-rules", "House/Rules"),
        ("  title: House", "  titel: House"),
        ('version: "3"', "version: 3.0"),
        ("name: limits", "{name: a, glob: b}"),
        ("name: limits", "{name: a, value: b}"),
        ("name: limits", "{}"),
        ("ValidatingPolicy", "ValidatingPolice"),
        ("title: One", "title: ''"),
    ],
)
def test_the_schema_rejects_what_the_reader_rejects(change: tuple[str, str]) -> None:
    """An editor shows the same errors."""
    [node] = compose(WHOLE.replace(*change, 1).encode(), "f.yaml")
    assert not Draft202012Validator(SCHEMA).is_valid(node.json())
    with pytest.raises(BadDocument):
        read_framework(node, languages=LANGUAGES)
