"""Downloads of a scan's report in every format that is one file."""

from __future__ import annotations

from collections.abc import Iterator
from io import TextIOWrapper
from tempfile import TemporaryFile
from threading import BoundedSemaphore
from typing import BinaryIO, Final, cast

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from scanner.errors import UsageError
from scanner.report import FORMATS
from scanner.report.document import Document
from scanner.web.refusals import BadRequest, Busy, NotThere
from scanner.web.scan_view import ScanView

_ENDINGS: Final = {
    "table": ("txt", "text/plain"),
    "json": ("json", "application/json"),
    "csv": ("csv", "text/csv"),
    "csv-population": ("population.csv", "text/csv"),
    "markdown": ("md", "text/markdown"),
    "junit": ("junit.xml", "application/xml"),
    "openmetrics": ("openmetrics.txt", "text/plain"),
    "openmetrics-detailed": ("openmetrics-detailed.txt", "text/plain"),
    "sarif": ("sarif.json", "application/json"),
    "oscal": ("oscal.json", "application/json"),
    "policyreport": ("policyreport.json", "application/json"),
    "openreports": ("openreports.json", "application/json"),
    "html-single": ("html", "text/html"),
}
EXPORTS: Final = {name: f"assay.{_ENDINGS[name][0]}" for name in FORMATS if name in _ENDINGS}
"""The file names of the formats that can be downloaded."""
_AT_ONCE: Final = 2
_EXPORTING: Final = BoundedSemaphore(_AT_ONCE)
"""Exports that are made at the same time: each may read all findings of a scan."""
_IN_MEMORY: Final = 1 << 16


def export(view: ScanView, file: str, request: Request) -> Response:
    """The report in a format, by the file name of the download. Raises NotThere, BadRequest and Busy."""
    name = next((name for name, own in EXPORTS.items() if own == file), None)
    if name is None:
        raise NotThere(f"There is no download {file[:80]!r}. The files are: {', '.join(EXPORTS.values())}.")
    if request.method == "HEAD":
        return Response(media_type=_ENDINGS[name][1])
    return download(name, view.document, f"assay-{view.scan_id}.{_ENDINGS[name][0]}")


def download(name: str, document: Document, file: str) -> Response:
    """A report as a download. It is complete before its first byte is sent: an error is an answer of its own."""
    if not _EXPORTING.acquire(blocking=False):
        raise Busy(f"{_AT_ONCE} exports are being made: try again in some seconds.")
    try:
        made = _made(name, document)
    except UsageError as error:
        raise BadRequest(str(error)) from error
    finally:
        _EXPORTING.release()
    headers = {"Content-Disposition": f'attachment; filename="{file}"', "Cache-Control": "private, no-cache"}
    return StreamingResponse(_portions(made), media_type=_ENDINGS[name][1], headers=headers)


def _made(name: str, document: Document) -> BinaryIO:
    file = cast("BinaryIO", TemporaryFile())  # noqa: SIM115 - closed when it was sent
    format_ = FORMATS[name]
    if format_.target == "text":
        text = TextIOWrapper(file, "utf-8", newline="")
        format_.render(document, text)
        text.detach()
    else:
        format_.render(document, file)
    file.seek(0)
    return file


def _portions(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while portion := file.read(_IN_MEMORY):
            yield portion
