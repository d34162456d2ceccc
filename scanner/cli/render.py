"""Renders reports onto standard output and into folders."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from scanner.cli.output import standard_output
from scanner.cli.report_flags import DEFAULT
from scanner.report import FORMATS

if TYPE_CHECKING:
    from scanner.report.document import Document
    from scanner.report.screen import Screen


def to_stdout(document: Document, name: str, screen: Screen) -> None:
    """Render the format of that name onto standard output, which carries nothing else."""
    report_format = FORMATS[name]
    with standard_output() as out:
        if name == DEFAULT:
            from scanner.report import table

            table.render(document, out, screen=screen)
            return
        report_format.render(document, out.buffer if report_format.target == "binary" else out)


def to_folders(document: Document, folders: Mapping[str, Path]) -> None:
    """Render each format into its folder, and print where to begin. Raises UsageError when a folder cannot be used."""
    for name, folder in folders.items():
        FORMATS[name].render(document, folder)
        sys.stderr.write(f"Report: {folder / FORMATS[name].first_page}\n")
