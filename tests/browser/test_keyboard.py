"""Everything is reached and done with the keyboard alone, and the focus is always visible."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page

from .conftest import opened
from .visits import Visit

_MOST = 60
_VISIBLE = """
() => {
  const focused = document.activeElement, box = focused.getBoundingClientRect();
  return getComputedStyle(focused).outlineStyle !== "none" && box.width > 0 && box.right > 0 && box.left < innerWidth;
}
"""


def tab_to(page: Page, selector: str) -> None:
    """Press Tab until an element has the focus; each element on the way shows that it has it."""
    for _ in range(_MOST):
        page.keyboard.press("Tab")
        assert page.evaluate(_VISIBLE), page.evaluate("document.activeElement.outerHTML")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    pytest.fail(f"Tab does not reach {selector}")


def test_the_keyboard_alone_finds_and_opens_a_finding(report: Visit) -> None:
    """From the first page to the violations of a namespace that would be refused, and to the line of the policy of one."""
    page = report.open("index.html")
    tab_to(page, ".primary [href='findings.html']")
    page.keyboard.press("Enter")
    page.wait_for_url("**/findings.html")
    page.locator(".filter").wait_for()
    tab_to(page, "select[name=namespace]")
    page.keyboard.type("pay")
    tab_to(page, "select[name=action]")
    page.keyboard.type("D")
    report.shown("Rows 1 to 1 of 1 that match")
    tab_to(page, ".problems .k-say a")
    page.keyboard.press("Enter")
    page.wait_for_url("**/f/*.html#f-*")
    assert "pay/ledger" in page.locator("article:target").inner_text()
    tab_to(page, "article:target .facts a")
    page.keyboard.press("Enter")
    page.wait_for_url("**/f/*.html#p*-*")
    assert page.locator("li:target").is_visible()
    assert [] == report.faults


def test_text_is_filtered_with_the_keyboard(report: Visit) -> None:
    """The field of the text is the first of the filter."""
    page = report.open("findings.html")
    page.locator(".filter").wait_for()
    tab_to(page, "[name=text]")
    page.keyboard.type("ledger")
    report.shown("Rows 1 to 1 of 1 that match")


def test_folded_objects_open_with_the_keyboard(page: Page, folded: Path) -> None:
    """Enter opens the objects of a problem, and Tab reaches them."""
    opened(page, folded).open("findings.html")
    page.locator(".filter").wait_for()
    tab_to(page, ".problems summary")
    page.keyboard.press("Enter")
    tab_to(page, ".problems .objects a")
    assert page.locator(".problems details[open] .objects").first.is_visible()


def test_the_first_tab_skips_the_navigation(report: Visit) -> None:
    """The next Tab reaches what stands in the main part."""
    page = report.open("policies.html")
    tab_to(page, ".skip")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")
