"""The HTML report in one file."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from scanner.errors import UsageError
from scanner.model.scan import ScanRecord
from scanner.report import FORMATS
from scanner.report.document import document_of

from .pages import Page, read
from .records import hostile_record, large_record, small_record

ONE_FILE = FORMATS["html-single"]


def written(record: ScanRecord, folder: Path) -> Path:
    """The report of a record in one file."""
    out = io.StringIO()
    ONE_FILE.render(document_of(record), out)
    path = folder / "report.html"
    path.write_text(out.getvalue(), "utf-8")
    return path


def page_of(record: ScanRecord, folder: Path) -> Page:
    """The parsed report of a record in one file."""
    return read(written(record, folder))


@pytest.mark.parametrize("record", [small_record(), hostile_record()])
def test_every_link_leads_to_a_place_in_the_file(record: ScanRecord, tmp_path: Path) -> None:
    """A file of its own refers to no other file, and has no id twice."""
    page = page_of(record, tmp_path)
    assert [] == page.faults
    assert sorted(set(page.ids())) == sorted(page.ids())
    assert [] == [link["href"] for link in page.named("a") if link["href"].removeprefix("#") not in page.ids()]


@pytest.mark.parametrize("record", [small_record(), hostile_record()])
def test_one_file_has_no_script(record: ScanRecord, tmp_path: Path) -> None:
    """Nothing runs and nothing is loaded, whatever objects are called."""
    page = page_of(record, tmp_path)
    assert [] == page.named("script") + page.named("img") + page.named("form")
    (policy,) = [meta["content"] for meta in page.named("meta") if "http-equiv" in meta]
    assert "script-src" not in policy


def test_citations_hold_in_one_file(tmp_path: Path) -> None:
    """The id of a finding is the same as in the folder of pages."""
    record = small_record()
    ids = page_of(record, tmp_path).ids()
    stored = [*record.findings(), *record.resolved()]
    assert sorted(f"f-{each.id}" for each in stored) == sorted(each for each in ids if each.startswith("f-"))


def test_the_text_of_a_policy_is_there_once(tmp_path: Path) -> None:
    """Each finding leads to the same text of its policy."""
    sections = [
        each["id"] for each in page_of(small_record(), tmp_path).named("section") if each.get("class") == "text"
    ]
    assert len(set(sections)) == len(sections) > 0


def test_same_scan_same_file(tmp_path: Path) -> None:
    """Rendering twice gives the same bytes."""
    assert written(small_record(), tmp_path).read_bytes() == written(small_record(), tmp_path).read_bytes()


def test_a_large_report_is_refused() -> None:
    """The message names the limit, the number, and the way out."""
    with pytest.raises(UsageError, match=r"at most 500 findings.*has 501.*--html DIR"):
        ONE_FILE.render(document_of(large_record(501)), io.StringIO())
