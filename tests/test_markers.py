"""A test has the markers of all that it uses, also where a helper of the tests uses it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.opinion.process import Process
from tests import requirements
from tests.markers import used_by
from tests.requirements import CHROMIUM
from tests.store.databases import KINDS, database


def starts_a_process() -> None:
    """Start a process."""
    subprocess.run(["true"], check=True)


@contextmanager
def in_a_block() -> Iterator[None]:
    """Start a process before a block."""
    starts_a_process()
    yield


@cache
def kept() -> None:
    """Start a process once."""
    starts_a_process()


@given(st.none())
def with_examples(nothing: None) -> None:
    """Start a process for each example."""
    starts_a_process()


class Program:
    """A program whose process is started once."""

    @cached_property
    def process(self) -> None:
        """The process."""
        starts_a_process()


PROGRAM = Program()
DIRECT: tuple[Callable[[], object], ...] = (
    starts_a_process,
    in_a_block,
    kept,
    with_examples,
    lambda: Program().process,
    lambda: PROGRAM.process,
    lambda: [starts_a_process for _ in range(2)],
)


@pytest.mark.parametrize("function", DIRECT)
def test_a_process_is_found(function: Callable[[], object]) -> None:
    """In a function, below decorators, and in the methods of a class that the function names."""
    assert {"subprocess"} == used_by([function])


@pytest.mark.parametrize(
    ("function", "marker"),
    [
        (lambda: CHROMIUM, "browser"),
        (lambda: requirements.HELM, "server"),
        (lambda: database("postgresql", Path()), "postgres"),
    ],
)
def test_a_required_server_is_found(function: Callable[[], object], marker: str) -> None:
    """By its name, in a module, and behind a function."""
    assert {marker} == used_by([function])


def test_the_product_and_other_packages_do_not_count() -> None:
    """A command that may start a process is no reason to leave its tests out."""
    assert frozenset() == used_by([lambda: Process, pytest.main])


@pytest.mark.parametrize("kind", KINDS)
def test_of_a_test_for_both_databases_one_case_needs_the_server(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """The case with the parameter `sqlite` has no marker."""
    markers = {marker.name for marker in request.node.iter_markers()} - {"parametrize"}
    with database(kind, tmp_path):
        assert {"sqlite": set(), "postgresql": {"postgres"}}[kind] == markers


@pytest.fixture
def process() -> None:
    """A process that has ended."""
    starts_a_process()


def test_the_fixtures_of_a_test_count(process: None, request: pytest.FixtureRequest) -> None:
    """The test itself names nothing that starts a process."""
    assert ["subprocess"] == [marker.name for marker in request.node.iter_markers()]
