"""The HTML report as one file, for small scans: to mail, to attach to a ticket, to print as a whole.

The pages are those of the folder, one section after the other, and their links lead to the sections. The list of findings is
complete, without its filters; the population and what earlier scans resolved are not in the file.

Each text stands once: that of a policy on its own page, and not below every finding. Paper has no pages of findings, owners and controls:
it has the findings by rule and message (`findings_on_paper`), and what a list or a comparison above has is left out
(`reports_templates/single.css`): the class `again` marks what stands elsewhere on paper, `on-paper` what only paper has.
A month of scans with 42 policies has 40 sheets at most for 218 findings, and 60 for 980.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from posixpath import dirname, join, normpath
from tempfile import TemporaryDirectory
from typing import Final, TextIO

from scanner.errors import UsageError
from scanner.report.document.document import Document
from scanner.report.html import folder_report
from scanner.report.html.findings_on_paper import render_findings
from scanner.report.text.numbers import plural

MOST: Final = 2_000
"""The most findings, resolved ones included, of a file: it then has about 10 MB."""

_MAIN: Final = re.compile(r"<main [^>]*>\n?(.*)</main>", re.DOTALL)
_TITLE: Final = re.compile(r"<title>(.*?) · ", re.DOTALL)
_UNUSED: Final = re.compile(
    r'<template id="parts">.*?</template>|<div class="filter.*?</div>|<input type="checkbox".*?</label>', re.DOTALL
)
_SCRIPT: Final = re.compile(r"; script-src '[^']*' 'strict-dynamic'|<script>.*?</script>", re.DOTALL)
_LINK: Final = re.compile(r' (href|id|aria-labelledby)="([^"]*)"( download(?:="[^"]*")?)?')
"""Attributes that name a place. Text has no quotes: all of them are escapes."""
_TEXT: Final = re.compile(r'<section class="text".*?</section>\n?', re.DOTALL)
_TO_TEXT: Final = re.compile(r"[pm]\d+(-\d+)?")
"""The ids of texts below findings, and of their lines."""
_FIRST: Final = ("index.html", "findings.html")
_THEN: Final = ("policies.html", "coverage.html")
_PLACE: Final = "f-"
_PLACES: Final = "f/"


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
        folder_report.render(document, pages, keeps_resolved=False)
        out.writelines(_text(pages, render_findings(document)))


def _text(pages: Path, findings: str) -> Iterator[str]:
    """The frame of the first page, with the contents of all pages, and the findings as they are printed behind the summary."""
    paths = sorted((path.relative_to(pages).as_posix() for path in pages.rglob("*.html")), key=_order)
    names = frozenset(paths)
    first = (pages / paths[0]).read_text("utf-8")
    main = _MAIN.search(first)
    if main is None:
        raise ValueError("a page has no main part")
    yield _link(first[: main.start(1)], "", names)
    for folder, group in groupby(paths, dirname):
        yield f'<div class="sheets of-{folder}">\n' if folder else ""
        for path in group:
            yield from _section((pages / path).read_text("utf-8"), path, names)
            if path == _FIRST[0]:
                yield f'<section class="sheet on-paper">\n{findings}</section>\n'
        yield "</div>\n" if folder else ""
    yield _link(first[main.end(1) :], "", names)


def _order(path: str) -> tuple[int, str]:
    """The summary, the list of findings, the findings, then policies and coverage, then the other pages."""
    if path in _FIRST:
        return _FIRST.index(path), path
    if path.startswith(("findings-", _PLACES)):
        return len(_FIRST) + path.startswith(_PLACES), path
    return len(_FIRST) + 2 + (_THEN.index(path) if path in _THEN else len(_THEN)), path


def _classes(path: str) -> str:
    """The classes of a section, by which paper has each finding once."""
    if path.startswith(_PLACES):
        return "sheet places"
    if path == "findings.html":
        return "sheet list"
    return "sheet list-more" if path.startswith("findings-") else "sheet"


def _section(page: str, path: str, names: frozenset[str]) -> Iterator[str]:
    main, title = _MAIN.search(page), _TITLE.search(page)
    if main is None or title is None:
        raise ValueError(f"{path} has no main part or no title")
    content = _TEXT.sub("", main[1]) if path.startswith(_PLACES) else main[1]
    yield f'<section class="{_classes(path)}" id="{path}" aria-label="{title[1]}">\n'
    yield _link(_SCRIPT.sub("", _UNUSED.sub("", content)), path, names)
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
    if not target and path.startswith(_PLACES) and _TO_TEXT.fullmatch(anchor):
        return ""  # the text stands on the page of its policy
    page = normpath(join(dirname(path), target)) if target else path
    if page not in names:
        return ""
    # The list has no filters here: a link to some of its findings leads to all of them.
    return f' href="#{_id(anchor, page) if anchor and "=" not in anchor else page}"'
