"""A browser, and reports that it opens as files; the tests need a Chromium that ASSAY_TEST_CHROMIUM names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.report.records import hostile_record, large_record, partial_record
from tests.requirements import CHROMIUM

from .reports import example_report, folded_record, owned_record, rendered, with_status
from .visits import Visit, visit_to

_PATIENCE = 10_000
"""Milliseconds for which a test waits for a page: many tests may run at once."""


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A browser without a window."""
    path = CHROMIUM.require()
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a scan with a finding of each kind, with owners, causes and a trend."""
    return rendered(owned_record(), tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="session")
def partial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a scan that may not list every kind."""
    return rendered(partial_record(), tmp_path_factory.mktemp("partial"))


@pytest.fixture(scope="session")
def next_small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the scan after that, in which the new findings are open."""
    later = with_status(owned_record(), lambda stored: replace(stored, status="open", cause=None))
    return rendered(later, tmp_path_factory.mktemp("next"))


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a thousand findings."""
    return rendered(large_record(1_000, policies=10, namespaces=20), tmp_path_factory.mktemp("large"))


@pytest.fixture(scope="session")
def folded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a scan with a problem of three objects."""
    return rendered(folded_record(), tmp_path_factory.mktemp("folded"))


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a scan in which every text is hostile."""
    return rendered(hostile_record(), tmp_path_factory.mktemp("hostile"))


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the example cluster, with every kind of page."""
    return example_report(tmp_path_factory.mktemp("example"))


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page as wide as that of a desk."""
    made = browser.new_page(viewport={"width": 1400, "height": 900})
    made.set_default_timeout(_PATIENCE)
    yield made
    made.close()


@pytest.fixture
def report(page: Page, small: Path) -> Visit:
    """The small report, not opened yet."""
    return opened(page, small)


def opened(page: Page, folder: Path) -> Visit:
    """A report whose faults are collected."""
    return visit_to(page, folder.as_uri())
