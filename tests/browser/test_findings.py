"""The list of findings: filters, sorting and pages, with and without the script."""

from __future__ import annotations

from pathlib import Path
from shutil import copytree, rmtree

import pytest
from playwright.sync_api import Browser, Page

from scanner.report.lists.filters import STATUSES

from .conftest import opened
from .visits import Visit

_LINES = 100
"""Pixels of a row that is one line."""


def test_a_link_with_a_filter_shows_what_matches(report: Visit) -> None:
    """The fragment of the address is the filter."""
    report.open("findings.html#action=Deny&namespace=pay")
    (row,) = report.shown("Rows 1 to 1 of 1 that match")
    assert row.startswith(
        "✕ Deny medium Deployment pay/ledger every container needs limits require-limits payments ↺ Reopened 1 d "
    )
    assert [] == report.faults


def test_the_verdict_counts_the_rows_to_which_it_leads(page: Page, example: Path) -> None:
    """Waived, excepted and previewed problems are in the list, and neither in the verdict nor behind its links."""
    report = opened(page, example)
    report.open("index.html")
    parts = page.locator("h1 a").evaluate_all("links => links.map(link => [link.innerText, link.getAttribute('href')])")
    expected = {href: int(text.split()[0].replace(",", "")) for text, href in parts if "findings.html" in href}
    assert 2 <= len(expected)
    rows = {}
    for href in expected:
        report.open("index.html")
        report.open(href)
        caption = page.locator(".problems caption", has_text="that match")
        caption.wait_for()
        rows[href] = int(caption.inner_text().split()[-3])
    assert expected == rows


def test_statuses_divide_the_list(page: Page, example: Path) -> None:
    """Each problem that is not resolved is open, waived, excepted, previewed or not checked."""
    report = opened(page, example)
    report.open("findings.html")
    number = dict.fromkeys((value for value, _ in STATUSES), 0)
    total = len(report.rows())
    for status in number:
        report.open("index.html")
        report.open(f"findings.html#status={status}")
        page.locator(".problems caption", has_text="match").wait_for()
        number[status] = len(report.rows())
    parts = ("open", "waived", "excepted", "preview", "unchecked")
    assert number["unresolved"] == sum(number[part] for part in parts)
    assert total == number["unresolved"] + number["resolved"]
    assert 0 not in [number[part] for part in ("open", "waived", "excepted", "preview", "resolved")]


def test_the_verdict_counts_the_gaps_to_which_it_leads(page: Page, partial: Path) -> None:
    """Each gap is a row of the page of coverage."""
    report = opened(page, partial)
    report.open("index.html")
    words = page.locator("h1 .v-gaps").inner_text()
    report.click(words)
    assert int(words.split()[0]) == page.locator("section[aria-labelledby=gaps] tbody tr").count()


def test_a_filter_is_kept_in_the_address(report: Visit) -> None:
    """A chosen field can be sent as a link; without fields, the whole list is shown again."""
    page = report.open("findings.html")
    before = report.rows()
    report.choose("severity", "medium")
    report.choose("status", "new")
    report.shown("Rows 1 to 2 of 2 that match")
    assert page.url.endswith("#severity=medium&status=new")
    report.click("Clear", "button")
    report.shown("Rows 1 to 8 of 8")
    assert before == report.rows()


def test_the_script_writes_the_rows_of_the_page(report: Visit) -> None:
    """A filter that all rows match gives the same HTML as the page without a filter."""
    page = report.open("findings.html")
    written = page.locator(".problems tbody tr").evaluate_all("rows => rows.map(row => row.innerText)")
    page = report.open("findings.html#text=e")
    report.shown("Rows 1 to 8 of 8 that match")
    assert written == page.locator(".problems tbody tr").evaluate_all("rows => rows.map(row => row.innerText)")


def test_text_finds_messages_and_rules(report: Visit) -> None:
    """Every word must be in the names, the messages or the rule of a row."""
    page = report.open("findings.html")
    page.get_by_label("Text").fill("10 ALLOWED max-rep")
    (row,) = report.shown("Rows 1 to 1 of 1 that match")
    assert "shop/web 10 replicas, 5 allowed max-replicas" in row
    page.get_by_label("Text").fill("nothing like this")
    assert [] == report.shown("No row matches")


