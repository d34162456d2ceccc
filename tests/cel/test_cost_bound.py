"""The bound of an expression's cost: never below the cost, and seldom so high that counting is needed."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scanner.admission.compiled import CompiledPolicy
from scanner.cel import (
    DYN,
    NOTHING,
    CompileError,
    Environment,
    EvaluationError,
    SizeBound,
    bound_extent,
    compile,
    count_entries,
    find_document_extent,
    find_widest,
    measure_document,
)
from tests.cel.measuring import ACTIVATION, ENVIRONMENT
from tests.cel.test_cost_core import CASES as CORE
from tests.cel.test_cost_libraries import CASES as LIBRARIES
from tests.cel.test_messages import COSTS as MESSAGES
from tests.oracle.grammar import Generator
from tests.oracle.ours import activation_of, compiled_with
from tests.oracle.subjects import objects

ROOTS = ("object", "oldObject", "params", "request", "namespaceObject")
CONTAINERS = "object.spec.template.spec.containers"


def extents_of(activation: dict[str, Any], *, narrow: bool) -> dict[str, SizeBound]:
    """Return the extents of all inputs of an expression: counted, or with `narrow` false, from their sizes."""
    extents = {"authorizer": NOTHING, "authorizer.requestResource": NOTHING}
    for root in ROOTS:
        document = activation.get(root)
        extent = find_document_extent(document)._replace(widest=find_widest(document))
        extents[root] = extent if narrow else bound_extent(measure_document(document))
    return extents


def bound_with(
    policy: CompiledPolicy, program: Any, extents: dict[str, SizeBound], base: dict[str, Any] | None = None
) -> float:
    """Return the bound of an expression and all variables of its policy; with `base`, the lengths of its lists are counted."""
    total = 0.0
    for name, variable in policy.variables.items():
        if variable.program is not None:
            lengths = lengths_of(variable.program, base)
            cost, extents[f"variables.{name}"] = variable.program.bound(extents, lengths)
            total += cost
    return float(total + program.bound(extents, lengths_of(program, base)).cost)


def lengths_of(program: Any, base: dict[str, Any] | None) -> dict[tuple[str, ...], float]:
    """Return the lengths of the ranges of loops; none without `base`."""
    return {} if base is None else {path: float(count_entries(base, path)) for path in program.ranges}


CONSTRUCTS = [*(text for cases in (CORE, LIBRARIES) for rows in cases.values() for text, _ in rows), *dict(MESSAGES)]


@pytest.mark.parametrize("text", CONSTRUCTS)
@pytest.mark.parametrize("narrow", [False, True])
def test_every_construct_is_bounded(text: str, narrow: bool) -> None:  # noqa: FBT001
    """No construct and no function costs more than its bound."""
    program = compile(text, ENVIRONMENT)
    assert program.measure(ACTIVATION).cost <= program.bound(extents_of(ACTIVATION, narrow=narrow)).cost


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32))
def test_no_expression_costs_more_than_its_bound(seed: int) -> None:
    """For random expressions and objects no cost exceeds the bound, from counted extents or from the size of the document."""
    chance = random.Random(seed)
    case = Generator(chance).case()
    try:
        policy, program = compiled_with(str(case.term), case.variables)
    except CompileError:
        return
    for document in objects(chance, 3):
        base = activation_of(document)
        activation = policy.make_activation(base, metered=True)
        cost = program.measure(activation).cost + activation["variables"].take_unpaid_cost()  # type: ignore[attr-defined]
        narrow = bound_with(policy, program, extents_of(base, narrow=True))
        wide = bound_with(policy, program, extents_of(base, narrow=False))
        counted = bound_with(policy, program, extents_of(base, narrow=False), base)
        assert cost <= min(narrow, wide, counted)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32))
def test_counting_follows_the_evaluation(seed: int) -> None:
    """The counted evaluation has a value where the evaluation has one, and an error where the evaluation has one."""
    chance = random.Random(seed)
    case = Generator(chance).case()
    try:
        policy, program = compiled_with(str(case.term), case.variables)
    except CompileError:
        return
    for document in objects(chance, 3):
        base = activation_of(document)
        meter = program.count(policy.make_activation(base, metered=True))
        outcome = program.measure(policy.make_activation(base, metered=True)).outcome
        assert isinstance(meter.outcome, EvaluationError) is isinstance(outcome, EvaluationError)


def deployment(containers: int) -> dict[str, Any]:
    """Return a deployment of the usual size for so many containers."""
    container = {"name": "c", "image": "registry.example.com/team/app:1.2.3", "ports": [{"containerPort": 80}] * 3}
    container["env"] = [{"name": f"VARIABLE_{index}", "value": "x" * 30} for index in range(20)]
    spec = {"replicas": 3, "template": {"spec": {"containers": [container] * containers}}}
    return {"metadata": {"name": "web", "labels": {"app": "web"}}, "spec": spec}


@pytest.mark.parametrize(
    "text",
    [
        "object.spec.replicas <= 5",
        f"{CONTAINERS}.all(c, has(c.image) && c.image.startsWith('registry.example.com/'))",
        f"{CONTAINERS}.all(c, ['a.example.com/', 'b.example.com/'].exists(r, c.image.startsWith(r)))",
        f"{CONTAINERS}.all(c, !has(c.env) || c.env.all(e, !(e.name in ['SECRET']) || !has(e.value)))",
        f"{CONTAINERS}.filter(c, has(c.ports)).map(c, c.name).size() == 3",
        f"{CONTAINERS}.all(c, c.image.matches('^registry[.]example[.]com/[a-z/]+:[0-9.]+$'))",
        f"{CONTAINERS}.all(c, {CONTAINERS}.exists_one(d, d.name == c.name))",
        "'Deployment ' + object.metadata.name + ' has ' + string(object.spec.replicas) + ' replicas'",
    ],
)
def test_usual_expressions_need_no_counting(text: str) -> None:
    """The bounds of usual expressions, on a deployment with ten containers, are below a tenth of the limit of an evaluation."""
    extents = extents_of({"object": deployment(10)}, narrow=True)
    assert compile(text, Environment()).bound(extents).cost < 100_000


def test_loops_in_a_document_add_up() -> None:
    """A loop over parts of an outer loop's element is charged once for the whole list: the bound grows in proportion to the list."""
    text = f"{CONTAINERS}.all(c, c.ports.all(p, p.containerPort > 0))"
    costs = [
        compile(text, Environment()).bound(extents_of({"object": deployment(n)}, narrow=False)).cost for n in (10, 100)
    ]
    assert costs[1] < 20 * costs[0]


