"""What a stored scan says, and one file per format that says it.

`document_of` turns a record into a `Document`; a format is a module with one `render(document, into)`. Formats are
imported when they are used: a table should not wait for a template engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import BinaryIO, Literal, TextIO

from scanner.report.document import Document, document_of

__all__ = ["FORMATS", "Document", "Format", "document_of"]


@dataclass(frozen=True, slots=True)
class Format:
    """A report format. `target` is what it is rendered into: a binary file, a text file or a folder."""

    module: str
    target: Literal["binary", "text", "folder"]

    def render(self, document: Document, into: BinaryIO | TextIO | Path) -> None:
        """Write the report into what `target` names.

        Raises UsageError when a folder cannot be used.
        """
        import_module(self.module).render(document, into)


FORMATS: Mapping[str, Format] = {
    "table": Format("scanner.report.table", "text"),
    "json": Format("scanner.report.json", "binary"),
    "policyreport": Format("scanner.report.policyreport", "binary"),
    "openreports": Format("scanner.report.openreports", "binary"),
    "html": Format("scanner.report.html", "folder"),
}
