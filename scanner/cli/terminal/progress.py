"""Progress on stderr: a live line on a terminal, plain log lines otherwise, nothing with `-q`.

The live line is erased before anything else is printed, so that a report never begins behind it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from shutil import get_terminal_size
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TextIO

from scanner.cli.terminal.stderr import Value, log, write_control
from scanner.cli.terminal.stdout import visible

if TYPE_CHECKING:
    from scanner.model.scans.scan import Coverage

_ERASE: Final = "\r\x1b[K"
_DUMB: Final = frozenset({"dumb", "unknown"})
_SETTLED: Final = 1.0
"""The seconds after which a rate says something about the rest."""
_MINUTE: Final = 60


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
        self._live = self._stream.isatty() and environ.get("TERM") not in _DUMB and not quiet and not verbose
        self._clock = clock
        self._since = clock()
        self._objects = 0
        self._expected: int | None = None
        self._drawn = False
        self._current: Coverage | None = None

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Finish the last line, or erase the live one."""
        self.finish()

    def expect(self, objects: int | None) -> None:
        """Expect so many objects in all, None if the number is not known: the live line then has the time that is left."""
        self._expected = objects

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
            self._line(
                f"page {coverage.pages} of {_describe_counts(coverage)}, {coverage.bytes:,} bytes so far, {self._rate()}"
            )
        if self._live:
            width = get_terminal_size().columns - 1
            parts = (_describe_counts(coverage), self._rate(), self._left())
            self._draw(_cut("  ".join(part for part in parts if part), width))

    def finish(self) -> None:
        """Print the totals of the last kind, or erase the live line."""
        if self._current and not self._live:
            self._line(f"listed {_describe_counts(self._current)}", _make_fields(self._current))
        self._current = None
        self._erase()

    def _speed(self) -> float:
        """Objects per second."""
        return self._objects / max(self._clock() - self._since, 0.001)

    def _rate(self) -> str:
        return f"{self._speed():,.0f} objects/s"

    def _left(self) -> str:
        """The time for the objects that are still expected, or an empty string."""
        left = (self._expected or 0) - self._objects
        if left <= 0 or not self._objects or self._clock() - self._since < _SETTLED:
            return ""
        seconds = round(left / self._speed())
        return f"about {seconds} s left" if seconds < _MINUTE else f"about {seconds // _MINUTE:,} min left"

    def _line(self, text: str, fields: Mapping[str, Value] | None = None) -> None:
        if self._quiet:
            return
        self._erase()
        self._write(lambda: log(self._stream, visible(text), fields or {}))

    def _draw(self, text: str) -> None:
        self._erase()
        self._drawn = True
        self._write(lambda: self._stream.write(text))

    def _erase(self) -> None:
        if self._drawn:
            self._drawn = False
            self._write(lambda: write_control(self._stream, _ERASE))

    def _write(self, write: Callable[[], object]) -> None:
        try:
            write()
            self._stream.flush()
        except OSError:
            self._quiet, self._live, self._verbose, self._drawn = True, False, False, False


def _cut(text: str, width: int) -> str:
    """Text of at most so many cells; wide characters have two."""
    if text.isascii():
        return text[:width]
    from rich.cells import cell_len, set_cell_size

    return text if cell_len(text) <= width else set_cell_size(text, width)


def _make_fields(coverage: Coverage) -> dict[str, Value]:
    """The same numbers for machines."""
    return {
        "apiVersion": coverage.api_version,
        "kind": coverage.kind,
        "objects": coverage.objects,
        "evaluated": coverage.evaluated,
    }


def _describe_counts(coverage: Coverage) -> str:
    plural = "object" if coverage.objects == 1 else "objects"
    return visible(
        f"{coverage.api_version} {coverage.kind}: {coverage.objects:,} {plural}, {coverage.evaluated:,} evaluated"
    )
