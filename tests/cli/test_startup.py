"""Heavy modules are imported only when they are needed: help, completion and usage errors are fast."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scanner.cli.application import ENTRIES, build_commands
from scanner.store import open_store
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
    "scanner.model.outcome",
    "scanner.model.policy",
    "scanner.model.scans.scan",
    "scanner.report.document.document",
    "scanner.scan.run",
    "scanner.store",
    "scanner.web.server.server",
)


WRITING = (
    "scanner.cel",
    "scanner.cluster.live.cluster",
    "scanner.posture.history.scan_diff",
    "scanner.store.history.merge",
    "scanner.store.history.writer",
)


DEFINING = ("scanner.cli.commands.report", "scanner.cli.commands.scan", "scanner.cli.commands.serve")
OF_OTHER_COMMANDS = (
    *DEFINING,
    "jinja2",
    "jmespath",
    "kubernetes",
    "scanner.cluster.requests.credential_plugin",
    "scanner.model.scans.opinion",
    "scanner.model.waiver",
    "scanner.policies.kyverno.bind",
    "scanner.policies.kyverno.libraries",
    "scanner.posture.waivers",
    "scanner.rbac",
    "scanner.store",
    "scanner.web",
    "sqlalchemy",
)


def imported_by(*arguments: str) -> set[str]:
    """The modules that a command imported when it ended."""
    program = (
        f"import runpy, sys; sys.argv = {[str(ASSAY), *arguments]!r}; runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    at_exit = "import atexit, sys; atexit.register(lambda: print(*sorted(sys.modules), file=sys.stderr)); "
    ran = subprocess.run([sys.executable, "-c", at_exit + program], capture_output=True, text=True, check=True)
    return set(ran.stderr.split())


def test_the_list_of_commands_imports_none() -> None:
    """Its texts stand in a table: all commands together take longer than a small command."""
    commands = {f"scanner.cli.commands.{entry.name.replace('-', '_')}" for entry in ENTRIES}

    assert {"scanner.cli.commands.version"} == commands & imported_by("--help")


def test_the_list_of_commands_has_their_own_texts() -> None:
    """The table and the commands cannot have different texts."""
    commands = build_commands().commands  # type: ignore[attr-defined]

    assert {entry.name: entry.short_help for entry in ENTRIES} == {
        name: command.get_short_help_str(100) for name, command in commands.items()
    }


@pytest.mark.parametrize("arguments", [("--help",), ("scan", "--help"), ("serve", "--help"), ("version",)])
def test_help_imports_nothing_heavy(arguments: tuple[str, ...]) -> None:
    """The flags are known without the modules that use them."""
    assert [] == sorted(set(HEAVY) & imported_by(*arguments))


def test_a_list_of_scans_imports_nothing_that_writes_or_compares(tmp_path: Path) -> None:
    """A command that reads a few rows does not import the modules that record scans or compare them."""
    db = str(tmp_path / "assay.db")
    with open_store(db):
        pass
    modules = imported_by("scans", "--db", db)

    assert "scanner.store.reader" in modules
    assert [] == sorted(set(WRITING) & modules)


@pytest.mark.parametrize("command", ["check", "preview", "scans", "findings", "db"])
def test_a_command_does_not_import_the_commands_that_define_settings(command: str) -> None:
    """Their flags are needed only where a file or a variable has a value."""
    assert [] == sorted({"scanner.cli.commands.catalog", *DEFINING} & imported_by(command, "--help"))


def test_a_check_imports_nothing_of_scans_and_posture(tmp_path: Path) -> None:
    """A manifest is decided without stores, scores, waivers and rights; without Kyverno's policies also without their libraries."""
    manifest, cluster = tmp_path / "web.json", tmp_path / "cluster.json"
    manifest.write_text('{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}}')
    cluster.write_text('{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}')
    modules = imported_by("check", "-f", str(manifest), "--against", str(cluster), "--allow-unjudged", "-o", "json")

    assert "scanner.preview.check" in modules
    assert [] == sorted(set(OF_OTHER_COMMANDS) & modules)


def test_the_end_of_a_command_collects_no_garbage() -> None:
    """Python would look through all modules for garbage: at its end, every object is kept."""
    program = (
        f"import runpy, sys; sys.argv = {[str(ASSAY), 'version']!r}; runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    at_exit = "import atexit, gc, sys; atexit.register(lambda: print(gc.get_freeze_count() > 0, file=sys.stderr)); "
    ran = subprocess.run([sys.executable, "-c", at_exit + program], capture_output=True, text=True, check=True)

    assert "True" == ran.stderr.strip()
