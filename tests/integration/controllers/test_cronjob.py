"""The CronJob of deploy/ runs with the real controllers, and its Jobs end as each exit code of a scan requires."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest

from scanner.model.json import Json, JsonObject, as_text, dig
from scanner.model.scan import ScanState
from scanner.store import open_reader
from tests.integration import examples
from tests.integration.controllers.cluster import SECONDS, Cluster
from tests.integration.controllers.release import CRON_JOB, NAMESPACE, database, job_from, manifests
from tests.store.databases import database as empty_database
from tests.store.databases import rows

RBAC = "rbac.authorization.k8s.io/v1"
CUSTOM_KINDS: list[Json] = [
    {"apiGroups": ["ops.example.com"], "resources": ["backups"], "verbs": ["get", "list"]},
    {"apiGroups": ["governance.example.com"], "resources": ["storagelimits"], "verbs": ["get", "list"]},
]
"""The rules that a user adds for the custom resources of the example cluster."""


class Case(NamedTuple):
    """A Job that ends with an exit code: its arguments and variables, its service account, and how Kubernetes ends it."""

    code: int
    arguments: tuple[str, ...] = ()
    database: str = ""
    account: str = "assay"
    condition: str = "Failed"
    reason: str = "PodFailurePolicy"
    pods: int = 1


CASES = {
    "complete": Case(0, condition="Complete", reason="CompletionsReached"),
    "gate-failed": Case(1, ("--fail-on", "violated")),
    "unknown-flag": Case(2, ("--no-such-flag",)),
    "incomplete": Case(3, account="assay-without-custom-kinds"),
    "no-database": Case(
        4, database="postgresql+psycopg://assay@127.0.0.1:1/none", reason="BackoffLimitExceeded", pods=2
    ),
}


class Installed(NamedTuple):
    """The release in a cluster, with the time at which its CronJob is due."""

    cluster: Cluster
    database: str
    due: datetime


@pytest.fixture(scope="module")
def installed(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """The example cluster with the release, whose CronJob is due in the next minute, and a Job for each case."""
    with empty_database("postgresql", tmp_path_factory.mktemp("database")) as url:
        cluster.apply([*examples.objects("after"), *rights(), *examples.policies()])
        due = next_minute()
        cluster.apply([*manifests(schedule=f"{due.minute} {due.hour} * * *"), database(url)])
        for name, case in CASES.items():
            cluster.start(job_of(cluster, name, case))
        yield Installed(cluster, url, due)


def rights() -> list[JsonObject]:
    """The namespace of the release with a second service account; the first one may read the custom resources, too."""
    other = CASES["incomplete"].account
    role: JsonObject = {
        "apiVersion": RBAC,
        "kind": "ClusterRole",
        "metadata": {"name": "custom-kinds"},
        "rules": CUSTOM_KINDS,
    }
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": other, "namespace": NAMESPACE}},
        role,
        bound("assay", "custom-kinds"),
        bound(other, "assay"),
    ]


def bound(account: str, role: str) -> JsonObject:
    """The binding of a service account of the release's namespace to a ClusterRole."""
    subject: JsonObject = {"kind": "ServiceAccount", "namespace": NAMESPACE, "name": account}
    return {
        "apiVersion": RBAC,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"{account}-{role}"},
        "subjects": [subject],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
    }


def tick(installed: Installed) -> Json:
    """The Job that the controller has made at the scheduled time."""
    deadline = time.monotonic() + SECONDS
    while not (jobs := installed.cluster.jobs_of(CRON_JOB)):
        assert time.monotonic() < deadline, "the controller has made no Job"
        time.sleep(0.1)
    [job] = jobs
    return job


def next_minute() -> datetime:
    """The beginning of the next minute that is at least ten seconds away."""
    return (datetime.now(UTC) + timedelta(seconds=70)).replace(second=0, microsecond=0)


def job_of(cluster: Cluster, name: str, case: Case) -> JsonObject:
    """The Job of a case, with a database of its own on the volume of the release."""
    variables = {"ASSAY_DB": case.database or f"sqlite:////data/{name}.db"}
    return job_from(
        cluster.cron_job(CRON_JOB), name, *case.arguments, env=variables, pod={"serviceAccountName": case.account}
    )


@pytest.mark.parametrize("name", CASES)
def test_a_job_ends_as_its_exit_code_requires(installed: Installed, name: str) -> None:
    """Only a run that could not scan is repeated; every other exit code than 0 fails the Job at once."""
    case = CASES[name]
    ended = installed.cluster.ended(name)
    assert ([case.code] * case.pods, case.condition, case.reason) == (ended.codes, ended.condition, ended.reason), (
        ended.logs
    )


@pytest.mark.parametrize(
    ("name", "state"),
    [("complete", ScanState.COMPLETE), ("gate-failed", ScanState.COMPLETE), ("incomplete", ScanState.INCOMPLETE)],
)
def test_the_database_on_the_volume_has_the_scan(installed: Installed, name: str, state: ScanState) -> None:
    """The SQLite file lies on the claim of the release, and outlives the pod."""
    installed.cluster.ended(name)
    with open_reader(str(installed.cluster.volume("assay") / f"{name}.db")) as store:
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
