"""The database behind the pages: opened when it is first needed, and its scans as views, of which the latest are kept.

A database that is away, or whose schema is another one, is an answer (`Unavailable`), not the end of the process: every request
tries again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime
from threading import Lock, RLock
from time import monotonic
from typing import Final, NamedTuple

from scanner.errors import AssayError, QueryTooLong, StoreError, UsageError
from scanner.model.scan import Scan
from scanner.posture.settings import DEFAULT_SETTINGS, Settings
from scanner.posture.triage import Triage
from scanner.report.document.document import document_with
from scanner.report.runs.document import Expectations
from scanner.store import SqlReader, open_reader
from scanner.store.catalog.clusters import StoredCluster
from scanner.store.catalog.every_cluster import ClusterScans, RunsWithoutScan
from scanner.store.read.search_query import WordMatches
from scanner.store.rows.search_entries import MOST_WORDS
from scanner.web.addresses import Moment, cluster_key, find_cluster
from scanner.web.kept import Kept, recent
from scanner.web.kept_views import KeptViews
from scanner.web.limits import QUERY_SECONDS
from scanner.web.read_ahead import CountsAhead, Questions
from scanner.web.refusals import BadRequest, NotThere, Unavailable, reason_of
from scanner.web.scan_view import ScanView
from scanner.web.turns import give_up

_LOG: Final = logging.getLogger("assay.web")
_CHECK_AFTER: Final = 10.0
"""The seconds after which the schema of the database is checked again."""
_QUESTIONS: Final = 4
"""The questions of new views that the database is asked at one time."""
_UNSCANNED: Final = 20
"""The names of runs without a scan that are read."""

Clock = Callable[[], datetime]


def _utc_now() -> datetime:
    return datetime.now(UTC)


class _Key(NamedTuple):
    scan: str
    cluster: str
    day: date | None


class Fleet(NamedTuple):
    """The newest scans of every cluster, also of those without a scan in history, and the names of runs that never began a scan.

    `without_run` are the names of expected clusters that no run in the database has.
    """

    clusters: tuple[ClusterScans, ...]
    unscanned: tuple[RunsWithoutScan, ...]
    without_run: tuple[str, ...] = ()


class Library:
    """Reads the database at a URL for many threads. `settings` are those of posture; waivers are the ones that scans stored."""

    def __init__(
        self,
        url: str,
        settings: Settings = DEFAULT_SETTINGS,
        clock: Clock = _utc_now,
        expectations: Expectations | None = None,
        most_seconds: float = QUERY_SECONDS,
    ) -> None:
        """`expectations` has the times at which scans of each cluster are expected. A query takes `most_seconds` at most."""
        self.settings: Final = settings
        self.clock: Final = clock
        self.expectations: Final = expectations or Expectations()
        self._url: Final = url
        self._most_seconds: Final = most_seconds
        self._lock: Final = Lock()
        self._reader: SqlReader | None = None
        self._checked = 0.0
        self._ended = False
        self._views: Final[KeptViews[ScanView]] = KeptViews()
        self._clusters: Final[Kept[tuple[StoredCluster, ...]]] = recent()
        self._scans: Final[Kept[Scan | None]] = recent()
        self._fleet: Final[Kept[Fleet]] = recent()
        self._making: Final[dict[_Key, RLock]] = {}
        self._questions: Final = Questions(_QUESTIONS)

    @contextmanager
    def reading(self) -> Iterator[SqlReader]:
        """The reader. Raises Unavailable while the database cannot be read, and NotThere for what it does not have."""
        try:
            yield self._opened()
        except QueryTooLong as error:
            raise Unavailable(str(error)) from error
        except StoreError as error:
            self._close()
            raise _unavailable(error) from error
        except UsageError as error:
            raise NotThere(str(error)) from error

    def _opened(self) -> SqlReader:
        try:
            return self.database()
        except UsageError as error:
            raise _unavailable(error) from error

    def database(self) -> SqlReader:
        """The open database. Raises UsageError if there is none, and StoreError while it cannot be read."""
        with self._lock:
            if self._reader is not None and monotonic() - self._checked > _CHECK_AFTER:
                self._reader.check()
                self._checked = monotonic()
            if self._ended:
                raise StoreError("The application ends.")
            if self._reader is None:
                self._reader = open_reader(self._url, self.clock, most_seconds=self._most_seconds)
                self._checked = monotonic()
            return self._reader

    def _close(self) -> None:
        with self._lock:
            reader, self._reader = self._reader, None
            self._views.clear()
        if reader is not None:
            reader.close()

    def close(self) -> None:
        """Close the connections. A thread that still works opens no other ones."""
        with self._lock:
            self._ended = True
        self._close()

    def clusters(self) -> tuple[StoredCluster, ...]:
        """The clusters with a scan in history, as of some seconds ago."""
        return self._clusters.value("", self._read_clusters)

    def _read_clusters(self) -> tuple[StoredCluster, ...]:
        with self.reading() as reader:
            return reader.clusters()

    def fleet(self) -> Fleet:
        """The newest scans of every cluster, as of some seconds ago."""
        return self._fleet.value("", self._read_fleet)

    def _read_fleet(self) -> Fleet:
        with self.reading() as reader:
            clusters, unscanned = reader.newest_scans(), reader.runs_without_scan(_UNSCANNED)
        known = {scans.cluster.name for scans in clusters} | {runs.name for runs in unscanned}
        return Fleet(clusters, unscanned, tuple(name for name in self.expectations.members if name not in known))

    def cluster(self, key: str) -> StoredCluster:
        """The cluster that a part of a path names. Raises NotThere."""
        return _named(key, self.clusters())

    def any_cluster(self, key: str) -> StoredCluster:
        """The cluster that a part of a path names, also one without a finished scan. Raises NotThere."""
        return _named(key, [each.cluster for each in self.fleet().clusters])

    def scan(self, cluster: StoredCluster, moment: Moment) -> Scan:
        """The scan of a cluster that a moment names. Raises BadRequest and NotThere."""
        try:
            end = moment.end
        except ValueError as error:
            raise BadRequest(str(error)) from error
        if end is not None and moment.day is not None and moment.day > self.clock().astimezone(UTC).date():
            raise BadRequest(f"{moment.at} is in the future: no scan can have ended by then.")
        found = self._scans.value((cluster.id, moment), lambda: self._read_scan(cluster.id, moment.scan, end))
        if found is None:
            wanted = f"a scan {moment.scan[:80]!r}" if moment.scan else f"a scan that had ended by {moment.at or 'now'}"
            raise NotThere(f"The cluster {cluster.name} does not have {wanted}.")
        return found

    def _read_scan(self, cluster: int, scan_id: str, until: datetime | None) -> Scan | None:
        with self.reading() as reader:
            return reader.scan_of_cluster(cluster, scan_id) if scan_id else reader.newest_of_cluster(cluster, until)

    def view(self, scan: Scan, day: date | None = None) -> ScanView:
        """The view of a finished scan as of a day; by default, of the day on which it ended. Made once, while it is kept."""
        key = _Key(scan.id, scan.cluster.name, day)
        with self._lock:
            view = self._views.get(key)
            if view is not None:
                return view
            making = self._making.setdefault(key, RLock())
        if not making.acquire(blocking=False):
            give_up()
            making.acquire()
        try:
            with self._lock:
                view = self._views.get(key)
            if view is None:
                view = self._made(scan.id, day)
                with self._lock:
                    self._views[key] = view
        finally:
            making.release()
        with self._lock:
            self._making.pop(key, None)
        return view

    def _made(self, scan_id: str, day: date | None) -> ScanView:
        with self.reading() as reader:
            record = reader.record(scan_id)
            moment = record.scan.finished_at or record.scan.started_at
            settings = replace(self.settings, waivers=self.settings.waivers or reader.waivers_at(scan_id, moment))
            triage = Triage(settings, record, day)
            return ScanView(record, document_with(record, triage, counts=CountsAhead(self._questions, record, triage)))

    def words(self, cluster: StoredCluster, text: str) -> Sequence[WordMatches]:
        """The shared texts of a cluster that have each word of a search. Raises BadRequest for more words than a search has."""
        if len(text.split()) > MOST_WORDS:
            raise BadRequest(f"text: at most {MOST_WORDS} words.")
        with self.reading() as reader:
            return reader.search_words(cluster.id, text)

    def key(self, cluster: StoredCluster) -> str:
        """The part of a path that names a cluster."""
        return cluster_key(cluster)


def _unavailable(error: AssayError) -> Unavailable:
    """The answer for readers, who do not see the address of the database; the log has the whole message."""
    _LOG.warning("%s", error)
    return Unavailable(reason_of(error))


def _named(key: str, clusters: Sequence[StoredCluster]) -> StoredCluster:
    cluster = find_cluster(key, clusters)
    if cluster is None:
        raise NotThere(f"There is no cluster {key[:80]!r} in this database.")
    return cluster
