"""Random policies and expressions have the results of Kyverno's own code, in the releases that are compared as a whole."""

from __future__ import annotations

import random

import pytest

from tests.oracle.kyverno.comparison import Comparison, report
from tests.oracle.kyverno.expressions import Comparison as Expressions
from tests.oracle.kyverno.expressions import report as report_expressions
from tests.oracle.kyverno.policies import Policies
from tests.oracle.kyverno.programs import Program
from tests.requirements import KYVERNO

RELEASES = {"1.18": (1, 18), "1.19": (1, 19)}


@pytest.mark.parametrize("release", RELEASES)
def test_random_policies_have_kyvernos_results(release: str) -> None:
    """150 policies with exceptions have Kyverno's results on four requests each; `make kyverno` compares 10,000."""
    KYVERNO[release].require()
    with Program.of(release, "policies") as program:
        comparison = Comparison(program, RELEASES[release], seed=20261127)
        comparison.batch(150)
    assert {} == comparison.tally.classes, report(comparison.tally)
    assert comparison.tally.unusable < comparison.tally.policies * 2 / 3


@pytest.mark.parametrize("release", RELEASES)
def test_random_expressions_have_kyvernos_values(release: str) -> None:
    """200 expressions of Kyverno's libraries have Kyverno's types and values, or are refused as well."""
    KYVERNO[release].require()
    with Program.of(release, "expressions") as program:
        comparison = Expressions(program, RELEASES[release], seed=20261127)
        comparison.batch(200)
    assert {} == comparison.tally.classes, report_expressions(comparison.tally)


def test_the_same_seed_makes_the_same_policies() -> None:
    """Two sources with the same seed make the same policies, so that a run can be repeated."""
    first, second = (Policies(random.Random(7)).example() for _ in range(2))
    assert first == second
