"""Facts about sets of rows of the population."""

from __future__ import annotations

import hashlib
import zlib
from array import array

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from scanner.store.history.evaluated_sets import ListRun, RowSets, find_runs, pack_set
from scanner.store.rows.row_ids import unpack_row_ids

ids_in_runs = st.lists(st.tuples(st.integers(1, 60_000), st.integers(1, 40)), max_size=30).map(
    lambda starts: array("I", (start + number for start, length in starts for number in range(length)))
)


@given(ids_in_runs, st.randoms(use_true_random=False))
@example(array("I"), None)
def test_a_set_of_objects_is_the_set_of_their_rows(ids: array[int], dice: object) -> None:
    """This holds for runs of ids far from each other or near, and for repeated ids."""
    choose = getattr(dice, "random", lambda: 1.0)
    chosen = [place for place in range(len(ids)) if choose() < 0.5]
    expected = {ids[place] for place in chosen}
    rows = unpack_row_ids(RowSets(ids).translate(sum(1 << place for place in chosen)).data)
    assert (len(expected), expected) == (rows.count, {number for number in ids if number in rows})


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ([], []),
        ([7], [ListRun(0, 7, 1)]),
        ([5, 6, 7, 3, 4, 9], [ListRun(0, 5, 3), ListRun(3, 3, 2), ListRun(5, 9, 1)]),
        ([4, 4, 5], [ListRun(0, 4, 1), ListRun(1, 4, 2)]),
    ],
)
def test_runs_are_maximal(ids: list[int], expected: list[ListRun]) -> None:
    """The runs cover the list, and neighbours cannot be joined."""
    assert expected == [*find_runs(ids)]


def test_a_set_has_its_digest_and_its_count() -> None:
    """The digest is that of the bits, without the zeros at the end."""
    rows = RowSets([9, 10, 11]).translate(0b101)
    plain = bytes([0, 0b1010])
    assert (hashlib.sha256(plain).digest(), 2, plain) == (rows.digest, rows.count, zlib.decompress(rows.data))


def test_the_digest_depends_on_the_rows_alone() -> None:
    """Two lists of different order and length give the same digest."""
    assert RowSets([3, 4, 90_000]).translate(0b011) == RowSets([90_001, 4, 3]).translate(0b110)


def test_the_empty_set_is_a_set() -> None:
    """It has no row."""
    assert pack_set(b"") == RowSets([1, 2]).translate(0) == RowSets([]).translate(0)


def test_an_object_that_is_not_in_the_list_raises() -> None:
    """A set of another kind must not pass for a set of this kind."""
    with pytest.raises(ValueError, match="does not have"):
        RowSets([1, 2]).translate(0b100)


def test_the_set_of_a_whole_kind_takes_next_to_no_space() -> None:
    """This holds for a hundred thousand rows in one run, and with each hundredth row replaced."""
    count = 100_000
    first = array("I", range(1, count + 1))
    later = array("I", (count + place if place % 100 == 0 else place + 1 for place in range(count)))
    everything = (1 << count) - 1
    assert 100 > len(RowSets(first).translate(everything).data)
    assert 2_000 > len(RowSets(later).translate(everything).data)
