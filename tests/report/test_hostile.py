"""Texts that every user who may create objects can choose stay text in pages and file names."""

from __future__ import annotations

import json
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from scanner.report import FORMATS
from scanner.report.document.document import document_of
from scanner.report.html.site import slugs_of
from scanner.report.text.safe_text import visible

from .pages import read
from .records import HOSTILE, hostile_record


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the hostile scan."""
    made = tmp_path_factory.mktemp("hostile") / "report"
    FORMATS["html"].render(document_of(hostile_record()), made)
    return made


def test_texts_are_shown_as_they_are(folder: Path) -> None:
    """Markup and template syntax are shown letter by letter; characters that do not print are escaped."""
    text = "".join(read(path).text for path in (folder / "policies").iterdir())
    for hostile in HOSTILE:
        assert visible(hostile)[:200] in text


def test_nothing_unprintable_is_written(folder: Path) -> None:
    """No page contains a control, formatting or direction-changing character."""
    for path in folder.rglob("*.html"):
        assert [] == [
            character for character in path.read_text("utf-8") if not (character.isprintable() or character == "\n")
        ], path


@pytest.mark.parametrize("name", [name for name, form in FORMATS.items() if form.target != "folder"])
def test_no_format_steers_a_terminal(name: str) -> None:
    """Every character that a stream has prints, but line ends."""
    out = BytesIO()
    text = TextIOWrapper(out, "utf-8", newline="")
    FORMATS[name].render(document_of(hostile_record()), out if FORMATS[name].target == "binary" else text)
    text.flush()

    assert [] == [mark for mark in out.getvalue().decode() if not (mark.isprintable() or mark == "\n")]


@pytest.mark.parametrize("name", ["json", "policyreport", "openreports"])
def test_json_keeps_every_text(name: str) -> None:
    """Characters that do not print are escaped, and a parser reads them unchanged."""
    out = BytesIO()
    FORMATS[name].render(document_of(hostile_record()), out)
    text = out.getvalue().decode()

    assert [] == [mark for mark in text if not (mark.isprintable() or mark == "\n")]
    assert repr(HOSTILE[2])[1:-1] in repr(json.loads(text))


def test_nothing_is_written_elsewhere(folder: Path) -> None:
    """A name cannot lead out of the report, or into another folder of it."""
    assert [folder] == list(folder.parent.iterdir())
    assert {folder, folder / "policies", folder / "namespaces", folder / "owners", folder / "f"} == {
        path.parent for path in folder.rglob("*.html")
    }


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "..",
        ".",
        "",
        "/",
        "a/b",
        "a\\b",
        "CON\x00",
        "-rf",
        ".hidden",
        "x" * 400,
        "_cluster",
        "a_2",
        "é",
        "nul",
        "con.audit",
        "com1",
        "lpt9.x.y",
    ],
)
def test_unsafe_names_become_harmless(name: str) -> None:
    """A file name has safe characters alone, begins with a letter or digit, is short, and has a hash of the original name."""
    slug = slugs_of([name])[name]
    assert slug.strip("-.") == slug
    assert set(slug) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert 5 < len(slug) < 100


def test_ordinary_names_are_kept() -> None:
    """A name that Kubernetes allows is its own file name."""
    names = ["require-limits", "policy.example.com", "a", "0"]
    assert {name: name for name in names} == slugs_of(names)


def test_different_names_have_different_files() -> None:
    """This holds even if a name was chosen to look like the file name of another."""
    taken = slugs_of(["A b"])["A b"]
    names = ["a b", "A b", "A-b", "a-b", "a_b", taken]
    slugs = slugs_of(names)
    assert taken == slugs[taken]
    assert len(names) == len(set(slugs.values()))
