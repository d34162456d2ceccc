"""The markers and the order of the tests, the workers and their garbage collection, property tests without deadlines, and midnight."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Generator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

from tests.markers import MARKERS, mark
from tests.passed import leave_out_passed
from tests.requirements import API_SERVER, report_once

# A deadline would make the result of a test depend on the load of the machine. Property tests try the same examples in each run
# of `make check`, so that a change fails for a fault of its own; `make nightly` has the profile `search`, which tries new ones.
settings.register_profile("assay", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None)
settings.load_profile("assay")

TESTS = Path(__file__).parent
WAITING_FOR_SERVERS = "integration"
"""The folder whose tests wait for an API server most of their time."""
FIRST = ("cli", "store", "conformance", "cluster")
"""The other folders whose modules take longest."""
GARBAGE = 20_000
"""New objects between two collections of garbage, as many as in the command."""
WAITING = 2
"""How many workers of the integration tests wait for an API server at any moment, roughly."""
DAY, LAST_SECONDS = 86_400, 20
"""The seconds of a day in UTC, and those at its end in which no test starts."""


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers."""
    for name, meaning in MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")
    leave_out_passed(config)


def pytest_collection(session: pytest.Session) -> None:
    """Collect no garbage while the tests are collected: ten thousand of them stay, and each search for garbage visits all."""
    gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark each test by what it uses, before pytest selects with `-m`, and run the longest modules first.

    Short modules are left to fill the gaps, so that all workers end together. Modules that wait for a server and modules that compute take turns: workers of one kind alone leave processors idle.
    """
    for item in items:
        if isinstance(item, pytest.Function):
            mark(item)
    modules = sorted({item.path: None for item in items}, key=_rank)
    waiting = [path for path in modules if _folder(path) == WAITING_FOR_SERVERS]
    computing = [path for path in modules if _folder(path) != WAITING_FOR_SERVERS]
    turns = {path: turn for each in (waiting, computing) for turn, path in enumerate(each)}
    items.sort(key=lambda item: turns[item.path])


def pytest_collection_finish() -> None:
    """Keep the objects of ten thousand tests out of every later garbage collection, and let those be as rare as in a scan."""
    gc.freeze()
    gc.set_threshold(GARBAGE)
    gc.enable()


def pytest_runtest_setup() -> None:
    """Wait for the new day shortly before midnight, so that a test and what it calls have the same date."""
    left = DAY - time.time() % DAY
    if left < LAST_SECONDS:
        time.sleep(left)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """List a missing server once, with the number of the tests that lack it."""
    report = yield
    report_once(report, call)
    return report


@cache
def _folder(path: Path) -> str:
    return path.relative_to(TESTS).parts[0] if path.is_relative_to(TESTS) else ""


def _rank(path: Path) -> int:
    return FIRST.index(_folder(path)) if _folder(path) in FIRST else len(FIRST)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Use more workers than CPUs for `-n auto` where integration tests run; None leaves the number to pytest-xdist."""
    return (os.cpu_count() or 1) + WAITING if API_SERVER.place() and not config.getoption("markexpr") else None
