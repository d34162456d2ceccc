"""The pages in a real browser, if ASSAY_TEST_CHROMIUM names one."""

from __future__ import annotations

import subprocess
from pathlib import Path

from scanner.report import FORMATS
from scanner.report.document.document import document_of
from tests.requirements import CHROMIUM

from .records import HOSTILE, hostile_record

QUIET = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=2000",
]


def test_no_script_of_a_hostile_scan_runs(tmp_path: Path) -> None:
    """A browser shows hostile texts, runs none of them, and applies the permitted style."""
    folder = tmp_path / "report"
    FORMATS["html"].render(document_of(hostile_record()), folder)
    for page, scripts in (("index.html", 0), ("changes.html", 0), ("findings.html", 2)):
        dom = loaded(folder / page, tmp_path / "profile")
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in dom, page
        assert scripts == dom.count("<script"), page
        assert "<img" not in dom, page


def test_a_finding_is_shown(tmp_path: Path) -> None:
    """A browser shows the finding that the anchor names."""
    folder = tmp_path / "report"
    FORMATS["html"].render(document_of(hostile_record()), folder)
    (stored,) = (finding for finding in hostile_record().findings() if finding.finding.name == HOSTILE[0])
    dom = loaded(folder / "f" / f"{stored.id[:3]}.html", tmp_path / "profile")
    assert f'id="f-{stored.id}"' in dom


def loaded(page: Path, profile: Path) -> str:
    """The page as the browser has it after loading."""
    command = [CHROMIUM.require(), *QUIET, f"--user-data-dir={profile}", "--dump-dom", page.as_uri()]
    return subprocess.run(command, check=True, capture_output=True, timeout=60).stdout.decode()
