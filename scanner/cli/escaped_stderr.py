"""A stderr that prints control characters as escapes: text from a cluster must not steer the terminal."""

from __future__ import annotations

import io
import sys
from typing import TextIO

from scanner.cli.terminal import visible


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


def escaped(stream: TextIO) -> TextIO:
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
