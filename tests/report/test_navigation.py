"""The navigation and the summary of the HTML report."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from scanner.model.scans.register import Register, ScanLine
from scanner.report import FORMATS
from scanner.report.document.document import document_of
from scanner.report.document.sentences import verdict_line, verdict_parts
from scanner.report.html.site import section_of
from tests.report.in_memory import ScanInMemory

from .pages import main_of, read
from .records import partial_record, small_record, with_findings


def rendered(record: ScanInMemory, folder: Path) -> Path:
    """The folder of the pages of a record."""
    FORMATS["html"].render(document_of(record), folder / "report")
    return folder / "report"


def with_register(record: ScanInMemory) -> ScanInMemory:
    """A record of a cluster with two scans, the second under other rules."""
    first = ScanLine("a", "complete", record.scan.started_at, None, "0.1.0", 9, 9, 0, alike=True, rules_changed=False)
    second = replace(first, id="b", findings=4, rules_changed=True, alike=False)
    return replace(record, history=Register(lines=(second, first)))


def test_groups_come_first(tmp_path: Path) -> None:
    """Every page leads to the summary and the four groups, and to the pages of its group with their counts."""
    text = (rendered(partial_record(), tmp_path) / "policies.html").read_text("utf-8")
    primary, _, pages = text[text.index('class="primary"') : text.index('class="strip"')].partition('class="secondary"')
    assert ["Summary", "Problems", "Rules", "Evidence", "History"] == re.findall(r">(\w+)</a>", primary)
    assert ["Policies", "Rules in force", "Policy health"] == re.findall(r'">([A-Z][\w ]+?)(?: <span|</a>)', pages)
    assert 1 == pages.count('aria-current="page"')


def test_every_page_is_two_clicks_away(tmp_path: Path) -> None:
    """The first pages of the groups lead to all pages of their groups, and the summary to all pages."""
    folder = rendered(small_record(), tmp_path)
    groups = ("findings.html", "policies.html", "coverage.html", "changes.html")
    reached = {link.get("href", "") for page in groups for link in read(folder / page).named("a")}
    summary = {link.get("href", "") for link in read(folder / "index.html").named("a")}
    pages = {path.name for path in folder.glob("*.html")} - {"index.html"}
    assert set() == pages - reached
    assert set() == pages - summary


def test_every_page_is_in_a_section_of_the_navigation(tmp_path: Path) -> None:
    """One entry is marked as the current one."""
    folder = rendered(small_record(), tmp_path)
    for path in sorted(folder.rglob("*.html")):
        current = [link for link in read(path).named("a") if "aria-current" in link]
        assert 1 == len(current), path


def test_pages_of_a_list_belong_to_its_section() -> None:
    """The second page of a list, and a page in a folder, are in the section of the first page."""
    pages = ("findings-2.html", "coverage_3.html", "f/1e9.html", "owners/shop.html", "health.html")
    expected = ["findings.html", "coverage.html", "findings.html", "owners.html", "health.html"]
    assert expected == [section_of(page) for page in pages]


def test_each_part_of_the_verdict_is_a_link(tmp_path: Path) -> None:
    """The first heading of the summary has the parts of the verdict line, each with a link to its list."""
    document = document_of(small_record())
    html = main_of(rendered(small_record(), tmp_path) / "index.html")
    heading = html[html.index("<h1") : html.index("</h1>")]
    assert list(verdict_line(document)) == re.findall(r'<a class="v-\w+" href="[^"]+">([^<]+)</a>', heading)
    assert [part.kind for part in verdict_parts(document)] == re.findall(r'class="v-(\w+)"', heading)


def test_open_problems_are_named_if_none_would_be_refused(tmp_path: Path) -> None:
    """The page does not praise a cluster with problems that admission warns of, and leads to them."""
    warned = [stored for stored in small_record().findings() if not stored.finding.denies]
    record = with_findings(small_record(), warned)
    heading = main_of(rendered(record, tmp_path) / "index.html").partition("</h1>")[0]
    assert ("no problem would be refused by a judged policy", "3 open problems", "1 new") == verdict_line(
        document_of(record)
    )[:3]
    assert '<a class="v-open" href="findings.html#status=open">3 open problems</a>' in heading
    assert "v-good" not in heading


def test_a_scan_that_saw_nothing_is_not_praised(tmp_path: Path) -> None:
    """Only a complete scan without problems has the colour of success."""
    clean = with_findings(small_record(), [])
    unseen = with_findings(partial_record(), [])
    pages = [
        rendered(record, tmp_path / name) / "index.html" for record, name in ((clean, "clean"), (unseen, "unseen"))
    ]
    assert [True, False] == ["v-good" in main_of(page) for page in pages]


def test_runs_are_listed(tmp_path: Path) -> None:
    """The newest scan comes first, and other rules and another scope are marked."""
    html = main_of(rendered(with_register(small_record()), tmp_path) / "runs.html")
    assert ["b", "other scope", "rules changed", "a"] == re.findall(
        r'(?:<th scope="row">|class="tag">)([^< ][^<]*?)(?= ?<)', html
    )
