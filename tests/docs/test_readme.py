"""The README is short, its picture is small, and its output is what the demo prints."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import ASSAY, environment
from tests.docs.pages import README, ROOT

TEXT = README.read_text()
USUAL = {"COLUMNS": "80", "NO_COLOR": "1"}
_OF_THE_SCAN = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{6}|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC|\d{4}-\d\d-\d\d|took .* s$")


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The lines that the demo prints."""
    home = tmp_path_factory.mktemp("demo")
    (home / "examples").symlink_to(ROOT / "examples")
    program = home / os.path.relpath(Path(sys.executable).with_name("assay"), ROOT)
    program.parent.mkdir(parents=True)
    program.symlink_to(ASSAY)
    command: list[str | Path] = [sys.executable, ROOT / "examples" / "demo.py", home]
    ran = subprocess.run(command, check=True, capture_output=True, cwd=home, env=environment(home, USUAL), text=True)
    return [_OF_THE_SCAN.sub("…", line.rstrip()) for line in ran.stdout.splitlines()]


def shown() -> list[str]:
    """The lines of output in the section about the demo."""
    block = TEXT.split("## Sixty seconds")[1].split("```text\n")[1].split("```")[0]
    return [_OF_THE_SCAN.sub("…", line) for line in block.splitlines() if line]


def test_the_readme_is_short() -> None:
    """At most 150 lines: everything else is in the documentation."""
    assert len(TEXT.splitlines()) <= 150


def test_the_readme_shows_what_the_demo_prints(printed: list[str]) -> None:
    """Each line is one that the demo prints, in that order, except the id of the scan and its time."""
    rest = iter(printed)

    assert [] == [line for line in shown() if line not in rest]
    assert "Next:" in shown()


def test_the_picture_of_a_report_is_small() -> None:
    """The README has one picture, a PNG of at most 150 kB."""
    (path,) = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", TEXT)
    picture = Path(ROOT / path).read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) <= 150_000


def test_the_readme_lists_every_exit_code() -> None:
    """Exit codes are an interface, in order; the page about CI has the same table."""
    table = TEXT.split("## Exit codes")[1].split("##")[0]
    rows = re.findall(r"^\| \d \|.*$", table, re.MULTILINE)
    assert ["0", "1", "2", "3", "4"] == [row[2] for row in rows]
    assert rows == re.findall(r"^\| \d \|.*$", (ROOT / "docs" / "ci.md").read_text(), re.MULTILINE)
