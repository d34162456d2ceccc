"""The version has one place, and everything that names a version names that one."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from scanner import __version__

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PRERELEASE = re.compile(r"\d(?:a|b|rc|\.dev)\d")


def test_the_package_reads_its_version_from_the_module() -> None:
    """pyproject.toml has no version of its own."""
    assert ["version"] == PROJECT["project"]["dynamic"]
    assert "scanner/__init__.py" == PROJECT["tool"]["hatch"]["version"]["path"]


def test_the_newest_release_in_the_changelog_is_the_version() -> None:
    """Below *Unreleased*, releases are in order, with their dates."""
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert "[Unreleased]" == headings[0]
    assert re.fullmatch(rf"\[{re.escape(__version__)}\] - \d{{4}}-\d\d-\d\d", headings[1])


@pytest.mark.parametrize("page", ["install.md", "deploy.md"])
def test_the_commands_of_the_pages_have_the_version(page: str) -> None:
    """Tags of the image and of the chart; the chart starts the image with its own version."""
    text = (ROOT / "docs" / page).read_text()
    named = re.findall(r"(?:kube-assay|\$IMAGE|charts/assay):(\d+\.\d+\.\d+)|newTag: (\S+)|tags/v(\d+\.\d+\.\d+)", text)
    assert {__version__} == {version for match in named for version in match if version}


@pytest.mark.parametrize("requirement", PROJECT["project"]["dependencies"])
def test_no_dependency_needs_a_prerelease(requirement: str) -> None:
    """The lowest allowed version of every dependency is a release."""
    assert None is PRERELEASE.search(requirement)
