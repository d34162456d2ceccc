"""Reading documents from files: the accepted documents, and the gaps for all others."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from scanner.cluster.files.manifests import FileDocument, read_documents
from scanner.errors import UsageError
from scanner.model.json import Json
from scanner.model.outcome import GapKind

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"


def written(folder: Path, text: str, name: str = "file.yaml") -> Path:
    """Write a file and return its path."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def names(documents: tuple[FileDocument, ...]) -> list[Json]:
    """The names of documents."""
    return [document.body["metadata"]["name"] for document in documents]  # type: ignore[index, call-overload]


def why(folder: Path, text: str) -> str:
    """The only reason why a file's only document is not read."""
    documents, gaps = read_documents(written(folder, text))
    assert (0, 1) == (len(documents), len(gaps))
    return gaps[0].why


# Which files


def test_a_folder_is_read_to_its_depth_in_order(tmp_path: Path) -> None:
    """YAML and JSON files are read in order of their names; other files and hidden ones are not."""
    for name in ("b.yml", "a/z.yaml", "c.json", "notes.txt", ".hidden.yaml", ".git/x.yaml"):
        written(tmp_path, json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}}), name)
    documents, gaps = read_documents(tmp_path)
    assert (["a/z.yaml", "b.yml", "c.json"], ()) == (names(documents), gaps)


def test_a_file_that_was_named_is_read_with_any_extension(tmp_path: Path) -> None:
    """Only the files of folders are filtered."""
    assert ["a"] == names(read_documents(written(tmp_path, POD, "pods.txt"))[0])


@pytest.mark.parametrize(
    ("before", "read"),
    [
        (": ", 9223372036854775808.0),
        (": -", -9223372036854775808.0),
        (":", 9223372036854775808.0),
        (":[1,", [1, 9223372036854775808.0]),
    ],
)
def test_an_integer_beyond_64_bits_is_a_float_in_json(tmp_path: Path, before: str, read: Json) -> None:
    """As Go decodes it. The digits of a checksum beside it are a text."""
    number = 9223372036854775808 if read != -9223372036854775808.0 else 9223372036854775809
    checksum = "a" + "1" * 30
    end = "]" if before.endswith(",") else ""
    text = f'{{"apiVersion":"v1","kind":"A","metadata":{{"name":"{checksum}"}},"spec"{before}{number}{end}}}'
    [document], _ = read_documents(written(tmp_path, text, "a.json"))
    assert (checksum, read) == (names((document,))[0], document.body["spec"])
    assert type(read) is type(document.body["spec"])


def test_standard_input_is_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """`-` is standard input, as for kubectl."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(POD.encode())))
    documents, _ = read_documents(Path("-"))
    assert ["standard input, document 1"] == [document.source for document in documents]


def test_a_path_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    """A wrong path does not look like an empty cluster."""
    with pytest.raises(UsageError, match="there is no file or folder"):
        read_documents(tmp_path / "nowhere")


def test_a_file_that_cannot_be_read_is_a_gap(tmp_path: Path) -> None:
    """The gap names the file, and the other files are read."""
    (tmp_path / "gone.yaml").symlink_to(tmp_path / "nowhere")
    written(tmp_path, POD)
    documents, gaps = read_documents(tmp_path)
    assert (["a"], [str(tmp_path / "gone.yaml")]) == (names(documents), [gap.where for gap in gaps])
    assert "cannot be read: No such file or directory" == gaps[0].why


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every folder: run the tests as another user")
def test_a_folder_that_cannot_be_read_is_a_gap(tmp_path: Path) -> None:
    """The gap stands for its manifests."""
    written(tmp_path, POD, "closed/pod.yaml")
    (tmp_path / "closed").chmod(0)
    documents, gaps = read_documents(tmp_path)
    assert ((), [str(tmp_path / "closed")]) == (documents, [gap.where for gap in gaps])


# Which documents


def test_a_document_has_its_place(tmp_path: Path) -> None:
    """The numbers of documents do not count empty ones."""
    path = written(tmp_path, f"# head\n---\n{POD}---\n---\n{POD}")
    documents, _ = read_documents(path)
    assert [f"{path}, document 1", f"{path}, document 2"] == [document.source for document in documents]


def test_a_list_unfolds(tmp_path: Path) -> None:
    """The items of `kind: List` are documents at every depth."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
    inner = {"apiVersion": "v1", "kind": "List", "items": [pod]}
    path = written(tmp_path, json.dumps({"apiVersion": "v1", "kind": "List", "items": [pod, inner]}))
    documents, gaps = read_documents(path)
    expected = [f"{path}, document 1, item 1", f"{path}, document 1, item 2, item 1"]
    assert (expected, ()) == ([document.source for document in documents], gaps)


