"""What would be silent in a cluster ends right and raises its alert: a database that is away, a rotated Secret, a cluster that never ran.

The database is away for DATABASE_AWAY seconds, in `make nightly` for as long as an operator would need; waits of a second are in
tests/store/test_waiting.py and tests/cli/test_serve.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Timer
from zoneinfo import ZoneInfo

import pytest

from scanner.model.json import Json, JsonObject, as_list, dig
from scanner.model.schedule import parse_schedule
from scanner.posture.settings import DEFAULT_SETTINGS
from scanner.store import open_reader, open_store
from scanner.web.server.metrics import ClusterMetrics
from tests.deploy.programs import NAMESPACE
from tests.integration.controllers.cluster import SECONDS, running_cluster
from tests.integration.controllers.controller_manager import OF_DEPLOYMENTS
from tests.integration.controllers.installation import Installed
from tests.integration.controllers.release import SECRET, database_secret, manifests, namespace
from tests.integration.controllers.test_serve_pod import MERGE, condition, with_port
from tests.integration.faults import wait_until
from tests.integration.processes import free_port
from tests.prometheus.watched import HOUR, Watched, alert
from tests.store.databases import database
from tests.store.relay import refusing, relayed

long = pytest.mark.skipif(
    not os.environ.get("LONG_JOBS"), reason="Pods that restart take minutes: `make nightly` sets LONG_JOBS"
)
AWAY = timedelta(seconds=int(os.environ.get("DATABASE_AWAY", "20")))
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
OF_THE_EXAMPLE = "AssayPolicyMatchesNothing"
"""An alert that two policies of the example raise."""
NIGHTLY = parse_schedule("17 2 * * *", ZoneInfo("Etc/UTC"))


def test_a_database_that_is_away_for_minutes_delays_the_scan(installed: Installed, tmp_path: Path) -> None:
    """The Job completes with its first pod, the run is recorded with the time at which it began, and no alert fires before the next night."""
    with database("postgresql", tmp_path) as url, relayed(url) as relay:
        Timer(AWAY.total_seconds(), relay.give).start()
        begun = datetime.now(UTC)
        installed.cluster.start(installed.job("late", "--cluster-name", "prod", database=relay.url))
        ended = installed.cluster.ended("late", seconds=SECONDS + AWAY.total_seconds())
        with open_reader(url) as store:
            [run] = store.list_runs()
        watched = watch(url, ("prod",), 28)

    assert ("Complete", [0]) == (ended.condition, ended.codes), ended.logs
    assert 0 == run.run.exit_code
    assert run.run.finished_at is not None
    assert AWAY <= run.run.finished_at - begun
    # The init container waits for most of the time; the scan begins afterwards.
    missed = alert("AssayRunMissed", cluster="prod")
    expected = {watched.start: (), watched.start + 27 * HOUR: (missed,)}
    assert "" == watched.check(expected, tmp_path, besides=OF_THE_EXAMPLE)


def test_a_password_that_is_wrong_is_neither_waited_for_nor_tried_again(installed: Installed) -> None:
    """The Job fails with its first pod."""
    with refusing("28P01", 'password authentication failed for user "assay"') as url:
        installed.cluster.start(installed.job("refused", database=url))
        ended = installed.cluster.ended("refused")

    assert ("Failed", "PodFailurePolicy", 1) == (ended.condition, ended.reason, len(ended.codes)), ended.logs
    assert "Waiting" not in ended.logs


@pytest.fixture
def rotated(assets: Path, containers: None, tmp_path: Path) -> Iterator[tuple[Json, Json]]:
    """The pod of a Deployment before its Secret is rotated, and after that."""
    port = free_port()
    values: JsonObject = {
        "suspend": True,
        "upgrade": {"enabled": False},
        "database": {"existingSecret": SECRET},
        "config": {"skipKind": ["secrets"], "insecureNoAuth": True},
        "serve": {"enabled": True},
    }
    with (
        database("postgresql", tmp_path) as url,
        refusing("28P01", 'password authentication failed for user "assay"') as old,
        running_cluster(assets, tmp_path, OF_DEPLOYMENTS) as cluster,
    ):
        open_store(url).close()
        cluster.apply([namespace(), database_secret(old), *with_port(manifests("assay", values), port)])

        def pod() -> Json:
            pods = as_list(dig(cluster.server.request("GET", PODS).body, "items"))
            return next((each for each in pods if not dig(each, "metadata", "deletionTimestamp")), None)

        wait_until(lambda: bool(restarts(pod())), seconds=SECONDS)
        before = pod()
        change: JsonObject = {"stringData": {"url": url}}
        answer = cluster.server.client.request("PATCH", f"{SECRETS}/{SECRET}", change, content_type=MERGE)
        assert answer.status == 200, answer.body
        wait_until(lambda: condition(pod(), "Ready"), seconds=SECONDS)
        yield before, pod()


def restarts(pod: Json) -> int:
    """The number of the starts of the container after the first one."""
    statuses = as_list(dig(pod, "status", "containerStatuses"))
    return sum(int(str(dig(status, "restartCount") or 0)) for status in statuses)


@long
def test_a_server_whose_secret_is_rotated_starts_again_with_it(rotated: tuple[Json, Json]) -> None:
    """The server ends while the database refuses the old password, and the same pod is ready with the new Secret."""
    before, after = rotated
    assert restarts(before) >= 1
    assert dig(before, "metadata", "uid") == dig(after, "metadata", "uid")


def test_a_member_of_a_fleet_that_never_ran_raises_an_alert(installed: Installed, tmp_path: Path) -> None:
    """A Job has scanned the other cluster; the file of the fleet names both."""
    with database("postgresql", tmp_path) as url:
        installed.cluster.start(installed.job("member", "--cluster-name", "prod", database=url))
        ended = installed.cluster.ended("member")
        watched = watch(url, ("prod", "edge"), 28)

    assert ("Complete", [0]) == (ended.condition, ended.codes), ended.logs
    never, missed = alert("AssayNeverRan", cluster="edge"), alert("AssayRunMissed", cluster="prod")
    expected = {watched.start: (), watched.start + 27 * HOUR: (never, missed)}
    assert "" == watched.check(expected, tmp_path, besides=OF_THE_EXAMPLE)


def watch(url: str, members: tuple[str, ...], hours: int) -> Watched:
    """Scrape the metrics of a database for some hours from the next full one on."""
    moments = [datetime.now(UTC)]
    with open_reader(url, lambda: moments[0]) as reader:
        server = ClusterMetrics(
            lambda: reader, DEFAULT_SETTINGS, lambda _: NIGHTLY, members=members, clock=lambda: moments[0]
        )
        watched = Watched(moments[0].replace(minute=0, second=0, microsecond=0) + HOUR)
        for hour in range(hours):
            moments[0] = watched.start + hour * HOUR
            watched.scrape({("assay-serve", "one"): lambda: server.text(10)})
    return watched
