"""Nothing heavy is imported before it is needed: help, completion and refusals come at once."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.command import ASSAY

HEAVY = (
    "alembic",
    "celpy",
    "jinja2",
    "kubernetes",
    "orjson",
    "re2",
    "rich",
    "sqlalchemy",
    "urllib3",
    "yaml",
    "scanner.cel",
    "scanner.cluster",
    "scanner.report.document",
    "scanner.scan.run",
    "scanner.store",
)


@pytest.mark.parametrize("arguments", [("--help",), ("scan", "--help"), ("version",)])
def test_help_imports_nothing_heavy(arguments: tuple[str, ...]) -> None:
    """The command line knows its flags without knowing what they do."""
    program = (
        f"import runpy, sys; sys.argv = {[str(ASSAY), *arguments]!r}; runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    told = "import atexit, sys; atexit.register(lambda: print(*sorted(sys.modules), file=sys.stderr)); "
    ran = subprocess.run([sys.executable, "-c", told + program], capture_output=True, text=True, check=True)

    assert [] == [name for name in HEAVY if name in ran.stderr.split()]
