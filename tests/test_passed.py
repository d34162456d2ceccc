"""A gate of two runs executes each test once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.passed import VARIABLE

CONFTEST = """
from tests.passed import leave_out_passed
def pytest_configure(config): leave_out_passed(config)
"""
TESTS = """
import os, pytest
def test_adds(snapshot): assert snapshot == 2
@pytest.mark.parametrize("text", ["a b", "\\u00e4"])
def test_of(text): pass
def test_needs_a_server(snapshot):
    if not os.environ.get("A_SERVER"): pytest.skip("no server")
    assert snapshot == 3
"""


@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
def test_the_second_run_executes_what_the_first_one_skipped(workers: list[str], tmp_path: Path) -> None:
    """A test that needs a server is skipped in the first run; without a file, all tests run. Snapshots of tests left out are in use."""
    for name, text in (("conftest.py", CONFTEST), ("test_some.py", TESTS)):
        (tmp_path / name).write_text(text)

    def run(*options: str, **variables: str) -> str:
        outer = {name: value for name, value in os.environ.items() if name != VARIABLE}
        environment = {**outer, "PYTHONPATH": str(Path(__file__).parents[1]), **variables}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *workers, *options, str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=True)
        return "".join(
            line.partition(" in ")[0]
            for line in done.stdout.splitlines()
            if "passed" in line and "snapshot" not in line
        )

    run("--snapshot-update", A_SERVER="yes")
    passed = {VARIABLE: str(tmp_path / "passed.json")}

    assert "3 passed, 1 skipped" == run(**passed)
    left_out = f"left out 3 tests that passed before: {passed[VARIABLE]}"
    assert f"{left_out}1 passed" == run(**passed, A_SERVER="yes").removesuffix(", 3 deselected")
    assert "4 passed" == run(A_SERVER="yes")
