"""The database behind the pages: opened when it is first needed, and its scans as views, of which the latest are kept.

A database that is away, or whose schema is another one, is an answer (`DatabaseUnavailable`), not the end of the process: every request
tries again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import UTC, date, datetime
from threading import BoundedSemaphore, Lock, RLock, Thread
from time import monotonic
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from cachetools import Cache

from scanner.errors import AssayError, CredentialsRefused, QueryTooLong, StoreError, UsageError
from scanner.model.scans.scan import Scan
from scanner.posture.settings import DEFAULT_SETTINGS, Settings
from scanner.posture.triage import Triage
from scanner.posture.worst_problems import MOST
from scanner.report.document.document import make_document
from scanner.report.runs.document import RunExpectations
from scanner.store import SqlReader, open_reader
from scanner.store.catalog.clusters import StoredCluster
from scanner.store.catalog.every_cluster import ClusterScans, RunsWithoutScan
from scanner.store.read.search_query import WordMatches
from scanner.store.read.stored_scan import SqlScan
from scanner.store.rows.search_entries import MOST_WORDS
from scanner.web.requests.addresses import ScanMoment, cluster_key, find_cluster
from scanner.web.requests.limits import QUERY_SECONDS
from scanner.web.requests.refusals import (
    BadRequest,
    DatabaseUnavailable,
    NamedOtherwise,
    NotThere,
    ScanIsLater,
    reason_of,
)
from scanner.web.views.kept import KeptValues, keep_recent
from scanner.web.views.scan_counts import triage_of
from scanner.web.views.scan_view import ScanView
from scanner.web.views.turns import give_up

# Asks the database at once for all that the first page of a scan needs: it answers one question while the process
# works on another.

ValueT = TypeVar("ValueT")


class Questions:
    """Calls functions in threads, some at a time. The process does not wait for the threads when it ends."""

    def __init__(self, at_once: int) -> None:
        """Start nothing yet."""
        self._free: Final = BoundedSemaphore(at_once)

    def ask(self, call: Callable[..., ValueT], *arguments: Any) -> Future[ValueT]:
        """The answer that a function will have returned, or its error."""
        answer: Future[ValueT] = Future()
        Thread(target=self._work, args=(answer, call, arguments), name="assay-read-ahead", daemon=True).start()
        return answer

    def _work(self, answer: Future[ValueT], call: Callable[..., ValueT], arguments: tuple[Any, ...]) -> None:
        with self._free:
            try:
                answer.set_result(call(*arguments))
            except BaseException as error:  # noqa: BLE001 - raised again where the answer is needed
                answer.set_exception(error)


class AnswerAhead(Generic[ValueT]):
    """A function whose answer to some arguments is read ahead: the first call with them gets that answer."""

    def __init__(self, ahead: Callable[[], ValueT], call: Callable[..., ValueT], *arguments: Any) -> None:
        """`ahead` waits for the answer."""
        self._call = call
        self._arguments = arguments
        self._ahead: Callable[[], ValueT] | None = ahead
        self._lock = Lock()

    def __call__(self, *arguments: Any) -> ValueT:
        """The answer, for which it waits, or that of another call."""
        with self._lock:
            ahead = self._ahead if arguments == self._arguments else None
            if ahead is not None:
                self._ahead = None
        return self._call(*arguments) if ahead is None else ahead()


class CountsAhead:
    """The numbers of a scan, which are being read already, with one answer of the database. Each is given once, and then not kept."""

    def __init__(self, questions: Questions, scan: SqlScan, triage: Triage) -> None:
        """Ask."""
        owner_of, ranks, waived = triage.owner_of, triage.ranks, triage.waived.rows
        asked = questions.ask(scan.all_numbers, owner_of, ranks, waived, MOST)
        self.census = AnswerAhead(lambda: asked.result().census, scan.census)
        self.census_by_owner = AnswerAhead(lambda: iter(asked.result().census_by_owner), scan.census_by_owner, owner_of)
        self.tallies_by_owner = AnswerAhead(
            lambda: iter(asked.result().tallies_by_owner), scan.tallies_by_owner, owner_of
        )
        self.problem_totals = AnswerAhead(
            lambda: asked.result().problem_totals, scan.problem_totals, ranks, waived, MOST
        )
        self.problem_groups = AnswerAhead(lambda: asked.result().problem_groups, scan.problem_groups, ranks, waived)
        self.problems_by_namespace = AnswerAhead(
            lambda: asked.result().problems_by_namespace, scan.problems_by_namespace, waived
        )
        self.problems_by_owner = AnswerAhead(
            lambda: asked.result().problems_by_owner, scan.problems_by_owner, owner_of, waived
        )


# The views of scans in memory. The newest scan of a cluster is read most, so a full memory drops the views of earlier
# ones first.

MOST_VIEWS: Final = 64
"""The views that are kept: those of the newest scans of a fleet, and some of other dates."""
MOST_PROBLEMS: Final = 1_000_000
"""The problems of all kept views together: a bound of their memory. A view counts as a 64th of it at least."""


class View(Protocol):
    """The facts of a view by which the memory keeps it: its cluster, the end of its scan, and its number of problems."""

    @property
    def cluster(self) -> Hashable:
        """The cluster of its scan."""
        ...

    @property
    def end(self) -> datetime:
        """The end of its scan."""
        ...

    @property
    def size(self) -> int:
        """The number of its problems, or an equivalent of other data."""
        ...


ViewT = TypeVar("ViewT", bound=View)


class KeptViews(Cache[Hashable, ViewT]):
    """The views that were read last, in that order. Its methods may not be called by several threads at once.

    Row 12: without the rule for newest scans, one session in nine about a newest scan would wait half a second for its view (ADR 68).
    """

    def __init__(self, most_views: int = MOST_VIEWS, most_problems: int = MOST_PROBLEMS) -> None:
        """Keep at most so many views, and views of so many problems; always one."""
        least = most_problems // most_views
        super().__init__(most_problems, lambda view: min(max(view.size, least), most_problems))
        self._newest: Final[dict[Hashable, datetime]] = {}

    def __getitem__(self, key: Hashable) -> ViewT:
        """The view with a key, which is now the one that was read last."""
        view = super().__getitem__(key)
        super().__delitem__(key)
        super().__setitem__(key, view)
        return view

    def __setitem__(self, key: Hashable, view: ViewT) -> None:
        """Keep a view, and drop others while there are too many."""
        self._newest[view.cluster] = max(view.end, self._newest.get(view.cluster, view.end))
        super().__setitem__(key, view)

    def popitem(self) -> tuple[Hashable, ViewT]:
        """Drop the view of an earlier scan of its cluster that was not read for the longest time; else any such view."""
        key = next(filter(self._is_earlier, self), None) or next(iter(self))
        return key, self.pop(key)

    def _is_earlier(self, key: Hashable) -> bool:
        view = super().__getitem__(key)
        return view.end < self._newest[view.cluster]


_LOG: Final = logging.getLogger("assay.web")
_CHECK_AFTER: Final = 10.0
"""The seconds after which the schema of the database is checked again."""
_QUESTIONS: Final = 4
"""The questions of new views that the database answers at one time."""
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


class ScanLibrary:
    """Reads the database at a URL for many threads. `settings` are those of posture; waivers are the ones that scans stored."""

    def __init__(
        self,
        url: str,
        settings: Settings = DEFAULT_SETTINGS,
        clock: Clock = _utc_now,
        expectations: RunExpectations | None = None,
        most_seconds: float = QUERY_SECONDS,
        *,
        read_url: Callable[[], str] | None = None,
        refused: Callable[[CredentialsRefused], None] = lambda _: None,
    ) -> None:
        """`expectations` has the times at which scans of each cluster are expected. A query takes `most_seconds` at most.

        `read_url` reads the URL again, whenever the database is opened. `refused` is called when the database rejects the user.
        """
        self.settings: Final = settings
        self.clock: Final = clock
        self.expectations: Final = expectations or RunExpectations()
        self._url = url
        self._read_url: Final = read_url or (lambda: url)
        self._refused: Final = refused
        self._most_seconds: Final = most_seconds
        self._lock: Final = Lock()
        self._reader: SqlReader | None = None
        self._checked = 0.0
        self._ended = False
        self._views: Final[KeptViews[ScanView]] = KeptViews()
        self._clusters: Final[KeptValues[tuple[StoredCluster, ...]]] = keep_recent()
        self._scans: Final[KeptValues[Scan | None]] = keep_recent()
        self._fleet: Final[KeptValues[Fleet]] = keep_recent()
        self._making: Final[dict[_Key, RLock]] = {}
        self._questions: Final = Questions(_QUESTIONS)

    @contextmanager
    def use_reader(self) -> Iterator[SqlReader]:
        """The reader. Raises Unavailable while the database cannot be read, and NotThere for what it does not have."""
        try:
            yield self._open()
        except QueryTooLong as error:
            raise DatabaseUnavailable(str(error)) from error
        except StoreError as error:
            self._close()
            if isinstance(error, CredentialsRefused):
                self._refused(error)
            raise _unavailable(error) from error
        except UsageError as error:
            raise NotThere(str(error)) from error

    def _open(self) -> SqlReader:
        try:
            return self.database()
        except UsageError as error:
            raise _unavailable(error) from error

    def database(self) -> SqlReader:
        """The open database. Raises UsageError if there is none, and StoreError while it cannot be read."""
        with self._lock:
            if self._reader is not None and monotonic() - self._checked > _CHECK_AFTER:
                self._reader.check_schema()
                self._checked = monotonic()
            if self._ended:
                raise StoreError("The application ends.")
            if self._reader is None:
                self._url = self._read_url()
                self._reader = open_reader(self._url, self.clock, most_seconds=self._most_seconds)
                self._checked = monotonic()
            return self._reader

    def _close(self) -> None:
        with self._lock:
            reader, self._reader = self._reader, None
            self._views.clear()
        if reader is not None:
            reader.close()

    def renew_address(self) -> bool:
        """Return whether the database has another URL now, under which it is opened next. Raises UsageError as `read_url` does."""
        if self._read_url() == self._url:
            return False
        self._close()
        return True

    def close(self) -> None:
        """Close the connections. A thread that still works opens no other ones."""
        with self._lock:
            self._ended = True
        self._close()

    def clusters(self) -> tuple[StoredCluster, ...]:
        """The clusters with a scan in history, as of some seconds ago."""
        return self._clusters.value("", self._read_clusters)

    def _read_clusters(self) -> tuple[StoredCluster, ...]:
        with self.use_reader() as reader:
            return reader.clusters()

    def fleet(self) -> Fleet:
        """The newest scans of every cluster, as of some seconds ago."""
        return self._fleet.value("", self._read_fleet)

    def _read_fleet(self) -> Fleet:
        with self.use_reader() as reader:
            clusters, unscanned = reader.newest_scans(), reader.runs_without_scan(_UNSCANNED)
        known = {scans.cluster.name for scans in clusters} | {runs.name for runs in unscanned}
        return Fleet(clusters, unscanned, tuple(name for name in self.expectations.members if name not in known))

    def cluster(self, key: str) -> StoredCluster:
        """The cluster that a part of a path names. Raises NotThere."""
        return _find_named(key, self.clusters())

    def any_cluster(self, key: str) -> StoredCluster:
        """The cluster that a part of a path names, also one without a finished scan. Raises NotThere."""
        return _find_named(key, [each.cluster for each in self.fleet().clusters])

    def scan(self, cluster: StoredCluster, moment: ScanMoment) -> Scan:
        """The scan of a cluster that a moment names. Raises BadRequest and NotThere."""
        try:
            end = moment.end
        except ValueError as error:
            raise BadRequest(str(error)) from error
        if end is not None and moment.day is not None and moment.day > self.clock().astimezone(UTC).date():
            raise BadRequest(f"{moment.at} is in the future: no scan can have ended by then.")
        scan = self._scans.value((cluster.id, moment), lambda: self._read_scan(cluster.id, moment.scan, end))
        if scan is None:
            scan_words = (
                f"a scan {moment.scan[:80]!r}" if moment.scan else f"a scan that had ended by {moment.at or 'now'}"
            )
            message = f"The cluster {cluster.name} does not have {scan_words}."
            first = None if moment.scan else self._read_first(cluster.id)
            raise NotThere(message) if first is None else ScanIsLater(message, first.id)
        return scan

    def _read_first(self, cluster: int) -> Scan | None:
        with self.use_reader() as reader:
            return reader.find_first_scan(cluster)

    def _read_scan(self, cluster: int, scan_id: str, until: datetime | None) -> Scan | None:
        with self.use_reader() as reader:
            return reader.find_scan_of_cluster(cluster, scan_id) if scan_id else reader.find_newest_scan(cluster, until)

    def view(self, scan: Scan, day: date | None = None) -> ScanView:
        """The view of a finished scan as of a day; by default, of the day on which it ended. Made once, while it is kept."""
        key = _Key(scan.id, scan.cluster.name, day)
        with self._lock:
            view = self._views.get(key)
            if view is not None:
                return view
            making = self._making.setdefault(key, RLock())
        if not making.acquire(blocking=False):
            give_up()  # another thread makes the view: this turn may be the one that it needs
            making.acquire()
        try:
            with self._lock:
                view = self._views.get(key)
            if view is None:
                view = self._make(scan.id, day)
                with self._lock:
                    self._views[key] = view
        finally:
            making.release()
        with self._lock:
            self._making.pop(key, None)
        return view

    def _make(self, scan_id: str, day: date | None) -> ScanView:
        with self.use_reader() as reader:
            record = reader.read_scan(scan_id)
            triage = triage_of(reader, self.settings, record, day)
            return ScanView(record, make_document(record, triage, counts=CountsAhead(self._questions, record, triage)))

    def words(self, cluster: StoredCluster, text: str) -> Sequence[WordMatches]:
        """The shared texts of a cluster that have each word of a search. Raises BadRequest for more words than a search has."""
        if len(text.split()) > MOST_WORDS:
            raise BadRequest(f"text: at most {MOST_WORDS} words.")
        with self.use_reader() as reader:
            return reader.search_words(cluster.id, text)

    def key(self, cluster: StoredCluster) -> str:
        """The part of a path that names a cluster."""
        return cluster_key(cluster)


def _unavailable(error: AssayError) -> DatabaseUnavailable:
    """The answer for readers, who do not see the address of the database; the log has the whole message."""
    _LOG.warning("%s", error)
    return DatabaseUnavailable(reason_of(error))


def _find_named(key: str, clusters: Sequence[StoredCluster]) -> StoredCluster:
    cluster = find_cluster(key, clusters)
    if cluster is None:
        message = f"There is no cluster {key[:80]!r} in this database."
        named = [each for each in clusters if each.name == key]
        raise NamedOtherwise(message, key, cluster_key(named[0])) if len(named) == 1 else NotThere(message)
    return cluster
