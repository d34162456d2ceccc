"""All pages besides those of findings in a browser: access, width and requests."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from .conftest import opened


@pytest.mark.parametrize(("scheme", "width"), [("light", 1400), ("dark", 390)])
def test_every_other_page_violates_no_rule_of_axe(
    browser: Browser, small: Path, scheme: Literal["light", "dark"], width: int
) -> None:
    """In light on a desk and in dark on a phone; and no page is wider than the window."""
    page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
    report = opened(page, small)
    first = {folder: min((small / folder).glob("*.html")) for folder in ("policies", "namespaces", "owners")}
    pages = [path.name for path in sorted(small.glob("*.html")) if not path.name.startswith("findings")]
    for path in [*pages, *(f"{folder}/{file.name}" for folder, file in first.items())]:
        report.open(path)
        violations = Axe().run(page).response["violations"]
        assert [] == [(each["id"], each["nodes"][0]["html"]) for each in violations], path
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    page.close()
    assert [] == report.faults
