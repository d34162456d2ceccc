"""Our CEL and Kubernetes' own agree on random expressions; needs the built oracle."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.oracle import ours
from tests.oracle.client import Oracle
from tests.oracle.compare import Difference, first_difference
from tests.oracle.explained import reason
from tests.oracle.fuzz import Fuzz, report
from tests.oracle.grammar import Case, Generator, Term
from tests.oracle.shrink import smallest
from tests.requirements import KUBERNETES_CEL

EXPRESSIONS = 600
SEED = 20260507


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    """A running oracle."""
    with Oracle(Path(KUBERNETES_CEL.require())) as running:
        yield running


def test_random_expressions_mean_the_same(oracle: Oracle) -> None:
    """Some hundred random expressions have no difference; `make fuzz` compares more, with other seeds."""
    fuzz = Fuzz(oracle, SEED)
    fuzz.batch(EXPRESSIONS)
    assert fuzz.tally.pairs > EXPRESSIONS
    assert not fuzz.tally.different, report(fuzz)


def test_the_oracle_answers_in_order(oracle: Oracle) -> None:
    """Replies have the order of the requests, and hold a value, an error or a refusal, with the cost."""
    replies = oracle.ask(
        [{"expression": text, "objects": [{"a": 2}]} for text in ("object.a + 1", "object.b", "1 + 'a'")]
    )
    assert {"value": {"type": "int", "plain": 3}, "cost": 3} == replies[0]["outcomes"][0]
    assert {"error": "no such key: b", "cost": 2} == replies[1]["outcomes"][0]
    assert replies[2]["refused"].startswith("compilation failed: ERROR: <input>:1:3: found no matching overload")


def test_each_kind_of_difference_is_reported() -> None:
    """Replies that are not the same have a first difference of the kind of their first unequal part."""
    base = {"resultType": "int", "outcomes": [{"value": {"type": "int", "plain": 1}, "cost": 2}]}
    replies = [
        ({"refused": "compilation failed: x"}, "refusal"),
        ({"resultType": "dyn", "outcomes": base["outcomes"]}, "type"),
        ({**base, "outcomes": [{"value": {"type": "int", "plain": 2}}]}, "value"),
        ({**base, "outcomes": [{"value": {"type": "uint", "plain": 1}}]}, "value"),
        ({**base, "outcomes": [{"error": "no such key: a"}]}, "value"),
        ({**base, "outcomes": [{"value": {"type": "int", "plain": 1}, "cost": 3}]}, "cost"),
        ({"panic": "ZeroDivisionError()"}, "crash"),
        ({**base, "outcomes": [{"value": {"type": "int", "plain": 1}}]}, None),
    ]
    differences = [first_difference(base, reply) for reply, _ in replies]
    assert [what for _, what in replies] == [difference and difference.what for difference in differences]


def test_a_reason_explains_one_kind_of_difference() -> None:
    """A reason covers a kind of difference in a part of the language, and no other difference."""
    difference = Difference(
        "error", 0, {"error": "invalid qualifier type: *types.concatList"}, {"error": "*types.baseList"}
    )
    assert reason("[][[1] + [2]]", difference) is not None
    assert reason("[][[1] + [2]]", Difference("value", 0, {"plain": 1}, {"plain": 2})) is None
    assert reason("1 + 1", Difference("cost", 0, 1, 2)) is None


def test_maps_have_no_order() -> None:
    """Two maps with the same entries are the same."""
    key, other, value = ({"type": "string", "plain": text} for text in ("a", "b", "x"))
    maps = [
        {"type": "map", "plain": pairs} for pairs in ([[key, value], [other, value]], [[other, value], [key, value]])
    ]
    replies = [{"resultType": "map", "outcomes": [{"value": value, "cost": 0}]} for value in maps]
    assert first_difference(*replies) is None


def test_shrinking_keeps_the_difference() -> None:
    """Shrinking returns the smallest expression that still contains the part that differs."""
    culprit = Term("int", ("size('b')",))
    equal = Term("bool", (culprit, " == 1"), loose=True)
    term = Term("bool", (Term("bool", ("true",)), " && ", "(", equal, ")"), loose=True)

    def differing(texts: list[str]) -> int | None:
        return next((index for index, text in enumerate(texts) if "size('b')" in text), None)

    assert str(smallest(term, differing)) == "size('b')"


def test_the_same_seed_makes_the_same_expressions() -> None:
    """Two generators with the same seed make the same expressions, so that a run can be repeated."""
    generators = [Generator(random.Random(7)) for _ in range(2)]
    first, second = ([str(generator.case().term) for _ in range(50)] for generator in generators)
    assert first == second


def test_most_generated_expressions_compile() -> None:
    """Fewer than 40 of 100 random expressions are refused: refused ones test no evaluation."""
    generator = Generator(random.Random(1))
    cases: list[Case] = [generator.case() for _ in range(100)]
    refused = sum("refused" in ours.reply(str(case.term), case.variables, [None]) for case in cases)
    assert refused < 40
