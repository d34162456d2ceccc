"""The documents show the help that the commands print, and use no flag that does not exist."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from scripts.generate_cli_reference import REFERENCE, command_lines, reference
from tests.docs.pages import PAGES


def commands_shown() -> Iterator[str]:
    """Every call of `assay` in a console block of the README and of the documentation."""
    for page in PAGES:
        yield from re.findall(r"^\$ (?:.*\| )?(assay [^|#\n]*)", page.read_text(), re.MULTILINE)


def flags_of(command: str) -> set[str]:
    """The flags of a command line."""
    return set(re.findall(r" (--?[a-z][a-z-]*)", re.sub(r"'[^']*'", "", command)))


def test_the_reference_shows_the_help_of_every_command() -> None:
    """A flag that is added or reworded is in `docs/cli.md` after `make docs`."""
    assert reference() == REFERENCE.read_text(), "docs/cli.md is out of date: run make docs"


def test_the_reference_has_the_commands_below_groups() -> None:
    """Groups come before their commands."""
    lines = list(command_lines())
    assert () == lines[0]
    assert lines.index(("rbac",)) + 1 == lines.index(("rbac", "check"))


@pytest.mark.parametrize("command", sorted(set(commands_shown())))
def test_an_example_uses_flags_of_its_command(command: str) -> None:
    """Every flag in an example is a flag in the help of that command."""
    words = command.split()
    subcommand = " ".join(words[:3]) if words[1] in {"rbac", "db", "config", "token", "waiver"} else " ".join(words[:2])
    sections = REFERENCE.read_text().split("\n## ")
    (section,) = (text for text in sections if text.startswith(f"{subcommand}\n"))
    assert set() == flags_of(command) - set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", section))


def test_examples_are_found() -> None:
    """The test above covers the flags that most readers try first."""
    used = {flag for command in commands_shown() for flag in flags_of(command)}
    assert {"--from", "-f", "--assume-bound", "--fail-on", "--html"} <= used
