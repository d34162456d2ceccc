"""The tasks of an auditor in `assay serve`, from the list of clusters, each in at most four clicks and without scripts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from scanner.web.server.application import application
from scanner.web.server.server import SecureHeaders
from scanner.web.views.library import ScanLibrary
from tests.store.databases import KINDS, database
from tests.thorough import FULL
from tests.web.listening import listening
from tests.web.served import scan_examples

from .layout import MODES, WINDOWS, broken_words, low_lists
from .visits import Visit, visit_to

CLICKS = 4
_PATIENCE = 10_000
PAGES = (
    "/", "/policies", "/search?q=shop", "{cluster}/latest/index.html", "{cluster}/latest/findings.html", "{cluster}/latest/findings.html?text=e&status=open",
    "{cluster}/latest/policies.html", "{cluster}/latest/charts.html", "{cluster}/latest/coverage.html", "{cluster}/latest/changes.html", "{cluster}/latest/waivers.html",
    "{cluster}/compare", "{cluster}/runs", "/nothing",
)  # fmt: skip
LISTS = (
    "/", "/policies", "/workloads?name=*", "/search?q=shop", "{cluster}/runs",
    *(f"{{cluster}}/latest/{name}.html" for name in (
        "findings", "namespaces", "owners", "policies", "rules", "health", "coverage", "changes", "runs",
    )),
)  # fmt: skip


@pytest.fixture(scope="session", params=KINDS if FULL else ["sqlite"])
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server over a database with two clusters, one of which was scanned twice.

    Pages are the same over both databases, as the tests of `tests/web` prove; only `make nightly` opens those over PostgreSQL, too.
    """
    home = tmp_path_factory.mktemp("served")
    with database(request.param, home) as url:
        scan_examples(url, home, "before", name="mall")
        scan_examples(url, home, "before", "after")
        library = ScanLibrary(url)
        with closing(library), listening(SecureHeaders(application(library))) as site:
            yield site


@pytest.fixture
def visit(browser: Browser, address: str) -> Iterator[Visit]:
    """A visit that begins at the list of clusters."""
    context = browser.new_context(java_script_enabled=False, viewport={"width": 1400, "height": 900})
    page = context.new_page()
    page.set_default_timeout(_PATIENCE)
    visit = visit_to(page, address)
    visit.open("")
    yield visit
    context.close()


def test_a_page_that_the_browser_has_keeps_its_styles(visit: Visit) -> None:
    """The server answers that the page has not changed, and the browser applies the policy with which it was sent."""
    sheets = "getComputedStyle(document.querySelector('main')).paddingTop"
    first = visit.page.evaluate(sheets)
    visit.open("policies")
    visit.open("")
    assert first == visit.page.evaluate(sheets)
    visit.end(0)


def test_all_deny_violations_of_a_namespace(visit: Visit) -> None:
    """The list with an action and a namespace."""
    visit.click("shop", exact=True)
    visit.click("Findings")
    visit.choose("action", "Deny")
    visit.page.locator(".filter select[name=namespace]").select_option("shop")
    visit.click("Filter", "button")
    rows = visit.page.locator(".problems tbody tr").all_inner_texts()
    assert rows
    assert all("shop/" in row for row in rows)
    visit.end(CLICKS)


def test_what_was_not_examined(visit: Visit) -> None:
    """The page of coverage has what could not be read."""
    visit.click("shop", exact=True)
    visit.click("Coverage")
    assert "broken-tabs.yaml" in visit.main()
    visit.end(CLICKS)


def test_whose_a_finding_is(visit: Visit) -> None:
    """The list has the owner of each row."""
    visit.click("shop", exact=True)
    visit.click("Findings")
    owners = visit.page.locator(".problems tbody .k-owner").all_inner_texts()
    assert owners
    assert all(owners)
    visit.end(CLICKS)


def test_what_is_new_and_why(visit: Visit) -> None:
    """The number of new problems leads to them, and the place of one names the cause."""
    visit.click("shop", exact=True)
    visit.click("16 new")
    visit.follow(visit.page.locator(".problems tbody .k-id a").first)
    assert "New in this scan" in visit.main()
    assert " Cause " in visit.main()
    visit.end(CLICKS)


def test_believe_one_finding(visit: Visit) -> None:
    """Its place has the message, the expression and the line of the policy's text."""
    visit.click("shop", exact=True)
    visit.click("Findings")
    visit.follow(visit.page.locator(".problems tbody .k-id a").first)
    place = visit.page.locator("article:target").inner_text()
    for part in ("Admission", "Expression", "Decided by", "Rule", "Since"):
        assert part in place
    assert visit.page.locator(".lines .marked").count()
    visit.end(CLICKS)


def test_rules_in_force(visit: Visit) -> None:
    """The policies lead to the text of each, and to its bindings."""
    visit.click("shop", exact=True)
    visit.click("Policies", exact=False)
    visit.follow(visit.page.get_by_role("main").get_by_role("link", name="database-settings").first)
    assert "Bindings" in visit.main()
    visit.end(CLICKS)


