"""Twelve tasks of an auditor over three months of scans, each in at most three clicks and without typing a date.

In `assay serve` they begin at the list of clusters, and run without scripts; in the static report they begin at its first page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from scanner.documents.controls import read_frameworks
from scanner.policies.language import LANGUAGES
from scanner.posture.owners import OwnerKey
from scanner.posture.settings import Settings
from scanner.report import FORMATS
from scanner.report.document.document import ReportOptions, document_of
from scanner.store import open_store
from scanner.web.server.application import application
from scanner.web.views.library import ScanLibrary
from tests.web.dated import NOW, scan_on_days
from tests.web.listening import listening

from .conftest import opened
from .layout import WINDOWS, broken_words, low_lists
from .test_serve import served_pages
from .visits import Visit, visit_to

CLICKS: Final = 3
_OWNER: Final = "section:has(#top-owners) tr:has(td[data-label=Refused] a) th a"
_REFUSED: Final = "section:has(#top-namespaces) tr:has-text('payments') td[data-label=Refused] a"
_FIXED: Final = "no fixed version: registry.example.com/payments/ledger-export"


@pytest.fixture(scope="session")
def settings() -> Settings:
    """Owners by annotation, and the example's mapping of section 5 of the CIS benchmark."""
    mapping = Path(__file__).parents[2] / "examples" / "controls" / "cis-kubernetes-section-5.yaml"
    frameworks = read_frameworks([mapping], languages=[name for each in LANGUAGES for name in each.names])
    return Settings(frameworks=frameworks, owners=(OwnerKey("object", "annotation", "example.com/owner"),))


