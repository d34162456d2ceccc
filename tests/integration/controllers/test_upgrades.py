"""A new image upgrades the database of version 0.1.0 before it scans, also when two pods start at once (`make nightly`)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from scanner.model.json import Json, JsonObject
from scanner.model.scans.scan import ScanState
from scanner.store import open_reader
from tests.integration.controllers.installation import VOLUME, Installed
from tests.store.databases import database
from tests.store.test_upgrade_of_names import older

pytestmark = pytest.mark.skipif(
    not os.environ.get("LONG_JOBS"), reason="Jobs that upgrade a database take minutes: `make nightly` sets LONG_JOBS"
)
OLD = {"old-1", "old-2", "old-3"}
"""The scans that version 0.1.0 has recorded."""


class Older(NamedTuple):
    """A database of version 0.1.0, as the host and the pods name it."""

    kind: str
    database: str
    name_in_pod: str


@pytest.fixture(params=["postgresql", "sqlite"])
def old(request: pytest.FixtureRequest, installed: Installed) -> Iterator[Older]:
    """A database of each kind; SQLite lies on the volume of the release."""
    volume = installed.cluster.volume(VOLUME)
    with database(request.param, volume) as url:
        older(url)
        yield Older(request.param, url, url if request.param == "postgresql" else url.replace(str(volume), "/data"))


def test_without_the_upgrade_no_scan_is_possible(installed: Installed, old: Older) -> None:
    """The pod ends with exit code 5, names the command, and leaves the database as it was; no second one is tried."""
    name = f"not-upgraded-{old.kind}"
    once: JsonObject = {"backoffLimit": 1}
    installed.cluster.start(installed.job(name, database=old.name_in_pod, fields=once, upgrades=False))
    ended = installed.cluster.ended(name)
    assert ([5], "Failed", "PodFailurePolicy") == (ended.codes, ended.condition, ended.reason)
    assert "assay db upgrade" in ended.logs


@pytest.mark.parametrize("pods", [1, 2])
def test_the_upgrade_before_the_scan_keeps_the_history(installed: Installed, old: Older, pods: int) -> None:
    """With two pods at once, too: one upgrades, the other waits; each then records its scan after the old ones."""
    name = f"upgraded-by-{pods}-{old.kind}"
    together: dict[str, Json] = {"completions": pods, "parallelism": pods}
    installed.cluster.start(installed.job(name, database=old.name_in_pod, fields=together))
    ended = installed.cluster.ended(name)
    assert ([0] * pods, "Complete") == (ended.codes, ended.condition), ended.logs
    with open_reader(old.database) as store:
        scans = store.scans()
    assert OLD <= {scan.id for scan in scans}
    assert [ScanState.COMPLETE] * pods == [scan.state for scan in scans if scan.id not in OLD]