def test_unrelated_loops_multiply() -> None:
    """A loop over all containers for each container is charged the square of their number."""
    text = f"{CONTAINERS}.all(c, {CONTAINERS}.all(d, c == d))"
    costs = [
        compile(text, Environment()).bound(extents_of({"object": deployment(n)}, narrow=True)).cost for n in (10, 100)
    ]
    assert costs[1] > 40 * costs[0]


@pytest.mark.parametrize(
    ("text", "knows"),
    [
        (f"{CONTAINERS}.all(c, {CONTAINERS}.exists_one(d, d.name == c.name))", True),
        (f"{CONTAINERS}.all(object, {CONTAINERS}.exists(d, d == object))", True),
        ("object.xs.all(a, object.xs.all(object, object.xs.all(b, b == object)))", False),
        (f"{CONTAINERS}.filter(c, true).all(c, {CONTAINERS}.filter(c, true).exists(d, d == c))", False),
    ],
)
def test_known_lengths_make_loops_cheap(text: str, knows: bool) -> None:  # noqa: FBT001
    """The length of a range that is a path into the document counts, instead of the document's maximum."""
    program = compile(text, Environment())
    lengths = dict.fromkeys(program.ranges, 4.0)
    assert knows is (program.bound({"object": bound_extent(16)}, lengths).cost < 1_000_000)


@pytest.mark.parametrize(
    "text",
    [
        "lists.range(object.spec.n) == []",
        "object.spec.l.flatten(object.spec.n) == []",
        "dyn(variables).x.all(y, y)",
        "params.x.all(y, y)",
    ],
)
def test_what_cannot_be_bounded_has_to_be_counted(text: str) -> None:
    """An expression with a number of the document as a length, or an input of unknown size, has no bound below the limit."""
    environment = Environment().extend((("params", DYN),))
    extents = {"object": SizeBound(10.0, 100.0, 10.0)}
    assert compile(text, environment).bound(extents).cost > 1_000_000
