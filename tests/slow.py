"""The tests that `make test` leaves out because each takes long: `slow.txt` lists them, `make test-all` and `make check` run them."""

from __future__ import annotations

from pathlib import Path

import pytest

LIST = Path(__file__).with_name("slow.txt")
OPTION = "--without-slow"


def slow_tests() -> frozenset[str]:
    """The ids of the listed tests, without their parameters."""
    return frozenset(line for line in LIST.read_text().splitlines() if line and not line.startswith("#"))


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the listed tests."""
    listed = slow_tests()
    left_out = [item for item in items if _name(item) in listed]
    items[:] = [item for item in items if _name(item) not in listed]
    config.hook.pytest_deselected(items=left_out)


def _name(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]
