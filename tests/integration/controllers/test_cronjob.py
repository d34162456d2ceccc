"""The CronJob of the chart runs with the real controllers, and its Jobs end as each exit code of a scan requires."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import NamedTuple

import orjson
import pytest

from scanner.model.json import Json, JsonObject, as_text, dig
from scanner.model.scans.scan import ScanState
from scanner.store import open_reader
from tests.integration.controllers.cluster import SECONDS
from tests.integration.controllers.installation import BY_HAND, SCHEDULED, VOLUME, Installed
from tests.store.databases import rows


class Case(NamedTuple):
    """A Job that ends with an exit code: its arguments, its variables and its service account, and how Kubernetes ends it."""

    code: int
    arguments: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    account: str = SCHEDULED
    condition: str = "Failed"
    reason: str = "PodFailurePolicy"
    pods: int = 1
    message: str = ""


CASES = {
    "complete": Case(0, condition="Complete", reason="CompletionsReached"),
    "gate-failed": Case(1, ("--fail-on", "violated"), message="gate failed: violated"),
    "usage": Case(2, ("--fail-on", "new", "--baseline", "no-such-scan"), message="no-such-scan"),
    "incomplete": Case(3, without=("--exit-zero-on=incomplete",), account=BY_HAND),
    "accepted": Case(0, account=BY_HAND, condition="Complete", reason="CompletionsReached"),
    "no-cluster": Case(
        4, env={"KUBERNETES_SERVICE_PORT": "1"}, reason="BackoffLimitExceeded", pods=2, message="refused"
    ),
}
RETRIES: JsonObject = {"backoffLimit": 1}
"""One retry instead of two, which would begin 20 seconds later."""
SCANS = {
    "complete": ScanState.COMPLETE,
    "gate-failed": ScanState.COMPLETE,
    "incomplete": ScanState.INCOMPLETE,
    "accepted": ScanState.INCOMPLETE,
}
"""The state of the scan that a Job records, if it records one."""


@pytest.fixture(scope="module")
def jobs(installed: Installed) -> Installed:
    """The release, and a Job for each case."""
    for name, case in CASES.items():
        installed.cluster.start(job_of(installed, name, case))
    return installed


def tick(installed: Installed) -> Json:
    """The Job that the controller has made at the scheduled time."""
    deadline = time.monotonic() + SECONDS
    while not (jobs := installed.cluster.jobs_of(SCHEDULED)):
        assert time.monotonic() < deadline, "the controller has made no Job"
        time.sleep(0.1)
    [job] = jobs
    return job


def job_of(installed: Installed, name: str, case: Case) -> JsonObject:
    """The Job of a case, with a database of its own on the volume of the release."""
    return installed.job(
        name,
        *case.arguments,
        database=f"sqlite:////data/{name}.db",
        account=case.account,
        env=case.env,
        without=case.without,
        fields=RETRIES,
    )


@pytest.mark.parametrize("name", CASES)
def test_a_job_ends_as_its_exit_code_requires(jobs: Installed, name: str) -> None:
    """Only a run that could not scan is repeated; every other exit code than 0 fails the Job at once."""
    case = CASES[name]
    ended = jobs.cluster.ended(name)
    expected = ([case.code] * case.pods, case.condition, case.reason)
    assert expected == (ended.codes, ended.condition, ended.reason), ended.logs


@pytest.mark.parametrize("name", CASES)
def test_the_termination_message_and_the_end_of_the_log_tell_the_reason(jobs: Installed, name: str) -> None:
    """`kubectl describe pod` shows the verdict or the error, and the last line of the log has the exit code."""
    case = CASES[name]
    ended = jobs.cluster.ended(name)
    assert case.message in str(ended.messages[-1])
    assert case.code == orjson.loads(ended.logs.splitlines()[-1])["exitCode"]


@pytest.mark.parametrize("name", CASES)
def test_the_database_on_the_volume_has_the_scan_and_the_run(jobs: Installed, name: str) -> None:
    """The SQLite file lies on the claim of the release, and outlives the pod."""
    case = CASES[name]
    jobs.cluster.ended(name)
    with open_reader(str(jobs.cluster.volume(VOLUME) / f"{name}.db")) as store:
        assert [state for job, state in SCANS.items() if job == name] == [scan.state for scan in store.scans()]
        assert [case.code] * case.pods == [details.run.exit_code for details in store.list_runs()]


def test_the_controller_starts_a_scan_at_the_scheduled_time(installed: Installed) -> None:
    """The Job is complete, and PostgreSQL has one complete scan by the service account of the release."""
    job = tick(installed)
    assert [f"{installed.due:%Y-%m-%dT%H:%M:%SZ}"] == [
        dig(job, "metadata", "annotations", "batch.kubernetes.io/cronjob-scheduled-timestamp")
    ]
    ended = installed.cluster.ended(as_text(dig(job, "metadata", "name")))
    assert ("Complete", [0]) == (ended.condition, ended.codes), ended.logs
    with open_reader(installed.database) as store:
        [scan] = store.scans()
        record = store.read_scan(scan.id)
    assert (ScanState.COMPLETE, "system:serviceaccount:assay:assay") == (scan.state, record.scan.requester.username)
    assert [0] == [row["exit_code"] for row in rows(installed.database, "SELECT exit_code FROM runs")]
