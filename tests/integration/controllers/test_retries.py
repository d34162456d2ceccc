"""A scan whose pod is killed is repeated by the Job controller, and the history has it once (`make nightly`)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from scanner.model.json import Json, JsonObject, as_object, as_text, dig
from scanner.model.scans.scan import ScanState
from scanner.model.scans.stored_scan import StoredScan
from scanner.store import open_reader, open_store
from tests.deploy.programs import NAMESPACE
from tests.integration.controllers.cluster import Cluster, Ended
from tests.integration.controllers.installation import VOLUME, Installed
from tests.integration.faults import wait_until
from tests.store.databases import count, database, execute, rows

pytestmark = pytest.mark.skipif(
    not os.environ.get("LONG_JOBS"), reason="Jobs that are repeated take minutes: `make nightly` sets LONG_JOBS"
)
SLOW = ("--qps", "4", "--burst", "1")
"""The flags of a scan that takes some 15 seconds, so that it can be killed in the middle."""
SILENCE = timedelta(hours=2)
"""Longer than the time without a heartbeat after which a scan on another host is dead."""


class Repeated(NamedTuple):
    """A Job whose first pod was killed while it scanned, with its database as the host and the pods name it."""

    installed: Installed
    kind: str
    ended: Ended
    database: str
    name_in_pod: str


@pytest.fixture(scope="module", params=["postgresql", "sqlite"])
def repeated(request: pytest.FixtureRequest, installed: Installed) -> Iterator[Repeated]:
    """A Job with a database of each kind; SQLite lies on the volume of the release."""
    kind, volume = request.param, installed.cluster.volume(VOLUME)
    with database(kind, volume) as url:
        inside = url if kind == "postgresql" else url.replace(str(volume), "/data")
        open_store(url).close()
        name = f"killed-{kind}"
        begin(installed, name, url, inside)
        [pod] = installed.cluster.pods_of(name)
        installed.cluster.kubelet.kill(as_text(dig(pod, "metadata", "name")))
        yield Repeated(installed, kind, installed.cluster.ended(name), url, inside)


def test_the_controller_starts_a_second_pod(repeated: Repeated) -> None:
    """SIGKILL is exit code 137, which no rule of the CronJob calls final; the second pod completes the Job."""
    assert ([137, 0], "Complete") == (repeated.ended.codes, repeated.ended.condition), repeated.ended.logs


def test_the_register_has_both_runs(repeated: Repeated) -> None:
    """The killed run has no exit code; after its silence it is shown as failed."""
    later = datetime.now(UTC) + SILENCE
    with open_reader(repeated.database, lambda: later) as store:
        runs = store.list_runs()
    assert [(0, None), (None, "dead")] == [(run.run.exit_code, run.last_sign and "dead") for run in runs]


def test_the_history_has_one_scan(repeated: Repeated) -> None:
    """The newest scan is complete, is the first of its history, and every finding is new and there once."""
    record = newest(repeated.database)
    assert (ScanState.COMPLETE, None) == (record.scan.state, record.previous)
    findings = Counter(stored.finding.fingerprint for stored in record.findings())
    assert {1} == set(findings.values())
    assert len(findings) == count(repeated.database, "findings")


def test_the_next_scan_removes_the_rest_of_the_killed_one(repeated: Repeated) -> None:
    """It marks the scan as failed, deletes its pages, and finds nothing new in the objects that were there before."""
    execute(
        repeated.database,
        "UPDATE scans SET heartbeat = :then WHERE state = 'running'",
        then="2020-01-01 00:00:00+00:00",
    )
    name = f"next-{repeated.kind}"
    installed = repeated.installed
    installed.cluster.start(installed.job(name, database=repeated.name_in_pod))
    ended = installed.cluster.ended(name)
    assert ("Complete", [0]) == (ended.condition, ended.codes), ended.logs
    with open_reader(repeated.database) as store:
        assert [ScanState.COMPLETE, ScanState.COMPLETE, ScanState.FAILED] == [scan.state for scan in store.scans()]
    assert 0 == count(repeated.database, "staged_pages")
    new = {stored.finding.namespace for stored in newest(repeated.database).findings() if stored.status == "new"}
    assert set() == new - {NAMESPACE}


class Ending(NamedTuple):
    """The end of a Job whose first pod was asked to end, and the exit codes and states of its runs, the first one first."""

    condition: str
    codes: list[int]
    states: list[ScanState]


ENDINGS = {
    "evicted": Ending("Complete", [3, 0], [ScanState.INCOMPLETE, ScanState.COMPLETE]),
    "deleted": Ending("Failed", [3], [ScanState.INCOMPLETE]),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_a_scan_that_is_asked_to_end_is_no_success(installed: Installed, tmp_path: Path, name: str) -> None:
    """SIGTERM ends a scan early with exit code 3: the pod of a drained node is repeated, and that of a user fails the Job."""
    with database("postgresql", tmp_path) as url:
        open_store(url).close()
        begin(installed, name, url, url)
        [pod] = installed.cluster.pods_of(name)
        end_pod(installed.cluster, pod, evict=name == "evicted")
        ended = installed.cluster.ended(name)
        with open_reader(url) as store:
            codes = [details.run.exit_code for details in reversed(store.list_runs())]
            states = [scan.state for scan in reversed(store.scans())]
    assert ENDINGS[name] == (ended.condition, codes, states), ended.logs


def end_pod(cluster: Cluster, pod: Json, *, evict: bool) -> None:
    """Delete a pod with its grace period, as a user does, or by the eviction with which a node is drained."""
    metadata = as_object(dig(pod, "metadata"))
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{as_text(metadata['name'])}"
    eviction: JsonObject = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": metadata["name"]}}
    answer = (
        cluster.server.request("POST", f"{path}/eviction", eviction)
        if evict
        else cluster.server.request("DELETE", path)
    )
    assert answer.status in {200, 201, 202}, answer.body


def begin(installed: Installed, name: str, url: str, name_in_pod: str) -> None:
    """Start a Job with a slow scan, and return when the scan is running."""
    installed.cluster.start(installed.job(name, *SLOW, database=name_in_pod))
    wait_until(lambda: bool(rows(url, "SELECT id FROM scans WHERE state = 'running'")), seconds=60)


def newest(url: str) -> StoredScan:
    """The newest scan in history."""
    with open_reader(url) as store:
        scan = store.latest_scan()
        assert scan
        return store.read_scan(scan.id)
