"""Rows of which a report has very many: macros of a template, turned into format strings.

A macro takes a few words that it chooses its HTML by, then the texts of the row. It is run once for each choice of
words, with placeholders for the texts; a row is then made by filling in texts that were made harmless. That is some
ten times as fast as running the macro for every row, and the HTML stays in the template.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from jinja2 import Environment
from markupsafe import Markup, escape

from scanner.report.words import LONGEST, cut, visible

_ESCAPED = re.compile("[&<>\"']")


class RowForm:
    """The rows that one macro of `rows.html` prints; it may print any number of texts more than it names."""

    def __init__(self, templates: Environment, macro: str) -> None:
        self._macro: Callable[..., str] = getattr(templates.get_template("rows.html").module, macro)
        self._forms: dict[tuple[object, ...], str] = {}

    def row(self, words: tuple[object, ...], texts: Iterable[str]) -> str:
        """Print a row: `words` are the macro's first arguments, `texts` all the others."""
        harmless = [_harmless(text) for text in texts]
        key = len(harmless), *words
        form = self._forms.get(key)
        if form is None:
            form = self._forms[key] = self._form(words, len(harmless))
        return form.format(*harmless)

    def _form(self, words: tuple[object, ...], texts: int) -> str:
        places: list[Any] = [Markup(f"{{{place}}}") for place in range(texts)]  # noqa: S704 - a number in braces
        return str(self._macro(*words, *places))


def joined(rows: Iterable[str]) -> Markup:
    """Put rows of a form one after the other."""
    return Markup("\n".join(rows))  # noqa: S704 - every text in a row is escaped already


def _harmless(text: str) -> str:
    """Do what the templates do to every text, line ends kept; most texts need nothing."""
    if len(text) <= LONGEST and text.isprintable() and not _ESCAPED.search(text):
        return text
    return str(escape(visible(cut(text), lines=True)))
