"""The pages about several clusters: without violation of the rules of axe, in light and dark, on a desk and on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from tests.store.databases import database
from tests.web.fleets import NOW, fill
from tests.web.listening import listening
from tests.web.served import Served, counted, served

from .layout import MODES

PAGES = (
    "/", "/?text=nothing", "/policies", "/policies/ValidatingAdmissionPolicy/replicas", "/workloads",
    "/workloads?name=web", "/workloads?name=cart&namespace=team-a&kind=Deployment", "/search", "/search?q=repl",
    "/compare", "/compare?left={prod}&right={stage}", "/clusters/{prod}/compare", "/clusters/{stage}/compare",
    "/clusters/{prod}/compare?cause=objectCreated", "/clusters/{prod}/runs", "/clusters/{partial}/runs/{run}",
)  # fmt: skip


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    """The application over several clusters, and its address."""
    with database("sqlite", tmp_path_factory.mktemp("fleet")) as url:
        fill(url)
        with served(url, lambda: NOW) as opened:
            counted(opened)
            with listening(opened.client.app) as address:
                yield opened, address


@pytest.mark.parametrize(("scheme", "width"), MODES)
def test_pages_about_clusters_violate_no_rule_of_axe(
    browser: Browser, fleet: tuple[Served, str], scheme: Literal["light", "dark"], width: int
) -> None:
    """And none is wider than the window, nor logs an error."""
    opened, address = fleet
    keys = {each.name: opened.library.key(each) for each in opened.library.clusters()}
    with opened.library.use_reader() as reader:
        run = reader.list_runs(cluster="partial")[0].run.number
    page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
    faults: list[str] = []
    page.on("console", lambda message: faults.append(message.text))
    for path in PAGES:
        page.goto(f"{address}{path.format(**keys, run=run)}")
        violations = Axe().run(page).response["violations"]
        assert [] == [(each["id"], each["nodes"][0]["html"]) for each in violations], path
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert page.locator("h1").count() == 1, path
    page.close()
    assert [] == faults
