"""Standard output carries the requested document and nothing else; a reader may close it early."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated, TextIO

import typer

from scanner.errors import AssayError


class Form(StrEnum):
    """The forms of a document on standard output, for commands that print no report."""

    TABLE = "table"
    JSON = "json"


FormOption = Annotated[Form, typer.Option("-o", "--output", help="Output format.")]
QuietOption = Annotated[bool, typer.Option("-q", "--quiet", help="Print no progress on stderr.")]


@contextmanager
def standard_output() -> Iterator[TextIO]:
    """Yield standard output for writing. A reader that stops early, as in `assay report | head`, is no error.

    Raises AssayError when writing fails, as on a full disk.
    """
    try:
        yield sys.stdout
        sys.stdout.flush()
    except BrokenPipeError:
        _discard(sys.stdout)
    except KeyboardInterrupt:
        # A reader that stopped reading would block the flush at the end of the process.
        _discard(sys.stdout)
        raise
    except SystemExit as end:
        # rich turns a broken pipe into SystemExit.
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        _discard(sys.stdout)
    except OSError as error:
        _discard(sys.stdout)
        raise AssayError(f"standard output cannot be written ({error.strerror})") from error


def flush_streams() -> None:
    """Flush both streams. A failure here must not replace the exit code, as Python's own flush would."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            _discard(stream)


def _discard(stream: TextIO) -> None:
    """Discard the buffered text, so that the flush at the end of the process does not fail again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
