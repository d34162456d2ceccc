"""Where rendered reports go."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from scanner.report import FORMATS, document_of

if TYPE_CHECKING:
    from scanner.model.scan import ScanRecord


def to_stdout(record: ScanRecord, name: str) -> None:
    """Render onto standard output, which carries nothing else."""
    report_format = FORMATS[name]
    report_format.render(document_of(record), sys.stdout.buffer if report_format.target == "binary" else sys.stdout)


def to_folder(record: ScanRecord, folder: Path) -> None:
    """Render the HTML pages and say where they are."""
    FORMATS["html"].render(document_of(record), folder)
    typer.echo(f"Report: {folder / 'index.html'}", err=True)
