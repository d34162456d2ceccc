"""Progress on stderr: a live line on a terminal, plain log lines otherwise, nothing with `-q`."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

if TYPE_CHECKING:
    from scanner.model.scan import Coverage


class Progress:
    """Called after every page with the coverage of its kind so far."""

    def __init__(self, *, quiet: bool, verbose: bool, stream: TextIO = sys.stderr) -> None:
        self._stream = stream
        self._quiet = quiet
        self._verbose = verbose
        self._live = stream.isatty() and not quiet
        self._since = time.monotonic()
        self._objects = 0
        self._current: Coverage | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._finish()
        if self._live:
            self._stream.write("\r\x1b[K")

    def say(self, text: str) -> None:
        """One line for people."""
        if not self._quiet:
            self._stream.write(f"{text}\n")

    def __call__(self, coverage: Coverage) -> None:
        """Take note of a page."""
        before = self._current
        if before and (before.api_version, before.kind) == (coverage.api_version, coverage.kind):
            self._objects += coverage.objects - before.objects
        else:
            self._finish()
            self._objects += coverage.objects
        self._current = coverage
        if self._live:
            rate = self._objects / max(time.monotonic() - self._since, 0.001)
            self._stream.write(f"\r\x1b[K{_line(coverage)}  {rate:,.0f} objects/s")
            self._stream.flush()

    def _finish(self) -> None:
        if self._current and not self._live and (self._verbose or not self._quiet):
            self._stream.write(f"listed {_line(self._current)}\n")
        self._current = None


def _line(coverage: Coverage) -> str:
    return f"{coverage.api_version} {coverage.kind}: {coverage.objects:,} objects, {coverage.evaluated:,} evaluated"
