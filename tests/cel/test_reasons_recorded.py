"""Explanations of recorded expressions have the outcomes of the evaluation, and paths that lead to their values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from scanner import cel
from scanner.admission.cost_budget import Variables
from scanner.cel.explanation.direct import explain_directly
from scanner.cel.explanation.reasons import explain_by_notes
from scanner.cel.values.values import Optional
from tests.conformance.cases import RECORDED, load, parameters
from tests.conformance.expressions import activation_for, compiled

pytestmark = pytest.mark.long

_FEW = 20


@pytest.fixture(scope="module", params=parameters("probes", "random", "costs"))
def explained(request: pytest.FixtureRequest) -> list[tuple[str, Mapping[str, object], object, cel.Explanation]]:
    """Return each expression with its inputs, its outcome and its explanation."""
    return list(_explained(load(request.param)))


def _explained(data: Any) -> Iterator[tuple[str, Mapping[str, object], object, cel.Explanation]]:
    visible = [activation_for(document) for document in data["objects"][:_FEW]]
    for case in data["cases"]:
        _, program, policy = compiled(case)
        if program is None:
            continue
        for inputs in visible:
            activation = dict(inputs)
            activation["variables"] = Variables(policy.variables, activation)
            programs = {name: variable.program for name, variable in policy.variables.items() if variable.program}
            yield case["expr"], activation, _outcome(program, activation), cel.explain(program, activation, programs)


def _outcome(program: Any, activation: Mapping[str, object]) -> object:
    try:
        return program.evaluate_exactly(activation)
    except cel.EvaluationError as error:
        return str(error)


Explained = list[tuple[str, Mapping[str, object], object, cel.Explanation]]


def test_an_explanation_has_the_outcome_of_the_evaluation(explained: Explained) -> None:
    """The outcome of an explanation, value or error, is that of the evaluation."""
    wrong = [text for text, _, outcome, explanation in explained if _printed(outcome) != _printed(explanation.outcome)]
    assert [] == wrong


def _printed(outcome: object) -> str:
    return str(outcome) if isinstance(outcome, cel.EvaluationError | str) else repr(outcome)


def test_a_direct_explanation_is_that_of_the_notes() -> None:
    """Expressions that only compare values at fixed places are explained without notes, and alike."""
    direct = [
        (repr(explain_by_notes(program, activation)), repr(cel.explain(program, activation)))
        for program, activation in _evaluated(load(RECORDED / "random.json.gz"), load(RECORDED / "probes.json.gz"))
        if explain_directly(program, activation) is not None
    ]
    assert len(direct) > 100
    assert [] == [pair for pair in direct if pair[0] != pair[1]]


def _evaluated(*recordings: Any) -> Iterator[tuple[cel.Program, Mapping[str, object]]]:
    for data in recordings:
        visible = [activation_for(document) for document in data["objects"][:_FEW]]
        for case in data["cases"]:
            _, program, _ = compiled(case)
            if program is not None:
                yield from ((program, activation) for activation in visible)


def test_paths_lead_to_the_values(explained: Explained) -> None:
    """The path of a reason leads to its value."""
    wrong = [
        (text, reason.path, reason.outcome)
        for text, activation, _, explanation in explained
        for reason in explanation.reasons
        if _stands(reason) and not _leads_to(activation, reason)
    ]
    assert [] == wrong


def test_a_reason_names_the_places_of_all_its_texts() -> None:
    """Every text in a reason's value is from a place that the reason names, as objects with unique texts show."""
    data = load(RECORDED / "random.json.gz")
    texts: dict[str, tuple[str | int, ...]] = {}
    data["objects"] = [_with_unique_texts(document, ("object",), texts) for document in data["objects"]]
    wrong = [
        (text, reason.text, reason.reads)
        for text, _, _, explanation in _explained(data)
        for reason in explanation.reasons
        for unique, place in texts.items()
        if unique in _printed(reason.outcome) and not any(_meet(place, read) for read in reason.reads)
    ]
    assert [] == wrong


def _with_unique_texts(value: Any, place: tuple[str | int, ...], texts: dict[str, tuple[str | int, ...]]) -> Any:
    if isinstance(value, dict):
        return {key: _with_unique_texts(item, (*place, key), texts) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_unique_texts(item, (*place, at), texts) for at, item in enumerate(value)]
    if not isinstance(value, str):
        return value
    unique = f"~{len(texts)}~"
    texts[unique] = place
    return unique


def _meet(place: tuple[str | int, ...], read: tuple[str | int, ...]) -> bool:
    return all(step == read_step for step, read_step in zip(place, read, strict=False))


def _stands(reason: cel.DecidingPart) -> bool:
    """Return whether a reason is a value at a place: no error, no test of presence or size, no computed value."""
    asks = reason.text.startswith(("has(", "size(")) or reason.text.endswith(".size()")
    failed = isinstance(reason.outcome, cel.EvaluationError)
    return bool(reason.place) and reason.place[0] != "variables" and not asks and not failed


def _leads_to(activation: Mapping[str, object], reason: cel.DecidingPart) -> bool:
    value: Any = activation
    for step in reason.place:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            # An optional is the value of an absent place; the key of a map has the place of its value.
            return isinstance(reason.outcome, Optional) and not reason.outcome.present
    outcome = reason.outcome.value if isinstance(reason.outcome, Optional) else reason.outcome
    return bool(outcome == value or outcome == reason.place[-1])
