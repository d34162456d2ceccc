"""`/metrics`: the metrics of every cluster of the database, with the names and labels of the format `openmetrics`.

The values of a cluster are those of its newest scan, as of today: finished scans do not change, so each is read once, and once a
day if it has waivers. Times, ages and numbers of scans and runs are those of the moment of the request. A scan that is newer than
the last request is read in the background; a request waits for it a little less than Prometheus waits for the request.

An answer never looks complete when it is not: as long as the newest scan of a cluster was never read, the answer is 503, and
`assay_clusters{state="outdated"}` counts clusters that show an earlier scan or day because the newest one is still being read.
Clusters that the file of the fleet does not name have no metrics, and `assay_clusters{state="left"}` counts them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from threading import BoundedSemaphore
from typing import Final, NamedTuple, Protocol

from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from scanner.errors import AssayError, UsageError
from scanner.model.access_token import AccessToken
from scanner.model.scans.register import Register
from scanner.model.scans.stored_scan import StoredScan
from scanner.model.schedule import Schedule
from scanner.model.waiver import WaiverSet
from scanner.posture.run_register import ExpectedRun, find_expected_run, find_following_run
from scanner.posture.settings import Settings
from scanner.report.document.scan_numbers import numbers_of
from scanner.report.formats.metric_families import LIVE, Lines, Samples, lines, text
from scanner.report.formats.openmetrics import (
    RunEnd,
    database_samples,
    expected_samples,
    notification_samples,
    register_samples,
    run_samples,
    scan_samples,
    token_samples,
    unrecorded_samples,
)
from scanner.store.catalog.every_cluster import AllClusters, ClusterNumbers, NewestRuns
from scanner.web.requests.refusals import reason_of
from scanner.web.server.health import Background, Log, write_to_stderr

OPEN_METRICS: Final = "application/openmetrics-text"
_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"
_OPEN_TEXT: Final = f"{OPEN_METRICS}; version=1.0.0; charset=utf-8"
_TIMEOUT_HEADER: Final = "X-Prometheus-Scrape-Timeout-Seconds"
_SECONDS: Final = re.compile(r"\d{1,6}(\.\d{1,9})?", re.ASCII)
_TIMEOUT: Final = 10.0
"""Seconds that Prometheus waits by default."""
_SPARE: Final = 1.0
"""Seconds between the end of a request and the end of Prometheus' patience."""
_LONGEST: Final = 60.0
_RETRY: Final = 15
_WAITING: Final = 8
"""Requests that may wait at once: each needs a thread, of which pages need some, too."""
_FAST: Final = 1
"""The level of the compression: metrics repeat the same labels, and a higher level saves little."""


class Database(Protocol):
    """An open database."""

    def all_clusters(self) -> AllClusters:
        """The scans and runs of every cluster in numbers."""

    def read_scan(self, scan_id: str, /) -> StoredScan:
        """The record of a finished scan. Raises UsageError if it has none any more."""

    def find_waivers_at(self, scan_id: str, moment: datetime, /) -> WaiverSet | None:
        """The newest waivers that a scan of the same cluster had stored at a moment."""


class _Fleet(NamedTuple):
    """The clusters and runs of the fleet, the number of others in the database, and its size: see `AllClusters`."""

    clusters: tuple[ClusterNumbers, ...]
    unreached: Mapping[str, NewestRuns]
    left: int
    database_bytes: int
    most_bytes: int | None


class NotReady(Exception):
    """The newest scan of a cluster was not read yet."""


@dataclass(frozen=True, slots=True)
class _ReadScan:
    """The lines of the newest scan of a cluster, as of a day; without waivers they are the same on all days, and `day` is None."""

    scan: str
    day: date | None
    label: str
    lines: Lines

    def is_of(self, cluster: ClusterNumbers, day: date) -> bool:
        return (self.scan, self.label) == (cluster.newest, cluster.label) and self.day in {None, day}


