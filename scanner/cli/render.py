"""Renders reports onto standard output, and into files and folders."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from scanner.cli.output import standard_output
from scanner.cli.report_flags import DEFAULT
from scanner.errors import UsageError
from scanner.report import FORMATS

if TYPE_CHECKING:
    from scanner.cli.report_flags import Export, Exports
    from scanner.report.document.document import Document
    from scanner.report.text.screen import Screen


def to_stdout(document: Document, name: str, screen: Screen) -> None:
    """Render the format of that name onto standard output, which carries nothing else."""
    report_format = FORMATS[name]
    with standard_output() as out:
        if name == DEFAULT:
            from scanner.report.formats import table

            table.render(document, out, screen=screen)
            return
        report_format.render(document, out.buffer if report_format.target == "binary" else out)


def to_exports(document: Document, exports: Exports) -> None:
    """Render each format into its file or folder, and print where it is.

    Raises UsageError for what could not be written, after everything else is.
    """
    failures: list[str] = []
    for export in exports:
        try:
            _export(document, export)
        except UsageError as error:
            failures.append(str(error))
        else:
            sys.stderr.write(f"Report: {export.path / FORMATS[export.name].first_page}\n")
    if failures:
        raise UsageError(" ".join(failures))


def _export(document: Document, export: Export) -> None:
    from scanner.report.output import binary_file, text_file

    report_format = FORMATS[export.name]
    match report_format.target:
        case "folder":
            report_format.render(document, export.path)
        case "binary":
            with binary_file(export.path) as binary:
                report_format.render(document, binary)
        case "text":
            with text_file(export.path) as text:
                report_format.render(document, text)
