"""The CronJob of deploy/ runs with the real controllers, and its Jobs end as each exit code of a scan requires."""

from __future__ import annotations

import time
from typing import NamedTuple

import pytest

from scanner.model.json import Json, JsonObject, as_text, dig
from scanner.model.scan import ScanState
from scanner.store import open_reader
from tests.integration.controllers.cluster import SECONDS, Cluster
from tests.integration.controllers.installation import ACCOUNT, OTHER_ACCOUNT, Installed
from tests.integration.controllers.release import CRON_JOB, job_from
from tests.store.databases import rows


class Case(NamedTuple):
    """A Job that ends with an exit code: its arguments and variables, its service account, and how Kubernetes ends it."""

    code: int
    arguments: tuple[str, ...] = ()
    database: str = ""
    account: str = ACCOUNT
    condition: str = "Failed"
    reason: str = "PodFailurePolicy"
    pods: int = 1


CASES = {
    "complete": Case(0, condition="Complete", reason="CompletionsReached"),
    "gate-failed": Case(1, ("--fail-on", "violated")),
    "unknown-flag": Case(2, ("--no-such-flag",)),
    "incomplete": Case(3, account=OTHER_ACCOUNT),
    "no-database": Case(
        4, database="postgresql+psycopg://assay@127.0.0.1:1/none", reason="BackoffLimitExceeded", pods=2
    ),
}


@pytest.fixture(scope="module")
def jobs(installed: Installed) -> Installed:
    """The release, and a Job for each case."""
    for name, case in CASES.items():
        installed.cluster.start(job_of(installed.cluster, name, case))
    return installed


def tick(installed: Installed) -> Json:
    """The Job that the controller has made at the scheduled time."""
    deadline = time.monotonic() + SECONDS
    while not (jobs := installed.cluster.jobs_of(CRON_JOB)):
        assert time.monotonic() < deadline, "the controller has made no Job"
        time.sleep(0.1)
    [job] = jobs
    return job


def job_of(cluster: Cluster, name: str, case: Case) -> JsonObject:
    """The Job of a case, with a database of its own on the volume of the release."""
    variables = {"ASSAY_DB": case.database or f"sqlite:////data/{name}.db"}
    return job_from(
        cluster.cron_job(CRON_JOB), name, *case.arguments, env=variables, pod={"serviceAccountName": case.account}
    )


@pytest.mark.parametrize("name", CASES)
def test_a_job_ends_as_its_exit_code_requires(jobs: Installed, name: str) -> None:
    """Only a run that could not scan is repeated; every other exit code than 0 fails the Job at once."""
    case = CASES[name]
    ended = jobs.cluster.ended(name)
    assert ([case.code] * case.pods, case.condition, case.reason) == (ended.codes, ended.condition, ended.reason), (
        ended.logs
    )


@pytest.mark.parametrize(
    ("name", "state"),
    [("complete", ScanState.COMPLETE), ("gate-failed", ScanState.COMPLETE), ("incomplete", ScanState.INCOMPLETE)],
)
def test_the_database_on_the_volume_has_the_scan(jobs: Installed, name: str, state: ScanState) -> None:
    """The SQLite file lies on the claim of the release, and outlives the pod."""
    jobs.cluster.ended(name)
    with open_reader(str(jobs.cluster.volume("assay") / f"{name}.db")) as store:
        assert [state] == [scan.state for scan in store.scans()]


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
        record = store.record(scan.id)
    assert (ScanState.COMPLETE, "system:serviceaccount:assay:assay") == (scan.state, record.scan.requester.username)
    assert [0] == [row["exit_code"] for row in rows(installed.database, "SELECT exit_code FROM runs")]
