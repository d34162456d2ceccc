"""Our CEL and Kubernetes' own agree on random expressions; needs the built oracle."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.oracle import client, ours
from tests.oracle.client import Oracle
from tests.oracle.compare import Difference, first_difference
from tests.oracle.explained import reason
from tests.oracle.fuzz import Fuzz, report
from tests.oracle.grammar import Case, Generator, Term
from tests.oracle.shrink import smallest

EXPRESSIONS = 600
SEED = 20260507


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    """A running oracle."""
    path = client.program()
    if path is None:
        pytest.skip("Kubernetes' CEL is not built: make oracle")
    with Oracle(path) as running:
        yield running


def test_random_expressions_mean_the_same(oracle: Oracle) -> None:
    """Some hundred expressions of the differential test find nothing; `make fuzz` looks longer, and elsewhere."""
    fuzz = Fuzz(oracle, SEED)
    fuzz.batch(EXPRESSIONS)
    assert fuzz.tally.pairs > EXPRESSIONS
    assert not fuzz.tally.different, report(fuzz)


def test_the_oracle_answers_in_order(oracle: Oracle) -> None:
    """A value, an error, a refusal and the cost of each."""
    replies = oracle.ask(
        [{"expression": text, "objects": [{"a": 2}]} for text in ("object.a + 1", "object.b", "1 + 'a'")]
    )
    assert {"value": {"type": "int", "plain": 3}, "cost": 3} == replies[0]["outcomes"][0]
    assert {"error": "no such key: b", "cost": 2} == replies[1]["outcomes"][0]
    assert replies[2]["refused"].startswith("compilation failed: ERROR: <input>:1:3: found no matching overload")


def test_a_difference_is_seen() -> None:
    """Replies that are not the same have a first difference, whatever differs."""
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
    found = [first_difference(base, reply) for reply, _ in replies]
    assert [what for _, what in replies] == [one and one.what for one in found]


def test_what_is_explained_is_seen_and_nothing_else() -> None:
    """A reason belongs to one kind of difference on one side of the language."""
    found = Difference("error", 0, {"error": "invalid qualifier type: *types.concatList"}, {"error": "*types.baseList"})
    assert reason("[][[1] + [2]]", found) is not None
    assert reason("[][[1] + [2]]", Difference("value", 0, {"plain": 1}, {"plain": 2})) is None
    assert reason("1 + 1", Difference("cost", 0, 1, 2)) is None


def test_maps_have_no_order() -> None:
    """Two maps with the same entries are the same."""
    key, other, one = ({"type": "string", "plain": text} for text in ("a", "b", "x"))
    maps = [{"type": "map", "plain": pairs} for pairs in ([[key, one], [other, one]], [[other, one], [key, one]])]
    replies = [{"resultType": "map", "outcomes": [{"value": value, "cost": 0}]} for value in maps]
    assert first_difference(*replies) is None


def test_shrinking_keeps_what_differs() -> None:
    """The smallest expression that still has the culprit in it is found."""
    culprit = Term("int", ("size('b')",))
    equal = Term("bool", (culprit, " == 1"), loose=True)
    term = Term("bool", (Term("bool", ("true",)), " && ", "(", equal, ")"), loose=True)

    def differing(texts: list[str]) -> int | None:
        return next((index for index, text in enumerate(texts) if "size('b')" in text), None)

    assert str(smallest(term, differing)) == "size('b')"


def test_the_same_seed_makes_the_same_expressions() -> None:
    """A run can be repeated."""
    generators = [Generator(random.Random(7)) for _ in range(2)]
    one, two = ([str(generator.case().term) for _ in range(50)] for generator in generators)
    assert one == two


def test_what_is_generated_is_mostly_legal() -> None:
    """Expressions that are refused would teach little about evaluation."""
    generator = Generator(random.Random(1))
    cases: list[Case] = [generator.case() for _ in range(100)]
    refused = sum("refused" in ours.reply(str(case.term), case.variables, [None]) for case in cases)
    assert refused < 40
