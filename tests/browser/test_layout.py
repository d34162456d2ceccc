"""Lists begin on the first screen, and no word is broken in a cell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page

from .layout import WINDOWS, broken_words, low_lists

_WITHOUT_LIST = {"index.html", "charts.html", "method.html", "resolved.html"}
"""The example has two scans, and no scan before them that resolved a finding."""
_FOLDERS = ("policies", "namespaces", "owners", "controls")


def lists(folder: Path) -> Iterator[str]:
    """The addresses of the pages that are a list."""
    yield from (path.as_uri() for path in sorted(folder.glob("*.html")) if path.name not in _WITHOUT_LIST)


def all_pages(folder: Path) -> Iterator[str]:
    """The addresses of the pages at the top, and of those of policies, namespaces, owners and controls."""
    yield from (path.as_uri() for path in sorted(folder.glob("*.html")))
    yield from (path.as_uri() for name in _FOLDERS for path in sorted(folder.glob(f"{name}/*.html")))


@pytest.mark.parametrize(("width", "height"), WINDOWS)
def test_every_list_begins_on_the_first_screen(page: Page, example: Path, width: int, height: int) -> None:
    """On a desk and on a phone."""
    assert [] == list(low_lists(page, width, height, lists(example)))


@pytest.mark.parametrize(("width", "height"), WINDOWS)
def test_the_first_page_of_many_findings_begins_there_too(page: Page, large: Path, width: int, height: int) -> None:
    """The links to other pages take no line above the list."""
    addresses = iter([(large / "findings.html").as_uri(), (large / "findings-2.html").as_uri()])
    assert [] == list(low_lists(page, width, height, addresses))


@pytest.mark.parametrize(("width", "height"), WINDOWS)
def test_no_word_is_broken_in_a_cell(page: Page, example: Path, width: int, height: int) -> None:
    """Severities, times and names of up to sixteen letters stand on one line."""
    assert [] == list(broken_words(page, width, height, all_pages(example)))


def test_the_filter_folds_on_a_phone(page: Page, example: Path) -> None:
    """A reader opens it; on a desk it is open."""
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto((example / "findings.html").as_uri())
    page.locator(".filter:not([hidden])").wait_for(state="attached")
    assert not page.locator(".filter").is_visible()
    page.get_by_text("Filter and sort").click()
    page.locator(".filter").wait_for()
    page.set_viewport_size({"width": 1400, "height": 900})
    assert not page.get_by_text("Filter and sort").is_visible()
    assert page.locator(".filter").is_visible()


def test_the_facts_of_the_scan_unfold(page: Page, example: Path) -> None:
    """One line has cluster, time and state; a click shows scope, policy set and kinds."""
    page.goto((example / "findings.html").as_uri())
    assert not page.get_by_text("Policy set").is_visible()
    page.get_by_text("Facts of the scan").click()
    page.locator(".strip").get_by_text("Policy set").wait_for()
