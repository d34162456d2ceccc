"""The rows of findings, which a report has by the thousand: template macros as format strings.

The first arguments of a macro choose the HTML, the others are the texts of the row. The macro runs once for each choice,
with placeholders for the texts; each row fills escaped texts into the result. That is about ten times as fast as running
the macro for every row, and the HTML stays in the template.
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
    """The rows of one macro of a template; a macro may print more texts than it has parameters."""

    def __init__(self, templates: Environment, macro: str, *, template: str = "rows.html") -> None:
        self._macro: Callable[..., str] = getattr(templates.get_template(template).module, macro)
        self._forms: dict[tuple[object, ...], str] = {}

    def row(self, words: tuple[object, ...], texts: Iterable[str]) -> str:
        """The HTML of a row on one line: `words` are the macro's first arguments, `texts` all others, which are escaped if they are no HTML."""
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
    """Rows of HTML, joined by line ends and not escaped again."""
    return Markup("\n".join(rows))  # noqa: S704 - every text in a row is escaped already


def _harmless(text: str) -> str:
    """The text as the templates print it, with line ends; most texts need no change."""
    if isinstance(text, Markup):
        return text
    if len(text) <= LONGEST and text.isprintable() and not _ESCAPED.search(text):
        return text
    return str(escape(visible(cut(text), lines=True)))
