"""A comment on a pull request, in Markdown. GitHub takes at most 65,536 characters in a comment: lines beyond that are counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from scanner.model.outcome import Gap
from scanner.report.text.numbers import plural
from scanner.report.text.safe_text import cut, escape_markdown

LONGEST_MESSAGE: Final = 300
"""The most characters of a message in a comment."""
_LONGEST: Final = 65_000


def fit(head: Sequence[str], rows: Sequence[str], tail: Sequence[str]) -> str:
    """The lines of a comment, with as many rows as it has room for."""
    kept: list[str] = []
    room = _LONGEST - sum(len(line) + 1 for line in (*head, *tail))
    for line in rows:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    left = len(rows) - len(kept)
    more = [f"\nand {plural(left, 'line')} more: see the log of the job"] if left else []
    return "\n".join((*head, *kept, *more, *tail))


def list_gaps(title: str, gaps: Iterable[Gap]) -> Iterator[str]:
    """A list of gaps below a title; nothing without gaps."""
    for number, gap in enumerate(gaps):
        if not number:
            yield f"\n{title}:\n"
        yield f"- {escape_markdown(cut(f'{gap.where}: {gap.why}', LONGEST_MESSAGE))}"
