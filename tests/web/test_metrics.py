"""`/metrics`: every cluster of a database, as Prometheus reads it."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from threading import Event, Thread
from zoneinfo import ZoneInfo

import pytest
from prometheus_client import Metric as MetricFamily
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from starlette.applications import Starlette
from starlette.testclient import TestClient

from scanner.errors import StoreError, UsageError
from scanner.model.access_token import AccessToken
from scanner.model.scans.scan import ClusterIdentity, ScanState
from scanner.model.scans.stored_scan import StoredScan
from scanner.model.schedule import parse_schedule
from scanner.model.waiver import Waiver, WaiverSet
from scanner.posture.settings import DEFAULT_SETTINGS
from scanner.report.document.document import document_of
from scanner.report.formats.metric_families import LIVE, METRICS
from scanner.report.formats.openmetrics import render
from scanner.store import SqlReader, SqlStore, open_reader
from scanner.store.catalog.every_cluster import AllClusters
from scanner.web.server.metrics import ClusterMetrics, Database, metrics_routes
from tests.store.databases import execute
from tests.store.made import Round, clock, ended, finding

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
STAGING = ClusterIdentity("staging", "77aa", "v1.36.0")
ITEMS = (finding("web"), finding("api", policy="labels"))
PARTIAL = Round(ITEMS, state=ScanState.INCOMPLETE)
Samples = dict[tuple[str, ...], float]


class Watched:
    """A database that counts and delays what is read."""

    def __init__(self, reader: SqlReader) -> None:
        self.reader = reader
        self.read: list[str] = []
        self.wait: Event | None = None
        self.trouble: StoreError | None = None
        self.gone = ""

    def all_clusters(self) -> AllClusters:
        if self.trouble is not None:
            raise self.trouble
        return self.reader.all_clusters()

    def read_scan(self, scan_id: str) -> StoredScan:
        self.read.append(scan_id)
        if self.wait is not None:
            self.wait.wait(5)
        if scan_id == self.gone:
            raise UsageError("it was pruned")
        return self.reader.read_scan(scan_id)

    def find_waivers_at(self, scan_id: str, moment: datetime) -> WaiverSet | None:
        return self.reader.find_waivers_at(scan_id, moment)


@pytest.fixture
def database(url: str, store: SqlStore) -> Iterator[Watched]:
    """A database without a scan."""
    with open_reader(url, clock) as reader:
        yield Watched(reader)


def metrics_of(database: Database, now: Callable[[], datetime] = lambda: NOW, cron: str = "") -> ClusterMetrics:
    """The metrics of a database at a moment."""
    schedule = parse_schedule(cron, ZoneInfo("Etc/UTC")) if cron else None
    return ClusterMetrics(lambda: database, DEFAULT_SETTINGS, lambda _: schedule, clock=now)


def families_of(text: str) -> list[MetricFamily]:
    """The metrics of a text."""
    return list(text_string_to_metric_families(text))  # type: ignore[no-untyped-call]


def samples(text: str, name: str) -> Samples:
    """The samples of a metric by the values of all labels, with the name of the cluster first."""
    [metric] = (metric for metric in METRICS if metric.name == name)
    labels = metric.labels if metric.of_all else ("cluster", *metric.labels)
    [family] = (family for family in families_of(text) if family.name == name)
    return {tuple(sample.labels[label] for label in labels): sample.value for sample in family.samples}


def test_every_metric_is_there_once(store: SqlStore, database: Watched) -> None:
    """In the order of the table, with the samples of all clusters together."""
    Round(ITEMS).record(store, 1)
    Round(cluster=STAGING).record(store, 2)

    assert [metric.name for metric in LIVE] == [family.name for family in families_of(metrics_of(database).text(5))]


def test_a_cluster_has_the_samples_of_the_file_format(store: SqlStore, database: Watched) -> None:
    """Dashboards work with both: names, labels and values, but for those that depend on the moment."""
    Round(ITEMS).record(store, 1)
    out = io.StringIO()
    render(document_of(store.read_scan("scan-1")), out)
    depend = ("assay_last_complete_scan_age_seconds", "assay_database_size_bytes", "assay_database_limit_bytes")
    in_file = {line for line in out.getvalue().splitlines() if not line.startswith(("#", *depend))}
    token = AccessToken("grafana", "0" * 64, NOW.date())
    server = ClusterMetrics(lambda: database, DEFAULT_SETTINGS, tokens=(token,), clock=lambda: NOW)
    live = {line for line in server.text(5).splitlines() if not line.startswith(("#", *depend))}

    assert set() == in_file - live
    assert {metric.name for metric in METRICS if metric.of_all} == {line.partition("{")[0] for line in live - in_file}


def test_the_age_is_that_of_the_last_complete_scan_now(store: SqlStore, database: Watched) -> None:
    """A later incomplete scan has the other numbers."""
    Round().record(store, 1)
    PARTIAL.record(store, 2)
    text = metrics_of(database).text(5)

    assert {("prod",): (NOW - ended(1)).total_seconds()} == samples(text, "assay_last_complete_scan_age_seconds")
    assert {("prod",): ended(2).timestamp()} == samples(text, "assay_scan_end_timestamp_seconds")
    assert {("prod",): 0} == samples(text, "assay_scan_complete")


def test_a_silent_cluster_stays(store: SqlStore, database: Watched) -> None:
    """Its age grows with every request, and its scan is read once."""
    Round(ITEMS).record(store, 1)
    now = [NOW]
    metrics = metrics_of(database, lambda: now[0])
    ages = []
    for _ in range(3):
        ages.append(samples(metrics.text(5), "assay_last_complete_scan_age_seconds")["prod",])
        now[0] += timedelta(hours=36)

    assert [36 * 3600] * 2 == [later - earlier for earlier, later in pairwise(ages)]
    assert ["scan-1"] == database.read


def test_a_cluster_whose_scans_all_failed_is_there(store: SqlStore, database: Watched) -> None:
    """With its scans by state and its run, and without numbers that no scan has."""
    store.begin(Round().start(1))
    store.finish("scan-1", replace(Round().end(1), state=ScanState.FAILED))
    store.end_run(store.begin_run("prod"), exit_code=4, scan_id="scan-1")
    text = metrics_of(database).text(5)

    assert 1 == samples(text, "assay_scans")["prod", "failed"]
    assert {("prod",): 4} == samples(text, "assay_last_run_exit_code")
    assert {} == samples(text, "assay_scan_complete")
    assert 1 == samples(text, "assay_clusters")["unscanned",]


def test_a_cluster_that_was_never_reached_has_its_run(store: SqlStore, database: Watched) -> None:
    """Under the name of the run."""
    store.end_run(store.begin_run("edge"), exit_code=4)

    assert {("edge",): 4} == samples(metrics_of(database).text(5), "assay_last_run_exit_code")


def test_a_killed_run_has_no_exit_code(url: str, store: SqlStore, database: Watched) -> None:
    """And ends with its last sign of life."""
    Round().record(store, 1)
    number = store.begin_run("prod")
    execute(url, "UPDATE runs SET process = 4194305, process_started = '1' WHERE number = :number", number=number)
    text = metrics_of(database).text(5)

    assert {("prod",): 1} == samples(text, "assay_last_run_killed")
    assert {("prod",): clock().timestamp()} == samples(text, "assay_last_run_end_timestamp_seconds")
    assert {} == samples(text, "assay_last_run_exit_code")


def test_a_member_of_the_fleet_without_a_run_is_there(store: SqlStore, database: Watched) -> None:
    """With the times at which runs are expected."""
    store.begin_run("first")
    server = ClusterMetrics(
        lambda: database,
        DEFAULT_SETTINGS,
        lambda _: parse_schedule("0 2 * * *", ZoneInfo("Etc/UTC")),
        members=("first", "second"),
        clock=lambda: NOW,
    )
    text = server.text(5)

    assert {("first",): 1, ("second",): 0} == samples(text, "assay_run_recorded")
    assert {("first",), ("second",)} == samples(text, "assay_schedule_interval_seconds").keys()


def test_the_next_run_is_the_first_one_after_the_newest(store: SqlStore, database: Watched) -> None:
    """Also if its time has passed: then no run has begun."""
    Round().record(store, 1)
    store.end_run(store.begin_run("prod"), exit_code=0, scan_id="scan-1")
    text = metrics_of(database, cron="0 2 * * *").text(5)

    assert {("prod",): (clock() + timedelta(hours=20)).timestamp()} == samples(text, "assay_next_run_timestamp_seconds")


def test_a_run_that_began_a_moment_before_its_time_is_that_run(store: SqlStore, database: Watched) -> None:
    """Its clock is behind that of the controller."""
    Round().record(store, 1)
    store.end_run(store.begin_run("prod"), exit_code=0, scan_id="scan-1")
    following = (clock() + timedelta(days=1)).timestamp()

    assert {("prod",): following} == samples(
        metrics_of(database, cron="0 6 * * *").text(5), "assay_next_run_timestamp_seconds"
    )


def test_a_new_scan_replaces_the_numbers(store: SqlStore, database: Watched) -> None:
    """And those of other clusters are not read again."""
    Round(ITEMS).record(store, 1)
    Round(ITEMS, cluster=STAGING).record(store, 2)
    metrics = metrics_of(database)
    metrics.text(5)
    Round(ITEMS[:1]).record(store, 3)
    text = metrics.text(5)

    assert ["scan-1", "scan-2", "scan-3"] == database.read
    assert {("prod",): ended(3).timestamp(), ("staging",): ended(2).timestamp()} == samples(
        text, "assay_scan_end_timestamp_seconds"
    )
    assert {("current",): 2, ("outdated",): 0, ("unscanned",): 0, ("left",): 0} == samples(text, "assay_clusters")


def test_a_new_scan_that_takes_long_leaves_the_earlier_numbers(store: SqlStore, database: Watched) -> None:
    """They are those of one scan, with its end, and their cluster is outdated until the new one is read."""
    Round(ITEMS).record(store, 1)
    metrics = metrics_of(database)
    metrics.text(5)
    database.wait = Event()
    Round().record(store, 2)
    meanwhile = metrics.text(0.01)
    database.wait.set()
    later = metrics.text(5)

    assert {("prod",): ended(1).timestamp()} == samples(meanwhile, "assay_scan_end_timestamp_seconds")
    assert 2 == sum(samples(meanwhile, "assay_problems").values())
    assert (1, 0) == tuple(samples(text, "assay_clusters")["outdated",] for text in (meanwhile, later))
    assert {} == samples(later, "assay_problems")


def test_a_waiver_ends_with_its_last_day(store: SqlStore, database: Watched) -> None:
    """The numbers of the same scan are those of today."""
    waiver = Waiver("old", "replicas", date(2026, 3, 10), "until spring", "ann", "bob", namespace="shop")
    scan = Round(ITEMS)
    store.begin(replace(scan.start(1), waivers=WaiverSet((waiver,))))
    for page in scan.pages():
        store.write_page("scan-1", page)
    store.finish("scan-1", scan.end(1))
    now = [NOW]
    metrics = metrics_of(database, lambda: now[0])
    waived = metrics.text(5)
    now[0] += timedelta(days=1)
    expired = metrics.text(5)

    assert (1, 2) == tuple(sum(samples(text, "assay_problems").values()) for text in (waived, expired))
    assert (0, 1) == tuple(samples(text, "assay_waivers")["prod", "expired"] for text in (waived, expired))


def test_the_schedule_of_the_configuration_is_expected(store: SqlStore, database: Watched) -> None:
    """An alert compares the last complete scan with it."""
    Round().record(store, 1)
    now = [NOW]
    metrics = metrics_of(database, lambda: now[0], "0 2 * * *")
    first = metrics.text(5)
    now[0] += timedelta(days=1)
    second = metrics.text(5)

    name = "assay_expected_run_timestamp_seconds"
    assert {("prod",): NOW.replace(hour=2).timestamp()} == samples(first, name)
    assert {("prod",): NOW.replace(hour=2).timestamp() + 86400} == samples(second, name)
    assert {("prod",): 86400} == samples(first, "assay_schedule_interval_seconds")


def test_a_cluster_without_a_schedule_expects_nothing(store: SqlStore, database: Watched) -> None:
    """An absent metric is not 0."""
    Round().record(store, 1)

    assert {} == samples(metrics_of(database).text(5), "assay_schedule_interval_seconds")


class Served:
    """An application of the metrics alone, with its log."""

    def __init__(self, database: Database) -> None:
        self.log: list[str] = []
        routes = metrics_routes(metrics_of(database), log=self.log.append)
        self.client = TestClient(Starlette(routes=list(routes)))


def test_the_first_answer_is_whole_or_none(store: SqlStore, database: Watched) -> None:
    """Prometheus notes a failed scrape, and not that clusters have disappeared."""
    Round(ITEMS).record(store, 1)
    Round(ITEMS, cluster=STAGING).record(store, 2)
    database.wait = Event()
    served = Served(database)
    early = served.client.get("/metrics", headers={"X-Prometheus-Scrape-Timeout-Seconds": "1.01"})
    database.wait.set()
    late = served.client.get("/metrics")

    assert (503, "not ready: the newest scans of 0 of 2 clusters have been read\n") == (early.status_code, early.text)
    assert 200 == late.status_code
    assert 2 == len(samples(late.text, "assay_scan_complete"))


def test_many_requests_cannot_use_all_threads(store: SqlStore, database: Watched) -> None:
    """Of those that wait for a scan, only some wait; the others may come again."""
    Round(ITEMS).record(store, 1)
    database.wait = Event()
    client = Served(database).client
    answers: list[str] = []
    threads = [Thread(target=lambda: answers.append(client.get("/metrics").text)) for _ in range(12)]
    for thread in threads:
        thread.start()
    while len(answers) < 4:
        threads[0].join(0.01)
    refused = list(answers)
    database.wait.set()
    for thread in threads:
        thread.join(10)

    assert ["not ready: too many requests wait for the metrics\n"] * 4 == refused
    assert 8 == sum("assay_scan_complete" in answer for answer in answers)


def test_a_database_that_cannot_be_read_is_no_empty_answer(store: SqlStore, database: Watched) -> None:
    """The reason is in the log; the answer has no address."""
    Round().record(store, 1)
    served = Served(database)
    database.trouble = StoreError("The database postgresql://db.internal/assay does not answer.")
    response = served.client.get("/metrics")

    assert 503 == response.status_code
    assert "db.internal" not in response.text
    assert ["no metrics: The database postgresql://db.internal/assay does not answer."] == served.log


def test_a_scan_that_was_pruned_meanwhile_is_not_shown_as_nothing(store: SqlStore, database: Watched) -> None:
    """The next request names a newer one."""
    Round().record(store, 1)
    database.gone = "scan-1"
    served = Served(database)

    assert 503 == served.client.get("/metrics").status_code


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("application/openmetrics-text;version=1.0.0,text/plain;q=0.5", "application/openmetrics-text; version=1.0.0"),
        ("*/*", "text/plain; version=0.0.4"),
    ],
)
def test_the_format_is_one_that_the_client_accepts(store: SqlStore, database: Watched, accept: str, kind: str) -> None:
    """The text is valid in both."""
    Round().record(store, 1)
    response = Served(database).client.get("/metrics", headers={"Accept": accept})

    assert f"{kind}; charset=utf-8" == response.headers["content-type"]


def test_only_reading_is_possible(store: SqlStore, database: Watched) -> None:
    """Other methods are refused."""
    Round().record(store, 1)
    client = Served(database).client

    assert [405] * 3 == [client.request(method, "/metrics").status_code for method in ("POST", "PUT", "DELETE")]


def test_an_empty_database_has_no_clusters(store: SqlStore, database: Watched) -> None:
    """And says so."""
    text = metrics_of(database).text(5)

    assert {("current",): 0, ("outdated",): 0, ("unscanned",): 0, ("left",): 0} == samples(text, "assay_clusters")


def test_a_forgotten_cluster_leaves_no_numbers(url: str, store: SqlStore, database: Watched) -> None:
    """Memory does not grow with what the database had once."""
    Round(ITEMS).record(store, 1)
    metrics = metrics_of(database)
    metrics.text(5)
    Round(ITEMS, cluster=STAGING).record(store, 2)
    execute(url, "UPDATE scans SET pruned_at = finished_at WHERE id = 'scan-1'")
    text = metrics.text(5)

    assert {("staging",): 1} == samples(text, "assay_scan_complete")
    assert 1 == samples(text, "assay_scans")["prod", "complete"]


def test_the_limit_of_the_database_is_its_volume_or_that_of_the_configuration(
    database: Watched, store: SqlStore
) -> None:
    """The smaller of both; PostgreSQL does not show its volume."""
    Round(ITEMS).record(store, 1)
    limits = [
        samples(
            ClusterMetrics(lambda: database, replace(DEFAULT_SETTINGS, database_limit=limit), clock=lambda: NOW).text(
                5
            ),
            "assay_database_limit_bytes",
        )
        for limit in (None, 5, 1 << 60)
    ]
    size = store.all_clusters().database_bytes

    if store.most_bytes() is None:
        assert [{}, {("prod",): 5}, {("prod",): 1 << 60}] == limits
    else:
        assert {("prod",): 5} == limits[1]
        assert all(size < each["prod",] < 1 << 60 for each in (limits[0], limits[2]))


def test_notifications_are_counted_by_route_and_state(database: Watched, store: SqlStore) -> None:
    """Of each cluster."""
    for number in (1, 2):
        Round(ITEMS).record(store, number)
        store.plan_notifications(f"scan-{number}", ["payments"])

    assert {
        ("prod", "payments", "delivered"): 0,
        ("prod", "payments", "lost"): 0,
        ("prod", "payments", "pending"): 1,
    } == samples(metrics_of(database).text(5), "assay_notifications")
