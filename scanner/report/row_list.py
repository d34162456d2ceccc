"""Rows of a stored scan as one JSON object: the scan, and one row on each line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

from scanner.model.scan import Scan
from scanner.report.escaped import dump
from scanner.report.words import iso


def head_json(scan: Scan) -> dict[str, str | None]:
    """The scan of the rows."""
    finished = iso(scan.finished_at) if scan.finished_at else None
    return {"scan": scan.id, "cluster": scan.cluster.name, "finishedAt": finished}


def write_rows(out: TextIO, scan: Scan, name: str, rows: Iterable[object]) -> None:
    """Write the object, whose last field, `name`, has the rows as JSON values."""
    out.write(f'{dump(head_json(scan)).decode()[:-1]},"{name}":[')
    out.writelines((",\n" if number else "\n") + dump(row).decode() for number, row in enumerate(rows))
    out.write("\n]}\n")
