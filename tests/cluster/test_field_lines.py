"""The lines of fields in files of manifests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scanner.cluster.files.field_lines import WantedLines, find_field_lines, has_lines

YAML = """\
# two documents
apiVersion: v1
metadata:
  labels:
    app.kubernetes.io/name: web
    "it's": here
spec:
  containers:
  - name: a
    image: nginx
  - {name: b,
     image: nginx:latest}
  anchored: &same
    deep: 1
  copied: *same
---
spec: {replicas: 1}
"""
LIST = """\
kind: List
items:
- metadata: {name: a}
- kind: List
  items:
  - metadata:
      name: b
    data: {x: y}
"""


def lines(file: Path, text: str, *paths: str, line: int = 1, items: tuple[int, ...] = ()) -> dict[str, int]:
    """The lines of the fields of one object in a file with a text."""
    file.write_text(text)
    [found] = find_field_lines(file, [WantedLines(line, items, paths)])
    return dict(found)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("spec.containers[0].image", 10),
        ("spec.containers[1].image", 12),
        ("spec.containers[1]", 11),
        ("metadata.labels['app.kubernetes.io/name']", 5),
        ("metadata.labels['it\\'s']", 6),
        ("spec.anchored.deep", 14),
    ],
)
def test_a_field_has_the_line_of_its_key(tmp_path: Path, path: str, line: int) -> None:
    """An item of a list has that of its beginning."""
    assert {"": 2, path: line} == lines(tmp_path / "a.yaml", YAML, path, line=2)


@pytest.mark.parametrize(
    ("path", "line"), [("spec.replicas", 7), ("metadata.annotations['a']", 3), ("spec.copied.deep", 15)]
)
def test_a_field_that_is_not_written_has_the_line_of_the_field_around_it(tmp_path: Path, path: str, line: int) -> None:
    """Where it would be added; behind an alias, the line of the alias."""
    assert {"": 2, path: line} == lines(tmp_path / "a.yaml", YAML, path, line=2)


def test_a_field_of_another_document_has_no_line(tmp_path: Path) -> None:
    """Params are not in the file of the object."""
    assert {"": 2} == lines(tmp_path / "a.yaml", YAML, "params.data.limit", line=2)


def test_each_document_has_its_own_lines(tmp_path: Path) -> None:
    """A document ends where the next one begins."""
    assert {"": 17, "spec.replicas": 17} == lines(tmp_path / "a.yaml", YAML, "spec.replicas", "metadata", line=17)


def test_an_item_of_a_list_has_its_own_lines(tmp_path: Path) -> None:
    """Also in a list within a list."""
    assert {"": 6, "metadata.name": 7, "data.x": 8} == lines(
        tmp_path / "a.yaml", LIST, "metadata.name", "data.x", items=(2, 1)
    )


@pytest.mark.parametrize("indent", [2, "\t"])
def test_json_has_lines(tmp_path: Path, indent: int | str) -> None:
    """Indented with spaces or tabs."""
    text = json.dumps({"kind": "Pod", "spec": {"containers": [{"image": "a/b"}]}}, indent=indent)

    assert {"": 1, "spec.containers[0].image": 6} == lines(tmp_path / "a.json", text, "spec.containers[0].image")


def test_a_file_that_is_gone_has_the_lines_of_its_documents(tmp_path: Path) -> None:
    """A scan that has read a file does not fail when the file is removed."""
    [found] = find_field_lines(tmp_path / "gone.yaml", [WantedLines(7, (), ("spec.replicas",))])

    assert {"": 7} == found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", False),
        ("{}", False),
        ("{}\n", False),
        ("{}\n\n", True),
        ("a: 1\nb: 2", True),
        ("x" * (1 << 20) + "\ny", True),
    ],
)
def test_a_file_of_one_line_has_no_lines_to_find(tmp_path: Path, text: str, *, expected: bool) -> None:
    """Such is the JSON that programs write; each field in it has the line of its object."""
    file = tmp_path / "all.json"
    file.write_text(text)
    assert expected == has_lines(file)
    assert has_lines(tmp_path / "missing.json")
