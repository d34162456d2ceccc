"""Rendered pages, parsed as a browser parses them."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

_VOID = {"meta", "link", "br", "img", "rect", "input", "hr"}
_ENDS_BEFORE = {
    "li": {"li"},
    "dt": {"dt", "dd"},
    "dd": {"dt", "dd"},
    "td": {"td", "th"},
    "th": {"td", "th"},
    "p": {"p"},
    "dl": {"p"},
}
"""The elements that a tag ends, whose own end tags HTML does not need there."""
_ENDS_WITH = {"ul": {"li"}, "ol": {"li"}, "dl": {"dt", "dd"}, "tr": {"td", "th"}, "article": {"p"}}
"""The elements that end with the one around them."""


@dataclass
class Page(HTMLParser):
    """The tags, text and faults of one page. `faults` are tags that are not closed where HTML needs it."""

    tags: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    text: str = ""
    faults: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        self._end_before(_ENDS_BEFORE.get(tag, set()))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        self._end_before(_ENDS_WITH.get(tag, set()))
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> at {self.getpos()}")

    def _end_before(self, tags: set[str]) -> None:
        if self.open and self.open[-1] in tags:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & set(self.open):
            self.text += data

    def named(self, tag: str) -> list[dict[str, str]]:
        """The attributes of each tag with a name."""
        return [attributes for name, attributes in self.tags if name == tag]

    def ids(self) -> list[str]:
        """Every id, in the order of the page."""
        return [attributes["id"] for _, attributes in self.tags if "id" in attributes]


def read(path: Path) -> Page:
    """Parse a page."""
    page = Page()
    page.feed(path.read_text("utf-8"))
    page.close()
    page.faults.extend(f"<{tag}> is never closed" for tag in page.open)
    return page


def places_of(folder: Path) -> str:
    """The HTML of all pages of findings of a report, in order."""
    return "".join(path.read_text("utf-8") for path in sorted((folder / "f").iterdir()))


def main_of(path: Path) -> str:
    """The text of the `main` element."""
    text = path.read_text("utf-8")
    return text[text.index("<main") : text.index("</main>")]
