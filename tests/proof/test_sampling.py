"""A sample is drawn by its rule alone: another program draws the same items."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import comb, prod
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.errors import UsageError
from scanner.proof.sampling import (
    ID_COLUMNS,
    Sample,
    SampleOf,
    SampleRequest,
    SampleSize,
    StratumShare,
    allocate,
    draw,
    find_confidence,
    size_for,
)

SCRIPT = Path(__file__).with_name("draw_independently.py")
TITLES = ("apiVersion", "kind", "namespace", "name", "uid")
NAMES = st.text(st.sampled_from('ab,"\n=é/ '), max_size=4)
ROWS = st.lists(st.tuples(st.sampled_from(["v1", "apps/v1"]), NAMES, NAMES, NAMES, NAMES), min_size=1, max_size=40)


def population(rows: Sequence[tuple[str, ...]]) -> io.BytesIO:
    """The bytes of a population of objects."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([TITLES, *rows])
    return io.BytesIO(text.getvalue().encode())


def request(items: int, *strata: str, seed: str = "2026-Q4") -> SampleRequest:
    """A sample of objects."""
    return SampleRequest(SampleOf.OBJECTS, SampleSize(items), seed, strata)


def drawn_by_the_script(path: Path, wanted: SampleRequest) -> list[str]:
    """The ids that the independent script prints; they have no line ends."""
    ran = subprocess.run(
        [
            *(sys.executable, "-I", SCRIPT, path, wanted.seed, str(wanted.size.items)),
            *(",".join(ID_COLUMNS[wanted.of]), ",".join(wanted.strata)),
        ],
        check=True,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    return ran.stdout.splitlines()


def ids(sample: Sample) -> list[str]:
    """The ids in the order of the sample."""
    return [item.id for item in sample.items]


@pytest.mark.parametrize("strata", [(), ("namespace",), ("namespace", "kind")])
def test_an_independent_script_draws_the_same_sample(tmp_path: Path, strata: tuple[str, ...]) -> None:
    """Twenty lines of the standard library, which know the rule and nothing of Assay."""
    rows = [("v1", f"Kind{n % 3}", f"ns-{n % 7}", f"ü-{n}", "") for n in range(500)]
    (tmp_path / "population.csv").write_bytes(population(rows).getvalue())
    wanted = request(40, *strata)
    drawn = draw(wanted, population(rows))
    assert 40 == len(drawn.items)
    assert drawn_by_the_script(tmp_path / "population.csv", wanted) == ids(drawn)


def test_the_script_has_twenty_lines() -> None:
    """Those of its function."""
    text = SCRIPT.read_text()
    body = text[text.index("def draw(") : text.index("if __name__")].strip().splitlines()
    assert 20 > len(body)


@given(ROWS, st.integers(1, 30))
def test_every_item_of_a_sample_is_in_the_population_once(rows: list[tuple[str, ...]], items: int) -> None:
    """With hostile names, too; there are as many as were wanted, if the population has them."""
    drawn = draw(request(items), population(rows))
    chosen, every = Counter(item.cells for item in drawn.items), Counter(rows)
    assert min(items, len(rows)) == len(drawn.items)
    assert chosen <= every
    assert sorted(item.digest for item in drawn.items) == [item.digest for item in drawn.items]


@given(ROWS, st.integers(1, 30))
def test_strata_are_drawn_apart(rows: list[tuple[str, ...]], items: int) -> None:
    """The sample has of each stratum as many items as the shares name."""
    strata = len({row[2] for row in rows})
    if strata > items:
        with pytest.raises(UsageError, match="each stratum has one at least"):
            draw(request(items, "namespace"), population(rows))
        return
    drawn = draw(request(items, "namespace"), population(rows))
    assert {each.stratum: each.sample for each in drawn.shares} == Counter(item.stratum for item in drawn.items)


@given(st.dictionaries(st.tuples(NAMES), st.integers(1, 10_000), min_size=1, max_size=12), st.integers(0, 200))
def test_an_allocation_is_proportional(sizes: dict[tuple[str, ...], int], more: int) -> None:
    """Each stratum has one item, none has more than it has, the sum is exact, and a share is off by less than one."""
    total, items = sum(sizes.values()), len(sizes) + more
    allocation = allocate(sizes, items)
    seats = min(items, total) - len(sizes)
    assert min(items, total) == sum(allocation.values())
    assert all(1 <= allocation[stratum] <= size for stratum, size in sizes.items())
    assert all(
        abs(allocation[stratum] - 1 - Fraction(seats * (size - 1), max(1, total - len(sizes)))) < 1
        for stratum, size in sizes.items()
    )


def test_another_seed_or_another_population_gives_another_sample() -> None:
    """Both are part of the digest of every item, so the choice is fixed when the seed is agreed on."""
    rows = [("v1", "Pod", "shop", f"pod-{n}", "") for n in range(200)]
    first = ids(draw(request(20), population(rows)))
    assert first == ids(draw(request(20), population(rows)))
    assert first != ids(draw(request(20, seed="2027-Q1"), population(rows)))
    assert first != ids(draw(request(20), population(rows[:-1])))


@pytest.mark.parametrize(
    ("confidence", "tolerable", "items"),
    [(95, 5, 59), (90, 10, 22), (95, 1, 299), (99, 1, 459), (75, 50, 2), (50, 50, 1), (1, 99, 1), (99, 50, 7)],
)
def test_the_size_is_that_of_the_binomial_bound(confidence: int, tolerable: int, items: int) -> None:
    """The values of audit tables; powers of two, where logarithms round, are exact."""
    size = size_for(confidence, tolerable)
    assert items == size.items
    assert size.formula.endswith(f" = {items}")


@given(st.integers(1, 99), st.integers(1, 99))
def test_a_smaller_sample_would_not_suffice(confidence: int, tolerable: int) -> None:
    """The chance that n items without a deviation come from a population with the tolerable part is at most the doubt."""
    left, doubt = 1 - Fraction(tolerable, 100), 1 - Fraction(confidence, 100)
    items = size_for(confidence, tolerable).items
    assert left**items <= doubt
    assert 1 == items or left ** (items - 1) > doubt


def test_a_small_population_is_named() -> None:
    """The formula assumes a large one."""
    rows = [("v1", "Pod", "shop", f"pod-{n}", "") for n in range(100)]
    wanted = SampleRequest(SampleOf.OBJECTS, size_for(95, 5), "x")
    assert ("more than a tenth" in draw(wanted, population(rows)).notes[0]) is True
    assert "has all of them" in draw(wanted, population(rows[:59])).notes[0]
    assert () == draw(wanted, population(rows * 6)).notes


def shares(*pairs: tuple[int, int]) -> list[StratumShare]:
    """Strata with their items in the population and in the sample."""
    return [StratumShare((str(place),), *pair) for place, pair in enumerate(pairs)]


@pytest.mark.parametrize(
    ("confidence", "pairs"),
    [
        (95, [(10_000, 59)]),
        (95, [(5_000, 30), (5_000, 29)]),
        (5, [(10_000, 1), *[(1, 1)] * 58]),
        (50, [(100, 1), (1, 1)]),
    ],
)
def test_strata_out_of_proportion_lower_the_confidence(confidence: int, pairs: list[tuple[int, int]]) -> None:
    """All items that deviate may be in the stratum of which the smallest part was drawn."""
    assert confidence == find_confidence(shares(*pairs), 50 if confidence == 50 else 5)


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=1, max_size=4), st.integers(1, 99))
def test_no_place_of_the_items_that_deviate_is_missed_more_often(pairs: list[tuple[int, int]], tolerable: int) -> None:
    """Of every whole number of such items in each stratum that is the tolerable part or more, by the exact chance."""
    strata = shares(*((size, min(size, drawn)) for size, drawn in pairs))
    total, confidence = sum(each.population for each in strata), find_confidence(strata, tolerable)
    for place in product(*(range(each.population + 1) for each in strata)):
        if 100 * sum(place) >= tolerable * total:
            missed = prod(
                Fraction(comb(each.population - wrong, each.sample), comb(each.population, each.sample))
                for each, wrong in zip(strata, place, strict=True)
            )
            assert 100 * (1 - missed) >= confidence


