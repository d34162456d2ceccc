"""Access: pages without violation of the rules of axe, in light and dark, on a desk and on a phone; and on paper."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from .conftest import opened

_SHEET = re.compile(rb"/Type\s*/Page\b")


@pytest.mark.parametrize("width", [1400, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_violate_no_rule_of_axe(
    browser: Browser, small: Path, scheme: Literal["light", "dark"], width: int
) -> None:
    """Neither the list, nor a filtered list with open objects, nor a place; and none is wider than the window."""
    page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
    report = opened(page, small)
    (place, *_) = sorted((small / "f").glob("*.html"))
    for path in ("findings.html", "findings.html#text=e", f"f/{place.name}"):
        report.open(path)
        page.wait_for_function("!document.querySelector('.filter') || !document.querySelector('.filter').hidden")
        violations = Axe().run(page).response["violations"]
        assert [] == [(each["id"], each["nodes"][0]["html"]) for each in violations], path
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    page.close()
    assert [] == report.faults


def test_a_thousand_findings_are_printed_on_thirty_sheets(page: Page, large: Path) -> None:
    """Each page of the list needs at most three sheets, with the heads of its columns on each."""
    report = opened(page, large)
    sheets = 0
    for number in range(1, 11):
        report.open("findings.html" if number == 1 else f"findings-{number}.html")
        sheets += len(_SHEET.findall(page.pdf(prefer_css_page_size=True)))
    assert 30 >= sheets
    page.emulate_media(media="print")
    assert "table-header-group" == page.locator(".problems thead").evaluate("head => getComputedStyle(head).display")
