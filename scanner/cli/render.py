"""Where rendered reports go."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from scanner.cli.output import standard_output
from scanner.report import FORMATS, document_of

if TYPE_CHECKING:
    from scanner.model.scan import ScanRecord


def to_stdout(record: ScanRecord, name: str) -> None:
    """Render onto standard output, which carries nothing else."""
    report_format = FORMATS[name]
    with standard_output() as out:
        report_format.render(document_of(record), out.buffer if report_format.target == "binary" else out)


def to_folder(record: ScanRecord, folder: Path) -> None:
    """Render the HTML pages and say where they are. Raises UsageError when the folder cannot be used."""
    FORMATS["html"].render(document_of(record), folder)
    sys.stderr.write(f"Report: {folder / 'index.html'}\n")
