"""The console of a summary: its width, and whether it has colours.

The width is COLUMNS, else that of the terminal; anything else than a terminal has no width, so that no line is wrapped. Escape
sequences are only for terminals, and never for a dumb one or with NO_COLOR (https://no-color.org).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final, TextIO

from rich.console import Console

from scanner.report.screen import Color

ANY_WIDTH: Final = 10_000
"""Wider than any line."""
_USUAL: Final = 80
_LEAST: Final = 20


def console_of(out: TextIO, environ: Mapping[str, str], color: Color) -> Console:
    """A console on a stream; text is never markup."""
    coloured = has_colours(out, environ, color)
    return Console(
        file=out,
        width=_width(out, environ),
        color_system="standard" if coloured else None,
        force_terminal=coloured,
        no_color=not coloured,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
        _environ=environ,
    )


def has_colours(out: TextIO, environ: Mapping[str, str], color: Color) -> bool:
    """Return whether a stream gets escape sequences."""
    if color is not Color.AUTO:
        return color is Color.ALWAYS
    return out.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def _width(out: TextIO, environ: Mapping[str, str]) -> int:
    """The width that is asked for, else that of the terminal, else more than any line has."""
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
