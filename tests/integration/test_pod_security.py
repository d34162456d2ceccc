"""A seeded part of the comparison of Pod Security with a real API server; `make nightly` makes ten thousand comparisons."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from tests.integration.pod_security import Comparison, judging

SEED = int(os.environ.get("RANDOM_SEED", "20261127"))
COMPARISONS = 250


@pytest.mark.parametrize("configured", [False, True], ids=["labels", "configuration"])
def test_the_server_answers_what_pod_security_is_expected_to(assets: Path, tmp_path: Path, *, configured: bool) -> None:
    """Refusals and warnings have the same texts, and the pods of templates are refused where it is expected."""
    with judging(assets, tmp_path, configured=configured) as (server, language):
        comparison = Comparison(server, language, Random(SEED))
        comparison.run(COMPARISONS)

    assert [] == comparison.tally.differences
    assert comparison.tally.refused > COMPARISONS / 10
    assert comparison.tally.warned > COMPARISONS / 10
