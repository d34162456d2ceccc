"""The beginning of the commands that the program recommends: the program as the user started it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from scanner.cli.terminal.program import find_program

Put = Callable[[str], Path]


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """Put an empty program into a folder."""

    def file(path: str) -> Path:
        made = tmp_path / path
        made.parent.mkdir(parents=True, exist_ok=True)
        made.touch()
        made.chmod(0o755)
        return made

    return file


@pytest.fixture
def search(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A PATH with one folder, `bin`, of the working directory."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("search")
def test_a_program_on_path_has_its_name(put: Put) -> None:
    """As the user types it."""
    assert "assay" == find_program(str(put("bin/assay")))


@pytest.mark.usefixtures("search")
def test_a_program_elsewhere_has_its_path(put: Put) -> None:
    """Also if a program of the same name is on PATH: that one may be of another version."""
    put("bin/assay")
    put(".venv/bin/assay")

    assert ".venv/bin/assay" == find_program(".venv/bin/assay")


@pytest.mark.usefixtures("search")
def test_a_path_is_quoted(put: Put) -> None:
    """For a shell."""
    path = put("my tools/assay")

    assert f"'{path}'" == find_program(str(path))


@pytest.mark.usefixtures("search")
def test_a_program_in_the_working_directory_has_a_slash(put: Put) -> None:
    """A shell would look for the name alone on PATH."""
    put("assay")

    assert "./assay" == find_program("assay")


@pytest.mark.usefixtures("search")
def test_a_plugin_of_kubectl_is_a_command_of_kubectl(put: Put) -> None:
    """Without kubectl on PATH the program itself is named."""
    plugin = str(put("bin/kubectl-assay"))
    alone = find_program(plugin)
    put("bin/kubectl")

    assert ("kubectl-assay", "kubectl assay") == (alone, find_program(plugin))


@pytest.mark.usefixtures("search")
@pytest.mark.parametrize(("typed", "shown"), [("bin/python3", "bin/python3"), ("python9", sys.executable)])
def test_a_module_has_its_interpreter(put: Put, typed: str, shown: str) -> None:
    """As the user typed it, if a shell finds it."""
    put("bin/python3")
    module = "somewhere/scanner/__main__.py"

    assert f"{shown} -m scanner" == find_program(module, [typed, "-m", "scanner", "scan"])


@pytest.mark.usefixtures("search")
def test_another_program_that_runs_the_command_has_the_usual_name() -> None:
    """Its own name is no command of Assay."""
    assert "assay" == find_program("/usr/bin/pytest")
