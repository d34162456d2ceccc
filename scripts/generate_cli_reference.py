"""Write `docs/cli.md` from the help of every command: `make docs` and `python -m scripts.generate_cli_reference` run it."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

from scanner.cli.application import build_commands

REFERENCE = Path(__file__).parents[1] / "docs" / "cli.md"
_TERMINAL = {"COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1", "LANG": "C.UTF-8"}
_INTRODUCTION = """\
# Command reference

This page contains the help of every command, as `assay COMMAND --help` prints it on a terminal of 80 columns.
Flags of `assay scan`, `assay report` and `assay serve` have keys in `assay.yaml` and variables such as `ASSAY_DB`: see [Configuration](configuration.md).
If Assay reports an internal error, `ASSAY_DEBUG=1` adds the traceback, which can quote objects.
"""


def command_lines() -> Iterator[tuple[str, ...]]:
    """Yield the arguments of each command, groups before their commands: (), ("scan",), ("rbac",), ("rbac", "check")."""
    yield from _below((), build_commands())


def _below(arguments: tuple[str, ...], command: object) -> Iterator[tuple[str, ...]]:
    yield arguments
    commands: dict[str, object] = getattr(command, "commands", {})
    for name, subcommand in commands.items():
        yield from _below((*arguments, name), subcommand)


def reference() -> str:
    """Return the whole page: the help of every command, as on a terminal."""
    with _terminal():
        return "\n".join([_INTRODUCTION, *(_section(arguments, _help(arguments)) for arguments in command_lines())])


@contextmanager
def _terminal() -> Iterator[None]:
    """Let this process have the terminal of the page."""
    before = dict(os.environ)
    os.environ.update(_TERMINAL)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _section(arguments: tuple[str, ...], text: str) -> str:
    return f"## {' '.join(('assay', *arguments))}\n\n```text\n{text}\n```\n"


def _help(arguments: tuple[str, ...]) -> str:
    with redirect_stdout(io.StringIO()) as printed:
        build_commands()([*arguments, "--help"], prog_name="assay", standalone_mode=False)
    return "\n".join(line.rstrip() for line in printed.getvalue().strip("\n").splitlines())


if __name__ == "__main__":
    REFERENCE.write_text(reference())
