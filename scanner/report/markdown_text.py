"""Names and messages in Markdown: text, never markup."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from scanner.report.words import visible

_MARKUP: Final = re.compile(r"([\\`*_\[\]~|#!])")
_ENTITIES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}


def escaped(text: str) -> str:
    """Text in which no character is Markdown or HTML."""
    marked = "".join(_ENTITIES.get(character, character) for character in visible(text))
    return _MARKUP.sub(r"\\\1", marked)


def table_row(cells: Sequence[str]) -> str:
    """A row of a table, of escaped cells."""
    return f"| {' | '.join(cells)} |"