def test_items_of_a_typed_list_take_its_type(tmp_path: Path) -> None:
    """Lists of the API omit apiVersion and kind of the items."""
    items = [{"metadata": {"name": "a"}}, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b"}}]
    path = written(tmp_path, json.dumps({"apiVersion": "apps/v1", "kind": "DeploymentList", "items": items}))
    documents, _ = read_documents(path)
    assert [("apps/v1", "Deployment"), ("v1", "Pod")] == [(d.body["apiVersion"], d.body["kind"]) for d in documents]


@pytest.mark.parametrize("items", ["[]", "null"])
def test_an_empty_list_has_no_documents(tmp_path: Path, items: str) -> None:
    """An empty list has neither objects nor gaps."""
    path = written(tmp_path, f"apiVersion: v1\nkind: PodList\nitems: {items}\n")
    assert ((), ()) == read_documents(path)


def test_a_broken_document_does_not_stop_the_others(tmp_path: Path) -> None:
    """Each fault is a gap that names file, document and place."""
    path = written(tmp_path, f"{POD}---\na: [\n---\n{POD}")
    documents, gaps = read_documents(path)
    assert (2, [(GapKind.DOCUMENT, f"{path}, document 2")]) == (len(documents), [(gap.kind, gap.where) for gap in gaps])
    assert "line 6, column 1: did not find expected node content" == gaps[0].why


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("just text", "is a string, not an object: "),
        ("- a", "is a list, not an object: "),
        ("12", "is a number, not an object: "),
        ("yes", "is a boolean, not an object: "),
        ("a: 1", "apiVersion: Required value: "),
        ("apiVersion: v1", "kind: Required value: "),
        ("apiVersion: 1\nkind: Pod", "apiVersion: Required value: "),
        ("apiVersion: a/b/c\nkind: Pod\nmetadata: {name: a}", "apiVersion: Invalid value: write group/version"),
        ("apiVersion: v1\nkind: Pod", "metadata.name: Required value: "),
        ("apiVersion: v1\nkind: Pod\nmetadata:", "metadata.name: Required value: "),
        ("apiVersion: v1\nkind: Pod\nmetadata: {generateName: ''}", "metadata.name: Required value: "),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {generateName: 7}",
            "metadata.generateName: must be a string, not a number",
        ),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: ''}", "metadata.name: Required value: "),
        ("apiVersion: v1\nkind: Pod\nmetadata: [a]", "metadata: must be an object, not a list"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: 12}", "metadata.name: must be a string, not a number: quote it"),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: yes}",
            "metadata.namespace: must be a string, not a boolean",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: [b]}",
            "metadata.labels: must be an object, not a list",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {on: yes}}",
            "metadata.labels[true]: must be a string, not a bool",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: {b: 1.5}}",
            "metadata.annotations[b]: must be a string, not a n",
        ),
        ("apiVersion: v1\nkind: List\nitems: [3]", "is a number, not an object: "),
    ],
)
def test_a_document_that_the_api_would_not_take_is_a_gap(tmp_path: Path, text: str, reason: str) -> None:
    """The gap names the field and the problem."""
    assert why(tmp_path, text).startswith(reason)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.binary(max_size=400))
@example(data=b"\xef\xbb\xbf")
@example(data=b"{" * 3000)
@example(data=b"[" * 3000)
@example(data=b"- " * 3000)
@example(data=b"? " * 3000)
@example(data=b"--- \xe2\x80\xa8")
def test_no_bytes_make_reading_fail(tmp_path: Path, data: bytes) -> None:
    """Any bytes give documents and gaps, and no exception."""
    path = tmp_path / "any.yaml"
    path.write_bytes(data)
    documents, gaps = read_documents(path)
    assert all(document.body.get("kind") for document in documents)
    assert all(gap.where.startswith(str(path)) for gap in gaps)


FRAGMENTS = st.sampled_from(
    ["a", "b: ", ": ", "- ", "\n", "  ", "---\n", "&x ", "*x", "<<: ", "{", "}", "[", "]", ", ", "'", '"', "|\n", "#", "!!int ",
     "!!binary ", "? ", "12", "1e9", ".nan", "~", "kind: Pod\n", "apiVersion: v1\n", "metadata: {name: n}\n", "items: ", "\t", "..."]
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=st.lists(FRAGMENTS, max_size=40).map("".join))
def test_no_almost_yaml_makes_reading_fail(tmp_path: Path, text: str) -> None:
    """Text that resembles a manifest gives no exception either."""
    documents, gaps = read_documents(written(tmp_path, text))
    assert all(isinstance(document.body["metadata"], dict) for document in documents)
    assert all(gap.why for gap in gaps)
