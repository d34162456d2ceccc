"""The HTML report as one file, for small scans: to mail, to attach to a ticket, to print as a whole.

The pages are those of the folder, one section after the other, and their links lead to the sections. The list of findings is
complete, without its filters; the population is not in the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from posixpath import dirname, join, normpath
from tempfile import TemporaryDirectory
from typing import Final, TextIO

from scanner.errors import UsageError
from scanner.report.document.document import Document
from scanner.report.html import folder_report
from scanner.report.text.numbers import plural

MOST: Final = 2_000
"""The most findings, resolved ones included, of a file: it then has about 10 MB."""

_MAIN: Final = re.compile(r"<main [^>]*>\n?(.*)</main>", re.DOTALL)
_TITLE: Final = re.compile(r"<title>(.*?) · ", re.DOTALL)
_UNUSED: Final = re.compile(r'<template id="parts">.*?</template>|<div class="filter".*?</div>', re.DOTALL)
_SCRIPT: Final = re.compile(r"; script-src '[^']*' 'strict-dynamic'|<script>.*?</script>", re.DOTALL)
_LINK: Final = re.compile(r' (href|id|aria-labelledby)="([^"]*)"( download(?:="[^"]*")?)?')
"""Attributes that name a place. Text has no quotes: all of them are escapes."""
_FIRST: Final = ("index.html", "findings.html", "policies.html", "coverage.html")
_PLACE: Final = "f-"


def render(document: Document, out: TextIO) -> None:
    """Write the report. Raises UsageError for a scan with more than `MOST` findings."""
    findings = document.findings_total.total + document.changes.resolved
    if findings > MOST:
        raise UsageError(
            f"One file is for {MOST:,} findings at most, and this scan has {plural(findings, 'finding')}. "
            "Write a folder with --html DIR; the scan is stored, so `assay report --html DIR` does not scan again."
        )
    with TemporaryDirectory() as folder:
        pages = Path(folder) / "pages"
        folder_report.render(document, pages)
        out.writelines(_text(pages))


def _text(pages: Path) -> Iterator[str]:
    """The frame of the first page, with the contents of all pages."""
    paths = sorted((path.relative_to(pages).as_posix() for path in pages.rglob("*.html")), key=_order)
    names = frozenset(paths)
    first = (pages / paths[0]).read_text("utf-8")
    main = _MAIN.search(first)
    if main is None:
        raise ValueError("a page has no main part")
    yield _link(first[: main.start(1)], "", names)
    for path in paths:
        yield from _section((pages / path).read_text("utf-8"), path, names)
    yield _link(first[main.end(1) :], "", names)


def _order(path: str) -> tuple[int, str]:
    """The four sections of the report first, then the other pages, the places of findings last."""
    if path in _FIRST:
        return _FIRST.index(path), path
    return len(_FIRST) + path.startswith("f/"), path


def _section(page: str, path: str, names: frozenset[str]) -> Iterator[str]:
    main, title = _MAIN.search(page), _TITLE.search(page)
    if main is None or title is None:
        raise ValueError(f"{path} has no main part or no title")
    yield f'<section class="sheet" id="{path}" aria-label="{title[1]}">\n'
    yield _link(_SCRIPT.sub("", _UNUSED.sub("", main[1])), path, names)
    yield "</section>\n"


def _link(text: str, path: str, names: frozenset[str]) -> str:
    """The text with its ids made unique, and its links led to them."""

    def attribute(link: re.Match[str]) -> str:
        name, value = link[1], link[2]
        match name:
            case "href":
                return _href(value, path, names)
            case "id":
                return f' id="{_id(value, path)}"'
            case _:
                return f' {name}="{_id(value, path)}"'

    return _LINK.sub(attribute, text)


def _id(name: str, path: str) -> str:
    """The id of a finding is its own in every report; all others get the name of their page."""
    return name if name.startswith(_PLACE) or not path else f"{path}~{name}"


def _href(link: str, path: str, names: frozenset[str]) -> str:
    """A link to a section or an id; none for a file that stands beside the pages. Links to other addresses stay."""
    if ":" in link or (not path and link.startswith("#")):
        return f' href="{link}"'
    target, _, anchor = link.partition("#")
    page = normpath(join(dirname(path), target)) if target else path
    if page not in names:
        return ""
    # The list has no filters here: a link to some of its findings leads to all of them.
    return f' href="#{_id(anchor, page) if anchor and "=" not in anchor else page}"'
