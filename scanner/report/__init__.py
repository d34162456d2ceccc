"""The report of a stored scan: `document.document_of` makes it as data, and one module for each format writes it.

`FORMATS` is the table of the formats: flags, help and tests follow from it. This module imports none of them, because the
command line reads the table for `--help`, and a table on a terminal should not wait for a template engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal, TextIO

if TYPE_CHECKING:
    from scanner.report.document import Document

__all__ = ["FORMATS", "Format"]


@dataclass(frozen=True, slots=True)
class Format:
    """A report format: `module` has `render(document, into)`, where `into` is the stream or folder of `target`.

    `ending` is that of the names of its files, and `media_type` their type. A format for a binary or text file is a choice of `-o`. One that fills a folder has a `first_page`, the file in that folder to
    open first. `flag` is the name of a flag of its own, besides `--export`. `needs_files` is true for a format of
    findings in files.
    """

    module: str
    target: Literal["binary", "text", "folder"]
    ending: str
    media_type: str
    first_page: str = ""
    flag: str = ""
    needs_files: bool = False

    def render(self, document: Document, into: BinaryIO | TextIO | Path) -> None:
        """Write the report into the stream or folder of `target`.

        Raises UsageError when a folder cannot be used.
        """
        import_module(self.module).render(document, into)


FORMATS: dict[str, Format] = {
    "table": Format("scanner.report.table", "text", "txt", "text/plain"),
    "json": Format("scanner.report.json", "binary", "json", "application/json"),
    "csv": Format("scanner.report.csv", "text", "csv", "text/csv"),
    "csv-population": Format("scanner.report.csv_population", "text", "population.csv", "text/csv"),
    "markdown": Format("scanner.report.markdown", "text", "md", "text/markdown"),
    "junit": Format("scanner.report.junit", "text", "junit.xml", "application/xml"),
    "openmetrics": Format("scanner.report.openmetrics", "text", "openmetrics.txt", "text/plain"),
    "openmetrics-detailed": Format(
        "scanner.report.openmetrics_detailed", "text", "openmetrics-detailed.txt", "text/plain"
    ),
    "sarif": Format("scanner.report.sarif", "binary", "sarif.json", "application/json", needs_files=True),
    "oscal": Format("scanner.report.oscal", "binary", "oscal.json", "application/json"),
    "policyreport": Format("scanner.report.policyreport", "binary", "policyreport.json", "application/json"),
    "openreports": Format("scanner.report.openreports", "binary", "openreports.json", "application/json"),
    "html-single": Format("scanner.report.html_single", "text", "html", "text/html", flag="single-file"),
    "html": Format("scanner.report.html", "folder", "html", "text/html", first_page="index.html", flag="html"),
}
