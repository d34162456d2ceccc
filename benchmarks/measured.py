"""Ratios of medians: both sides in one run, in turns, so that a busy machine slows both."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from statistics import median

ROUNDS = 5


def medians(rounds: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The median of each case over all rounds."""
    seen = list(rounds)
    return {case: median(times[case] for times in seen) for case in seen[0]}


def geometric_mean(numbers: Iterable[float]) -> float:
    """The mean that ratios have."""
    logarithms = [math.log(number) for number in numbers]
    return math.exp(sum(logarithms) / len(logarithms))


def say(text: str) -> None:
    """One line on standard output, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def table(heads: tuple[str, ...], columns: tuple[Mapping[str, float], ...]) -> None:
    """Nanoseconds by case, one column for each side."""
    say(f"{'case':18}" + "".join(f"{head:>16}" for head in heads))
    for case in columns[0]:
        say(f"{case:18}" + "".join(f"{column[case]:16,.0f}" for column in columns))


def conclude(number: int, ratio: float, goal: float, *, rounds: int, compared: str, at_least: bool = False) -> None:
    """The line that a benchmark ends with."""
    relation = ">=" if at_least else "<="
    say(f"bench={number} ratio={ratio:.4g} goal={relation}{goal:.4g} rounds={rounds} ({compared})")
