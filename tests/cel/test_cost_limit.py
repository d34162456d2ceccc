"""An evaluation that exceeds the limit of cost or of work ends there, and early."""

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
    find_document_extent,
    measure_document,
)
from scanner.cel.cost.meter import LONGEST_LIST, LONGEST_TEXT, MOST_WORK, Meter
from scanner.cel.errors import Interrupted
from tests.cel.measuring import ACTIVATION, ENVIRONMENT, measured

LONG = {"spec": {"numbers": [*range(350_000)], "text": "a" * 1_000_000, "pairs": [[1, 2]] * 100_000}}
EXCEEDED = "operation cancelled: actual cost limit exceeded"


def on_long(text: str) -> tuple[str, int]:
    """Return the error of an expression on a document of several megabytes, and the cost until the error."""
    outcome, cost = measured(text, object=LONG)
    assert isinstance(outcome, EvaluationError)
    return str(outcome), cost


def test_a_cost_at_the_limit_is_within_it() -> None:
    """Only a cost above the limit ends an evaluation."""
    program = compile("object.spec.replicas + 1", ENVIRONMENT)
    assert (4, 4) == program.measure(ACTIVATION, limit=4)


def test_the_first_step_above_the_limit_is_the_last() -> None:
    """The evaluation ends at the first step above the limit, and the cost includes that step."""
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
    """Operators that absorb errors do not absorb the error of the limit."""
    assert CostExceeded is type(compile(text, ENVIRONMENT).measure(ACTIVATION, limit=2).outcome)


def test_two_checks_are_affordable() -> None:
    """An authorization check costs 350,000, so that two of them fit into an evaluation."""
    check = "authorizer.path('/').check('get').allowed()"
    costs = [measured(" || ".join([check] * number)).cost for number in (1, 2, 3)]
    assert [350_003, 700_006, 1_050_008] == costs


def test_a_presence_test_below_zero_ends_the_evaluation() -> None:
    """Upstream refunds a cost that a conditional was never charged, so that the number wraps around and exceeds the limit."""
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
    """Work that exceeds the limit ends before it is done, with upstream's words."""
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
    """Values of unknown type grow at almost no cost; the limit of work ends them, as upstream's memory would."""
    assert "operation interrupted" == on_long(text)[0]


def test_work_has_a_limit() -> None:
    """A meter whose work reaches the limit interrupts the evaluation, at any cost."""
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
    """Iterations that cost nothing, and values inside compared or printed values, count as work."""
    meter = compile(text, ENVIRONMENT).count({**ACTIVATION, "object": LONG, "oldObject": LONG})
    assert work <= meter.work
    assert meter.cost < 20_000


def test_ambiguous_patterns_are_matched_in_linear_time() -> None:
    """Patterns are matched in linear time, and priced by their length and the text's."""
    assert (False, 200_005) == measured("object.spec.text.matches('^(a+)+$b')", object=LONG)


@pytest.mark.parametrize(("limit", "largest"), [(LONGEST_TEXT, 10_000_000), (LONGEST_LIST, 1_000_000)])
def test_values_within_the_cost_limit_are_within_the_limits_of_size(limit: int, largest: int) -> None:
    """The limits of size are above the largest value that the cost limit allows where types are known."""
    assert largest < limit


class Chain(Lazy):
    """Variables, each of which reads the variable before."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.texts = texts
        self.costs: list[int] = []
        self.values: dict[str, Value] = {}

    def find(self, name: str) -> tuple[Value] | None:
        if name not in self.values:
            program = compile(self.texts[name], Environment().add_variable("one", DYN))
            self.values[name], cost = program.measure({"variables": self})
            self.costs.append(cost)
        return (self.values[name],)


def test_the_cost_of_a_variable_is_its_own() -> None:
    """An evaluation that reads a variable is charged for the reading only; each variable has its own cost and limit."""
    chain = Chain({"one": "[1, 2].map(x, x).size()", "two": "variables.one + 1"})
    environment = Environment().add_variable("two", DYN)
    assert (4, 3) == compile("variables.two + 1", environment).measure({"variables": chain})
    assert [28, 3] == chain.costs


def test_interruption_ends_the_evaluation() -> None:
    """Operators that absorb errors do not absorb the interruption."""
    text = "[dyn('a')]" + ".map(x, x + x)" * 40 + " == [] || true"
    assert Interrupted is type(measured(text).outcome)


def test_a_document_that_is_no_json_has_no_bound() -> None:
    """A document that is not JSON has no bound, because its text cannot be measured."""
    assert (BOUNDLESS, LARGEST_SIZE + 1) == (find_document_extent({"a": 1 << 80}), measure_document({"a": 1 << 80}))


def test_an_absent_document_has_no_size() -> None:
    """The size of null is 0."""
    assert 0 == measure_document(None)


def test_deep_nests_have_no_bound() -> None:
    """Seven nested loops have no bound: each loop is bounded twice, which would take too long."""
    names = "abcdefg"
    text = "".join(f"object.all({name}, " for name in names) + "true" + ")" * len(names)
    assert compile(text, ENVIRONMENT).bound({"object": NOTHING}).cost > 1_000_000


@pytest.mark.parametrize("text", ["dyn(1).orValue(2)", "dyn(1).or(optional.of(2))"])
def test_another_value_than_an_optional_fails_from_1_37_on(text: str) -> None:
    """`or` and `orValue` accept another value than an optional until 1.36; counting agrees with evaluation."""
    program = compile(text, Environment(version=(1, 37)))
    assert isinstance(program.count({}).outcome, EvaluationError)
    assert not isinstance(compile(text, ENVIRONMENT).count({}).outcome, EvaluationError)


@pytest.mark.parametrize("text", ["[?dyn(1).or(optional.none())]", "{?'a': dyn(1).or(optional.none())}"])
def test_optional_entries_have_to_be_optional(text: str) -> None:
    """A literal whose optional entry is not an optional is an error, and is charged."""
    meter = compile(text, ENVIRONMENT).count({})
    assert isinstance(meter.outcome, EvaluationError)
    assert meter.cost in (10, 30)
