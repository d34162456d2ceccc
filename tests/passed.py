"""Tests that passed in a run before this one are left out, so that a gate of two runs executes each test once.

`PASSED_TESTS` names a file: the tests in it are left out, and the end of the run adds those that passed. A test that was skipped, for want
of a server, is not in it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

VARIABLE = "PASSED_TESTS"


class LeftOut:
    """A plugin that leaves them out, in every process."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Deselect the tests that passed before. The file stays as it is until the end of a run, so that all workers select the same.

        It runs last: syrupy must have seen a test, or it calls the test's snapshots unused and fails the run.
        """
        before = _read()
        if before:
            config.hook.pytest_deselected(items=[item for item in items if item.nodeid in before])
            items[:] = [item for item in items if item.nodeid not in before]


def _read() -> frozenset[str]:
    path = Path(os.environ.get(VARIABLE, ""))
    return frozenset(json.loads(path.read_text())) if path.is_file() else frozenset()


class PassedTests:
    """A plugin that records them, in the process that starts the workers."""

    def __init__(self) -> None:
        self._before = _read()
        self._passed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a test whose body passed; a run whose set-up or end fails is no success."""
        if report.when == "call" and report.passed:
            self._passed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Write those of this run and of the runs before."""
        Path(os.environ[VARIABLE]).write_text(json.dumps(sorted(self._passed | self._before)))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write how many tests are left out."""
        if self._before:
            terminalreporter.write_line(
                f"left out {len(self._before):,} tests that passed before: {os.environ[VARIABLE]}"
            )


def leave_out_passed(config: pytest.Config) -> None:
    """Leave out the tests that passed before and record those that pass, if the variable is set."""
    if os.environ.get(VARIABLE):
        config.pluginmanager.register(LeftOut())
        if not hasattr(config, "workerinput"):
            config.pluginmanager.register(PassedTests())
