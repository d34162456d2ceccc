"""Where an evaluation that costs or does too much ends, and that it ends soon."""

from __future__ import annotations

import pytest

from scanner.cel import (
    BOUNDLESS,
    DYN,
    LARGEST_SIZE,
    NOTHING,
    CostExceeded,
    Environment,
    EvaluationError,
    Lazy,
    Value,
    compile,
    extent_of_document,
    size_of_document,
)
from scanner.cel.cost.meter import LONGEST_LIST, LONGEST_TEXT, MOST_WORK, Meter
from scanner.cel.errors import Interrupted
from tests.cel.measuring import ACTIVATION, ENVIRONMENT, measured

LONG = {"spec": {"numbers": [*range(350_000)], "text": "a" * 1_000_000, "pairs": [[1, 2]] * 100_000}}
EXCEEDED = "operation cancelled: actual cost limit exceeded"


def on_long(text: str) -> tuple[str, int]:
    """The error in which an expression on a document of several megabytes ends, and the cost until then."""
    outcome, cost = measured(text, object=LONG)
    assert isinstance(outcome, EvaluationError)
    return str(outcome), cost


def test_a_cost_at_the_limit_is_within_it() -> None:
    """Only a cost above the limit ends an evaluation."""
    program = compile("object.spec.replicas + 1", ENVIRONMENT)
    assert (4, 4) == program.measure(ACTIVATION, limit=4)


def test_the_first_step_above_the_limit_is_the_last() -> None:
    """The cost keeps the step that was too much."""
    outcome, cost = compile("object.spec.replicas + 1 + 2", ENVIRONMENT).measure(ACTIVATION, limit=3)
    assert (CostExceeded, EXCEEDED, 4) == (type(outcome), str(outcome), cost)


@pytest.mark.parametrize(
    "text",
    [
        "object.spec.replicas + 1 == 5 || true",
        "object.spec.replicas + 1 == 4 && false",
        "[1].all(x, object.spec.replicas + 1 == 4) || true",
    ],
)
def test_nothing_absorbs_the_limit(text: str) -> None:
    """What would absorb an error does not absorb this one."""
    assert CostExceeded is type(compile(text, ENVIRONMENT).measure(ACTIVATION, limit=2).outcome)


def test_two_checks_are_affordable() -> None:
    """An authorization check costs 350,000, so that two of them fit into an evaluation."""
    check = "authorizer.path('/').check('get').allowed()"
    costs = [measured(" || ".join([check] * number)).cost for number in (1, 2, 3)]
    assert [350_003, 700_006, 1_050_008] == costs


def test_a_presence_test_below_zero_ends_the_evaluation() -> None:
    """Upstream takes back a cost that a conditional never had, and the number wraps around."""
    outcome, cost = measured("has((true ? object : object).?missing.deeper)")
    assert (CostExceeded, 2**64 - 1) == (type(outcome), cost)


@pytest.mark.parametrize(
    "text",
    [
        "object.spec.numbers.all(a, object.spec.numbers.all(b, object.spec.numbers.all(c, a + b + c >= 0)))",
        "object.spec.numbers.map(a, object.spec.numbers.map(b, object.spec.numbers.map(c, a))) == []",
        "['a']" + ".map(x, x + x)" * 40 + " == []",
        "object.spec.text.contains(object.spec.text)",
        "object.spec.text.split('').map(x, object.spec.text.split('')) == []",
        "object.spec.numbers.map(x, object.spec.text).join(object.spec.text) == ''",
        "lists.range(100000000000).size() == 0",
        "object.spec.numbers.distinct() == []",
        "sets.equivalent(object.spec.numbers, object.spec.numbers)",
    ],
)
def test_expensive_work_is_not_begun(text: str) -> None:
    """What the limit forbids is refused before it is done, with upstream's words."""
    assert EXCEEDED == on_long(text)[0]


@pytest.mark.parametrize(
    "text",
    [
        "[dyn('a')]" + ".map(x, x + x)" * 40 + " == []",
        "[[1]]" + ".map(x, x + x)" * 40 + " == []",
        "object.spec.text.replace('a', object.spec.text) == ''",
        "object.spec.numbers.map(x, object.spec.text + object.spec.text) == []",
        "object.spec.numbers.map(x, object.spec.numbers + object.spec.numbers) == []",
    ],
)
def test_memory_that_is_nearly_free_of_charge_is_bounded(text: str) -> None:
    """Values of unknown type grow for next to nothing; upstream's memory would end them, here the work counts."""
    assert "operation interrupted" == on_long(text)[0]


