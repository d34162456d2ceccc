"""Functions that make any text safe to print and safe in Markdown, and cut it.

Every user who may create objects chooses object names, messages and manifests. `visible` keeps them text on every
device: it writes control, formatting and bidirectional characters as escapes, so that no text moves a cursor, hides, or
reads in another order than it is stored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

LONGEST = 6_000


def visible(text: str, *, lines: bool = False) -> str:
    r"""The text with every character that does not print as an escape such as `\x1b`; `lines` keeps line ends and tabs."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or (lines and character in "\n\t") else _escape(character)
        for character in text
    )


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def cut(text: str, longest: int = LONGEST) -> str:
    """The text, or its first `longest` characters with a note of its length."""
    if len(text) <= longest:
        return text
    return f"{text[:longest]}… [{longest:,} of {len(text):,} characters shown; the JSON report has the whole text]"


# Names and messages in Markdown: text, never markup, and on GitHub no link, no mention of a user and no reference to
# an issue.

_MARKUP: Final = re.compile(r"([\\`*_\[\]~|#!])")
_LIST_MARK: Final = re.compile(r"^(\s*)([+-])(?=\s)")
_ENTITIES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_REFERENCE: Final = re.compile(r"(?<!\w)@(?=\w)|#(?=\d)")
_NO_REFERENCE: Final = r"\g<0>&#8203;"
"""A space without width: GitHub reads mentions and references in the finished text, where no escape remains."""
_NO_LINK: Final = (("://", "&#58;//"), ("www.", "www&#46;"))
"""GitHub makes links of addresses that have no markup."""


def escape_markdown(text: str) -> str:
    """Text in which no character is Markdown or HTML."""
    marked = _MARKUP.sub(r"\\\1", visible(text)).translate(_ENTITIES)
    marked = _LIST_MARK.sub(r"\1\\\2", marked)
    marked = _REFERENCE.sub(_NO_REFERENCE, marked)
    for address, shown in _NO_LINK:
        marked = marked.replace(address, shown)
    return marked


def escape_cell(text: str) -> str:
    """Text of several lines for a cell of a table, in which no character is Markdown or HTML."""
    return "<br>".join(map(escape_markdown, text.split("\n")))


def table_row(cells: Sequence[str]) -> str:
    """A row of a table, of escaped cells."""
    return f"| {' | '.join(cells)} |"