def test_cite_a_finding_and_open_the_citation_at_the_next_date(visit: Visit) -> None:
    """The address of a place has the finding, also in the report of the scan by its id."""
    visit.click("shop", exact=True)
    visit.click("Findings")
    visit.choose("status", "open")
    visit.follow(visit.page.locator(".problems tbody .k-id a").first)
    identifier = visit.page.locator("article:target .fid").inner_text()
    assert visit.page.url.endswith(f"/latest/f/{identifier[:3]}.html#f-{identifier}")
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    visit.page.goto(visit.page.url.replace("/latest/", f"/at/{today}/"))
    assert identifier == visit.page.locator("article:target .fid").inner_text()
    visit.end(CLICKS)


def test_find_by_text(visit: Visit) -> None:
    """The search of all clusters finds a workload."""
    visit.page.get_by_role("searchbox").first.fill("postgres")
    visit.click("Search", "button")
    assert "postgres" in visit.main()
    visit.end(CLICKS)


def test_who_was_examined_and_passed(visit: Visit) -> None:
    """The page of coverage has the numbers of each kind, and a file with all objects."""
    visit.click("shop", exact=True)
    visit.click("Evidence")
    with visit.page.expect_download() as download:
        visit.click("population.csv")
    assert download.value.path().read_text().startswith("kind,") or b"," in download.value.path().read_bytes()
    visit.end(CLICKS)


def test_the_posture_on_a_date(visit: Visit) -> None:
    """The date of the bar leads to the newest scan that had ended on that day."""
    visit.click("shop", exact=True)
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    visit.page.get_by_label("As of").fill(today)
    visit.click("Show", "button")
    assert f"/at/{today}/index.html" in visit.page.url
    assert "problems would be refused" in visit.main()
    visit.end(CLICKS)


def test_two_clusters_compared(visit: Visit) -> None:
    """Policies, problems and coverage stand side by side."""
    visit.click("Compare two clusters")
    visit.page.locator("select[name=left]").select_option(index=0)
    visit.page.locator("select[name=right]").select_option(index=1)
    visit.click("Compare", "button", exact=True)
    assert "mall" in visit.main()
    assert "shop" in visit.main()
    visit.end(CLICKS)


def test_the_history_of_a_problem(visit: Visit) -> None:
    """The age of a row leads to everything that scans changed about the problem."""
    visit.click("shop", exact=True)
    visit.click("Findings")
    visit.follow(visit.page.locator(".problems tbody .k-age a").first)
    assert visit.page.locator(".timeline li").count() >= 1
    visit.end(CLICKS)


@pytest.mark.parametrize(("scheme", "width"), MODES)
def test_pages_violate_no_rule_of_axe(
    browser: Browser, address: str, scheme: Literal["light", "dark"], width: int
) -> None:
    """In light and dark, on a desk and on a phone (the modes of the suite, or all); and no page is wider than the window."""
    page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900}, bypass_csp=True)
    page.goto(f"{address}/")
    for path in served_pages(page, address, PAGES):
        answer = page.goto(path)
        assert answer is not None
        assert answer.ok != path.endswith("/nothing"), path
        violations = Axe().run(page).response["violations"]
        assert [] == [(each["id"], each["nodes"][0]["html"]) for each in violations], path
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    page.close()


def served_pages(page: Page, address: str, paths: Iterable[str]) -> Iterator[str]:
    """The addresses of pages; `{cluster}` stands for the path of the cluster `shop`."""
    page.goto(f"{address}/")
    cluster = page.get_by_role("main").get_by_role("link", name="shop", exact=True).first.get_attribute("href") or ""
    yield from (address + path.format(cluster=cluster.partition("/latest")[0]) for path in paths)


@pytest.mark.parametrize(("width", "height"), WINDOWS)
def test_every_list_begins_on_the_first_screen(browser: Browser, address: str, width: int, height: int) -> None:
    """On a desk and on a phone."""
    page = browser.new_page()
    assert [] == list(low_lists(page, width, height, served_pages(page, address, LISTS)))
    page.close()


@pytest.mark.parametrize(("width", "height"), WINDOWS)
def test_no_word_is_broken_in_a_cell(browser: Browser, address: str, width: int, height: int) -> None:
    """Severities, times and names of up to sixteen letters stand on one line."""
    page = browser.new_page()
    assert [] == list(broken_words(page, width, height, served_pages(page, address, dict.fromkeys((*LISTS, *PAGES)))))
    page.close()


def test_the_filter_folds_on_a_phone_without_script(browser: Browser, address: str) -> None:
    """A check box opens it."""
    page = browser.new_page(viewport={"width": 390, "height": 844}, java_script_enabled=False)
    page.goto(next(served_pages(page, address, ["{cluster}/latest/findings.html"])))
    assert not page.locator(".filter").is_visible()
    page.get_by_text("Filter and sort").click()
    assert page.locator(".filter").is_visible()
    page.close()


def test_addresses_of_merged_pages_last(visit: Visit) -> None:
    """A page that has become a part of another leads there."""
    visit.click("shop", exact=True)
    for old, new in (
        ("population", "coverage.html#population"),
        ("appendix", "method.html#words"),
        ("drift", "findings.html?action=change&status=unresolved"),
    ):
        visit.page.goto(visit.page.url.rpartition("/")[0] + f"/{old}.html")
        assert visit.page.url.endswith(f"/latest/{new}")
