"""Each failure that would be silent raises its alert, read from the real `/metrics` of the failure; a healthy fleet raises none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

import pytest

from scanner.model.access_token import AccessToken
from scanner.model.scans.method import ClockDifferences, Method
from scanner.model.scans.scan import ClusterIdentity, ScanState, Scope
from scanner.model.schedule import parse_schedule
from scanner.posture.run_register import find_expected_run, find_following_run
from scanner.posture.settings import DEFAULT_SETTINGS
from scanner.report.document.document import document_of
from scanner.report.formats.metric_families import LIVE, lines, text
from scanner.report.formats.openmetrics import RunEnd, document_samples, expected_samples, run_samples
from scanner.store import SqlStore, open_store
from scanner.web.server.metrics import ClusterMetrics
from tests.prometheus.watched import HOUR, Alert, Watched, alert
from tests.store.databases import execute
from tests.store.made import DAWN, PROD, Round, finding

NIGHTLY: Final = parse_schedule("0 6 * * *", ZoneInfo("Etc/UTC"))
WEST: Final = ClusterIdentity("west", "77aa", "v1.36.0")
DAY: Final = timedelta(days=1)
TARGET: Final = ("assay-serve", "10.0.0.1:9090")
OTHER: Final = ("assay-serve", "10.0.0.2:9090")
GOOD: Final = Round((finding("web"),))


@dataclass(frozen=True)
class Night:
    """A run: its scan, whose parts `method` and `dated` (the number of its day) replace, and its exit code, None if it is killed."""

    round: Round = GOOD
    code: int | None = 0
    method: Method = field(default_factory=Method)
    dated: int | None = None


class Installation:
    """A database with its nights, which Prometheus reads from one or more servers."""

    def __init__(self, url: str, store: SqlStore, clock: list[datetime]) -> None:
        self.url, self.store, self.clock = url, store, clock
        self.scans = 0

    def metrics(self, **options: object) -> ClusterMetrics:
        """A server."""
        settings = replace(DEFAULT_SETTINGS, database_limit=options.pop("limit", None))  # type: ignore[arg-type]
        return ClusterMetrics(
            lambda: self.store,
            settings,
            lambda _: NIGHTLY,
            clock=lambda: self.clock[0],
            **options,  # type: ignore[arg-type]
        )

    def run(self, night: Night) -> None:
        """Make a run now."""
        number = self.store.begin_run(night.round.cluster.name)
        if night.code is None:
            execute(self.url, f"UPDATE runs SET process = 4194305, process_started = '1' WHERE number = {number}")
            return
        self.scans += 1
        scan, day = f"scan-{self.scans}", (self.clock[0] - DAWN).days if night.dated is None else night.dated
        self.store.begin(replace(night.round.start(day), id=scan, method=night.method))
        for page in night.round.pages():
            self.store.write_page(scan, page)
        self.store.finish(scan, night.round.end(day))
        self.store.end_run(number, exit_code=night.code, scan_id=scan)

    def watch(
        self,
        nights: Mapping[int, tuple[Night, ...]],
        hours: int,
        targets: Callable[[int], Mapping[tuple[str, str], Callable[[], str | None]]],
    ) -> Watched:
        """Scrape for some hours from dawn on; the nights are numbered by the days since then, and some minutes after six."""
        watched = Watched(DAWN)
        for hour in range(hours + 1):
            self.clock[0] = DAWN + hour * HOUR
            for night in nights.get(hour // 24, ()) if hour % 24 == 0 else ():
                self.run(night)
            watched.scrape(targets(hour))
        return watched


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    """An empty database."""
    url, clock = f"sqlite:///{tmp_path / 'assay.db'}", [DAWN]
    with open_store(url, lambda: clock[0]) as store:
        yield Installation(url, store, clock)


def after(hours: int) -> datetime:
    """A moment by the hours since the first scrape."""
    return DAWN + hours * HOUR


def test_a_healthy_fleet_raises_no_alert(installation: Installation, tmp_path: Path) -> None:
    """From its first night on, at any hour: two servers of two clusters, with a schedule, credentials and a token."""
    method = Method(clocks=ClockDifferences(2, 1), credentials_until=round((DAWN + 300 * DAY).timestamp()))
    night = (Night(method=method), Night(replace(GOOD, cluster=WEST), method=method))
    token = AccessToken("grafana", "0" * 64, (DAWN + 200 * DAY).date())
    servers = [installation.metrics(members=("prod", "west"), tokens=(token,), limit=1 << 60) for _ in range(2)]
    answers = {
        target: lambda server=server: server.text(5) for target, server in zip((TARGET, OTHER), servers, strict=True)
    }

    watched = installation.watch(dict.fromkeys(range(4), night), 77, lambda _: answers)

    assert "" == watched.check({after(hour): () for hour in range(0, 78, 5)}, tmp_path)


DAILY: Final = {day: (Night(),) for day in range(5)}
PART: Final = replace(GOOD, scope=Scope(namespaces=("shop",)))
PARTIAL: Final = replace(GOOD, state=ScanState.INCOMPLETE)
SOON: Final = round((DAWN + 10 * DAY).timestamp())
SILENT: Final[tuple[Alert, ...]] = ()
SCENARIOS: Final[Mapping[str, tuple[Mapping[int, tuple[Night, ...]], Mapping[int, tuple[Alert, ...]]]]] = {
    "a gate that fails every night": (
        {day: (Night(code=1),) for day in range(3)},
        {0: (alert("AssayGateFailed", cluster="prod"),), 60: (alert("AssayGateFailed", cluster="prod"),)},
    ),
    "an incomplete night": (
        {0: (Night(),), 1: (Night(PARTIAL),), 2: (Night(),)},
        {23: SILENT, 25: (alert("AssayScanIncomplete", cluster="prod"),), 49: SILENT},
    ),
    "a killed run": (
        {0: (Night(),), 1: (Night(code=None),)},
        {23: SILENT, 25: (alert("AssayRunFailed", cluster="prod"),)},
    ),
    "a killed run that its Job repeats": (
        {0: (Night(),), 1: (Night(code=None), Night())},
        {25: SILENT, 47: SILENT},
    ),
    "a run that could not reach its cluster": (
        {0: (Night(),), 1: (Night(code=4),)},
        {25: (alert("AssayRunFailed", cluster="prod"),)},
    ),
    "a run that needs a user": (
        {0: (Night(),), 1: (Night(code=5),)},
        {25: (alert("AssayRunFailed", cluster="prod"),)},
    ),
    "a night without a run": (
        {0: (Night(),), 1: (), 2: (Night(),)},
        {25: SILENT, 27: (alert("AssayRunMissed", cluster="prod"),), 49: SILENT},
    ),
    "a limited scan as the newest one": (
        {0: (Night(), Night(PART)), 1: (Night(),)},
        {2: (alert("AssayScanLimited", cluster="prod"),), 25: SILENT},
    ),
    "limited scans that hide that none is whole": (
        {0: (Night(),), 1: (Night(PART),), 2: (Night(PART),)},
        {
            47: (alert("AssayScanLimited", cluster="prod"), alert("AssayScanOverdue", cluster="prod")),
            49: (alert("AssayScanLimited", cluster="prod"), alert("AssayScanOverdue", cluster="prod")),
        },
    ),
    "a cluster of which each scan has the same part": ({day: (Night(PART),) for day in range(3)}, {49: SILENT}),
    "a clock that is a year ahead": (
        {0: (Night(dated=365),), 1: (Night(),)},
        {1: (alert("AssayClockWrong", cluster="prod"),), 25: SILENT},
    ),
    "an API server whose clock differs": (
        {0: (Night(method=Method(clocks=ClockDifferences(-3600, 0))),)},
        {1: (alert("AssayClockWrong", cluster="prod", clock="apiServer"),)},
    ),
    "credentials that expire": (
        {0: (Night(method=Method(credentials_until=SOON)),)},
        {1: (alert("AssayCredentialsExpiring", cluster="prod"),)},
    ),
    "a cluster of which no scan is complete, until its gap is granted or left out": (
        {0: (Night(PARTIAL),), 1: (Night(PARTIAL),), 2: (Night(),)},
        {
            25: (alert("AssayScanIncomplete", cluster="prod"), alert("AssayNoCompleteScan", cluster="prod")),
            49: SILENT,
        },
    ),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_failure_of_a_cluster_raises_its_alert_alone(installation: Installation, tmp_path: Path, name: str) -> None:
    """Soon after it has happened, and until a good night."""
    nights, expected = SCENARIOS[name]
    server = installation.metrics()

    watched = installation.watch(nights, max(expected), lambda _: {TARGET: lambda: server.text(5)})

    assert "" == watched.check({after(hour): alerts for hour, alerts in expected.items()}, tmp_path)


def test_a_dead_server_behind_a_living_one_raises_an_alert(installation: Installation, tmp_path: Path) -> None:
    """Its target is down, although the other one has the metrics of every cluster."""
    server = installation.metrics()
    answers = {TARGET: lambda: server.text(5)}

    def targets(hour: int) -> Mapping[tuple[str, str], Callable[[], str | None]]:
        return {**answers, OTHER: lambda: server.text(5) if hour < 5 else None}

    watched = installation.watch(DAILY, 30, targets)

    assert "" == watched.check({after(4): (), after(30): (alert("AssayTargetDown", instance=OTHER[1]),)}, tmp_path)


def test_a_server_of_another_job_is_known_by_its_metrics(installation: Installation, tmp_path: Path) -> None:
    """And other targets of that job are none of Assay."""
    server = installation.metrics()

    def targets(hour: int) -> Mapping[tuple[str, str], Callable[[], str | None]]:
        return {("pods", "one"): lambda: server.text(5) if hour < 5 else None, ("pods", "two"): lambda: None, **living}

    living = {("pods", "three"): lambda: server.text(5)}
    watched = installation.watch(DAILY, 8, targets)

    assert "" == watched.check({after(8): (alert("AssayTargetDown", instance="one"),)}, tmp_path)


def test_a_pod_that_was_replaced_raises_no_alert(installation: Installation, tmp_path: Path) -> None:
    """Prometheus does not look for it any more."""
    server = installation.metrics()
    watched = installation.watch(DAILY, 30, lambda hour: {TARGET if hour < 5 else OTHER: lambda: server.text(5)})

    assert "" == watched.check({after(hour): () for hour in (4, 6, 30)}, tmp_path)


def test_a_cluster_that_never_ran_raises_an_alert(installation: Installation, tmp_path: Path) -> None:
    """The file of the fleet names it, and after a day no run of it is recorded; the others run."""
    server = installation.metrics(members=("prod", "edge"))
    watched = installation.watch(DAILY, 50, lambda _: {TARGET: lambda: server.text(5)})

    assert "" == watched.check(
        {
            after(20): (),
            after(27): (alert("AssayNeverRan", cluster="edge"),),
            after(50): (alert("AssayNeverRan", cluster="edge"),),
        },
        tmp_path,
    )


def test_a_cluster_whose_first_run_was_killed_is_no_silence(installation: Installation, tmp_path: Path) -> None:
    """It is known by the name of the run alone."""
    server = installation.metrics(members=("prod", "west"))
    killed = Night(replace(GOOD, cluster=WEST), code=None)
    watched = installation.watch({0: (Night(), killed)}, 5, lambda _: {TARGET: lambda: server.text(5)})
    alerts = alert("AssayRunFailed", cluster="west"), alert("AssayNoCompleteScan", cluster="west")

    assert "" == watched.check({after(5): alerts}, tmp_path)


def test_a_cluster_whose_server_is_gone_raises_an_alert(installation: Installation, tmp_path: Path) -> None:
    """Another server gives metrics of other clusters, and nothing is down: its target does not exist any more."""
    server = installation.metrics()
    with open_store(f"sqlite:///{tmp_path / 'west.db'}", lambda: installation.clock[0]) as store:
        other = Installation(f"sqlite:///{tmp_path / 'west.db'}", store, installation.clock)
        other.run(Night(replace(GOOD, cluster=WEST)))
        west = other.metrics()

        def targets(hour: int) -> Mapping[tuple[str, str], Callable[[], str | None]]:
            return {TARGET: lambda: server.text(5), **({OTHER: lambda: west.text(5)} if hour < 25 else {})}

        watched = installation.watch(DAILY, 40, targets)

    assert "" == watched.check({after(20): (), after(40): (alert("AssayMetricsAbsent", cluster="west"),)}, tmp_path)


def test_no_metrics_at_all_raise_an_alert(installation: Installation, tmp_path: Path) -> None:
    """Not one for each cluster."""
    server = installation.metrics()
    watched = installation.watch(DAILY, 30, lambda hour: {TARGET: lambda: server.text(5)} if hour < 26 else {})

    assert "" == watched.check({after(30): (alert("AssayMetricsAbsent"),)}, tmp_path)


def test_a_database_near_its_limit_raises_an_alert(installation: Installation, tmp_path: Path) -> None:
    """The limit is that of the configuration."""
    server = installation.metrics(limit=1000)
    watched = installation.watch(DAILY, 2, lambda _: {TARGET: lambda: server.text(5)})

    assert "" == watched.check({after(2): (alert("AssayDatabaseNearLimit", instance=TARGET[1]),)}, tmp_path)


@pytest.mark.parametrize("days", [10, -3])
def test_a_token_that_expires_raises_an_alert(installation: Installation, tmp_path: Path, days: int) -> None:
    """Before its last day, and after it until its entry is removed."""
    server = installation.metrics(tokens=(AccessToken("grafana", "0" * 64, (DAWN + days * DAY).date()),))
    watched = installation.watch(DAILY, 2, lambda _: {TARGET: lambda: server.text(5)})

    assert "" == watched.check({after(2): (alert("AssayTokenExpiring", token="grafana"),)}, tmp_path)


def test_a_run_that_was_killed_before_its_push_raises_an_alert(installation: Installation, tmp_path: Path) -> None:
    """The Pushgateway has the metrics of the run before; the next run is missed before it would be overdue."""
    installation.run(Night())
    begun = installation.clock[0]
    record = installation.store.read_scan("scan-1")
    samples = {
        **document_samples(document_of(record)),
        **run_samples(RunEnd(begun, 0)),
        **expected_samples(find_expected_run(NIGHTLY, begun), find_following_run(NIGHTLY, begun)),
    }
    pushed_lines = lines(samples, PROD.name)
    pushed = "".join(text(LIVE, lambda name: [pushed_lines[name]] if name in pushed_lines else []))
    watched = installation.watch({}, 40, lambda _: {("assay", ""): lambda: pushed})
    missed = alert("AssayRunMissed", cluster="prod")

    assert "" == watched.check(
        {after(24): (), after(27): (missed,), after(40): (missed, alert("AssayScanOverdue", cluster="prod"))}, tmp_path
    )


def test_promtool_notices_an_alert_that_is_not_expected(installation: Installation, tmp_path: Path) -> None:
    """So its silence has a meaning."""
    server = installation.metrics()
    watched = installation.watch({0: (Night(code=4),)}, 2, lambda _: {TARGET: lambda: server.text(5)})

    assert "AssayRunFailed" in watched.check({after(2): ()}, tmp_path)
