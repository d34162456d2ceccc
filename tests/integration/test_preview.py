"""`assay preview` on a real server with the real controllers: what it predicts of a change of rules is what happens after the change.

`make nightly` compares 500 workloads and 30 changes: `python -m tests.integration.previewed`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.integration.apiserver import ApiServer
from tests.integration.previewed import COLUMNS, KINDS, Run, running_cluster, write_table
from tests.integration.rule_changes import STORIES, list_changes

SEED = 20261128
WORKLOADS = 130
WITHOUT_MINUTES = tuple(kind for kind in KINDS if kind != "CronJob")
"""The kinds whose pods begin at once; those of a CronJob begin with a minute."""


@pytest.fixture(scope="module")
def server(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server of our own, with Pod Security and the controllers of workloads."""
    with running_cluster(assets, tmp_path_factory.mktemp("previewed")) as server:
        yield server


def test_what_is_predicted_of_a_change_happens(server: ApiServer, tmp_path: Path) -> None:
    """Each story once: objects that a scan finds denied, pods that do not come back, finalizers that stay, edits and scaling that are refused, and no others."""
    chance = Random(SEED)
    changes = list_changes(len(STORIES), chance)
    compared = Run(server, tmp_path, changes, WORKLOADS, chance, WITHOUT_MINUTES).compare()

    print(*write_table(compared), sep="\n")  # noqa: T201 - what `pytest -s` is for
    assert [] == [line for each in compared for line in each.list_differences()]
    assert all(any(getattr(each.predicted, name) for each in compared) for name in COLUMNS)
    assert any(each.asked["agrees"] for each in compared)
