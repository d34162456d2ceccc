"""The pages of the HTML report."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from scanner.model.outcome import Gap, GapKind, Violated
from scanner.report import FORMATS
from scanner.report.document.document import document_of
from scanner.report.html.templates import content_hash
from tests.report.in_memory import ScanInMemory

from .pages import main_of, places_of, read
from .records import finding, hostile_record, large_record, partial_record, small_record, with_findings

Render = Callable[[ScanInMemory], Path]


@pytest.fixture
def render(tmp_path: Path) -> Render:
    """Render a scan into a folder of its own."""

    def rendered(record: ScanInMemory) -> Path:
        folder = tmp_path / "report"
        FORMATS["html"].render(document_of(record), folder)
        return folder

    return rendered


def pages_of(folder: Path) -> list[Path]:
    """Every page of a report."""
    return sorted(folder.rglob("*.html"))


@pytest.mark.parametrize("page", ["index.html", "coverage.html", "method.html"])
def test_pages_of_an_incomplete_scan(render: Render, page: str, snapshot: SnapshotAssertion) -> None:
    """The text of the pages about an incomplete scan."""
    assert main_of(render(partial_record()) / page) == snapshot


@pytest.mark.parametrize(
    "page",
    [
        "index.html",
        "findings.html",
        "f/1e9.html",
        "policies.html",
        "policies/max-replicas.html",
        "namespaces/shop.html",
        "changes.html",
        "runs.html",
        "owners.html",
        "owners/_unowned.html",
        "coverage.html",
        "method.html",
    ],
)
def test_pages_of_a_complete_scan(render: Render, page: str, snapshot: SnapshotAssertion) -> None:
    """The text of the pages about a complete scan."""
    assert main_of(render(small_record()) / page) == snapshot


def test_the_state_comes_first(render: Render) -> None:
    """An incomplete scan names its gaps before any number."""
    text = main_of(render(partial_record()) / "index.html")
    assert text.index("Incomplete") < text.index("v1/Pod: forbidden") < text.index("Checks")


@pytest.mark.parametrize(
    "record", [small_record(), partial_record(), hostile_record(), large_record(700, policies=1, namespaces=2)]
)
def test_pages_are_well_formed(render: Render, record: ScanInMemory) -> None:
    """Every page closes its tags, has one main and one h1, and no id twice."""
    for path in pages_of(render(record)):
        page = read(path)
        assert [] == page.faults, path
        assert (1, 1) == (len(page.named("main")), len(page.named("h1"))), path
        assert len(set(page.ids())) == len(page.ids()), path


@pytest.mark.long
@pytest.mark.parametrize("record", [small_record(), hostile_record(), large_record(700, policies=1, namespaces=2)])
def test_every_link_leads_somewhere(render: Render, record: ScanInMemory) -> None:
    """Links lead to pages or files of the report, and to an id of the page or to a filter of the list."""
    folder = render(record)
    ids = {path.resolve(): set(read(path).ids()) for path in pages_of(folder)}
    for path in ids:
        for link in read(path).named("a"):
            target, _, anchor = link["href"].partition("#")
            page = (path.parent / target).resolve() if target else path
            assert page in ids or "download" in link, (path, link)
            assert page.is_file(), (path, link)
            assert not anchor or "=" in anchor or anchor in ids[page], (path, link)


@pytest.mark.parametrize("record", [small_record(), hostile_record()])
def test_no_request_leaves_a_page(render: Render, record: ScanInMemory) -> None:
    """No page has an image or a frame, only the list of findings has a script, and only links refer to other addresses."""
    for path in pages_of(render(record)):
        page = read(path)
        assert not {"img", "iframe", "object", "embed", "form", "base"} & {tag for tag, _ in page.tags}, path
        assert [{}] * path.name.startswith("findings") == page.named("script"), path
        assert ["data:,"] == [link["href"] for link in page.named("link")]
        for tag, attributes in page.tags:
            assert not {"src", "srcset", "background", "poster", "style"} & set(attributes), (path, tag)
            assert not [name for name in attributes if name.startswith("on")], (path, tag)


def test_the_security_policy_forbids_all_but_the_style_sheet(render: Render) -> None:
    """The hashes in the policy are those of the style sheet, and of the one script in the list of findings."""
    for path in pages_of(render(small_record())):
        text = path.read_text("utf-8")
        style, scripts = (re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL) for tag in ("style", "script"))
        allowed = "".join(f"; script-src '{content_hash(script)}' 'strict-dynamic'" for script in scripts)
        (csp,) = [attributes["content"] for attributes in read(path).named("meta") if "http-equiv" in attributes]
        assert (
            f"default-src 'none'; style-src '{content_hash(style[0])}'; img-src data:; base-uri 'none'; form-action 'none'{allowed}"
            == csp
        ), path


def test_every_page_carries_the_provenance(render: Render) -> None:
    """Every page names cluster, scan, state, times, coverage, policy set and version."""
    for path in pages_of(render(partial_record())):
        text = read(path).text
        for word in ("harbour", "v1.36.0", "20260302-140000-ab12", "Incomplete", "2026-03-02 14:00:12 UTC"):
            assert word in text, path
        assert "without namespaces kube-*" in text, path


def test_tables_are_labelled(render: Render) -> None:
    """Every table has a caption, and every header cell a scope."""
    for path in pages_of(render(small_record())):
        page = read(path)
        assert len(page.named("table")) == len(page.named("caption")), path
        assert [] == [attributes for attributes in page.named("th") if attributes.get("scope") not in ("col", "row")], (
            path
        )


def test_same_scan_same_pages(render: Render) -> None:
    """Rendering twice gives the same files with the same bytes."""
    first = {path.name: path.read_bytes() for path in pages_of(render(small_record()))}
    assert first == {path.name: path.read_bytes() for path in pages_of(render(small_record()))}


def test_findings_are_cut_into_pages(render: Render) -> None:
    """Every problem is one row of the list, a hundred on a page, with the total beside the number."""
    folder = render(large_record(250, policies=1, namespaces=2))
    pages = [read(folder / name) for name in ("findings.html", "findings-2.html", "findings-3.html")]
    assert [100, 100, 50] == [len(page.named("tr")) - 1 for page in pages]
    assert ["Rows 1 to 100 of 250", "Rows 101 to 200 of 250", "Rows 201 to 250 of 250"] == [
        match.group() for page in pages if (match := re.search(r"Rows [\d,]+ to [\d,]+ of 250", page.text))
    ]


def test_page_numbers_stand_above_and_below(render: Render) -> None:
    """They lead to the first, the last and the near pages, and name the current one."""
    html = main_of(render(large_record(1_150, policies=1, namespaces=2)) / "findings-6.html")
    links = re.findall(r'<li><a href="([^"]+)"( aria-current="page")?>', html)
    expected = ["findings.html", *(f"findings-{number}.html" for number in (4, 5, 6, 7, 8, 12))]
    assert expected * 2 == [href for href, _ in links]
    assert ["findings-6.html"] * 2 == [href for href, current in links if current]


def test_every_finding_has_one_place(render: Render) -> None:
    """Its address follows from its id alone: resolved findings have a place, too."""
    folder, record = render(small_record()), small_record()
    stored = [*record.findings(), *record.resolved_findings()]
    assert sorted((f"{each.id[:3]}.html", f"f-{each.id}") for each in stored) == sorted(
        (path.name, identifier)
        for path in (folder / "f").iterdir()
        for identifier in read(path).ids()
        if identifier.startswith("f-")
    )


def test_a_place_keeps_its_address_on_a_full_page(render: Render) -> None:
    """Findings that have no room on their page keep an anchor there, with a link to the page that has them."""
    findings = [
        replace(finding(f"web-{number}", outcome=Violated("é" * 5_000)), id=f"abc{number:09x}") for number in range(60)
    ]
    folder = render(with_findings(small_record(), findings)) / "f"
    first, second = read(folder / "abc.html"), read(folder / "abc-2.html")
    assert {f"f-{each.id}" for each in findings} == {each for each in first.ids() if each.startswith("f-")}
    moved = [link["href"] for link in first.named("a") if link["href"].startswith("abc-2.html#")]
    assert sorted(each for each in second.ids() if each.startswith("f-")) == [href.partition("#")[2] for href in moved]
    assert max(path.stat().st_size for path in folder.iterdir()) < 500_000


def test_first_scan_does_not_repeat_everything_as_new(render: Render) -> None:
    """Without a previous scan, the page of changes states that all findings are new, and lists none."""
    text = main_of(render(replace(small_record(), previous=None)) / "changes.html")
    assert "first stored scan" in text
    assert "<table" not in text


@pytest.mark.long
@pytest.mark.parametrize("text", ["x" * 20_000, "&" * 20_000, "\u202e" * 20_000, "\U000e0001" * 20_000, "€" * 20_000])
def test_no_page_is_too_big(render: Render, text: str) -> None:
    """A page stays under 500 kB with any messages and names."""
    findings = [finding(f"{number}{text}", outcome=Violated(text)) for number in range(60)]
    gaps = tuple(Gap(GapKind.OBJECT, f"{number}{text}", text) for number in range(40))
    record = with_findings(replace(small_record(), gaps=gaps), findings)
    assert max(path.stat().st_size for path in pages_of(render(record))) < 500_000


def test_long_messages_say_that_they_are_cut(render: Render) -> None:
    """A cut message has the number of its characters."""
    folder = render(with_findings(small_record(), [finding("web", outcome=Violated("x" * 9_000))]))
    assert "6,000 of 9,000 characters shown" in places_of(folder)


def test_messages_keep_their_lines(render: Render) -> None:
    """A message of several lines is shown in several lines."""
    folder = render(with_findings(small_record(), [finding("web", outcome=Violated("first\nsecond"))]))
    assert "first&#10;second" in places_of(folder)


def test_an_empty_scan_has_pages(render: Render) -> None:
    """The report of a scan without policies names the remedy."""
    empty = replace(
        small_record(),
        policies=(),
        tallies={},
        coverage=(),
        health=(),
        found=lambda: (()),
        joined=lambda: (),
    )
    text = read(render(empty) / "index.html").text
    assert "No policies were found" in text
    assert "no check was decided" in text
