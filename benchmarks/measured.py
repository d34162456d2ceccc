"""Ratios of medians: both sides in one run, in turns, so that a busy machine slows both."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from statistics import median

ROUNDS = 5


def medians(rounds: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return the median of each case over all rounds."""
    measured = list(rounds)
    return {case: median(times[case] for times in measured) for case in measured[0]}


def geometric_mean(numbers: Iterable[float]) -> float:
    """Return the geometric mean, which is the mean of ratios."""
    logarithms = [math.log(number) for number in numbers]
    return math.exp(sum(logarithms) / len(logarithms))


def say(text: str) -> None:
    """Print a line to standard output and flush."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def table(heads: tuple[str, ...], columns: tuple[Mapping[str, float], ...]) -> None:
    """Print a table of nanoseconds by case, one column for each side."""
    say(f"{'case':18}" + "".join(f"{head:>16}" for head in heads))
    for case in columns[0]:
        say(f"{case:18}" + "".join(f"{column[case]:16,.0f}" for column in columns))


def conclude(number: int, ratio: float, goal: float, *, rounds: int, compared: str, at_least: bool = False) -> None:
    """Print the last line of a benchmark: ratio, goal and rounds."""
    relation = ">=" if at_least else "<="
    say(f"bench={number} ratio={ratio:.4g} goal={relation}{goal:.4g} rounds={rounds} ({compared})")
