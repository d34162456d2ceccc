"""Work in two processes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scanner.report.html.halves import work_in_halves


def test_each_half_is_done_once(tmp_path: Path) -> None:
    """The files of both are there when the call returns."""

    def work(half: int) -> None:
        (tmp_path / str(half)).write_text(f"{half}\n")

    work_in_halves(work)
    assert {"0": "0\n", "1": "1\n"} == {path.name: path.read_text() for path in tmp_path.iterdir()}


def test_a_half_that_a_child_cannot_do_is_done_by_its_parent(tmp_path: Path) -> None:
    """Memory or processes can run out for the child alone."""
    parent = os.getpid()

    def work(half: int) -> None:
        if os.getpid() != parent:
            raise MemoryError
        (tmp_path / str(half)).touch()

    work_in_halves(work)
    assert {"0", "1"} == {path.name for path in tmp_path.iterdir()}


def test_what_is_wrong_is_raised() -> None:
    """An error of the second half is raised where the work was begun."""

    def work(half: int) -> None:
        if half:
            raise ValueError("no room for the second half")

    with pytest.raises(ValueError, match="no room for the second half"):
        work_in_halves(work)
