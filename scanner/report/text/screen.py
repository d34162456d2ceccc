"""The terminal of a summary: its width, and what the user asks of it, such as colours and commands.

The width is COLUMNS, else that of the terminal. Anything else than a terminal has none, so that no line is wrapped.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TextIO


class Color(StrEnum):
    """The times at which a summary has colours."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Screen:
    """The choices of the user. `rights` are the arguments of the command that names missing rights, empty where none can be missing.

    `pages` is true if the same command writes HTML pages, which need no recommendation then.

    `command` and `options` begin and end each recommended command, as a shell reads them. `options` name the database and the
    configuration, `rules` the mappings of controls and the waivers, for commands that print findings. `note` is a sentence about
    the options, empty for none.

    `replayed` is the snapshot that a scan repeats and that no database keeps, as a shell reads it; empty for other scans.
    """

    wide: bool = False
    color: Color = Color.AUTO
    command: str = "assay"
    options: str = ""
    rules: str = ""
    note: str = ""
    pages: bool = False
    rights: str = ""
    replayed: str = ""


ANY_WIDTH: Final = 10_000
"""Wider than any line of a summary."""
_USUAL: Final = 80
_LEAST: Final = 20


def width_of(out: TextIO, environ: Mapping[str, str]) -> int:
    """The width in COLUMNS, else that of the terminal, else `ANY_WIDTH`."""
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
