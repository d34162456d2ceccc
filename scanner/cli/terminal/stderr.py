"""Messages on standard error: lines of text, or for machines one JSON object with a time for each line.

The members are `time` (RFC 3339, UTC), `level` (info, warning or error), `message`, and those of the event. Control characters are
printed as escapes: text from a cluster must not steer the terminal.
"""

from __future__ import annotations

import io
import os
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from io import TextIOBase
from typing import Annotated, Final, TextIO, TypeAlias, cast

import typer

from scanner.cli.terminal.stdout import visible

Value: TypeAlias = str | int
_PREFIX: Final = "assay: "
_ERROR: Final = "Error: "
"""How the parser of command lines begins a message."""
_VARIABLE: Final = "ASSAY_LOG_FORMAT"
_OF_STDOUT: Final = "ASSAY_LOG_STDOUT"
"""The variable that makes a message of each line on standard output, too: a container has one log for both streams."""


class LogFormat(StrEnum):
    """The form of messages."""

    TEXT = "text"
    JSON = "json"


LogFormatOption = Annotated[
    LogFormat,
    typer.Option("--log-format", help="Form of the messages on stderr: text, or a JSON object with a time for each."),
]


class JsonLines(TextIOBase):
    """A stream that writes each line as a JSON object into another one."""

    def __init__(self, stream: TextIO, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        """Write into `stream`."""
        self.stream = stream
        self._clock = clock
        self._rest = ""

    def write(self, text: str) -> int:
        """Write the complete lines, and keep the rest. A line that is an object already, as in an access log, stays as it is.

        A message that begins with the name of the program is a warning, one about the usage of a command an error. Raises
        TypeError for bytes, as every stream of text does: the parser of command lines tries them to find out what a stream takes.
        """
        if not isinstance(text, str):
            raise TypeError(f"a stream of text takes no {type(text).__name__}")
        *lines, self._rest = f"{self._rest}{text}".split("\n")
        for line in filter(None, lines):
            if _is_object(line):
                self.stream.write(f"{line}\n")
                continue
            self.event(_find_level(line), line.removeprefix(_PREFIX).removeprefix(_ERROR), {})
        return len(text)

    def event(self, level: str, message: str, fields: Mapping[str, Value]) -> None:
        """Write one object."""
        import json

        time = self._clock().astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.stream.write(f"{json.dumps({'time': time, 'level': level, 'message': message, **fields})}\n")

    def end_line(self) -> None:
        """Write a line that has no end yet."""
        if self._rest:
            self.write("\n")

    def flush(self) -> None:
        """Flush the other stream. Python flushes this one when it is deleted, and the other one may be closed by then."""
        if not self.stream.closed:
            self.stream.flush()

    def isatty(self) -> bool:
        """Never a terminal: nothing is drawn."""
        return False

    def fileno(self) -> int:
        """The number of the other stream."""
        return self.stream.fileno()


def _is_object(line: str) -> bool:
    if not line.startswith("{"):
        return False
    import json

    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _find_level(line: str) -> str:
    if line.startswith(_ERROR):
        return "error"
    return "warning" if line.startswith(_PREFIX) else "info"


def log(stream: TextIO, message: str, fields: Mapping[str, Value], level: str = "info") -> None:
    """Write a message; the fields are for machines."""
    if isinstance(stream, JsonLines):
        stream.event(level, message.removeprefix(_PREFIX), fields)
    else:
        stream.write(f"{message}\n")


def explain(lines: Iterable[str]) -> None:
    """Write messages of Assay, wrapped where the terminal is narrower; what follows begins where the text does."""
    from scanner.report.text.screen import width_of

    for line in lines:
        text = f"{_PREFIX}{visible(line)}"
        if isinstance(sys.stderr, JsonLines):
            sys.stderr.write(f"{text}\n")
            continue
        parts = textwrap.wrap(
            text,
            width_of(sys.stderr, os.environ),
            subsequent_indent=" " * len(_PREFIX),
            break_long_words=False,
            break_on_hyphens=False,
        )
        sys.stderr.write("\n".join(parts) + "\n")


def use(form: LogFormat) -> None:
    """Write the messages of this process in a form from now on."""
    if form is LogFormat.JSON and not isinstance(sys.stderr, JsonLines):
        sys.stderr = cast("TextIO", JsonLines(sys.stderr))


@contextmanager
def restore_streams() -> Iterator[None]:
    """A block at whose end stderr and stdout are what they were before; it begins in the form that the environment names."""
    before = sys.stdout, sys.stderr
    if os.environ.get(_VARIABLE, "").lower() == LogFormat.JSON:
        use(LogFormat.JSON)
        if os.environ.get(_OF_STDOUT, "") == "1":
            sys.stdout = cast("TextIO", JsonLines(sys.stdout))
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, JsonLines):
                stream.end_line()
        sys.stdout, sys.stderr = before


# A stderr that prints control characters as escapes: text from a cluster must not steer the terminal.


class EscapedStream(io.TextIOWrapper):
    """Writes characters that do not print as escapes, except line ends and tabs."""

    def write(self, text: str) -> int:
        """Write text, and return the number of its characters before escaping."""
        plain = text.replace("\n", "").replace("\t", "").isprintable()
        super().write(text if plain else visible(text, lines=True))
        return len(text)

    def write_control(self, sequence: str) -> None:
        """Write a control sequence of our own for the terminal, unescaped."""
        super().write(sequence)


def escape_stderr(stream: TextIO) -> TextIO:
    """The process's own stderr with escaping; any other stream, such as a test's, unchanged."""
    if stream is not sys.__stderr__ or not isinstance(stream, io.TextIOWrapper) or isinstance(stream, EscapedStream):
        return stream
    encoding = stream.encoding
    return EscapedStream(stream.detach(), encoding=encoding, errors="backslashreplace", line_buffering=True)


def write_control(stream: TextIO, sequence: str) -> None:
    """Write a control sequence for the terminal behind a stream."""
    if isinstance(stream, EscapedStream):
        stream.write_control(sequence)
    else:
        stream.write(sequence)
