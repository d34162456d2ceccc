"""Heavy modules are imported only when they are needed: help, completion and usage errors are fast."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.command import ASSAY

HEAVY = (
    "alembic",
    "authlib",
    "celpy",
    "jinja2",
    "kubernetes",
    "orjson",
    "re2",
    "rich",
    "sqlalchemy",
    "starlette",
    "urllib3",
    "uvicorn",
    "yaml",
    "scanner.cel",
    "scanner.cluster",
    "scanner.report.document",
    "scanner.scan.run",
    "scanner.store",
    "scanner.web.server",
)


@pytest.mark.parametrize("arguments", [("--help",), ("scan", "--help"), ("serve", "--help"), ("version",)])
def test_help_imports_nothing_heavy(arguments: tuple[str, ...]) -> None:
    """The flags are known without the modules that use them."""
    program = (
        f"import runpy, sys; sys.argv = {[str(ASSAY), *arguments]!r}; runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    at_exit = "import atexit, sys; atexit.register(lambda: print(*sorted(sys.modules), file=sys.stderr)); "
    ran = subprocess.run([sys.executable, "-c", at_exit + program], capture_output=True, text=True, check=True)

    assert [] == [name for name in HEAVY if name in ran.stderr.split()]
