"""Requests to a real API server with Kyverno's webhooks see what we say, in the releases that are compared as a whole."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.apiserver import running
from tests.oracle.kyverno.enforced import EnforcedPolicies
from tests.oracle.kyverno.programs import Program
from tests.oracle.kyverno.webhooks import Cluster, Comparison, report
from tests.requirements import API_SERVER, KYVERNO

RELEASES = {"1.18": (1, 18), "1.19": (1, 19)}
SEED = 20261127


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """An API server with random objects."""
    assets = Path(API_SERVER.require())
    with running(assets, tmp_path_factory.mktemp("webhooks")) as server:
        yield Cluster.on(server, SEED)


@pytest.mark.parametrize("release", RELEASES)
def test_requests_see_what_we_say(cluster: Cluster, release: str) -> None:
    """Twelve writes for each of 60 sets of policies are allowed, denied, refused or warned about as we say; `make kyverno` compares more."""
    KYVERNO[release].require()
    with Program.of(release, "webhooks") as program:
        comparison = Comparison(program, RELEASES[release], cluster, SEED)
        comparison.batch(60)
    tally = comparison.tally
    assert {} == tally.classes, report(tally)
    assert min(tally.seen[what] for what in ("allowed", "denied", "refused", "warned")) > 0


def test_the_same_seed_makes_the_same_sets() -> None:
    """Two sources with the same seed make the same sets of policies and objects, so that a run can be repeated."""
    first, second = (EnforcedPolicies(random.Random(7)) for _ in range(2))
    assert first.policy_set() == second.policy_set()
    assert first.document() == second.document()
