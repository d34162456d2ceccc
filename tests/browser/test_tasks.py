"""The tasks of an auditor, from the first page, each in at most three clicks, without an error or a request to elsewhere."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, Page

from .conftest import opened
from .visits import Visit

CLICKS = 3


def begun(page: Page, folder: Path) -> Visit:
    """A report, opened at its first page."""
    report = opened(page, folder)
    report.open("index.html")
    return report


def test_all_deny_violations_of_a_namespace(page: Page, large: Path) -> None:
    """The list with an action and a namespace."""
    report = begun(page, large)
    report.click("Findings")
    report.choose("action", "Deny")
    report.choose("namespace", "team-0007")
    rows = report.shown("Rows 1 to 50 of 50 that match")
    assert all("team-0007/" in row and row.startswith("✕ Deny") for row in rows)
    report.end(CLICKS)


def test_whose_a_finding_is(page: Page, small: Path) -> None:
    """The list has the owner of each row, and leads to all problems of one owner."""
    report = begun(page, small)
    report.click("Findings")
    rows = report.rows()
    assert {"payments", "storefront", "unowned"} == {
        owner for owner in ("payments", "storefront", "unowned") for row in rows if f" {owner} " in row
    }
    report.choose("owner", "payments")
    rows = report.shown("Rows 1 to 2 of 2 that match")
    assert all(" payments " in row and " pay/" in row for row in rows)
    report.end(CLICKS)


def test_what_changed_and_why(page: Page, small: Path) -> None:
    """The page of changes has the causes with their numbers, and leads to the findings, of which each has its cause."""
    report = begun(page, small)
    report.click("Changes")
    causes = " ".join(page.get_by_role("table", name="Findings by what happened").inner_text().split())
    assert "The param changed; the object changed, too + New 2" in causes
    report.click("2 new")
    report.shown("Rows 1 to 2 of 2 that match")
    report.follow(page.locator("tr", has_text="shop/web").get_by_role("link").first)
    place = " ".join(page.locator("article:target").inner_text().split())
    assert "New in this scan: first and last seen 2026-03-02 14:00 UTC" in place
    assert "Cause the param changed; the object changed, too" in place
    report.end(CLICKS)


def test_believe_a_finding(page: Page, small: Path) -> None:
    """Its place has the message, the expression, the line of the policy's text and the param's content."""
    report = begun(page, small)
    report.click("Findings")
    report.follow(page.locator("tr", has_text="max-replicas").get_by_role("link", name="10 replicas, 5 allowed"))
    place = page.locator("article:target").inner_text()
    for part in ("10 replicas, 5 allowed", "object.spec.replicas <= params.data.maxReplicas", "shop/limits"):
        assert part in place
    assert page.locator("article:target .expr").is_visible()
    report.follow(page.locator("article:target").get_by_role("link", name="line 14 of the policy’s text"))
    assert "- expression: object.spec.replicas <= params.data.maxReplicas" == (
        page.locator("li:target").inner_text().strip()
    )
    assert "maxReplicas: '5'" in page.get_by_role("region", name="Param ConfigMap shop/limits").inner_text()
    report.end(CLICKS)


def test_cite_a_finding_and_open_the_citation_in_the_next_report(
    browser: Browser, page: Page, small: Path, next_small: Path
) -> None:
    """The printed id links to the place itself; the same address leads to the finding in the next report."""
    report = begun(page, small)
    report.click("Findings")
    row = page.locator("tr", has_text="ledger").first
    report.follow(row.get_by_role("link").last)
    identifier = page.locator("article:target .fid").inner_text()
    citation = page.url.removeprefix(f"{small.as_uri()}/")
    assert f"f/{identifier[:3]}.html#f-{identifier}" == citation

    report.end(CLICKS)
    page.close()
    later = opened(browser.new_page(), next_small)
    later.open(citation)
    assert "pay/ledger" in later.page.locator("article:target h2").inner_text()
    later.end(CLICKS)
    later.page.close()


def test_find_by_text(page: Page, large: Path) -> None:
    """A word of a message is enough."""
    report = begun(page, large)
    report.click("Findings")
    page.get_by_label("Text").fill("app-42 limits")
    rows = report.shown("Rows 1 to 10 of 10 that match")
    assert all("deployment-000042" in row for row in rows)
    report.end(CLICKS)


def test_what_was_not_examined(page: Page, partial: Path) -> None:
    """The page of coverage has the kinds that were not listed, with the reasons."""
    report = begun(page, partial)
    report.click("Coverage")
    text = page.get_by_role("main").inner_text()
    assert "system:serviceaccount:audit/assay may not list pods" in text
    assert "broken.yaml, document 3" in text
    report.end(CLICKS)


def test_what_is_resolved_and_why(page: Page, small: Path) -> None:
    """The list with a status leads to the place, which names the time of the resolution and its reason."""
    report = begun(page, small)
    report.click("Findings")
    report.choose("status", "resolved")
    report.shown("Rows 1 to 2 of 2 that match")
    report.follow(report.page.locator("tr", has_text="shop/old-web").locator(".k-say a").first)
    assert "Resolved at 2026-03-02 14:00 UTC: the workload was fixed" in page.locator("article:target").inner_text()
    report.end(CLICKS)


def test_rules_in_force(page: Page, small: Path) -> None:
    """The policies lead to the text of each, and to its bindings."""
    report = begun(page, small)
    report.click("Policies")
    report.click("max-replicas")
    text = page.get_by_role("main").inner_text()
    assert "object.spec.replicas <= params.data.maxReplicas" in text
    assert "max-replicas-shop" in text
    report.end(CLICKS)


def test_who_was_examined_and_passed(page: Page, small: Path) -> None:
    """The page of coverage has the numbers of each kind, and a file with all objects."""
    report = begun(page, small)
    report.click("Evidence")
    with page.expect_download() as download:
        report.click("population.csv")
    assert (small / "population.csv").read_bytes() == Path(download.value.path()).read_bytes()
    report.end(CLICKS)
