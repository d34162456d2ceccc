"""Places in an expression, and their display in errors.

Mirrors cel-go's error display: one-based columns in code points, tabs shown as one space, full-width dots under characters
that are not ASCII, no excerpt for lines of more than 16,384 bytes.

Rules: `docs/semantics/cel-syntax.md#display-of-errors`.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import NamedTuple

LONGEST_EXCERPT = 16_384
MOST_ERRORS = 100
NOWHERE = -1


class TextPosition(NamedTuple):
    """A line, from 1, and a column in code points, from 0; `(-1, -1)` is nowhere."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Issue:
    """One error of an expression, at a code point offset (`NOWHERE` for the whole expression)."""

    offset: int
    message: str


class Source:
    """The text of one expression and the offsets of its lines, in code points."""

    __slots__ = ("_starts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(at + 1 for at, character in enumerate(text) if character == "\n")]

    def place(self, offset: int) -> TextPosition:
        """Return the line and column of an offset in code points; `NOWHERE` has a place of its own."""
        if offset == NOWHERE:
            return TextPosition(-1, -1)
        line = bisect_right(self._starts, offset)
        return TextPosition(line, offset - self._starts[line - 1])

    def line(self, number: int) -> str | None:
        """Return the text of a line without its end, or None when there is no such line; lines count from 1."""
        if not 1 <= number <= len(self._starts):
            return None
        start = self._starts[number - 1]
        end = self._starts[number] - 1 if number < len(self._starts) else len(self.text)
        return self.text[start:end]

    def describe(self, issues: list[Issue]) -> str:
        """Return the issues as kube-apiserver prints them: by position, with excerpts, at most a hundred.

        Mirrors `ToDisplayString` of cel-go's `common/errors.go` and `common/error.go`.
        """
        shown = sorted(
            ((self.place(issue.offset), issue.message) for issue in issues[:MOST_ERRORS]), key=lambda at: at[0]
        )
        lines = [self._describe(place, message) for place, message in shown]
        if len(issues) > MOST_ERRORS:
            lines.append(f"{len(issues) - MOST_ERRORS} more errors were truncated")
        return "\n".join(lines)

    def _describe(self, place: TextPosition, message: str) -> str:
        headline = f"ERROR: <input>:{place.line}:{place.column + 1}: {message}"
        line = self.line(place.line)
        if not self.text or line is None or len(line.encode("utf-8", "surrogatepass")) > LONGEST_EXCERPT:
            return headline
        line = line.replace("\t", " ")
        dots = "".join("." if character.isascii() else "\uff0e" for character in line[: max(place.column, 0)])
        caret = "\uff3e" if 0 <= place.column < len(line) and not line[place.column].isascii() else "^"
        return f"{headline}\n | {line}\n | {dots}{caret}"
