"""Findings as CSV: one line for each, the open ones first, then those that the scan resolved."""

from __future__ import annotations

from itertools import chain
from typing import TextIO

from scanner.report.document import Document
from scanner.report.finding_columns import FINDINGS
from scanner.report.spreadsheet import write


def render(document: Document, out: TextIO) -> None:
    """Write a heading and one line for each finding."""
    findings = chain(document.findings(), document.resolved())
    write(out, FINDINGS.titles, (FINDINGS.cells(stored, document) for stored in findings))
