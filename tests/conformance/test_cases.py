"""The recorded files: each of their cases is in one part."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.conformance.cases import PARTS, RECORDED, is_copy, load, part_of


@pytest.mark.parametrize("name", ["costs", "policies", "rejected-expressions"])
def test_the_parts_of_a_file_hold_each_case_once(name: str) -> None:
    """Each case of a file is in one part, with all results that belong to it."""
    data = load(RECORDED / f"{name}.json.gz")
    parts = [part_of(data, number) for number in range(PARTS)]
    for items in ("cases", "results") if name == "costs" else ("cases",):
        whole = data if isinstance(data, list) else data[items]
        shared = [item for part in parts for item in (part if isinstance(part, list) else part[items])]
        assert sorted(map(repr, whole)) == sorted(map(repr, shared))


def test_a_file_of_another_folder_is_a_copy_when_its_bytes_are_the_same(tmp_path: Path) -> None:
    """A file with the same bytes is a copy; a file with other cases is not."""
    own = RECORDED / "probes.json.gz"
    same, other = tmp_path / "same.json.gz", tmp_path / "other.json.gz"
    same.write_bytes(own.read_bytes())
    other.write_bytes(gzip.compress(b"[]"))
    assert [True, False] == [is_copy(path, own) for path in (same, other)]
