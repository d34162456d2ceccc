"""The limits of cel-python, measured on the expressions whose outcomes a kube-apiserver recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from scanner.admission.compiled import Expression
from scanner.admission.cost_budget import Variables
from scanner.opinion.comparison import answers_agree
from scanner.opinion.engine import AssayEngine, EngineAnswer
from scanner.opinion.limits import find_limit, find_traits
from scanner.opinion.process import Process
from tests.conformance.cases import RECORDED, load
from tests.conformance.expressions import activation_for, compiled

PROBES = RECORDED / "probes.json.gz"
DISAGREE = "disagree"
LIMITS = {
    "agree": 198,
    "conversions": 5,
    "exceptions": 1,
    "libraries": 18,
    "macros": 5,
    "optionals": 3,
    "syntax": 2,
    "types apart": 27,
    DISAGREE: 17,
}
WRONG = (
    "has(object.spec.missing.deeper)",
    "object.spec.flag == 1",
    "object.spec.list[-1] == 3",
    "object.spec.str[0] == 'a'",
    "'a' in object.spec.str",
    "size(object.spec.nul) == 0",
)
"""Some of what it answers otherwise, without an error."""


@pytest.fixture(scope="module")
def answers() -> list[tuple[str, EngineAnswer, EngineAnswer]]:
    """Each expression with the answers of both engines."""
    return list(_answers(load(PROBES)))


def _answers(data: Any) -> Iterator[tuple[str, EngineAnswer, EngineAnswer]]:
    ours = AssayEngine()
    [activation] = map(activation_for, data["objects"])
    with Process() as theirs:
        for case in data["cases"]:
            _, program, policy = compiled(case)
            if program is None:
                continue
            shown = dict(activation)
            shown["variables"] = Variables(policy.variables, shown, metered=True)
            for engine in (ours, theirs):
                engine.show(shown, frozenset(policy.variables))
            expression = Expression(case["expr"], program)
            yield case["expr"], ours.ask(expression), theirs.ask(expression)


def test_the_limits_are_those_that_were_measured(answers: list[tuple[str, EngineAnswer, EngineAnswer]]) -> None:
    """The counts of each limit and of unexplained differences are those of the table."""
    assert Counter(LIMITS) == Counter(_sort(*answer) for answer in answers)


def test_what_no_limit_explains_is_wrong(answers: list[tuple[str, EngineAnswer, EngineAnswer]]) -> None:
    """Kubernetes recorded another outcome."""
    disagreeing = {text for text, ours, theirs in answers if _sort(text, ours, theirs) == DISAGREE}
    assert set() == set(WRONG) - disagreeing


def _sort(text: str, ours: EngineAnswer, theirs: EngineAnswer) -> str:
    if answers_agree(ours, theirs):
        return "agree"
    limit = find_limit(find_traits(text), ours, theirs)
    return limit.name if limit else DISAGREE
