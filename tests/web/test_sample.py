"""The form of the page *Population* draws the sample of `assay sample`."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlencode

import pytest

from scanner.web.requests.addresses import ScanMoment
from tests.command import assay_here
from tests.web.served import Served

_OK, _BAD = 200, 400


@pytest.mark.parametrize(
    ("query", "flags"),
    [
        ({"of": "objects", "n": "20"}, ["--n", "20"]),
        ({"of": "passes", "policy": "owner"}, ["--of", "passes", "--policy", "owner"]),
        ({"of": "findings", "n": "9", "namespace": "1"}, ["--of", "findings", "--n", "9", "--stratify", "namespace"]),
        ({"n": "60", "owner": "1", "kind": "1"}, ["--n", "60", "--stratify", "owner,kind"]),
        ({"confidence": "80", "tolerable": "5", "kind": "1"}, ["--confidence=80", "--tolerable=5", "--stratify=kind"]),
    ],
)
def test_the_form_leads_to_the_files_of_the_command(
    site: Served, examples: str, tmp_path: Path, query: dict[str, str], flags: list[str]
) -> None:
    """The same bytes of the population, and the same items in the same order."""
    scan = site.library.scan(site.library.clusters()[0], ScanMoment()).id
    folder = tmp_path / "sample"
    made = ("sample", "--db", examples, "--scan", scan, "--seed", "2026 Q4", "--out", str(folder), *flags)
    ran = assay_here(*made, home=tmp_path)
    assert 0 == ran.code, ran.stderr

    page = site.get(f"sample.html?{urlencode({**query, 'seed': '2026 Q4'})}")
    assert (_OK, "Sample") == (page.status, page.heading)
    files = {link.partition("?")[0]: site.get(link) for link in page.links("sample/")}
    for name in ("population.csv", "sample.csv"):
        assert (folder / name).read_text() == files[f"sample/{name}"].text
    rule = [line for line in (folder / "rule.txt").read_text().splitlines() if not line.startswith(" ")]
    assert rule == [re.sub("<[^>]+>", "", line) for line in re.findall("<li><bdi>(.*?)</bdi></li>", page.text)]
    assert "assay sample --scan" in page.text


def test_the_page_of_the_population_has_the_form(site: Served) -> None:
    """It names the policies of the scan, and works without a script."""
    page = site.get("coverage.html").text
    assert '<form class="plain-form" aria-label="Sample" action="sample.html" method="get">' in page
    assert '<option value="owner">owner</option>' in page


def test_the_page_without_parameters_leads_to_the_form(site: Served) -> None:
    """A reader may follow or type the address."""
    got = site.get("sample.html")

    assert (302, "coverage.html#population") == (got.status, got.headers["location"])


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("n=25", "seed"),
        ("seed=x&n=0", "--n 0"),
        ("seed=x&n=abc", "whole number"),
        ("seed=x&n=99999999", "whole number"),
        ("seed=x&of=runs", "of: choose objects"),
        ("seed=x&policy=%3Cscript%3E", "no such policy"),
        ("seed=x&confidence=100&tolerable=5", "--confidence 100"),
        ("seed=x&confidence=0&tolerable=0", "--confidence 0"),
        ("seed=x&confidence=95", "--tolerable 0"),
        ("seed=x&n=1&namespace=1", "strata"),
        (f"seed={'x' * 300}", "at most 256"),
    ],
)
def test_a_sample_without_a_rule_is_a_bad_request(site: Served, query: str, message: str) -> None:
    """The page says what to change; names of the request are escaped."""
    for path in ("sample.html", "sample/population.csv", "sample/sample.csv"):
        got = site.get(f"{path}?{query}")
        if path == "sample/population.csv" and "namespace" in query:
            continue
        assert _BAD == got.status
        assert message in got.text
        assert "<script>" not in got.text
