"""The list of findings: filters, sorting and pages, with and without the script."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, Page

from .conftest import Opened, opened


def test_a_link_with_a_filter_shows_what_matches(report: Opened) -> None:
    """The fragment of the address is the filter."""
    report.open("findings.html#action=Deny&namespace=pay")
    (row,) = report.shown("Rows 1 to 1 of 1 that match")
    assert row.startswith("✕ Deny medium Deployment pay/ledger require-limits unowned ↺ Reopened 1 d ")
    assert [] == report.faults


def test_a_filter_is_kept_in_the_address(report: Opened) -> None:
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


def test_the_script_writes_the_rows_of_the_page(report: Opened) -> None:
    """A filter that all rows match gives the same HTML as the page without a filter."""
    page = report.open("findings.html")
    written = page.locator(".problems tbody tr").evaluate_all("rows => rows.map(row => row.innerText)")
    page = report.open("findings.html#text=e")
    report.shown("Rows 1 to 8 of 8 that match")
    assert written == page.locator(".problems tbody tr").evaluate_all("rows => rows.map(row => row.innerText)")


def test_text_finds_messages_and_rules(report: Opened) -> None:
    """Every word must be in the names, the messages or the rule of a row."""
    page = report.open("findings.html")
    page.get_by_label("Text").fill("10 ALLOWED max-rep")
    (row,) = report.shown("Rows 1 to 1 of 1 that match")
    assert "shop/web max-replicas" in row
    page.get_by_label("Text").fill("nothing like this")
    assert [] == report.shown("No row matches")


def test_findings_are_sorted(page: Page, large: Path) -> None:
    """Pages of a sorted list follow each other, and all rows are there."""
    report = opened(page, large)
    report.open("findings.html#sort=workload")
    first = report.shown("Rows 1 to 100 of 1,000 that match")
    page.get_by_role("navigation", name="Pages, below the list").get_by_role("link", name="Page 2", exact=True).click()
    second = report.shown("Rows 101 to 200 of 1,000 that match")
    assert page.url.endswith("#sort=workload&page=2")
    assert [row.split()[3] for row in (*first, *second)] == sorted(row.split()[3] for row in (*first, *second))
    assert 200 == len({*first, *second})
    assert [] == report.faults


def test_the_list_is_complete_without_the_script(browser: Browser, large: Path) -> None:
    """Every row is on one of the pages, to which the numbers lead, and no filter is shown that does nothing."""
    context = browser.new_context(java_script_enabled=False)
    report = opened(context.new_page(), large)
    report.open("findings.html")
    rows = report.rows()
    for number in range(2, 11):
        report.page.get_by_role("navigation", name="Pages, above the list").get_by_role(
            "link", name=f"Page {number}", exact=True
        ).click()
        rows += report.rows()
    visible = report.page.locator(".filter").is_visible()
    context.close()
    assert (1_000, 1_000, False) == (len(rows), len(set(rows)), visible)


def test_the_keyboard_alone_finds_and_opens_a_finding(report: Opened) -> None:
    """Text, a field and a link are reached with Tab, and opened with Enter."""
    page = report.open("findings.html")
    page.get_by_label("Text").focus()
    page.keyboard.type("ledger")
    report.shown("Rows 1 to 1 of 1 that match")
    while not page.evaluate("document.activeElement.closest('.problems')"):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/f/*.html#f-*")
    assert "pay/ledger" in page.locator("article:target").inner_text()
