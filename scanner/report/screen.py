"""What a user asks of a summary: its columns, its colours, and how the commands that it recommends begin and end."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Color(StrEnum):
    """When a summary has colours."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Screen:
    """What the user asked for. `rights` are the arguments of the command that names missing rights, empty where none can be missing.

    `pages` is true if the same command writes HTML pages, which need no recommendation then.

    `command` and `options` begin and end each recommended command, as a shell reads them. `options` name the database and the
    configuration, `rules` the mappings of controls and the waivers, for commands that print findings. `note` is a sentence about
    the options, empty for none.
    """

    wide: bool = False
    color: Color = Color.AUTO
    command: str = "assay"
    options: str = ""
    rules: str = ""
    note: str = ""
    pages: bool = False
    rights: str = ""
