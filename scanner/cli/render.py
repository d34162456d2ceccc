"""Renders reports onto standard output and into folders."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from scanner.cli.output import standard_output
from scanner.report import FORMATS
from scanner.report.document import document_of

if TYPE_CHECKING:
    from datetime import date

    from scanner.model.scan import ScanRecord
    from scanner.posture.settings import Settings


def to_stdout(record: ScanRecord, name: str, settings: Settings, day: date | None = None) -> None:
    """Render the format of that name onto standard output, which carries nothing else."""
    report_format = FORMATS[name]
    document = document_of(record, settings, day)
    with standard_output() as out:
        report_format.render(document, out.buffer if report_format.target == "binary" else out)


def to_folders(record: ScanRecord, folders: Mapping[str, Path], settings: Settings, day: date | None = None) -> None:
    """Render each format into its folder, and print where to begin. Raises UsageError when a folder cannot be used."""
    for name, folder in folders.items():
        FORMATS[name].render(document_of(record, settings, day), folder)
        sys.stderr.write(f"Report: {folder / FORMATS[name].first_page}\n")
