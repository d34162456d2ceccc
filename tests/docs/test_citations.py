"""Every rule that a module cites is in `docs/semantics`, under the anchor that it names."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "semantics"
CITATION = re.compile(r"docs/semantics/(?P<page>[\w.-]+)#(?P<anchor>[\w-]+)")
UNREADABLE = re.compile(
    r"admission\s+(semantics|documents)\b|\b[Pp]arts?\s+[A-Q]\d{0,2}(\s+and\s+[A-Q]\d{0,2})*\s+of\b|\(\s*[A-Q]\d{1,2}(\s*(,|and|-)\s*[A-Q]?\d{1,2})*\s*\)"
)
"""A letter with a number, or a part with a letter: sections of documents that readers do not have."""


class Citation(NamedTuple):
    """Where a citation stands, and what it names."""

    module: str
    page: str
    anchor: str


@cache
def anchors(page: str) -> frozenset[str]:
    """The anchors of a page's headings, as GitHub and MkDocs make them; none of a page that does not exist."""
    path = PAGES / page
    if not path.exists():
        return frozenset()
    text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    return frozenset(slug(heading) for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE))


def slug(heading: str) -> str:
    """The anchor of a heading: lower case, without punctuation, hyphens for blanks."""
    return re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip())


def _modules() -> list[Path]:
    return sorted(
        path for room in ("scanner", "tests") for path in (ROOT / room).rglob("*.py") if path != Path(__file__)
    )


def _citations() -> list[Citation]:
    return [
        Citation(path.relative_to(ROOT).as_posix(), citation["page"], citation["anchor"])
        for path in _modules()
        for citation in CITATION.finditer(path.read_text())
    ]


def _links() -> list[Citation]:
    return [
        Citation(path.name, page or path.name, anchor)
        for path in sorted(PAGES.glob("*.md"))
        for page, anchor in re.findall(r"\]\(([\w.-]*)#([\w-]+)\)", path.read_text())
    ]


CITED = _citations()


@pytest.mark.parametrize("citation", CITED, ids=lambda citation: f"{citation.module}-{citation.page}-{citation.anchor}")
def test_a_cited_section_exists(citation: Citation) -> None:
    """The page that a module names has a heading with that anchor."""
    assert citation.anchor in anchors(citation.page)


@pytest.mark.parametrize("link", _links(), ids=lambda link: f"{link.module}-{link.page}-{link.anchor}")
def test_a_link_between_the_pages_leads_to_a_heading(link: Citation) -> None:
    """The anchor of a link is that of a heading of the page that it names."""
    assert link.anchor in anchors(link.page)


def test_every_library_cites_the_section_of_its_functions() -> None:
    """Each module that declares a library of CEL functions of Kubernetes names a heading of `cel-libraries.md`."""
    libraries = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "scanner" / "cel" / "functions").glob("*.py")
        if re.search(r"^LIBRARY\b.* = Library\(", path.read_text(), re.MULTILINE)
    }
    assert (True, set()) == (
        len(libraries) > 10,
        libraries - {citation.module for citation in CITED if citation.page == "cel-libraries.md"},
    )


def test_no_section_is_left_uncited() -> None:
    """Each page but the index is cited by a module."""
    pages = {path.name for path in PAGES.glob("*.md")} - {"README.md"}
    assert pages == {citation.page for citation in CITED}


def test_no_module_cites_what_readers_cannot_open() -> None:
    """No docstring or comment names a section of a document that is not in the repository."""
    unreadable = {
        path.relative_to(ROOT).as_posix(): match[0]
        for path in _modules()
        if (match := UNREADABLE.search(path.read_text()))
    }
    assert {} == unreadable


@pytest.mark.parametrize(
    "text",
    ["(K16 of the admission semantics)", "Parts B5 and E of the rest", "in upstream's words (E7)", "(J7 and J9)"],
)
def test_a_citation_of_the_former_kind_is_recognised(text: str) -> None:
    """The pattern finds the forms in which modules cited their sources before."""
    assert UNREADABLE.search(text) is not None


def test_a_citation_of_a_missing_section_is_recognised() -> None:
    """A heading that no page has, and a page that does not exist, have no anchor."""
    assert (False, False) == ("nothing" in anchors("cost.md"), "limits" in anchors("gone.md"))
