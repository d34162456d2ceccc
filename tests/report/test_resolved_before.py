"""A static report goes on to answer for what scans of the last ninety days resolved."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from scanner.model.scans.stored_finding import StoredFinding
from scanner.report import FORMATS
from scanner.report.document.document import document_of
from tests.report.in_memory import ScanInMemory
from tests.report.records import STARTED, finding, small_record

from .pages import main_of

_ENDED = STARTED - timedelta(days=3)


def _resolved(name: str, policy: str = "require-limits") -> StoredFinding:
    return replace(
        finding(name, of=policy),
        status="resolved",
        resolved_at=_ENDED,
        resolution="fixed",
        problem=f"p-{name.encode().hex():0>12}",
    )


def _report(tmp_path: Path, *earlier: StoredFinding) -> Path:
    FORMATS["html"].render(document_of(replace(small_record(), earlier=earlier)), tmp_path / "report")
    return tmp_path / "report"


def test_its_place_has_its_last_state(tmp_path: Path) -> None:
    """At the address that the report had when the finding was open: when it was resolved, why, and in the past tense."""
    gone = _resolved("gone")
    page = (_report(tmp_path, gone) / f"f/{gone.id[:3]}.html").read_text("utf-8")
    [place] = re.findall(rf'<article[^>]* id="f-{gone.id}".*?</article>', page, re.DOTALL)
    assert "Resolved at 2026-02-27 14:00 UTC: the workload was fixed" in place
    assert "was last evaluated before the finding was resolved" in place


def test_the_page_of_resolved_problems_lists_it(tmp_path: Path) -> None:
    """With its reason and a link to its place."""
    gone = _resolved("gone")
    page = main_of(_report(tmp_path, gone) / "resolved.html")
    assert f'href="f/{gone.id[:3]}.html#f-{gone.id}"' in page
    assert "the workload was fixed" in page


def test_a_finding_of_a_policy_that_is_gone_leads_to_its_line(tmp_path: Path) -> None:
    """Its place cannot show the text of the policy, but the address answers."""
    gone = _resolved("gone", policy="no-longer-there")
    folder = _report(tmp_path, gone)
    page = (folder / f"f/{gone.id[:3]}.html").read_text("utf-8")
    assert f'id="f-{gone.id}"' in page
    assert f'href="../resolved.html#{gone.problem}"' in page
    assert f'<tr id="{gone.problem}">' in (folder / "resolved.html").read_text("utf-8")


def test_findings_of_a_problem_are_one_line(tmp_path: Path) -> None:
    """The pods of a workload, which one scan saw fixed."""
    pods = [replace(_resolved(name), problem="p-000000000001") for name in ("web-1", "web-2")]
    page = main_of(_report(tmp_path, *pods) / "resolved.html")
    assert 1 == page.count('<tr id="p-')
    assert 'data-label="Findings">2<' in page


def test_a_first_scan_has_no_page_more(tmp_path: Path) -> None:
    """Row 8: what earlier scans resolved costs the report of a first scan one small page."""
    before = {path.name for path in (_report(tmp_path) / "f").iterdir()}
    assert "No scan of these days resolved a finding" in main_of(tmp_path / "report" / "resolved.html")
    assert before == {
        f"{each.id[:3]}.html" for each in [*small_record().findings(), *small_record().resolved_findings()]
    }


def test_one_file_has_none_of_them(tmp_path: Path) -> None:
    """It is for paper."""
    gone = _resolved("gone")
    record: ScanInMemory = replace(small_record(), earlier=(gone,))
    with (tmp_path / "report.html").open("w", encoding="utf-8") as out:
        FORMATS["html-single"].render(document_of(record), out)
    assert gone.id not in (tmp_path / "report.html").read_text("utf-8")