def test_a_confidence_that_strata_lower_is_named() -> None:
    """A stratum of each name, and many items of one of them."""
    rows = [("v1", "Pod", f"ns-{min(n, 57)}", f"pod-{n}", "") for n in range(1_000)]
    wanted = SampleRequest(SampleOf.OBJECTS, size_for(95, 5), "x", ("namespace",))
    (note,) = draw(wanted, population(rows)).notes

    assert "the confidence is at least 10 %" in note
    assert () == draw(SampleRequest(SampleOf.OBJECTS, size_for(95, 5), "x", ("kind",)), population(rows)).notes


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (lambda: request(0), "--n 0"),
        (lambda: request(10_001), "between 1 and 10,000"),
        (lambda: request(5, seed=""), "--seed"),
        (lambda: request(5, seed="a\nb"), "printable"),
        (lambda: request(5, seed="2026-Q4 "), "without spaces around it"),
        (lambda: request(5, seed=" "), "without spaces around it"),
        (lambda: request(5, "colour"), "--stratify colour"),
        (lambda: SampleRequest(SampleOf.RUNS, SampleSize(5), "x", ("kind",)), "leave it out with --of runs"),
        (lambda: size_for(100, 5), "--confidence 100"),
        (lambda: size_for(95, 0), "--tolerable 0"),
        (lambda: draw(request(5), population([])), "the population is empty"),
    ],
)
def test_a_sample_without_a_rule_is_refused(wanted: object, message: str) -> None:
    """The message names the flag."""
    assert callable(wanted)
    with pytest.raises(UsageError, match=message):
        wanted()
