"""The generated function, the closures and the counting closures mean the same."""

from __future__ import annotations

from tests.oracle.agreement import compare


def test_generated_functions_mean_what_the_closures_mean() -> None:
    """Values, and what is reached; `python -m tests.oracle.agreement` looks at 100,000 pairs."""
    agreement = compare(seed=20260507, pairs=3000)
    assert [] == agreement.differences
    assert agreement.fast > agreement.pairs / 3
    assert agreement.absorbing > 0


def test_few_values_need_the_closures() -> None:
    """A function that gives up where there is a value is right but slow: that is one evaluation in fifty at most."""
    agreement = compare(seed=7, pairs=1500)
    assert agreement.causes.total() < agreement.pairs / 50
