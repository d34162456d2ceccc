"""Settings are read from a file or a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from scanner.documents.files import read, read_only
from scanner.documents.nodes import BadDocument
from scanner.errors import UsageError


def test_a_folder_is_read_in_order_of_names_without_hidden_files(tmp_path: Path) -> None:
    """Only .yaml, .yml and .json files count, also in folders below."""
    for name in ("b.yml", "a.yaml", "c.json", "sub/d.yaml", ".hidden.yaml", "..data/e.yaml", "note.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f'{{"name": "{name}"}}')
    assert ["a.yaml", "b.yml", "c.json", "sub/d.yaml"] == [node.entries()["name"].value for node in read(tmp_path)]


def test_a_missing_path_is_an_error_with_the_nearest_name(tmp_path: Path) -> None:
    """A typing mistake is found."""
    (tmp_path / "waivers.yaml").touch()
    with pytest.raises(UsageError, match=r"waiver.yaml: check the path. Did you mean waivers.yaml\?"):
        list(read(tmp_path / "waiver.yaml"))


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    """A dangling link is no empty file."""
    (tmp_path / "a.yaml").symlink_to("nowhere")
    with pytest.raises(UsageError, match="cannot be read: No such file or directory"):
        list(read(tmp_path))


def test_a_device_without_end_is_refused() -> None:
    """A device is no file."""
    with pytest.raises(UsageError, match="/dev/zero cannot be read: it is a device; name a regular file"):
        list(read(Path("/dev/zero")))


def test_a_file_with_a_second_document_is_refused_where_one_is_read(tmp_path: Path) -> None:
    """The second document would be ignored otherwise."""
    (tmp_path / "a.yaml").write_text("a: 1\n---\nb: 2\n")
    with pytest.raises(BadDocument, match="line 3, column 1: the file has a second document"):
        read_only(tmp_path / "a.yaml")


def test_an_empty_file_is_refused_where_a_document_is_read(tmp_path: Path) -> None:
    """Comments are no document."""
    (tmp_path / "a.yaml").write_text("# nothing\n")
    with pytest.raises(BadDocument, match="the file is empty"):
        read_only(tmp_path / "a.yaml")