def test_work_has_a_limit() -> None:
    """Whatever it costs, an evaluation that does too much ends."""
    meter = Meter()
    with pytest.raises(Interrupted, match="operation interrupted"):
        meter.add_work(MOST_WORK)


@pytest.mark.parametrize(
    ("text", "work"),
    [
        ("object.spec.pairs.filter(a, false)", 100_000),
        ("object.spec.pairs == oldObject.spec.pairs", 300_000),
        ("'%s'.format([object.spec.pairs])", 1_200_000),
    ],
)
def test_work_that_is_free_of_charge_counts(text: str, work: int) -> None:
    """Iterations that cost nothing, and values inside of what is compared or printed, count as work."""
    meter = compile(text, ENVIRONMENT).count({**ACTIVATION, "object": LONG, "oldObject": LONG})
    assert work <= meter.work
    assert meter.cost < 20_000


def test_catastrophic_patterns_are_no_catastrophe() -> None:
    """Patterns are matched in linear time, and priced by their length and the text's."""
    assert (False, 200_005) == measured("object.spec.text.matches('^(a+)+$b')", object=LONG)


@pytest.mark.parametrize(("limit", "largest"), [(LONGEST_TEXT, 10_000_000), (LONGEST_LIST, 1_000_000)])
def test_what_can_be_paid_for_can_be_made(limit: int, largest: int) -> None:
    """The bounds of memory lie beyond what the cost limit lets anyone make with types that are known."""
    assert largest < limit


class Chain(Lazy):
    """Variables of which each reads the one before."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.texts = texts
        self.costs: list[int] = []
        self.known: dict[str, Value] = {}

    def find(self, name: str) -> tuple[Value] | None:
        if name not in self.known:
            program = compile(self.texts[name], Environment().with_variable("one", DYN))
            self.known[name], cost = program.measure({"variables": self})
            self.costs.append(cost)
        return (self.known[name],)


def test_what_variables_cost_is_their_own() -> None:
    """The evaluation that reads a variable pays for the reading only; each variable has its own limit."""
    chain = Chain({"one": "[1, 2].map(x, x).size()", "two": "variables.one + 1"})
    environment = Environment().with_variable("two", DYN)
    assert (4, 3) == compile("variables.two + 1", environment).measure({"variables": chain})
    assert [28, 3] == chain.costs


def test_interruption_ends_the_evaluation() -> None:
    """Nothing absorbs it either."""
    text = "[dyn('a')]" + ".map(x, x + x)" * 40 + " == [] || true"
    assert Interrupted is type(measured(text).outcome)


def test_a_document_that_is_no_json_has_no_bound() -> None:
    """What cannot be written down cannot be measured by its text."""
    assert (BOUNDLESS, LARGEST_SIZE + 1) == (extent_of_document({"a": 1 << 80}), size_of_document({"a": 1 << 80}))


def test_an_absent_document_has_no_size() -> None:
    """Null is as small as it gets."""
    assert 0 == size_of_document(None)


def test_deep_nests_have_no_bound() -> None:
    """Looking at every loop twice takes too long when seven of them are inside each other."""
    names = "abcdefg"
    text = "".join(f"object.all({name}, " for name in names) + "true" + ")" * len(names)
    assert compile(text, ENVIRONMENT).bound({"object": NOTHING}).cost > 1_000_000


@pytest.mark.parametrize("text", ["dyn(1).orValue(2)", "dyn(1).or(optional.of(2))"])
def test_what_is_no_optional_fails_from_1_37_on(text: str) -> None:
    """Until 1.36 it passes; the counting follows the evaluation."""
    program = compile(text, Environment(version=(1, 37)))
    assert isinstance(program.count({}).outcome, EvaluationError)
    assert not isinstance(compile(text, ENVIRONMENT).count({}).outcome, EvaluationError)


@pytest.mark.parametrize("text", ["[?dyn(1).or(optional.none())]", "{?'a': dyn(1).or(optional.none())}"])
def test_optional_entries_have_to_be_optional(text: str) -> None:
    """A literal is paid for although it cannot be made."""
    meter = compile(text, ENVIRONMENT).count({})
    assert isinstance(meter.outcome, EvaluationError)
    assert meter.cost in (10, 30)
