"""Rows 1 and 2: single evaluations, against cel-go and against cel-python."""

from __future__ import annotations

import contextlib
import logging
from typing import Any, cast

import celpy
from celpy.adapter import json_to_cel
from celpy.celparser import CELParseError
from celpy.evaluation import CELEvalError

from benchmarks.anchor import Anchor
from benchmarks.corpus import activations, compiled_anew, nanoseconds, recorded, timed
from benchmarks.measured import ROUNDS, conclude, geometric_mean, medians, say, table

_METERED_GOAL = 1 / 13
_UNMETERED_GOAL = 0.4
_SLOWEST_GOAL = 1.0
_SECOND_ENGINE_GOAL = 500.0
_FEW = 20


def against_go() -> None:
    """Row 1: the whole corpus, against cel-go with and without its meter."""
    ours, metered, unmetered = [], [], []
    with Anchor(recorded()["cases"], recorded()["objects"]) as anchor:
        anchor.nanoseconds("metered"), anchor.nanoseconds("unmetered")
        for _ in range(ROUNDS):
            cases = compiled_anew()
            ours.append({case.name: nanoseconds(case) for case in cases})
            metered.append(anchor.nanoseconds("metered"))
            unmetered.append(anchor.nanoseconds("unmetered"))
    times = medians(ours), medians(metered), medians(unmetered)
    table(("ours ns", "metered ns", "unmetered ns"), times)
    for column, goal, name in ((times[1], _METERED_GOAL, "metered"), (times[2], _UNMETERED_GOAL, "unmetered")):
        ratio = geometric_mean(times[0][case] / column[case] for case in times[0])
        conclude(1, ratio, goal, rounds=ROUNDS, compared=f"geometric mean against cel-go {name}, one processor")
    slowest = max(times[0], key=lambda case: times[0][case] / times[1][case])
    ratio = times[0][slowest] / times[1][slowest]
    conclude(1, ratio, _SLOWEST_GOAL, rounds=ROUNDS, compared=f"{slowest}, the slowest against cel-go metered")


def against_the_second_engine() -> None:
    """Row 2: the expressions that cel-python can run, against its interpreted runner; converting objects is left out."""
    logging.disable(logging.CRITICAL)
    engine = celpy.Environment()
    converted = [
        {name: json_to_cel(cast("Any", activation[name])) for name in ("object", "request")}
        for activation in activations()[:_FEW]
    ]
    theirs: list[dict[str, float]] = []
    ours: list[dict[str, float]] = []
    programs = {name: program for name, program in _runnable(engine, converted).items() if program}
    for _ in range(ROUNDS):
        ours.append({case.name: nanoseconds(case) for case in compiled_anew() if case.name in programs})
        theirs.append({name: _one_pass(program, converted) for name, program in programs.items()})
    times = medians(ours), medians(theirs)
    table(("ours ns", "cel-python ns"), times)
    left_out = [case["name"] for case in recorded()["cases"] if case["name"] not in programs]
    say(f"left out, because cel-python cannot run them: {', '.join(left_out)}")
    ratio = geometric_mean(times[1][case] / times[0][case] for case in times[0])
    conclude(
        2,
        ratio,
        _SECOND_ENGINE_GOAL,
        rounds=ROUNDS,
        compared="times faster than cel-python, interpreted, objects already converted",
        at_least=True,
    )


def _runnable(engine: celpy.Environment, converted: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the programs, by the name of their case, that cel-python can run; None for the others."""
    return {
        case["name"]: _program(engine, case["expr"], converted[0])
        for case in recorded()["cases"]
        if not case["variables"]
    }


def _program(engine: celpy.Environment, text: str, example: dict[str, Any]) -> Any:
    try:
        program = engine.program(engine.compile(text))
        program.evaluate(example)
    except CELParseError:
        return None
    except CELEvalError as error:
        return program if "no such member" in str(error) else None
    return program


def _one_pass(program: Any, converted: list[dict[str, Any]]) -> float:
    def once() -> None:
        for activation in converted:
            with contextlib.suppress(CELEvalError):
                program.evaluate(activation)

    return timed(once) * len(activations()) / len(converted)
