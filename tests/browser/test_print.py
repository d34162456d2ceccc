"""Reports on paper."""

from __future__ import annotations

import re
from collections import Counter
from io import BytesIO
from pathlib import Path
from unicodedata import normalize

import pytest
from playwright.sync_api import Page
from pypdf import PdfReader

from scanner.report import FORMATS
from scanner.report.document.document import document_of
from scanner.report.document.notes import list_missed
from scanner.report.paper.page import render_page
from tests.report.papers import long_paper, paper_of
from tests.report.records import large_record, partial_record
from tests.thorough import FULL

from .conftest import opened
from .month import print_month

_SHEETS = 30
_MOST_OF_PAPER = 20
_BUSY = 180_000
"""Milliseconds that a page of 1,000 findings may take on a machine that is busy."""
_SMALL_LETTERS = """() => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), small = new Set();
  while (texts.nextNode()) {
    const of = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !of.getClientRects().length || of.closest(".sr")) continue;
    const drawn = of.closest("svg"), scale = drawn ? drawn.getBoundingClientRect().width / drawn.viewBox.baseVal.width : 1;
    if (parseFloat(getComputedStyle(of).fontSize) * scale * 0.75 < 7.99) small.add(texts.currentNode.data.trim());
  }
  return [...small];
}"""
"""The printed texts in letters of less than 8 points."""
WORST = 10
"""The worst problems of a summary."""
_HEADS = "Action Severity Workload Problem Owner Age Finding"


def printed(page: Page) -> list[str]:
    """The texts of the sheets of a page."""
    pdf = PdfReader(BytesIO(page.pdf(prefer_css_page_size=True)))
    return [" ".join(sheet.extract_text().split()) for sheet in pdf.pages]


def test_a_thousand_findings_are_printed_on_thirty_sheets(page: Page, large: Path) -> None:
    """Every sheet has the heads of the columns, and names the scan and the rules; no row is lost."""
    report = opened(page, large)
    sheets: list[str] = []
    for number in range(1, len([*large.glob("findings*.html")]) + 1):
        report.open("findings.html" if number == 1 else f"findings-{number}.html")
        sheets += printed(page)
    assert _SHEETS >= len(sheets)
    assert [] == [sheet for sheet in sheets if _HEADS not in sheet]
    assert [] == [sheet for sheet in sheets if "Assay · scan 20260302-140000-ab12 · policy set " not in sheet]
    rows = {
        row for sheet in sheets for row in re.findall(r"limits on it · (policy-\d{3}) .{6,24} ([0-9a-f]{10})\b", sheet)
    }
    assert 1_000 == len(rows)


def test_printed_rows_have_whole_ids(page: Page, example: Path) -> None:
    """Auditors cite them: nothing of an id is cut."""
    report = opened(page, example)
    for name in ("findings.html", "index.html"):
        report.open(name)
        ids = page.locator(".problems tbody .fid").all_inner_texts()
        text = " ".join(printed(page))
        assert ids
        assert [] == [each for each in ids if each not in text]


def test_a_printed_place_names_what_it_is_about(page: Page, small: Path) -> None:
    """The sheet of a finding has its id, and the digest of the rules."""
    report = opened(page, small)
    (place, *_) = sorted((small / "f").glob("*.html"))
    report.open(f"f/{place.name}")
    identifier = page.locator("article .fid").first.inner_text()
    (first, *_) = printed(page)
    assert identifier in first
    assert "policy set " in first


@pytest.mark.parametrize(("findings", "most"), [(218, 40), *([(1_000, 60)] if FULL else [])])
def test_one_file_has_few_sheets(page: Page, tmp_path: Path, findings: int, most: int) -> None:
    """Each finding stands once, in short form; the summary repeats the worst ones alone."""
    record = large_record(findings, policies=10, namespaces=20)
    with (tmp_path / "report.html").open("w", encoding="utf-8") as out:
        FORMATS["html-single"].render(document_of(record), out)
    page.goto((tmp_path / "report.html").as_uri(), timeout=_BUSY)
    text = " ".join(sheets := printed(page))

    assert most >= len(sheets)
    counts = Counter(text.count(stored.id) for stored in record.findings())
    assert {1: findings - WORST, 2: WORST} == counts, "the summary repeats the worst problems alone"


@pytest.mark.parametrize(
    ("copies", "more_policies", "least", "most"),
    [
        (0, (), 70, 30),
        (1, ("examples/policies-controls",), 218, 40),
        *([(7, ("examples/policies-controls",), 950, 60)] if FULL else []),
    ],
)
def test_a_month_of_a_real_cluster_has_few_sheets(
    page: Page, tmp_path: Path, copies: int, more_policies: tuple[str, ...], least: int, most: int
) -> None:
    """With rules, controls and changes; each finding and each text of a policy stands once, and no letter is smaller than 8 points."""
    report, ids = print_month(tmp_path, copies=copies, more_policies=more_policies)
    page.goto(report.as_uri(), timeout=_BUSY)
    texts = page.locator('.of-policies section[aria-labelledby$="~text"] pre')
    policies = texts.filter(has_text="kind: ValidatingAdmissionPolicy").count()
    sheets = printed(page)
    text = " ".join(sheets)
    page.emulate_media(media="print")

    assert least <= len(ids)
    assert most >= len(sheets)
    assert Counter(dict.fromkeys(ids, 1)) == Counter({each: text.count(each) for each in ids})
    assert policies == text.count("kind: ValidatingAdmissionPolicy metadata:")
    assert [] == page.evaluate(_SMALL_LETTERS)


def test_every_gap_is_printed(page: Page, tmp_path: Path) -> None:
    """What a scan could not examine is never shortened."""
    document = document_of(partial_record())
    with (tmp_path / "report.html").open("w", encoding="utf-8") as out:
        FORMATS["html-single"].render(document, out)
    page.goto((tmp_path / "report.html").as_uri(), timeout=_BUSY)
    text = normalize("NFKC", "".join("".join(printed(page)).split()))

    missed = list_missed(document)
    assert missed
    assert [] == [
        part for gap in missed for part in (gap.where, gap.title, gap.why) if "".join(part.split()) not in text
    ]


@pytest.mark.parametrize("findings", [218, 0, *([1_000] if FULL else [])])
def test_the_paper_of_a_control_has_twenty_sheets_at_most(page: Page, tmp_path: Path, findings: int) -> None:
    """With a run a day, sixty changes of rules and a sample; every part is there. 0 stands for the longest paper."""
    paper = paper_of(large_record(findings, policies=10, namespaces=20)) if findings else long_paper()
    (tmp_path / "index.html").write_text(render_page(paper, {"findings.csv": "0" * 64}), "utf-8")
    page.goto((tmp_path / "index.html").as_uri(), timeout=_BUSY)
    sheets = printed(page)
    text = " ".join(sheets)

    assert _MOST_OF_PAPER >= len(sheets)
    parts = ("1. Findings", "2. Register", "3. Waivers", "4. Rules", "5. Sample", "6. Digests")
    assert [] == [part for part in parts if part not in text]
