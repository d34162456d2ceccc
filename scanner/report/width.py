"""The width of a stream: COLUMNS, else that of the terminal; anything else than a terminal has none, so that no line is wrapped."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final, TextIO

ANY_WIDTH: Final = 10_000
"""Wider than any line of a summary."""
_USUAL: Final = 80
_LEAST: Final = 20


def width_of(out: TextIO, environ: Mapping[str, str]) -> int:
    """The width that is asked for, else that of the terminal, else `ANY_WIDTH`."""
    columns = environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return max(int(columns), _LEAST)
    if not out.isatty():
        return ANY_WIDTH
    return max(_terminal_width(out), _LEAST)


def _terminal_width(out: TextIO) -> int:
    try:
        return os.get_terminal_size(out.fileno()).columns or _USUAL
    except (OSError, ValueError):
        return _USUAL
