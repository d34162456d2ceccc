"""The shorter style sheets of pages that a report has by the thousand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scanner.posture.severity import Severity
from scanner.report import FORMATS
from scanner.report.document.document import document_of
from tests.report.in_memory import ScanInMemory
from tests.report.records import hostile_record, partial_record, small_record

_CLASSES = re.compile(r' class="([^"]*)"')
_STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)
_STYLED = re.compile(r"\.([A-Za-z][\w-]*)")


_SEVERITIES = frozenset(f"sev-{severity}" for severity in Severity)


@pytest.mark.parametrize("record", [small_record(), partial_record(), hostile_record()])
def test_a_short_style_sheet_has_each_class_of_its_pages(record: ScanInMemory, tmp_path: Path) -> None:
    """A class with a rule in the style sheet of all pages has a rule on the pages of findings, each severity too."""
    folder = tmp_path / "report"
    FORMATS["html"].render(document_of(record), folder)
    every = _styled(folder / "index.html")
    pages = [*folder.glob("f/*.html"), *folder.glob("findings*.html")]
    missing = {path.name: ((_classes(path) | _SEVERITIES) & every) - _styled(path) for path in pages}
    assert [] == [name for name, classes in missing.items() if classes]


def _classes(path: Path) -> set[str]:
    return {name for names in _CLASSES.findall(path.read_text("utf-8")) for name in names.split()}


def _styled(path: Path) -> set[str]:
    """The classes that the style sheet of a page names."""
    style = _STYLE.search(path.read_text("utf-8"))
    assert style
    return set(_STYLED.findall(style[1]))
