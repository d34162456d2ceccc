"""Names and messages in Markdown: text, never markup, and on GitHub no link, no mention of a user and no reference to an issue."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from scanner.report.words import visible

_MARKUP: Final = re.compile(r"([\\`*_\[\]~|#!])")
_ENTITIES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_REFERENCE: Final = re.compile(r"(?<!\w)@(?=\w)|#(?=\d)")
_NO_REFERENCE: Final = r"\g<0>&#8203;"
"""A space without width: GitHub reads mentions and references in the finished text, where no escape remains."""
_NO_LINK: Final = (("://", "&#58;//"), ("www.", "www&#46;"))
"""GitHub makes links of addresses that have no markup."""


def escaped(text: str) -> str:
    """Text in which no character is Markdown or HTML."""
    marked = _MARKUP.sub(r"\\\1", visible(text)).translate(_ENTITIES)
    marked = _REFERENCE.sub(_NO_REFERENCE, marked)
    for address, shown in _NO_LINK:
        marked = marked.replace(address, shown)
    return marked


def table_row(cells: Sequence[str]) -> str:
    """A row of a table, of escaped cells."""
    return f"| {' | '.join(cells)} |"
