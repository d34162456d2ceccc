"""A seeded part of the mutation fuzz: what Assay predicts of generated mutations is what a real API server answers.

`make nightly` runs all of it: every path of every object, and thousands of policies. FUSEED chooses other ones here.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.integration.fuzz.report import report
from tests.integration.fuzz.run import Fuzz, unaccepted
from tests.integration.fuzz.stage import Stage, documents, staged

SEED = int(os.environ.get("FUSEED", "20261122"))
SECONDS = 600.0
PATCHES = 0.008
CONFIGURED, TOGETHER, VERSIONED = 30, 10, 3


@pytest.fixture(scope="module")
def stage(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A server of our own: its policies act on every object."""
    with staged(assets, tmp_path_factory.mktemp("fuzzed")) as started:
        yield started


@pytest.fixture
def fuzz(stage: Stage) -> Fuzz:
    """A run on that server, with the seed."""
    return Fuzz(stage, Random(SEED), time.monotonic() + SECONDS)


def test_there_are_enough_objects_of_enough_kinds() -> None:
    """The fuzz covers at least 40 objects of 25 kinds."""
    fixtures = documents()

    assert len(fixtures) >= 40
    assert len({document["kind"] for document in fixtures}) >= 25


def test_the_server_takes_every_object_back_as_it_is(stage: Stage) -> None:
    """An update without any policy changes nothing, so that every change is a policy's."""
    assert [] == [*unaccepted(stage)]


def test_json_patches_do_what_is_predicted(fuzz: Fuzz) -> None:
    """Some of the patches of every path of every object, in updates and creates."""
    fuzz.patched(fuzz.stage.objects, PATCHES)

    assert fuzz.tally.is_right, report(fuzz.tally)
    assert fuzz.tally.comparisons.total() >= 300


def test_apply_configurations_do_what_is_predicted(fuzz: Fuzz) -> None:
    """Two generated policies for each of some objects."""
    fuzz.configured(fuzz.chance.sample(fuzz.stage.objects, CONFIGURED), 2)

    assert fuzz.tally.is_right, report(fuzz.tally)
    assert fuzz.tally.comparisons.total() >= 2 * CONFIGURED


def test_policies_in_another_version_do_what_is_predicted(fuzz: Fuzz) -> None:
    """Some generated policies for each object in each other version of its kind."""
    fuzz.versioned(fuzz.stage.objects, VERSIONED)

    assert fuzz.tally.is_right, report(fuzz.tally)
    assert fuzz.tally.comparisons.total() >= 100


def test_sets_of_policies_do_what_is_predicted(fuzz: Fuzz) -> None:
    """Two sets of two or three policies for each of some objects, in three orders that the server chooses."""
    fuzz.together(fuzz.chance.sample(fuzz.stage.objects, TOGETHER), 2)

    assert fuzz.tally.is_right, report(fuzz.tally)
    assert fuzz.tally.comparisons.total() >= 2 * 3 * TOGETHER
