"""`--export`: what is written, where, and what is refused before a scan begins."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from scanner.report import FORMATS
from tests.cli.conftest import Assay
from tests.cli.manifests import bound, config_map

Write = Callable[[str, str], Path]
FILES = [name for name, form in FORMATS.items() if form.target != "folder"]


@pytest.fixture
def shop(write: Write) -> str:
    """A folder with an object that breaks a policy."""
    write("shop/all.yaml", f"---\n# The shop\n\n{config_map('one')}---\n{bound('strict', expression='false')}")
    return "shop"


def test_a_scan_writes_every_format(assay: Assay, shop: str, home: Path) -> None:
    """One scan fills all files, and standard output as ever."""
    exports = [part for name in FILES for part in ("--export", f"{name}={home / name}")]
    ran = assay("scan", "--from", shop, "-q", "-o", "json", *exports, "--export", f"html={home / 'pages'}")

    assert 0 == ran.code
    assert [] == [name for name in FILES if not (home / name).stat().st_size]
    assert json.loads(ran.stdout) == json.loads((home / "json").read_bytes())
    assert (home / "pages" / "index.html").is_file()


@pytest.mark.parametrize(
    ("export", "message"),
    [
        ("yaml=report.yaml", "'yaml' is not one of 'table', 'json'"),
        ("json", "'json' is not FORMAT=PATH"),
        ("json=", "'json=' is not FORMAT=PATH"),
        ("json=-", "write to standard output with -o"),
        ("json=nowhere/report.json", "The folder of nowhere/report.json does not exist"),
        ("json=shop", "shop is a folder: name a file for json"),
        ("html=shop", "all.yaml in it is not part of an Assay report"),
        ("html=shop/all.yaml", "it is a file. Name a folder"),
    ],
)
def test_a_wrong_export_is_refused_before_the_scan(assay: Assay, shop: str, export: str, message: str) -> None:
    """Nothing is scanned for a report that cannot be written."""
    ran = assay("scan", "--from", shop, "--export", export)

    assert (2, b"") == (ran.code, ran.stdout)
    assert message in " ".join(ran.stderr.replace("│", " ").split())
    assert "does not exist" in assay("scans").stderr


def test_two_exports_need_two_places(assay: Assay, shop: str) -> None:
    """The second would replace the first."""
    ran = assay("scan", "--from", shop, "--export", "json=report", "--export", "csv=./report")

    assert (2, True) == (ran.code, "json and csv would both be written to report" in " ".join(ran.stderr.split()))


def test_an_export_replaces_the_earlier_one(assay: Assay, shop: str, home: Path) -> None:
    """In one step, without a file that stays beside it."""
    report = home / "reports" / "report.csv"
    report.parent.mkdir()
    report.write_text("old")
    assay("scan", "--from", shop, "-q", "--export", f"csv={report}")

    assert report.read_text().startswith("id,problem,status,")
    assert [report] == list(report.parent.iterdir())


def test_a_full_disk_keeps_the_earlier_report(assay: Assay, shop: str) -> None:
    """The message names the file; the scan is stored all the same."""
    ran = assay("scan", "--from", shop, "-q", "-o", "json", "--export", "json=/dev/full")

    assert (2, True) == (ran.code, "Cannot write the report to /dev/full: No space left on device" in ran.stderr)
    assert 0 == assay("report", "-o", "json").code


def test_an_export_that_fails_keeps_the_others(assay: Assay, shop: str, home: Path) -> None:
    """Also those after it: the message is the last thing."""
    exports = ("--export", "json=/dev/full", "--export", f"csv={home / 'findings.csv'}")
    ran = assay("scan", "--from", shop, "-q", "-o", "json", *exports)

    assert (2, True) == (
        ran.code,
        ran.stderr.splitlines()[-1].startswith("assay: Cannot write the report to /dev/full"),
    )
    assert (home / "findings.csv").read_text().startswith("id,problem,status,")


def test_html_is_an_export_of_its_own_name(assay: Assay, shop: str, home: Path) -> None:
    """`--html DIR` and `--export html=DIR` write the same pages."""
    assay("scan", "--from", shop, "-q", "--html", str(home / "one"), "--export", f"html={home / 'two'}")

    assert (home / "one" / "index.html").read_bytes() == (home / "two" / "index.html").read_bytes()


@pytest.mark.parametrize(
    "arguments",
    [
        ("--kubeconfig", "nowhere", "--export", "sarif=report.sarif"),
        ("--kubeconfig", "nowhere", "-o", "sarif"),
        ("--from", "-", "-o", "sarif"),
    ],
)
def test_sarif_needs_files(assay: Assay, home: Path, arguments: tuple[str, ...]) -> None:
    """A live cluster has none, and this is an error before anything is read."""
    ran = assay("scan", *arguments)

    assert (2, b"") == (ran.code, ran.stdout)
    assert "Scan manifests with --from" in ran.stderr
    assert [] == list(home.glob("*.sarif"))


def test_sarif_names_the_line_of_each_object(assay: Assay, shop: str) -> None:
    """The line of the first field of its document, behind comments and separators."""
    ran = assay("scan", "--from", shop, "-q", "-o", "sarif")
    [place] = [result["locations"][0]["physicalLocation"] for result in json.loads(ran.stdout)["runs"][0]["results"]]

    assert {"uri": "shop/all.yaml", "uriBaseId": "%SRCROOT%"} == place["artifactLocation"]
    assert {"startLine": 4} == place["region"]
