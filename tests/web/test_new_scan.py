"""Pages, lists and the API follow a scan that ends while they are served."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from scanner.web.views.kept import RECENT
from tests.store.databases import KINDS, prepared_database
from tests.web.served import Served, scan_examples, served

_PAGES = ("index.html", "findings.html", "findings.html?status=open", "policies.html", "namespaces/shop.html")


@pytest.fixture(scope="module", params=KINDS)
def pages(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    """The application, and the id of its newest scan, which ended after each page had been read."""
    home: Path = tmp_path_factory.mktemp("new")
    with prepared_database(request.param, home) as url:
        scan_examples(url, home, "before")
        with served(url) as opened:
            for path in (*_PAGES, "/", f"{opened.cluster}/runs", _api(opened)):
                assert 200 == opened.get(path).status
            scan_examples(url, home, "after")
            time.sleep(RECENT + 0.1)
            with opened.library.use_reader() as reader:
                newest = reader.find_newest_scan(opened.library.clusters()[0].id, None)
            assert newest is not None
            yield opened, newest.id


def _api(opened: Served) -> str:
    return f"/api/v1{opened.cluster}/findings"


@pytest.mark.long
def test_each_page_of_the_newest_scan_is_that_of_the_scan_by_its_id(pages: tuple[Served, str]) -> None:
    """The pages of the scan before, which are in memory, have other rows."""
    opened, scan = pages

    for path in _PAGES:
        newest, named = opened.get(path).text, opened.get(f"{opened.cluster}/scans/{scan}/{path}").text
        assert scan in newest
        assert _rows(named) == _rows(newest)


def test_the_api_answers_for_the_newest_scan(pages: tuple[Served, str]) -> None:
    """As it does when the scan is named."""
    opened, scan = pages

    assert opened.get(f"{_api(opened)}?scan={scan}").text == opened.get(_api(opened)).text


def test_the_register_has_the_new_run(pages: tuple[Served, str]) -> None:
    """Beside the one before."""
    opened, _ = pages

    assert "2 runs since" in opened.get(f"{opened.cluster}/runs").text


def _rows(html: str) -> list[str]:
    """The lines of a page without links, which have the moment of the address."""
    return [line for line in html.splitlines() if "href=" not in line and "value=" not in line]
