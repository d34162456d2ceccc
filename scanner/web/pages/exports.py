"""Downloads of a scan's report in every format that is one file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from io import TextIOWrapper
from tempfile import TemporaryFile
from threading import BoundedSemaphore
from typing import BinaryIO, Final, cast

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from scanner.errors import UsageError
from scanner.report import FORMATS, Format
from scanner.report.document.document import Document
from scanner.web.requests.refusals import BadRequest, Busy, NotThere
from scanner.web.views.scan_view import ScanView
from scanner.web.views.turns import give_up

EXPORTS: Final = {name: f"assay.{form.ending}" for name, form in FORMATS.items() if form.target != "folder"}
"""The file names of the formats that can be downloaded."""
_AT_ONCE: Final = 2
_EXPORTING: Final = BoundedSemaphore(_AT_ONCE)
"""Exports that are made at the same time: each may read all findings of a scan."""
_IN_MEMORY: Final = 1 << 16


def export(view: ScanView, file: str, request: Request) -> Response:
    """The report in a format, by the file name of the download. Raises NotThere, BadRequest and Busy."""
    name = next((name for name, export_file in EXPORTS.items() if export_file == file), None)
    if name is None:
        raise NotThere(f"There is no download {file[:80]!r}. The files are: {', '.join(EXPORTS.values())}.")
    form = FORMATS[name]
    write = partial(_write, form, view.document)
    return send_download(write, form.media_type, f"assay-{view.scan_id}.{form.ending}", head=request.method == "HEAD")


def send_download(write: Callable[[BinaryIO], None], media_type: str, file: str, *, head: bool) -> Response:
    """The output of a function as a download. It is complete before its first byte is sent: an error is an answer of its own.

    With `head`, only the headers are sent. Raises Busy and BadRequest.
    """
    headers = {"Content-Disposition": f'attachment; filename="{file}"', "Cache-Control": "private, no-cache"}
    if head:
        return Response(media_type=media_type, headers=headers)
    with take_export():
        made = _make_file(write)
    return StreamingResponse(_portions(made), media_type=media_type, headers=headers)


@contextmanager
def take_export() -> Iterator[None]:
    """A block that may read all findings or objects of a scan. Raises Busy, and BadRequest in place of UsageError."""
    if not _EXPORTING.acquire(blocking=False):
        raise Busy(f"{_AT_ONCE} exports are being made: try again in some seconds.")
    give_up()  # an export takes long: pages do not wait for its turn
    try:
        yield
    except UsageError as error:
        raise BadRequest(str(error)) from error
    finally:
        _EXPORTING.release()


def _make_file(write: Callable[[BinaryIO], None]) -> BinaryIO:
    file = cast("BinaryIO", TemporaryFile())  # noqa: SIM115 - closed when it was sent
    try:
        write(file)
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file


def _write(form: Format, document: Document, out: BinaryIO) -> None:
    if form.target != "text":
        form.render(document, out)
        return
    text = TextIOWrapper(out, "utf-8", errors="backslashreplace", newline="")
    try:
        form.render(document, text)
        text.flush()
    finally:
        text.detach()


def _portions(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while portion := file.read(_IN_MEMORY):
            yield portion
