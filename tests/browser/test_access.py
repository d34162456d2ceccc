"""Access: pages without violation of the rules of axe, in light and dark, on a desk and on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from .conftest import Opened, opened

SCHEMES = pytest.mark.parametrize("scheme", ["light", "dark"])
WIDTHS = pytest.mark.parametrize("width", [1400, 390])
_RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
_FOLDERS = ("f", "policies", "namespaces", "owners", "controls")


def kinds_of_pages(folder: Path) -> Iterator[str]:
    """The pages at the top, one page of each folder, the list with a filter, and a finding with its address."""
    yield from (path.name for path in sorted(folder.glob("*.html")))
    yield from (str(next(iter(sorted(folder.glob(f"{name}/*.html")))).relative_to(folder)) for name in _FOLDERS)
    yield "findings.html#text=e"


def reject_violations(report: Opened, path: str, width: int) -> None:
    """Check that a page violates no rule, and is not wider than the window."""
    page = report.open(path)
    page.wait_for_function("!document.querySelector('.filter') || !document.querySelector('.filter').hidden")
    violations = Axe().run(page, options=_RULES).response["violations"]
    assert [] == [(each["id"], each["nodes"][0]["html"]) for each in violations], path
    assert page.evaluate("document.documentElement.scrollWidth") <= width, path


@SCHEMES
@WIDTHS
def test_pages_violate_no_rule_of_axe(
    browser: Browser, example: Path, small: Path, scheme: Literal["light", "dark"], width: int
) -> None:
    """No kind of page, with every part that it can have."""
    page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
    report, trends = opened(page, example), opened(page, small)
    for path in kinds_of_pages(example):
        reject_violations(report, path, width)
    for path in ("index.html", "runs.html", "policies/require-limits.html"):
        reject_violations(trends, path, width)
    page.close()
    assert [] == [fault for fault in report.faults if not fault.startswith(small.as_uri())]
