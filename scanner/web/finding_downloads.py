"""Downloads of the findings that the filter of the list chooses, in the forms of `assay findings`."""

from __future__ import annotations

from collections.abc import Iterator
from io import TextIOWrapper
from typing import BinaryIO, Final

from starlette.responses import Response

from scanner.model.scan import StoredFinding
from scanner.report.formats import csv
from scanner.report.lists.finding_columns import FINDINGS
from scanner.report.text.json_text import write_rows
from scanner.web.asked_page import AskedPage
from scanner.web.exports import sent
from scanner.web.finding_choice import FindingChoice, chosen_problems, stream
from scanner.web.finding_pages import filter_of

DOWNLOADS: Final = {"findings.csv": "text/csv", "findings.json": "application/json"}
"""The media types of the files."""


def finding_download(asked: AskedPage, file: str) -> Response:
    """All findings that the filter in the request chooses, as the file of `DOWNLOADS`. Raises BadRequest and Busy."""
    media_type = DOWNLOADS[file]
    wanted = filter_of(asked.request.query_params)
    view = asked.view

    def write(out: BinaryIO) -> None:
        chosen = chosen_problems(asked.library, asked.cluster, view, wanted)
        choice = FindingChoice(view, wanted)
        rows = [row for problem in chosen.problems for row in choice.rows(problem)]
        _write(asked, media_type, stream(view, rows), out)

    return sent(write, media_type, f"assay-{view.scan_id}.{file}", head=asked.request.method == "HEAD")


def _write(asked: AskedPage, media_type: str, findings: Iterator[StoredFinding], out: BinaryIO) -> None:
    document = asked.view.document
    text = TextIOWrapper(out, "utf-8", errors="backslashreplace", newline="")
    if media_type == "text/csv":
        csv.write(text, FINDINGS.titles, (FINDINGS.cells(stored, document) for stored in findings))
    else:
        write_rows(text, asked.scan, "findings", (FINDINGS.json(stored, document) for stored in findings))
    text.flush()
    text.detach()
