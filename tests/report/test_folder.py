"""A report's folder appears whole, and replaces nothing but an earlier report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from scanner.errors import UsageError
from scanner.report import FORMATS, document_of
from scanner.report.folder import MARKER, replaced

from .records import small_record


def test_a_new_folder(tmp_path: Path) -> None:
    """Folders above are made, and nothing else is left beside the report."""
    with replaced(tmp_path / "a" / "report") as fresh:
        (fresh / "index.html").write_text("here")
    assert "here" == (tmp_path / "a" / "report" / "index.html").read_text()
    assert ["report"] == [it.name for it in (tmp_path / "a").iterdir()]


def test_an_empty_folder(tmp_path: Path) -> None:
    """An empty folder is used."""
    with replaced(tmp_path) as fresh:
        (fresh / "index.html").write_text("here")
    assert {"index.html", MARKER} == {it.name for it in tmp_path.iterdir()}


def test_an_earlier_report(tmp_path: Path) -> None:
    """An earlier report is replaced as a whole: none of its pages stay."""
    folder = tmp_path / "report"
    FORMATS["html"].render(document_of(small_record()), folder)
    FORMATS["html"].render(
        document_of(replace(small_record(), policies=(), tallies={}, findings=lambda: iter(()))), folder
    )
    assert [] == list((folder / "policies").iterdir())


def test_a_foreign_folder(tmp_path: Path) -> None:
    """A folder that holds anything else is refused, by naming what it holds, and stays as it is."""
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"notes\.txt in it is not part of an Assay report"), replaced(tmp_path):
        pass
    assert "mine" == (tmp_path / "notes.txt").read_text()


def test_a_foreign_file_in_a_report(tmp_path: Path) -> None:
    """An earlier report that somebody put a file into is refused too."""
    folder = tmp_path / "report"
    FORMATS["html"].render(document_of(small_record()), folder)
    (folder / "signed.pdf").write_text("mine")
    with pytest.raises(UsageError, match=r"signed\.pdf"):
        FORMATS["html"].render(document_of(small_record()), folder)


def test_a_file(tmp_path: Path) -> None:
    """A file is refused."""
    (tmp_path / "report").write_text("mine")
    with pytest.raises(UsageError, match="it is a file"), replaced(tmp_path / "report"):
        pass


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """When the folder cannot be written, the message says where and what to do."""
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(UsageError, match=r"Cannot write the report to .*Name a folder"),
        replaced(tmp_path / "file" / "x"),
    ):
        pass


def test_a_failure_leaves_the_earlier_report(tmp_path: Path) -> None:
    """When rendering fails, the earlier report stays, and nothing else."""
    folder = tmp_path / "report"
    FORMATS["html"].render(document_of(small_record()), folder)
    with pytest.raises(RuntimeError), replaced(folder):
        raise RuntimeError
    assert (folder / "index.html").exists()
    assert [folder] == list(tmp_path.iterdir())


def test_a_link_to_a_folder(tmp_path: Path) -> None:
    """A symbolic link stays one: what it leads to is replaced."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with replaced(tmp_path / "link") as fresh:
        (fresh / "index.html").write_text("here")
    assert (tmp_path / "link").is_symlink()
    assert "here" == (tmp_path / "real" / "index.html").read_text()
