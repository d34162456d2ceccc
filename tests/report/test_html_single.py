"""The HTML report as one file."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from scanner.errors import UsageError
from scanner.report import FORMATS
from scanner.report.document.document import document_of
from scanner.report.html.place_pages import place_path
from scanner.report.html.single_file import MOST
from scanner.report.text.safe_text import visible
from tests.report.in_memory import ScanInMemory

from .pages import main_of, read
from .records import HOSTILE, hostile_record, large_record, partial_record, small_record

RECORDS = pytest.mark.parametrize("record", [small_record(), partial_record(), hostile_record()])


@pytest.fixture
def file(tmp_path: Path, record: ScanInMemory) -> Path:
    """The report of a scan as one file."""
    out = io.StringIO()
    FORMATS["html-single"].render(document_of(record), out)
    path = tmp_path / "report.html"
    path.write_text(out.getvalue(), "utf-8")
    return path


@pytest.mark.parametrize("record", [partial_record()])
def test_the_file_of_an_incomplete_scan(file: Path, snapshot: SnapshotAssertion) -> None:
    """The text of all sections, one after the other."""
    assert main_of(file) == snapshot


@RECORDS
def test_every_id_is_there_once(file: Path) -> None:
    """An id of two pages would lead to the first of them."""
    assert [] == [name for name, number in Counter(read(file).ids()).items() if number > 1]


@RECORDS
def test_every_link_leads_to_a_part_of_the_file(file: Path) -> None:
    """Only links of the cluster's own texts lead elsewhere."""
    page = read(file)
    links = [link["href"] for link in page.named("a") if "href" in link]

    assert [] == [link for link in links if link.startswith("#") and link[1:] not in set(page.ids())]
    assert [] == [link for link in links if not link.startswith(("#", "http://", "https://"))]


@RECORDS
def test_every_page_of_the_folder_is_a_section(record: ScanInMemory, file: Path, tmp_path: Path) -> None:
    """And no page is there twice."""
    folder = tmp_path / "folder"
    FORMATS["html"].render(document_of(record), folder)
    pages = {path.relative_to(folder).as_posix() for path in folder.rglob("*.html")}

    assert pages == {name for name in read(file).ids() if name.endswith(".html")}


@RECORDS
def test_a_finding_has_the_id_that_it_has_everywhere(record: ScanInMemory, file: Path) -> None:
    """A citation of a finding is found in each form of the report."""
    ids = {stored.id for stored in record.findings()}

    assert {f"f-{each}" for each in ids} <= set(read(file).ids())
    assert {place_path(each) for each in ids} <= set(read(file).ids())


@RECORDS
def test_nothing_runs(file: Path) -> None:
    """The file has no script, and its policy allows none."""
    text = file.read_text("utf-8")

    assert ("<script" in text, "script-src" in text, "<template" in text) == (False, False, False)


@pytest.mark.parametrize("record", [hostile_record()])
def test_texts_stay_texts(file: Path) -> None:
    """Also those that look like attributes or links."""
    text = read(file).text

    assert [] == [hostile for hostile in HOSTILE if visible(hostile)[:200] not in text]


def test_a_large_scan_is_refused() -> None:
    """With what to do instead."""
    with pytest.raises(UsageError, match=r"One file is for 2,000 findings at most.*--html DIR"):
        FORMATS["html-single"].render(document_of(large_record(MOST + 1)), io.StringIO())
