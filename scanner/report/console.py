"""The console of a summary: its width, and whether it has colours.

Escape sequences are only for terminals, and never for a dumb one or with NO_COLOR (https://no-color.org).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TextIO

from rich.console import Console

from scanner.report.screen import Color
from scanner.report.width import width_of


def console_of(out: TextIO, environ: Mapping[str, str], color: Color) -> Console:
    """A console on a stream; text is never markup."""
    coloured = has_colours(out, environ, color)
    return Console(
        file=out,
        width=width_of(out, environ),
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
