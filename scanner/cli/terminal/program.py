"""The program as the user started it, so that a command that Assay prints runs in the same shell.

A program on PATH has its name; kubectl finds `kubectl-assay` there, so both are on PATH for `kubectl assay`. Every other program
has the path with which the user started it. `python -m scanner` is recognised as argparse does (`ArgumentParser.prog`).
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

NAMES: Final = ("assay", "kubectl-assay")
"""The names under which the program is installed."""
_MODULE: Final = "scanner"
_PLUGIN: Final = "kubectl-"


def find_program(started: str | None = None, interpreter: Sequence[str] | None = None) -> str:
    """The beginning of a command line in a shell. `started` is the path of the program, `interpreter` the arguments of Python."""
    path = Path(sys.argv[0] if started is None else started)
    if path.name == "__main__.py" and path.parent.name == _MODULE:
        return shlex.join([_find_python(sys.orig_argv if interpreter is None else interpreter), "-m", _MODULE])
    if path.name not in NAMES:
        return NAMES[0]
    if not _is_on_path(path):
        return shlex.quote(_restore_path(path))
    if path.name.startswith(_PLUGIN) and shutil.which("kubectl"):
        return path.name.replace("-", " ", 1)
    return path.name


def _find_python(interpreter: Sequence[str]) -> str:
    """The interpreter as the user typed it, else its path."""
    return interpreter[0] if interpreter and shutil.which(interpreter[0]) else sys.executable


def _is_on_path(path: Path) -> bool:
    """Return whether a shell finds this program by its name."""
    found = shutil.which(path.name)
    return found is not None and Path(found).absolute() == path.absolute()


def _restore_path(path: Path) -> str:
    """The path of a program, with a slash: a shell looks for a name without one on PATH."""
    return str(path) if os.sep in str(path) else f".{os.sep}{path}"
