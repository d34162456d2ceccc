"""Standard output: it carries what was asked for and nothing else, to whoever still reads it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from scanner.errors import AssayError


@contextmanager
def standard_output() -> Iterator[TextIO]:
    """Write to it here. A reader who has gone, as in `assay report | head`, changes neither message nor exit code.

    Raises AssayError when it cannot be written, as on a full disk.
    """
    try:
        yield sys.stdout
        sys.stdout.flush()
    except BrokenPipeError:
        _forget(sys.stdout)
    except KeyboardInterrupt:
        # A reader that takes nothing more would hold the end of the process.
        _forget(sys.stdout)
        raise
    except SystemExit as end:
        # What rich makes of a broken pipe.
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        _forget(sys.stdout)
    except OSError as error:
        _forget(sys.stdout)
        raise AssayError(f"standard output cannot be written ({error.strerror})") from error


def let_go() -> None:
    """Flush both streams; where one fails now, Python must not end the process with a code of its own for it."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            _forget(stream)


def _forget(stream: TextIO) -> None:
    """Send what is still buffered nowhere, so that the flush at the end of the process does not fail again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
