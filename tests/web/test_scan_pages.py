"""The pages about one scan are those of the static report, at addresses that mean the same later."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scanner.report.html.folder_report import render
from scanner.web.pages.exports import EXPORTS
from scanner.web.requests.addresses import ScanMoment
from tests.web.served import Served

_HISTORY = re.compile(r'<a href="[./]*problems/[^"]+"><span class="sr">History, </span>(.*?)</a>')
_FORM = re.compile(r"<h3>Draw a sample</h3>.*?</form>\n", re.DOTALL)
_OBJECT = re.compile(r'<a href="[./]*objects/[^"]+">(.*?)</a>')
_MOVED, _OK, _UNCHANGED, _BAD, _MISSING, _NOT_ALLOWED = 302, 200, 304, 400, 404, 405


@pytest.fixture(scope="session")
def static(site: Served, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The static report of the newest scan."""
    cluster = site.library.clusters()[0]
    folder = tmp_path_factory.mktemp("static") / "report"
    render(site.library.view(site.library.scan(cluster, ScanMoment())).document, folder)
    return folder


def _main(html: str) -> str:
    """The main part of a page, without the links to histories and objects, which a static report does not have."""
    own = _OBJECT.sub(r"\1", _HISTORY.sub(r"\1", html[html.index("<main") : html.index("</main>")]))
    return own.replace("findings.html?", "findings.html#")


@pytest.mark.long
def test_every_page_of_the_static_report_is_served_with_the_same_content(site: Served, static: Path) -> None:
    """Each page besides the list of findings has the same main part, but for the links that filter the list, those to other days, and the form of a sample.

    Changes are compared on a page of their own.
    """
    pages = sorted(path.relative_to(static).as_posix() for path in static.rglob("*.html"))
    own = [page for page in pages if not page.startswith(("findings", "f/", "changes"))]
    assert {page: _main((static / page).read_text()) for page in own} == {
        page: _FORM.sub("", re.sub(" On other days:.*?</p>", "</p>", _main(site.get(page).text))) for page in own
    }


def test_every_place_of_a_finding_is_served_as_the_static_report_has_it(site: Served, static: Path) -> None:
    """The pages of findings are equal, byte for byte, in their main part but for the rules of style."""
    pages = sorted(path.name for path in (static / "f").iterdir())
    assert {name: _main((static / "f" / name).read_text()) for name in pages} == {
        name: _main(site.get(f"f/{name}").text) for name in pages
    }


def test_the_list_has_the_rows_of_the_static_list_in_the_same_order(site: Served, static: Path) -> None:
    """The list without a filter names the same findings, one after the other."""
    ids = re.findall(r'class="fid" href="([^"]+)"', (static / "findings.html").read_text())
    assert ids
    assert ids == re.findall(r'class="fid" href="([^"]+)"', site.get("findings.html").text)


def test_the_address_of_a_cluster_leads_to_the_summary_of_its_newest_scan(site: Served) -> None:
    """Without a moment, the newest scan is meant."""
    answer = site.get(site.cluster)
    assert (_MOVED, f"{site.cluster}/latest/index.html") == (answer.status, answer.headers["location"])


def test_a_date_and_a_scan_lead_to_addresses_that_mean_the_same_later(site: Served) -> None:
    """`?at=` and `?scan=` become parts of the path, which relative links keep."""
    scan = site.library.scan(site.library.clusters()[0], ScanMoment())
    assert scan.finished_at is not None
    day = f"{scan.finished_at:%Y-%m-%d}"
    at, named = site.get(f"{site.cluster}?at={day}&page=findings.html"), site.get(f"{site.cluster}?scan={scan.id}")
    assert f"{site.cluster}/at/{day}/findings.html" == at.headers["location"]
    assert f"{site.cluster}/scans/{scan.id}/index.html" == named.headers["location"]
    assert _OK == site.get(at.headers["location"]).status == site.get(named.headers["location"]).status


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/clusters/nowhere.00000000", _MISSING),
        ("{cluster}/at/2999-01-01/index.html", _BAD),
        ("{cluster}/at/2026-02-30/index.html", _BAD),
        ("{cluster}/at/yesterday/index.html", _BAD),
        ("{cluster}/scans/20010101T000000Z-000000/index.html", _MISSING),
        ("{cluster}/latest/nothing.html", _MISSING),
        ("{cluster}/latest/f/zzz.html", _MISSING),
        ("{cluster}/latest/f/../../../etc/passwd", _MISSING),
        ("{cluster}/latest/..%2f..%2fetc%2fpasswd", _MISSING),
        ("{cluster}/latest/problems/p-nothing.html", _MISSING),
        ("{cluster}/latest/problems/p-000000000000.html", _MISSING),
        ("{cluster}/latest/download/assay.exe", _MISSING),
        ("{cluster}/latest/findings.html?after=nonsense", _BAD),
        ("{cluster}/latest/findings.html?text=" + "x" * 257, _BAD),
        ("/nothing", _MISSING),
    ],
)
def test_an_address_of_nothing_is_a_page_that_states_so(site: Served, path: str, status: int) -> None:
    """Each has its status and one heading, and neither a trace nor a path of the machine."""
    answer = site.get(path.format(cluster=site.cluster))
    assert status == answer.status
    assert "Traceback" not in answer.text
    assert "/scanner/" not in answer.text
    assert answer.heading


def test_nothing_can_be_written(site: Served) -> None:
    """Every method but GET and HEAD is refused."""
    statuses = {
        site.client.request(method, f"{site.cluster}/latest/index.html").status_code
        for method in ("POST", "PUT", "DELETE", "PATCH")
    }
    assert {_NOT_ALLOWED} == statuses


def test_a_browser_that_has_a_page_gets_no_second_copy(site: Served) -> None:
    """The entity tag of a page follows from its content."""
    tag = site.get("index.html").headers["etag"]
    assert _UNCHANGED == site.get("index.html", If_None_Match=tag).status


@pytest.mark.parametrize("field", ["policy", "namespace", "owner", "severity", "action", "status", "text"])
def test_a_filter_without_a_match_shows_no_row(site: Served, field: str) -> None:
    """No filter is ignored."""
    assert "No row matches" in site.get(f"findings.html?{field}=nothing-of-this-name").text


def test_the_filters_of_links_show_the_numbers_beside_them(site: Served) -> None:
    """The verdict's number of refused problems is that of the rows behind its link."""
    summary = site.get("index.html")
    link = summary.links("findings.html?action=refused")[0]
    rows = site.get(link).text.count('class="fid"')
    assert f"{rows} problems would be refused" in summary.heading


def test_the_row_of_a_problem_leads_to_its_history(site: Served) -> None:
    """The history begins with the scan that found the problem."""
    link = site.get("findings.html?status=open").links("problems/p-")[0]
    page = site.get(link)
    assert page.heading == f"Problem {link[len('problems/') : -len('.html')]}"
    assert '<li class="t-opened">' in page.text


def test_every_format_of_one_file_can_be_downloaded(site: Served) -> None:
    """Each is the file that `assay report` writes; SARIF too, since the objects came from files."""
    answers = {file: site.get(f"download/{file}") for file in EXPORTS.values()}
    assert {_OK} == {answer.status for answer in answers.values()}
    assert all(answer.text for answer in answers.values())
    assert {"attachment"} == {answer.headers["content-disposition"].partition(";")[0] for answer in answers.values()}
