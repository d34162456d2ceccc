"""Progress on stderr: a live line on a terminal, plain log lines otherwise, nothing with `-q`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from shutil import get_terminal_size
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from scanner.cli.escaped_stderr import write_control
from scanner.cli.terminal import visible

if TYPE_CHECKING:
    from scanner.model.scan import Coverage

_ERASE = "\r\x1b[K"


class Progress:
    """Called after every page with the coverage of its kind so far. A closed stderr does not stop a scan."""

    def __init__(
        self,
        *,
        quiet: bool = False,
        verbose: bool = False,
        stream: TextIO | None = None,
        environ: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Write to `stream`, or to stderr. `verbose` prints every page; `clock` counts seconds."""
        self._stream = stream or sys.stderr
        self._quiet = quiet
        self._verbose = verbose and not quiet
        self._live = self._stream.isatty() and environ.get("TERM") != "dumb" and not quiet and not verbose
        self._clock = clock
        self._since = clock()
        self._objects = 0
        self._current: Coverage | None = None

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Finish the last line, or erase the live one."""
        self.finish()
        if self._live:
            self._write("", erase=True)

    def print_line(self, text: str) -> None:
        """Print a line."""
        self.finish()
        self._line(text)

    def __call__(self, coverage: Coverage) -> None:
        """Print the progress after a page."""
        before = self._current
        if before and (before.api_version, before.kind) == (coverage.api_version, coverage.kind):
            self._objects += coverage.objects - before.objects
        else:
            self.finish()
            self._objects += coverage.objects
        self._current = coverage
        if self._verbose:
            self._line(f"page {coverage.pages} of {_counts(coverage)}, {coverage.bytes:,} bytes so far, {self._rate()}")
        if self._live:
            width = get_terminal_size().columns - 1
            self._write(f"{_counts(coverage)}  {self._rate()}"[:width], erase=True)

    def _rate(self) -> str:
        return f"{self._objects / max(self._clock() - self._since, 0.001):,.0f} objects/s"

    def finish(self) -> None:
        """Print the totals of the last kind."""
        if self._current and not self._live:
            self._line(f"listed {_counts(self._current)}")
        self._current = None

    def _line(self, text: str) -> None:
        if not self._quiet:
            self._write(f"{visible(text)}\n", erase=self._live)

    def _write(self, text: str, *, erase: bool) -> None:
        try:
            if erase:
                write_control(self._stream, _ERASE)
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            self._quiet, self._live, self._verbose = True, False, False


def _counts(coverage: Coverage) -> str:
    plural = "object" if coverage.objects == 1 else "objects"
    return visible(
        f"{coverage.api_version} {coverage.kind}: {coverage.objects:,} {plural}, {coverage.evaluated:,} evaluated"
    )
