"""The pages of the HTML report as the sections of one file, for small scans: no script, no filters, no folder.

The pages are rendered as for a folder, and then joined: links become links inside the file, and the ids of each page begin with
the name of their page. The ids of findings stay, so that a citation `#f-<id>` holds in both forms. The text of a policy is there once.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TextIO

from scanner.errors import UsageError
from scanner.report import html
from scanner.report.document import Document
from scanner.report.words import plural

MOST: Final = 500
"""The largest number of findings, resolved ones included, of a report in one file."""

_FIRST: Final = "index.html"
_MAIN: Final = re.compile(r'<main id="main"[^>]*>(.*)</main>', re.DOTALL)
_UNUSED: Final = re.compile(r'<div class="filter".*?</div>\n|<template.*?</template>\n', re.DOTALL)
_TEXTS: Final = re.compile(r'<section class="text".*?</section>\n?', re.DOTALL)
_TAG: Final = re.compile(r"<[a-z][^>]*>")
_REFERENCE: Final = re.compile(r' (id|href|aria-labelledby)="([^"]*)"')
_TEXT_ID: Final = re.compile(r"[pm]\d+(-\w+)?")
_CSV: Final = ('<a href="population.csv">population.csv</a>', "<code>assay report -o csv-population</code>")


def render(document: Document, out: TextIO) -> None:
    """Write the report. Raises UsageError for a report with more than `MOST` findings."""
    findings = document.findings_total.total + document.changes.resolved
    if findings > MOST:
        raise UsageError(
            f"A report in one file holds at most {plural(MOST, 'finding')}, resolved ones included; this one has {findings:,}. "
            "Write a folder with --html DIR, or choose fewer policies or namespaces for the scan."
        )
    with TemporaryDirectory() as aside:
        folder = Path(aside) / "report"
        html.render(document, folder)
        out.write(_joined(folder))


def _joined(folder: Path) -> str:
    pages = {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in sorted(folder.rglob("*.html"))}
    pages = {_FIRST: pages[_FIRST], **pages}
    bodies = {name: _body(text) for name, text in pages.items()}
    texts = _texts_of(bodies)
    known = _ids(bodies, texts)
    sections = [
        f'<section class="page" id="{_anchor(name)}">\n{_rewritten(name, _TEXTS.sub("", body), known)}</section>\n'
        for name, body in bodies.items()
    ]
    sections += [_rewritten("f/", text, known) for text in texts.values()]
    first = pages[_FIRST]
    begin, end = first[: first.index("<main ")], first[first.index("</main>") :]
    main = f'<main id="main" class="wrap" tabindex="-1">\n{"".join(sections)}'
    return f"{_rewritten(_FIRST, begin, known)}{main}{_rewritten(_FIRST, end, known)}"


def _body(page: str) -> str:
    main = _MAIN.search(page)
    return _UNUSED.sub("", main.group(1) if main else "").replace(*_CSV)


def _texts_of(bodies: dict[str, str]) -> dict[str, str]:
    """The texts of policies and params by their id: of several forms of a text the one with most marked lines."""
    texts: dict[str, str] = {}
    for body in bodies.values():
        for text in _TEXTS.findall(body):
            identifier = next(value for name, value in _REFERENCE.findall(text) if name == "id")
            texts[identifier] = max(texts.get(identifier, ""), text, key=_marks)
    return texts


def _marks(text: str) -> tuple[bool, int]:
    return bool(text), text.count('class="marked"')


def _ids(bodies: dict[str, str], texts: dict[str, str]) -> frozenset[str]:
    """The ids of the joined file."""
    return frozenset(
        (
            "main",
            *map(_anchor, bodies),
            *(_target(page, value) for page, body in bodies.items() for value in _own_ids(_TEXTS.sub("", body))),
            *(value for text in texts.values() for value in _own_ids(text)),
        )
    )


def _own_ids(text: str) -> Iterator[str]:
    for tag in _TAG.findall(text):
        yield from (value for name, value in _REFERENCE.findall(tag) if name == "id")


def _rewritten(page: str, text: str, known: frozenset[str]) -> str:
    """The HTML of a page with the ids and links of the joined file; only tags can have them."""
    return _TAG.sub(lambda tag: _REFERENCE.sub(lambda match: _attribute(page, match, known), tag.group()), text)


def _attribute(page: str, match: re.Match[str], known: frozenset[str]) -> str:
    name, value = match.groups()
    if name == "href":
        return f' href="{_link(page, value, known)}"'
    return f' {name}="{_target(page, value)}"'


def _link(page: str, href: str, known: frozenset[str]) -> str:
    """The link inside the file; a filter of the list leads to the list, and a line that is not there to its text."""
    if href.startswith("data:"):
        return href
    path, _, fragment = href.partition("#")
    other = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
    target = _target(other, fragment) if fragment and "=" not in fragment else _anchor(other)
    if target in known:
        return f"#{target}"
    whole = target.partition("-")[0]
    return f"#{whole}" if whole in known else f"#{_anchor(other)}"


def _target(page: str, identifier: str) -> str:
    """The id in the joined file of an id of a page."""
    if (
        identifier == "main"
        or identifier.startswith("f-")
        or (page.startswith("f/") and _TEXT_ID.fullmatch(identifier))
    ):
        return identifier
    return f"{_anchor(page)}--{identifier}"


def _anchor(page: str) -> str:
    """The id of the section of a page. Slugs have letters, digits, `.`, `_` and `-` alone."""
    return f"page-{page.removesuffix('.html').replace('/', '--')}"
