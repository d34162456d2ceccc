"""The downloads of the list of findings are those of `assay findings`, for the filter of the page."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from threading import Event, Thread

import pytest

from scanner.errors import UsageError
from scanner.report.html.folder_report import render
from scanner.web.pages import exports
from scanner.web.requests.addresses import ScanMoment
from scanner.web.requests.refusals import BadRequest, Busy
from tests.command import assay_here
from tests.web.served import Served

_OK, _BAD = 200, 400


def _printed(site: Served, url: str, tmp_path: Path, *flags: str) -> bytes:
    ran = assay_here("findings", "--db", url, "--limit", "0", *flags, home=tmp_path)
    assert 0 == ran.code, ran.stderr
    return ran.stdout


def _rows(text: str) -> list[list[str]]:
    return sorted(csv.reader(io.StringIO(text)))


def test_the_csv_has_the_lines_of_the_command(site: Served, examples: str, tmp_path: Path) -> None:
    """The same columns and the same findings, the open ones."""
    flags = "--status", "unresolved"
    got = site.get("download/findings.csv?status=unresolved")
    assert _rows(_printed(site, examples, tmp_path, *flags, "-o", "csv").decode()) == _rows(got.text)
    assert got.headers["content-disposition"].endswith('.findings.csv"')


def test_the_json_has_the_findings_of_the_command(site: Served, examples: str, tmp_path: Path) -> None:
    """The same object, with resolved findings where no status is chosen."""
    flags = "--status", "unresolved", "--status", "resolved"
    printed = json.loads(_printed(site, examples, tmp_path, *flags, "-o", "json"))
    got = json.loads(site.get("download/findings.json").text)
    assert {**printed, "findings": None} == {**got, "findings": None}
    assert sorted(printed["findings"], key=_fingerprint) == sorted(got["findings"], key=_fingerprint)


def _fingerprint(finding: dict[str, str]) -> str:
    return finding["fingerprint"]


@pytest.mark.parametrize(
    "query", ["policy=image-sources", "severity=high&status=open", "owner=unowned", "action=refused", "action=Deny"]
)
def test_a_download_has_the_findings_of_the_filter(site: Served, query: str) -> None:
    """They belong to the problems that the API lists with the same filter."""
    key = site.cluster.rpartition("/")[2]
    problems = json.loads(site.get(f"/api/v1/clusters/{key}/problems?limit=1000&{query}").text)["problems"]
    found = json.loads(site.get(f"download/findings.json?{query}").text)["findings"]
    assert {each["id"] for each in problems} == {each["problem"] for each in found}


def test_the_population_is_the_file_of_the_static_report(site: Served, tmp_path: Path) -> None:
    """The link of the page of the population leads to the same lines."""
    cluster = site.library.clusters()[0]
    render(site.library.view(site.library.scan(cluster, ScanMoment())).document, tmp_path / "report")
    assert (tmp_path / "report" / "population.csv").read_text() == site.get("population.csv").text


def test_a_filter_that_is_too_long_is_refused(site: Served) -> None:
    """As by the page."""
    assert _BAD == site.get(f"download/findings.csv?text={'x' * 300}").status


def test_some_downloads_are_made_at_the_same_time(site: Served) -> None:
    """A further one is refused: each may read every finding of a scan."""
    begun, ended = Event(), Event()

    def make() -> None:
        with pytest.raises(BadRequest):
            exports.send_download(slow, "text/csv", "a.csv", head=False)

    def slow(out: object) -> None:
        begun.set()
        ended.wait(10)
        raise UsageError("made no file")

    threads = [Thread(target=make) for _ in range(2)]
    for thread in threads:
        thread.start()
    begun.wait(10)
    try:
        while exports._EXPORTING._value:  # both are being made
            begun.wait(0.01)
        with pytest.raises(Busy, match="try again"):
            exports.send_download(lambda out: None, "text/csv", "b.csv", head=False)
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert _OK == site.get("download/findings.csv").status
