"""A stderr on which text that came from elsewhere steers nothing: characters that do not print are spelled out."""

from __future__ import annotations

import io
import sys
from typing import TextIO

from scanner.cli.terminal import visible


class Spelled(io.TextIOWrapper):
    """Lines and tabs stay, every other character that does not print is written as an escape."""

    def write(self, text: str) -> int:
        """Write text; the number of characters is that of the text as it was."""
        plain = text.replace("\n", "").replace("\t", "").isprintable()
        super().write(text if plain else visible(text, lines=True))
        return len(text)

    def steer(self, sequence: str) -> None:
        """Write a sequence of our own that is meant for the terminal, as it is."""
        super().write(sequence)


def spelled(stream: TextIO) -> TextIO:
    """The process's own stderr, spelling; any other stream, such as one that a test listens to, as it is."""
    if stream is not sys.__stderr__ or not isinstance(stream, io.TextIOWrapper) or isinstance(stream, Spelled):
        return stream
    encoding = stream.encoding
    return Spelled(stream.detach(), encoding=encoding, errors="backslashreplace", line_buffering=True)


def steer(stream: TextIO, sequence: str) -> None:
    """Steer the terminal behind a stream."""
    if isinstance(stream, Spelled):
        stream.steer(sequence)
    else:
        stream.write(sequence)