class ClusterMetrics:
    """Makes the text of `/metrics`. Keeps the lines of one scan of each cluster."""

    def __init__(
        self,
        database: Callable[[], Database],
        settings: Settings,
        schedule_of: Callable[[str], Schedule | None] = lambda _name: None,
        *,
        includes: Callable[[str], bool] = lambda _name: True,
        members: Sequence[str] = (),
        tokens: Sequence[AccessToken] = (),
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`database` returns the open database, or raises AssayError. `schedule_of` returns the schedule of a cluster, by its name.

        `includes` returns whether a cluster, by its name, is of the fleet. `members` are the names of the clusters of the fleet, `tokens`
        those that the server accepts. Waivers are those that scans stored.
        """
        self._database = database
        self._settings = replace(settings, frameworks=())
        self._schedule_of = schedule_of
        self._includes = includes
        self._members = members
        self._tokens = token_samples(tokens)
        self._clock = clock
        self._expected: dict[Schedule, ExpectedRun | None] = {}
        self._read: dict[int, _ReadScan] = {}
        self._reading = Background(self._read_scans, "assay-metrics")

    def text(self, patience: float) -> str:
        """The metrics of all clusters, as of now. Waits at most `patience` seconds for scans that are read.

        Raises AssayError if the database cannot be read, NotReady if scans need more time.
        """
        now = self._clock()
        numbers = self._read_fleet(self._database())
        if any(self._must_read(cluster, now.date()) for cluster in numbers.clusters):
            self._reading.run(patience)
            numbers = self._read_fleet(self._database())
        read = dict(self._read)
        scanned = [cluster for cluster in numbers.clusters if cluster.newest]
        known = sum(cluster.cluster.id in read for cluster in scanned)
        if known < len(scanned):
            raise NotReady(f"the newest scans of {known} of {len(scanned)} clusters have been read")
        return "".join(self._text(numbers, read, now))

    def _read_fleet(self, database: Database) -> _Fleet:
        """The clusters and runs of the fleet. The database can have more of them."""
        every = database.all_clusters()
        clusters = tuple(each for each in every.clusters if self._includes(each.cluster.name))
        unreached = {name: runs for name, runs in every.unreached.items() if self._includes(name)}
        left = len(every.clusters) + len(every.unreached) - len(clusters) - len(unreached)
        return _Fleet(clusters, unreached, left, every.database_bytes, every.most_bytes)

    def _must_read(self, cluster: ClusterNumbers, day: date) -> bool:
        """Return whether the newest scan of a cluster must be read."""
        read = self._read.get(cluster.cluster.id)
        return bool(cluster.newest) and (read is None or not read.is_of(cluster, day))

    def _read_scans(self) -> None:
        """Read the newest scan of each cluster that waits, and forget clusters that are gone. Raises AssayError."""
        database = self._database()
        clusters = self._read_fleet(database).clusters
        for gone in self._read.keys() - {each.cluster.id for each in clusters if each.newest}:
            del self._read[gone]
        for cluster in clusters:
            now = self._clock()
            if self._must_read(cluster, now.date()):
                self._read_scan(database, cluster, now)

    def _read_scan(self, database: Database, cluster: ClusterNumbers, now: datetime) -> None:
        try:
            record = database.read_scan(cluster.newest)
        except UsageError:
            return  # The scan was pruned a moment ago: the next request names a newer one.
        waivers, day = database.find_waivers_at(cluster.newest, now), now.date()
        numbers = numbers_of(record, replace(self._settings, waivers=waivers), day)
        scan_lines = lines(scan_samples(numbers), cluster.label)
        self._read[cluster.cluster.id] = _ReadScan(cluster.newest, day if waivers else None, cluster.label, scan_lines)

    def _text(self, numbers: _Fleet, read: dict[int, _ReadScan], now: datetime) -> Iterator[str]:
        """The text of all metrics: each metric once, with the lines of every cluster."""
        limit = database_samples(numbers.most_bytes, self._settings.database_limit)
        all_lines: list[Lines] = [
            lines({"assay_clusters": _states(numbers, read, now.date()).items(), **self._tokens}, "")
        ]
        for cluster in numbers.clusters:
            if cluster.newest:
                all_lines.append(read[cluster.cluster.id].lines)
            register = Register(cluster.scans, *cluster.last, numbers.database_bytes)
            runs = self._run_samples(cluster.cluster.name, cluster.runs, now)
            live = {**runs, **limit, **notification_samples(cluster.notifications)}
            all_lines.append(lines({**register_samples(register, now), **live}, cluster.label))
        all_lines += [lines(self._run_samples(name, runs, now), name) for name, runs in numbers.unreached.items()]
        known = {*numbers.unreached, *(cluster.cluster.name for cluster in numbers.clusters)}
        all_lines += [
            lines({**unrecorded_samples(), **self._run_samples(name, None, now)}, name)
            for name in self._members
            if name not in known
        ]
        return text(LIVE, lambda name: (each[name] for each in all_lines if name in each))

    def _run_samples(self, name: str, runs: NewestRuns | None, now: datetime) -> dict[str, Samples]:
        """The samples about the runs of a cluster, and about those that its schedule expects."""
        schedule = self._schedule_of(name)
        expected = self._find_expected_run(schedule, now) if schedule else None
        if runs is None:
            return expected_samples(expected)
        following = find_following_run(schedule, runs.begun) if schedule else None
        ended = RunEnd(runs.ended.finished_at, runs.ended.exit_code) if runs.ended else None
        return {**run_samples(ended), **expected_samples(expected, following)}

    def _find_expected_run(self, schedule: Schedule, now: datetime) -> ExpectedRun | None:
        """The last expected run of a schedule, which is searched for again once another one is expected."""
        known = self._expected.get(schedule)
        if known is None or not known.is_last(now):
            known = self._expected[schedule] = find_expected_run(schedule, now)
        return known


def _states(numbers: _Fleet, read: dict[int, _ReadScan], day: date) -> dict[tuple[str], float]:
    """The numbers of clusters by the state of their metrics."""
    states: dict[tuple[str], float] = {("current",): 0, ("outdated",): 0, ("unscanned",): 0, ("left",): numbers.left}
    for cluster in numbers.clusters:
        current = cluster.newest and read[cluster.cluster.id].is_of(cluster, day)
        states[("current" if current else "outdated" if cluster.newest else "unscanned",)] += 1
    states["unscanned",] += len(numbers.unreached)
    return states


def metrics_routes(metrics: ClusterMetrics, *, log: Log = write_to_stderr) -> list[Route]:
    """`/metrics`. It has no authentication of its own: wrap it, or serve it where only Prometheus reaches it."""
    waiting = BoundedSemaphore(_WAITING)

    def answer(request: Request) -> Response:
        if not waiting.acquire(blocking=False):
            return _refuse_not_ready("too many requests wait for the metrics")
        try:
            text = metrics.text(_patience(request))
        except NotReady as reason:
            return _refuse_not_ready(str(reason))
        except AssayError as error:
            log(f"no metrics: {error}")
            return _refuse_not_ready(reason_of(error))
        finally:
            waiting.release()
        kind = _OPEN_TEXT if OPEN_METRICS in request.headers.get("accept", "") else _TEXT
        return Response(text, headers={"Content-Type": kind, "Cache-Control": "no-store"})

    compressed = Middleware(GZipMiddleware, compresslevel=_FAST)
    return [Route("/metrics", answer, middleware=[compressed])]


def _refuse_not_ready(reason: str) -> Response:
    return PlainTextResponse(f"not ready: {reason}\n", 503, headers={"Retry-After": str(_RETRY)})


def _patience(request: Request) -> float:
    """The longest time that a request may wait, in seconds: Prometheus sends how long it waits itself."""
    sent = request.headers.get(_TIMEOUT_HEADER, "")
    timeout = float(sent) if _SECONDS.fullmatch(sent) else _TIMEOUT
    return max(0.0, min(timeout, _LONGEST) - _SPARE)
