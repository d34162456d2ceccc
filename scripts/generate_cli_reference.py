"""Write `docs/cli.md` from the help of every command: `make docs` and `python -m scripts.generate_cli_reference` run it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from scanner.cli.application import commands

REFERENCE = Path(__file__).parents[1] / "docs" / "cli.md"
_ASSAY = Path(sys.executable).with_name("assay")
_TERMINAL = {"COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1", "LANG": "C.UTF-8"}
_INTRODUCTION = """\
# Command reference

This page contains the help of every command, as `assay COMMAND --help` prints it on a terminal of 80 columns.
The environment variable `ASSAY_DB` names the [database](database.md) for every command that has the flag `--db`.
If Assay reports an internal error, `ASSAY_DEBUG=1` adds the traceback, which can quote objects.
"""


def command_lines() -> Iterator[tuple[str, ...]]:
    """Yield the arguments of each command, groups before their commands: (), ("scan",), ("rbac",), ("rbac", "check")."""
    yield from _below((), commands())


def _below(arguments: tuple[str, ...], command: object) -> Iterator[tuple[str, ...]]:
    yield arguments
    commands: dict[str, object] = getattr(command, "commands", {})
    for name, subcommand in commands.items():
        yield from _below((*arguments, name), subcommand)


def reference() -> str:
    """Return the whole page, from the installed command. Raises CalledProcessError if a command has no help."""
    lines = list(command_lines())
    with tempfile.TemporaryDirectory() as home, ThreadPoolExecutor(max_workers=2) as pool:
        texts = list(pool.map(lambda arguments: _help(arguments, Path(home)), lines))
    return "\n".join([_INTRODUCTION, *map(_section, lines, texts)])


def _section(arguments: tuple[str, ...], text: str) -> str:
    return f"## {' '.join(('assay', *arguments))}\n\n```text\n{text}\n```\n"


def _help(arguments: tuple[str, ...], home: Path) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), **_TERMINAL}
    command: list[str | Path] = [_ASSAY, *arguments, "--help"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment, cwd=home)  # noqa: S603 - our own command
    return "\n".join(line.rstrip() for line in done.stdout.strip("\n").splitlines())


if __name__ == "__main__":
    REFERENCE.write_text(reference())