@pytest.fixture(scope="session")
def dated(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of a database with dated scans."""
    home = tmp_path_factory.mktemp("dated")
    url = f"sqlite:///{home}/assay.db"
    scan_on_days(url, home)
    return url


@pytest.fixture(scope="session")
def folder(dated: str, settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The static report of the newest scan."""
    report = tmp_path_factory.mktemp("auditor") / "report"
    with open_store(dated, lambda: NOW) as store:
        [newest] = store.scans(1)
        options = ReportOptions(compare=partial(store.compare_since, newest.id))
        FORMATS["html"].render(document_of(store.read_scan(newest.id), settings, options=options), report)
    return report


@pytest.fixture(scope="session")
def served(dated: str, settings: Settings) -> Iterator[str]:
    """The address of a server, two hours after the newest scan."""
    library = ScanLibrary(dated, settings, clock=lambda: NOW)
    with closing(library), listening(application(library)) as site:
        yield site


@pytest.fixture
def visit(browser: Browser, served: str) -> Iterator[Visit]:
    """A visit that begins at the list of clusters, and has chosen the cluster with its first click."""
    context = browser.new_context(java_script_enabled=False, viewport={"width": 1400, "height": 900})
    page = context.new_page()
    page.set_default_timeout(10_000)
    visit = visit_to(page, served)
    visit.open("")
    visit.click("shop", exact=True)
    yield visit
    context.close()


@pytest.fixture
def report(page: Page, folder: Path) -> Visit:
    """The static report, opened at its first page."""
    made = opened(page, folder)
    made.open("index.html")
    return made


# 1. What would be refused in a namespace?


def test_refused_in_a_namespace(visit: Visit) -> None:
    """The number beside a namespace leads to its refused problems."""
    visit.follow(visit.page.locator(_REFUSED))
    rows = visit.page.locator(".problems tbody tr:not(.same) .k-what").all_inner_texts()
    assert rows
    assert all("payments/" in row for row in rows)
    visit.end(CLICKS)


def test_refused_in_a_namespace_of_the_report(report: Visit) -> None:
    """The list has the filter of the number."""
    report.follow(report.page.locator(_REFUSED))
    report.page.locator("caption", has_text="that match").wait_for()
    assert all(
        "payments/" in row for row in report.page.locator(".problems tbody tr:not(.same) .k-what").all_inner_texts()
    )
    report.end(CLICKS)


# 2. What was not examined, and why?


def test_not_examined_and_why(visit: Visit) -> None:
    """The last part of the verdict leads to the gaps."""
    visit.follow(visit.page.locator("h1 a.v-gaps"))
    assert "broken-tabs.yaml, document 1 Document not read line 4, column 1" in visit.main()
    visit.end(CLICKS)


def test_not_examined_and_why_in_the_report(report: Visit) -> None:
    """The group of evidence begins with the gaps."""
    report.click("Evidence")
    assert "broken-tabs.yaml, document 1 Document not read line 4, column 1" in report.main()
    report.end(CLICKS)


# 3. Whose is it?


def test_the_problems_of_an_owner(visit: Visit) -> None:
    """The summary leads to each owner."""
    visit.follow(visit.page.locator(_OWNER).first)
    assert visit.page.locator(".problems tbody tr").count()
    visit.end(CLICKS)


def test_the_problems_of_an_owner_in_the_report(report: Visit) -> None:
    """The page of the owner has the worst problems."""
    report.follow(report.page.locator(_OWNER).first)
    assert report.rows()
    report.end(CLICKS)


# 4. What changed since last week, and why?


def test_what_changed_since_last_week_and_why(visit: Visit) -> None:
    """The group of history leads to the comparison, whose causes lead to problems."""
    visit.click("History")
    visit.click("a week before")
    assert "20261117T100000Z-abcdef" in visit.main()
    assert "Problems by cause" in visit.main()
    visit.end(CLICKS)


def test_what_changed_since_last_week_in_the_report(report: Visit) -> None:
    """The page of changes compares with the scan of a week ago."""
    report.click("History")
    assert "Compared with scan 20261117T100000Z-abcdef" in report.main()
    assert "Problems by cause" in report.main()
    report.end(CLICKS)


# 5. Why should a reader believe a finding?


def test_believe_a_finding(visit: Visit) -> None:
    """The first of the worst problems leads to its place."""
    visit.follow(visit.page.locator(".problems .k-say a").first)
    place = visit.page.locator("article:target").inner_text()
    assert all(part in place for part in ("Admission", "Expression", "Decided by", "Rule", "Since"))
    visit.end(CLICKS)


def test_believe_a_finding_of_the_report(report: Visit) -> None:
    """Its place has the line of the policy's text."""
    report.follow(report.page.locator(".problems .k-say a").first)
    assert report.page.locator(".lines .marked").count()
    report.end(CLICKS)


# 6. Which rules were in force on a date?


def test_rules_in_force_a_month_ago(visit: Visit) -> None:
    """The rules of the newest scan lead to those of other days."""
    visit.click("Rules in force")
    visit.click("last month")
    assert "/at/2026-10-28/rules.html" in visit.page.url
    assert "2026-10-26 10:00:00 UTC" in visit.page.locator(".strip summary").inner_text()
    assert "host-access" in visit.main()
    visit.end(CLICKS)


def test_rules_in_force_in_the_report(report: Visit) -> None:
    """The report has those of its scan, with the times since when."""
    report.click("Rules in force")
    assert "2026-09-20 10:00:00 UTC" in report.main()
    report.end(CLICKS)


# 7. Does a citation answer after the fix?


def test_a_citation_answers_after_the_fix(visit: Visit, browser: Browser) -> None:
    """The address of a finding that was open in October answers today, with the end of the finding."""
    visit.page.goto(visit.page.url.replace("/latest/", "/at/2026-10-28/"))
    visit.click("Findings")
    visit.follow(visit.page.locator(".problems .k-say a", has_text=_FIXED).first)
    cited = visit.page.url
    visit.page.goto(cited.replace("/at/2026-10-28/", "/latest/"))
    assert (
        "Resolved at 2026-11-17 10:00 UTC: the workload was fixed" in visit.page.locator("article:target").inner_text()
    )
    visit.end(CLICKS)


def test_a_citation_answers_in_the_report(report: Visit) -> None:
    """The page of resolved problems has the same address, although the newest scan resolved nothing."""
    report.click("Resolved")
    report.click(_FIXED)
    assert re.fullmatch(r".*/f/([0-9a-f]{3})\.html#f-\1[0-9a-f]+", report.page.url)
    place = report.page.locator("article:target").inner_text()
    assert "Resolved at 2026-11-17 10:00 UTC: the workload was fixed" in place
    assert "was last evaluated before the finding was resolved" in place
    report.end(CLICKS)


# 8. Where does a text stand?


def test_find_by_text(visit: Visit) -> None:
    """The search leads to the workload."""
    visit.page.get_by_role("searchbox").first.fill("ledger")
    visit.click("Search", "button")
    visit.follow(visit.page.locator("main th a:has-text('payments/ledger')").first)
    assert "Every check" in visit.main()
    visit.end(CLICKS)


def test_find_by_text_in_the_report(report: Visit) -> None:
    """The list has a field."""
    report.click("Findings")
    report.page.get_by_label("Text").fill("postgres")
    report.page.locator("caption", has_text="that match").wait_for()
    assert all("postgres" in row for row in report.rows())
    report.end(CLICKS)


# 9. Who passed?


def test_who_passed(visit: Visit) -> None:
    """The number of passed checks of a policy leads to the objects."""
    visit.follow(visit.page.locator("section:has(#top-policies) th a:has-text('host-access')").first)
    visit.click("passed")
    assert "passed every check of host-access" in visit.main()
    assert visit.page.locator("tbody tr").count() > 1
    visit.end(CLICKS)


def test_who_passed_in_the_report(report: Visit) -> None:
    """A file has every object with its checks and findings."""
    report.click("Evidence")
    with report.page.expect_download() as download:
        report.click("population.csv")
    assert "payments" in Path(download.value.path()).read_text("utf-8")
    report.end(CLICKS)


# 10. A spreadsheet.


def test_a_spreadsheet(visit: Visit) -> None:
    """The list leads to its rows as CSV."""
    visit.click("Findings")
    with visit.page.expect_download() as download:
        visit.click("CSV of these rows")
    assert Path(download.value.path()).read_text("utf-8").count("\n") > 1
    visit.end(CLICKS)


def test_a_spreadsheet_of_the_report(report: Visit) -> None:
    """The file stands beside the pages."""
    report.click("Findings")
    with report.page.expect_download() as download:
        report.click("findings.csv")
    assert Path(download.value.path()).read_text("utf-8").count("\n") > 1
    report.end(CLICKS)


# 11. A month against the one before.


def test_a_month_against_the_month_before(visit: Visit) -> None:
    """The page of comparisons has the link."""
    visit.click("Compare", exact=True)
    visit.click("October against September")
    assert "20260920T100000Z-abcdef" in visit.main()
    assert "20261026T100000Z-abcdef" in visit.main()
    visit.end(CLICKS)


def test_a_month_ago_in_the_report(report: Visit) -> None:
    """The page of changes compares with the scan of thirty days ago."""
    report.click("History")
    assert "Compared with scan 20261026T100000Z-abcdef" in report.main()
    report.end(CLICKS)


# 12. A control of section 5 of the CIS benchmark.


def test_a_control(visit: Visit) -> None:
    """The summary leads to the worst controls, with their namespaces."""
    visit.click("Controls")
    visit.click("5.2.2", exact=True)
    assert "5.2.2 No container is privileged" in visit.main()
    visit.end(CLICKS)


def test_a_control_of_the_report(report: Visit) -> None:
    """The same in the static report."""
    report.click("Controls")
    report.click("5.2.2")
    assert "5.2.2" in report.page.get_by_role("heading", level=1).inner_text()
    report.end(CLICKS)


@pytest.mark.parametrize(("width", "height"), WINDOWS)
def test_resolved_problems_and_changes_begin_on_the_first_screen(
    page: Page, folder: Path, width: int, height: int
) -> None:
    """Without a broken word."""
    addresses = [(folder / name).as_uri() for name in ("resolved.html", "controls.html")]
    assert [] == list(low_lists(page, width, height, iter(addresses)))
    assert [] == list(broken_words(page, width, height, iter([*addresses, (folder / "changes.html").as_uri()])))


_PAGES: Final = (
    "latest/objects/object.html?kind=Deployment&namespace=shop&name=gift-cards",
    "latest/objects/passed.html?language=ValidatingAdmissionPolicy&policy=host-access",
    "latest/rules.html",
    "latest/controls.html",
    "latest/controls_by_namespace.html",
    "latest/coverage.html",
    "latest/resolved.html",
    "latest/method.html",
    "latest/changes.html",
    "compare?since=week",
    "compare?since=month",
)
"""The pages of the newest parts: an object and its workload, rules in force, controls, sources of refusals and the population, comparisons."""


def test_the_scans_of_a_comparison_are_chosen_on_one_line(visit: Visit) -> None:
    """The button stands beside both lists, in which the dates come first."""
    visit.click("Compare", exact=True)
    form = visit.page.get_by_role("form", name="Scans to compare")
    places = [each.bounding_box() for each in [*form.get_by_role("combobox").all(), form.get_by_role("button")]]
    assert 3 == len(places)
    assert 1 == len({round(place["y"] + place["height"] / 2) for place in places if place})
    assert "2026-11-27 10:00:00 UTC, incomplete, 20261127T100000Z-abcdef" == form.locator("option").first.inner_text()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1400), ("dark", 390)])
def test_pages_violate_no_rule_of_axe(
    browser: Browser, served: str, scheme: Literal["light", "dark"], width: int
) -> None:
    """Nor is a page wider than the window, and no word is broken in a cell."""
    page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900}, bypass_csp=True)
    addresses = list(served_pages(page, served, [f"{{cluster}}/{path}" for path in _PAGES]))
    for address in addresses:
        answer = page.goto(address)
        assert answer is not None
        assert answer.ok, address
        violations = Axe().run(page).response["violations"]
        assert [] == [(each["id"], each["nodes"][0]["html"]) for each in violations], address
        assert page.evaluate("document.documentElement.scrollWidth") <= width, address
    assert [] == list(broken_words(page, width, 900, iter(addresses)))
    page.close()
