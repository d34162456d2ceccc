"""Access: pages without violation of the rules of axe, in light and dark, on a desk and on a phone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from .conftest import opened
from .visits import Visit

_RULES = {
    "resultTypes": ["violations"],
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
}
_FOLDERS = ("f", "policies", "namespaces", "owners", "controls")


def kinds_of_pages(folder: Path) -> Iterator[str]:
    """The pages at the top, one page of each folder, and the list with a filter."""
    yield from (path.name for path in sorted(folder.glob("*.html")))
    yield from (str(next(iter(sorted(folder.glob(f"{name}/*.html")))).relative_to(folder)) for name in _FOLDERS)
    yield "findings.html#text=e"


def main_pages(folder: Path) -> Iterator[str]:
    """The pages that readers open most, with every colour."""
    place = min((folder / "f").glob("*.html"))
    yield from ("index.html", "findings.html", "policies.html", "coverage.html", f"f/{place.name}")


def reject_violations(report: Visit, path: str, width: int) -> None:
    """Check that a page violates no rule, and is not wider than the window."""
    page = report.open(path)
    page.wait_for_function("!document.querySelector('.filter') || !document.querySelector('.filter').hidden")
    violations = Axe().run(page, options=_RULES).response["violations"]
    assert [] == [(each["id"], each["nodes"][0]["html"]) for each in violations], path
    assert page.evaluate("document.documentElement.scrollWidth") <= width, path


@pytest.mark.parametrize(
    ("scheme", "width", "pages"),
    [
        ("light", 1400, kinds_of_pages),
        ("dark", 390, kinds_of_pages),
        ("dark", 1400, main_pages),
        ("light", 390, main_pages),
    ],
)
def test_pages_violate_no_rule_of_axe(
    browser: Browser,
    example: Path,
    scheme: Literal["light", "dark"],
    width: int,
    pages: Callable[[Path], Iterator[str]],
) -> None:
    """In light and dark, on a desk and on a phone, with every part that a page can have."""
    page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
    report = opened(page, example)
    for path in pages(example):
        reject_violations(report, path, width)
    page.close()
    assert [] == report.faults


@pytest.mark.parametrize(("scheme", "width"), [("light", 1400), ("dark", 390)])
def test_trends_violate_no_rule_of_axe(
    browser: Browser, small: Path, scheme: Literal["light", "dark"], width: int
) -> None:
    """Nor do pages with charts, which scroll inside their own region on a phone."""
    page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
    report = opened(page, small)
    for path in ("index.html", "runs.html", "charts.html", "policies/require-limits.html"):
        reject_violations(report, path, width)
    page.close()
    assert [] == report.faults
