"""The README shows the help that the commands print."""

from __future__ import annotations

import re

from tests.docs import help as documented


def test_the_readme_shows_the_help_of_every_command() -> None:
    """A flag that is added or worded anew is added to the README by `python -m tests.docs.help`."""
    assert documented.section() == documented.current(), "bring it up to date: python -m tests.docs.help"


def test_the_readme_uses_no_flag_that_is_not_there() -> None:
    """Every flag in an example is one that some help text lists."""
    examples = re.findall(r"^\$ (?:.*\| )?assay .*$", documented.README.read_text(), re.MULTILINE)
    used = {flag for line in examples for flag in re.findall(r" (--?[a-z][a-z-]*)", line.split("| assay")[-1])}
    assert set() == used - set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", documented.current()))
    assert {"--from", "-f", "--assume-bound"} <= used