def test_a_link_to_a_part_of_the_page_keeps_the_filter(report: Visit) -> None:
    """The link that skips the navigation is the first one that Tab reaches."""
    page = report.open("findings.html#action=Deny&namespace=pay")
    rows = report.shown("Rows 1 to 1 of 1 that match")
    page.get_by_text("Skip to content").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**#main")
    assert rows == report.rows()


def test_a_page_without_its_data_says_so(page: Page, small: Path, tmp_path: Path) -> None:
    """A page that was copied alone shows all rows, and does not pretend that they are those of the filter."""
    copytree(small, tmp_path / "report")
    rmtree(tmp_path / "report" / "data")
    report = opened(page, tmp_path / "report")
    report.open("findings.html#action=Deny&namespace=pay")
    page.get_by_role("table").get_by_text("The filter of this address is not applied").wait_for()
    assert (8, False) == (len(report.rows()), page.locator(".filter").is_visible())


def test_texts_that_the_script_writes_stay_texts(page: Page, hostile: Path) -> None:
    """Names, messages and owners from a cluster make no element, and run nothing."""
    report = opened(page, hostile)
    report.open("findings.html#text=script")
    rows = report.shown("Rows 1 to 1 of 1 that match")
    assert "<script>alert(1)</script>" in rows[0]
    report.open("findings.html#sort=workload")
    report.shown("Rows 1 to 11 of 11 that match")
    assert 0 == page.locator(".problems :is(script, img, b)").count()
    assert [] == report.faults


@pytest.mark.parametrize("width", [1100, 1400])
def test_a_row_has_few_lines(browser: Browser, example: Path, width: int) -> None:
    """On a desk, the rows of the list have a few lines each, also with long names."""
    page = browser.new_page(viewport={"width": width, "height": 900})
    opened(page, example).open("findings.html")
    heights = page.locator(".problems tbody tr").evaluate_all("rows => rows.map(row => row.clientHeight)")
    page.close()
    assert [] == [height for height in heights if height > _LINES]


def test_findings_are_sorted(page: Page, large: Path) -> None:
    """Pages of a sorted list follow each other, and all rows are there."""
    report = opened(page, large)
    report.open("findings.html#sort=workload")
    first = report.shown("Rows 1 to 100 of 1,000 that match")
    pages = page.get_by_role("navigation", name="Pages, below the list")
    report.follow(pages.get_by_role("link", name="Page 2", exact=True))
    second = report.shown("Rows 101 to 200 of 1,000 that match")
    assert page.url.endswith("#sort=workload&page=2")
    assert [row.split()[3] for row in (*first, *second)] == sorted(row.split()[3] for row in (*first, *second))
    assert 200 == len({*first, *second})
    assert [] == report.faults


@pytest.mark.parametrize(
    ("fields", "rows"),
    [
        ("namespace=p?y&status=unresolved", ["pay/ledger"]),
        ("policy=max-*&status=unresolved", ["shop/api", "shop/web"]),
        ("policy=max-*&owner=pay*&status=unresolved", []),
        ("owner=*&namespace=pay&status=unresolved", ["pay/ledger"]),
        ("workload=deployment/w*", ["shop/web", "shop/web"]),
        ("workload=Deployment pay/ledger&status=unresolved", ["pay/ledger"]),
        ("workload=Deployment shop/ledger", []),
    ],
)
def test_a_name_may_be_a_glob(report: Visit, fields: str, rows: list[str]) -> None:
    """As in `assay findings`; the field of a glob keeps it when another field changes."""
    page = report.open(f"findings.html#{fields}")
    found = report.shown(f"Rows 1 to {len(rows)} of {len(rows)} that match" if rows else "No row matches")
    assert rows == sorted(row.split()[4] for row in found)
    report.choose("sort", "by rule")
    page.wait_for_url("**sort=policy*")
    assert rows == sorted(row.split()[4] for row in report.rows())


def test_the_list_is_complete_without_the_script(browser: Browser, large: Path) -> None:
    """Every row is on one of the pages, to which the numbers lead, and no filter is shown that does nothing."""
    context = browser.new_context(java_script_enabled=False)
    report = opened(context.new_page(), large)
    report.open("findings.html")
    rows = report.rows()
    for number in range(2, len([*large.glob("findings*.html")]) + 1):
        pages = report.page.get_by_role("navigation", name="Pages, above the list")
        report.follow(pages.get_by_role("link", name=f"Page {number}", exact=True))
        rows += report.rows()
    visible = report.page.locator(".filter").is_visible()
    context.close()
    assert (1_000, 1_000, False) == (len(rows), len(set(rows)), visible)
