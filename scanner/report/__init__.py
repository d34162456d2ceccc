"""The report of a stored scan: `document` has its facts, and `formats` and `html` write it, a module for each format.

`text` prints words safely, `lists` makes rows of findings and problems; `diff` and `runs` are reports of their own.
`FORMATS` is the table of the formats: flags, help and tests follow from it. This module imports none of them, because the
command line reads the table for `--help`, and a table on a terminal should not wait for a template engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal, TextIO

if TYPE_CHECKING:
    from scanner.report.document.document import Document

__all__ = ["FORMATS", "Format"]


@dataclass(frozen=True, slots=True)
class Format:
    """A report format: `function` of `module` is called with the document and `into`, which is the stream or folder of `target`.

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
    function: str = "render"

    def render(self, document: Document, into: BinaryIO | TextIO | Path) -> None:
        """Write the report into the stream or folder of `target`.

        Raises UsageError when a folder cannot be used.
        """
        getattr(import_module(self.module), self.function)(document, into)


FORMATS: dict[str, Format] = {
    "table": Format("scanner.report.formats.table", "text", "txt", "text/plain"),
    "json": Format("scanner.report.formats.json", "binary", "json", "application/json"),
    "csv": Format("scanner.report.formats.csv", "text", "csv", "text/csv"),
    "csv-population": Format(
        "scanner.report.formats.csv", "text", "population.csv", "text/csv", function="render_population"
    ),
    "csv-rules": Format("scanner.report.formats.rules", "text", "rules.csv", "text/csv", function="render_csv"),
    "json-rules": Format(
        "scanner.report.formats.rules", "binary", "rules.json", "application/json", function="render_json"
    ),
    "markdown": Format("scanner.report.formats.markdown", "text", "md", "text/markdown"),
    "junit": Format("scanner.report.formats.junit", "text", "junit.xml", "application/xml"),
    "openmetrics": Format("scanner.report.formats.openmetrics", "text", "openmetrics.txt", "text/plain"),
    "openmetrics-detailed": Format(
        "scanner.report.formats.openmetrics",
        "text",
        "openmetrics-detailed.txt",
        "text/plain",
        function="render_detailed",
    ),
    "sarif": Format("scanner.report.formats.sarif", "binary", "sarif.json", "application/json", needs_files=True),
    "oscal": Format("scanner.report.formats.oscal", "binary", "oscal.json", "application/json"),
    "policyreport": Format("scanner.report.formats.policyreport", "binary", "policyreport.json", "application/json"),
    "openreports": Format(
        "scanner.report.formats.policyreport",
        "binary",
        "openreports.json",
        "application/json",
        function="render_openreports",
    ),
    "html-single": Format("scanner.report.html.single_file", "text", "html", "text/html", flag="single-file"),
    "html": Format(
        "scanner.report.html.folder_report", "folder", "html", "text/html", first_page="index.html", flag="html"
    ),
}
