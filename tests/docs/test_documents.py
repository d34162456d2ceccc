"""The documents say what is there: links lead somewhere, layers and directories are those of the code."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    {*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")},
    key=lambda path: path.as_posix(),
)
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text()
RECORDS = sorted((ROOT / "docs" / "adr").glob("[0-9]*.md"))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(document: Path) -> None:
    """Every relative link names a file or a folder of the repository."""
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", document.read_text())
    relative = [link for link in links if "://" not in link]
    assert [] == [link for link in relative if not (document.parent / link).exists()]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_secret_is_created_in_a_namespace_that_exists(document: Path) -> None:
    """The commands before an installation make its namespace first: a new user has none."""
    blocks = re.findall(r"```console\n(.*?)```", document.read_text(), re.DOTALL)
    secrets = [block for block in blocks if " create secret " in block]
    assert secrets == [block for block in secrets if block.startswith("$ kubectl create namespace ")]


def test_the_layers_drawn_are_the_layers_enforced() -> None:
    """ARCHITECTURE.md draws the rows of the contract in pyproject.toml, in their order."""
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    drawing = ARCHITECTURE.split("## Imports point down")[1].split("```")[1]
    rows = [re.split(r"\s{3,}", line)[0] for line in drawing.strip().splitlines()]
    assert contract["layers"] == rows


def test_every_room_is_in_the_directory() -> None:
    """Each module and package right below `scanner` has its line in ARCHITECTURE.md."""
    rooms = {
        path.name + ("/" if path.is_dir() else "")
        for path in (ROOT / "scanner").iterdir()
        if not path.name.startswith(("_", "py.typed"))
    }
    listed = set(re.findall(r"`scanner/([\w.]+/?)`", ARCHITECTURE))
    assert rooms == listed & rooms


def test_nothing_in_the_directory_is_gone() -> None:
    """Each path in ARCHITECTURE.md's directory exists."""
    paths = [path for path in re.findall(r"^\| (`[^|]+`) \|", ARCHITECTURE, re.MULTILINE) if "/" in path]
    named = [path for cell in paths for path in re.findall(r"`([^`]+)`", cell)]
    assert [] == [path for path in named if not (ROOT / path).exists()]


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.stem)
def test_every_decision_is_listed_and_says_what_it_costs(record: Path) -> None:
    """The index names the record by its title, and the record has the parts that all records have."""
    text = record.read_text()
    title = text.splitlines()[0].removeprefix("# ").split(". ", 1)
    index = (record.parent / "README.md").read_text()
    assert f"| [{title[0]}]({record.name}) | {title[1]} |" in index
    assert ["Question", "Decision", "What it costs"] == [
        part for part in re.findall(r"^## (.+)$", text, re.MULTILINE) if part != "What we measured"
    ]


def test_numbers_of_decisions_are_unique() -> None:
    """The records are numbered without a gap or a repetition, and each title has the number of its file."""
    assert [f"{number:04}" for number in range(1, len(RECORDS) + 1)] == [record.name[:4] for record in RECORDS]
    titles = [record.read_text().splitlines()[0] for record in RECORDS]
    assert [int(record.name[:4]) for record in RECORDS] == [
        int(title.split(".")[0].removeprefix("# ")) for title in titles
    ]
