"""The generated function, the closures and the counting closures have the same outcomes."""

from __future__ import annotations

from tests.oracle.agreement import compare


def test_generated_functions_have_the_outcomes_of_the_closures() -> None:
    """Outcomes and the inputs that are read are equal on 3,000 pairs; `python -m tests.oracle.agreement` compares 100,000."""
    agreement = compare(seed=20260507, pairs=3000)
    assert [] == agreement.differences
    assert agreement.fast > agreement.pairs / 3
    assert agreement.absorbing > 0
    assert agreement.refused > 0


def test_few_values_need_the_closures() -> None:
    """A function falls back although there is a value in fewer than one evaluation of fifty: it would be right, but slow."""
    agreement = compare(seed=7, pairs=1500)
    assert agreement.causes.total() < agreement.pairs / 50
