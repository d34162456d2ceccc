"""The list of slow tests names tests that exist, and the tests that it names are left out."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from scripts.list_slow_tests import slow_tests as measured
from tests import slow

TOP = Path(__file__).parents[1]
JUNIT = """\
<testsuites><testsuite>
<testcase classname="tests.test_slow" name="test_a[1]" time="0.2"/><testcase classname="tests.test_slow" name="test_a[2]" time="0.9"/>
<testcase classname="tests.test_slow.TestMany" name="runTest" time="9"/><testcase classname="tests.test_slow" name="test_b" time="0.3"/>
<testcase classname="tests.test_slow" name="test_c" time="5"><skipped/></testcase>
<testcase classname="tests.test_slow" name="test_d" time="0"><skipped/></testcase>
</testsuite></testsuites>
"""


@cache
def _tests_in(path: str) -> set[str]:
    """The names of the functions and classes of a module."""
    tree = ast.parse((TOP / path).read_text())
    named = (ast.FunctionDef, ast.ClassDef)
    assigned = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return assigned | {node.name for node in ast.walk(tree) if isinstance(node, named)}


def test_every_listed_test_exists() -> None:
    """One that was renamed or removed leaves the list: run `make slow`, or edit the line."""
    listed = [(name, *name.split("::")) for name in sorted(slow.slow_tests())]
    assert [] == [name for name, path, *names in listed if not {*names} - {"runTest"} <= _tests_in(path)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([], ["TestMany::runTest", "test_a"]),
        (["test_b", "test_d", "gone"], ["TestMany::runTest", "test_a", "test_b", "test_d"]),
    ],
)
def test_the_list_has_the_tests_that_take_long_on_average(tmp_path: Path, before: list[str], after: list[str]) -> None:
    """A listed one stays while it takes half as long, and if it was skipped, but not if it is gone."""
    (tmp_path / "tests.xml").write_text(JUNIT)
    own = "tests/test_slow.py::"
    assert [own + each for each in after] == measured(tmp_path / "tests.xml", [own + each for each in before])


def test_listed_tests_are_left_out(
    pytestconfig: pytest.Config, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the others stay."""
    items = [item for item in request.session.items if item.path == request.path]
    listed = f"{request.node.nodeid.rpartition('::')[0]}::{test_every_listed_test_exists.__name__}"
    monkeypatch.setattr(slow, "slow_tests", lambda: frozenset({listed}))
    deselected = list[pytest.Item]()

    def deselect(items: list[pytest.Item]) -> None:
        deselected.extend(items)

    monkeypatch.setattr(pytestconfig.hook, "pytest_deselected", deselect, raising=False)
    slow.leave_out(pytestconfig, items)
    assert [listed] == [item.nodeid for item in deselected]
    assert request.node.nodeid in {item.nodeid for item in items}
