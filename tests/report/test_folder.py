"""The folder of a report is replaced as a whole, and only if it has an earlier report."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from scanner.errors import UsageError
from scanner.report import FORMATS
from scanner.report.document.document import document_of
from scanner.report.output import MARKER, replace_folder

from .records import small_record, with_findings


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """A report that Assay wrote."""
    folder = tmp_path / "report"
    FORMATS["html"].render(document_of(small_record()), folder)
    return folder


def test_a_new_folder_is_created(tmp_path: Path) -> None:
    """Its parents are created, and nothing else is left beside the report."""
    with replace_folder(tmp_path / "a" / "report") as fresh:
        (fresh / "index.html").write_text("here")
    assert "here" == (tmp_path / "a" / "report" / "index.html").read_text()
    assert ["report"] == [path.name for path in (tmp_path / "a").iterdir()]


def test_an_empty_folder_is_used(tmp_path: Path) -> None:
    """The report is written into it."""
    with replace_folder(tmp_path) as fresh:
        (fresh / "index.html").write_text("here")
    assert {"index.html", MARKER} == {path.name for path in tmp_path.iterdir()}


def test_an_earlier_report_is_replaced(tmp_path: Path) -> None:
    """None of its pages stays."""
    folder = tmp_path / "report"
    FORMATS["html"].render(document_of(small_record()), folder)
    FORMATS["html"].render(document_of(with_findings(replace(small_record(), policies=(), tallies={}), ())), folder)
    assert [] == list(folder.glob("policies/*"))


def test_a_folder_with_other_files_is_rejected(tmp_path: Path) -> None:
    """The message names a file, and the folder stays unchanged."""
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"notes\.txt in it is not part of an Assay report"), replace_folder(tmp_path):
        pass
    assert "mine" == (tmp_path / "notes.txt").read_text()


@pytest.mark.parametrize("place", ["signed.pdf", "policies/notes.txt", "new/folder/notes.txt", ".hidden"])
def test_an_earlier_report_with_another_file_is_rejected(report: Path, place: str) -> None:
    """The file may be at any depth, and stays."""
    (report / place).parent.mkdir(parents=True, exist_ok=True)
    (report / place).write_text("mine")
    with pytest.raises(UsageError, match=re.escape(f"{place} in it is not part of the report")), replace_folder(report):
        pass
    assert "mine" == (report / place).read_text()


def test_a_report_with_a_changed_page_is_rejected(report: Path) -> None:
    """Notes of a user in a page are not lost."""
    (report / "index.html").write_text("my notes")
    with pytest.raises(UsageError, match=r"index\.html in it was changed"), replace_folder(report):
        pass
    assert "my notes" == (report / "index.html").read_text()


def test_a_file_added_during_rendering_is_kept(report: Path) -> None:
    """The content of the folder at the end decides."""
    with pytest.raises(UsageError, match=r"late\.txt in it is not part"), replace_folder(report):
        (report / "late.txt").write_text("mine")
    assert "mine" == (report / "late.txt").read_text()


def test_links_are_not_followed(report: Path, tmp_path: Path) -> None:
    """A link in place of a page or a folder is rejected, and its target stays unchanged."""
    outside = tmp_path / "outside"
    (report / "policies").rename(outside)
    (report / "policies").symlink_to(outside)
    with pytest.raises(UsageError, match="policies in it is not part of the report"), replace_folder(report):
        pass
    assert [*outside.iterdir()]


def test_a_copied_marker_is_not_trusted(report: Path, tmp_path: Path) -> None:
    """A marker is valid for the folder in which Assay wrote it, not for a copy or a clone."""
    copied = tmp_path / "copied"
    shutil.copytree(report, copied)
    with pytest.raises(UsageError, match="is a copy that Assay did not write there"), replace_folder(copied):
        pass
    assert (copied / "index.html").exists()


@pytest.mark.parametrize(
    "marker", [b"", b"src\nindex.html\n", b"\xff", b"[]", b'{"folder": 1, "marker": 1, "files": {"src/main.py": ""}}']
)
def test_a_forged_marker_is_not_trusted(tmp_path: Path, marker: bytes) -> None:
    """A marker that another program could write does not permit the removal of files."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.py").write_text("mine")
    (tmp_path / MARKER).write_bytes(marker)
    with pytest.raises(UsageError, match=r"Will not replace"), replace_folder(tmp_path):
        pass
    assert "mine" == (tmp_path / "src" / "main.py").read_text()


def test_a_moved_report_is_replaced(report: Path, tmp_path: Path) -> None:
    """It is the same folder under another name."""
    moved = report.rename(tmp_path / "moved")
    with replace_folder(moved) as fresh:
        (fresh / "index.html").write_text("here")
    assert "here" == (moved / "index.html").read_text()


def test_a_file_in_place_of_the_folder_is_rejected(tmp_path: Path) -> None:
    """The target must be a folder."""
    (tmp_path / "report").write_text("mine")
    with pytest.raises(UsageError, match="it is a file"), replace_folder(tmp_path / "report"):
        pass


def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    """The message names the folder and the remedy."""
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(UsageError, match=r"Cannot write the report to .*Name a folder"),
        replace_folder(tmp_path / "file" / "x"),
    ):
        pass


def test_a_failure_leaves_the_earlier_report(tmp_path: Path) -> None:
    """If rendering fails, the earlier report stays, and nothing else."""
    folder = tmp_path / "report"
    FORMATS["html"].render(document_of(small_record()), folder)
    with pytest.raises(RuntimeError), replace_folder(folder):
        raise RuntimeError
    assert (folder / "index.html").exists()
    assert [folder] == list(tmp_path.iterdir())


def test_a_link_to_a_folder_stays_a_link(tmp_path: Path) -> None:
    """The target of the link is replaced."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with replace_folder(tmp_path / "link") as fresh:
        (fresh / "index.html").write_text("here")
    assert (tmp_path / "link").is_symlink()
    assert "here" == (tmp_path / "real" / "index.html").read_text()
