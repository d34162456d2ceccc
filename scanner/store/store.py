"""The store, which scans write to and reports read from.

Every method is one short transaction, and raises StoreError for errors of the database.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Self

from sqlalchemy import Connection, Engine

from scanner.errors import AssayError, StoreError
from scanner.model.json import JsonObject
from scanner.model.policy import PolicyKey
from scanner.model.population import GroupKind, ObjectPage, PlaceOfPage
from scanner.model.resource import Kind
from scanner.model.scans.census import OwnerOf
from scanner.model.scans.notification import Notification, NotificationState
from scanner.model.scans.place import PlacedObject
from scanner.model.scans.problem_numbers import NewProblems, ProblemCounts
from scanner.model.scans.run import RunDetails
from scanner.model.scans.scan import ClusterIdentity, ObjectCount, PageResult, Scan, ScanEnd, ScanStart
from scanner.model.texts import clean
from scanner.model.waiver import WaiverSet
from scanner.posture.owners import DEFAULT_OWNER_KEYS, OwnerKey
from scanner.store.catalog import clusters, every_cluster, notifications, places, rules, runs, scans, waivers
from scanner.store.catalog.clusters import StoredCluster
from scanner.store.catalog.every_cluster import ClusterScans, RunsWithoutScan
from scanner.store.catalog.scans import ScanPage, abandoned, mark_failed, pruned, with_current_state
from scanner.store.database.address import Address, address_of
from scanner.store.database.clocks import Clock, clock_of
from scanner.store.database.engine import (
    close_connections,
    create_file,
    engine_for,
    merge_log,
    reading_at_once,
    reading_engine_for,
    share_texts,
    writing,
    writing_shared,
)
from scanner.store.database.store_errors import as_store_error
from scanner.store.read import lookup, problem_counts, recorded_objects, search_hits, stored_scan, trends
from scanner.store.read.search import search
from scanner.store.read.search_query import WordMatches, search_words
from scanner.store.read.stored_scan import SqlScan
from scanner.store.rows import sizes
from scanner.store.upkeep.schema import Upgraded, check, migrate, prepare

if TYPE_CHECKING:
    from scanner.posture.history.daily import Day, TimeToFix
    from scanner.posture.history.scan_diff import ScanDiff


class SqlReader:
    """Reads stored scans, and writes nothing.

    The clock, in any zone, decides which of the running scans are dead.
    """

    def __init__(self, engine: Engine, address: Address, clock: Clock) -> None:
        """Use a database with the current schema."""
        self._engine = engine
        self._address = address
        self._clock = clock
        self._beat = datetime.min.replace(tzinfo=UTC)

    @property
    def shown(self) -> str:
        """The address of the database, without a password."""
        return self._address.shown

    def latest(self, cluster: str | None = None) -> Scan | None:
        """The newest complete or partial scan, of one cluster (by name, UID or identity) or of any.

        Raises UsageError if several clusters have the name.
        """
        with self._reading() as connection:
            return lookup.latest(connection, cluster if cluster is None else clean(cluster))

    def scans(self, limit: int = 50) -> tuple[Scan, ...]:
        """The newest scans in any state, the newest first."""
        with self._reading() as connection:
            dead = abandoned(connection, self._clock())
            return tuple(with_current_state(scan, dead) for scan in lookup.scans(connection, limit))

    def pruned(self, scans: Sequence[Scan]) -> frozenset[str]:
        """The ids of those scans that were pruned."""
        with self._reading() as connection:
            return pruned(connection, [scan.id for scan in scans])

    def runs(
        self,
        limit: int | None = None,
        *,
        cluster: str | None = None,
        since: datetime | None = None,
        before: int | None = None,
    ) -> tuple[RunDetails, ...]:
        """The newest runs, the newest first: of one cluster (by name, UID or identity), since a moment, or those before a run.

        A run whose process was killed stays open. Raises UsageError if no run is of that cluster, or if several clusters have
        the name.
        """
        with self._reading() as connection:
            name = cluster if cluster is None else clean(cluster)
            return runs.runs(connection, self._clock(), limit=limit, cluster=name, since=since, before=before)

    def first_run(self, cluster: str | None = None) -> datetime | None:
        """The begin of the first recorded run, of one cluster or of all; None without one. Raises as `runs` does."""
        with self._reading() as connection:
            return runs.first_run(connection, cluster if cluster is None else clean(cluster))

    def number_of_runs(self, *, cluster: str | None = None, since: datetime | None = None) -> int:
        """The number of all runs that `runs` lists without a limit. Raises as `runs` does."""
        with self._reading() as connection:
            return runs.number_of_runs(connection, cluster if cluster is None else clean(cluster), since)

    def run_of_cluster(self, number: int, cluster: str) -> RunDetails | None:
        """The run of a cluster (by identity) with a number; None if it is none of its runs. Raises UsageError without any run."""
        with self._reading() as connection:
            found = runs.runs(connection, self._clock(), cluster=clean(cluster), number=number)
            return found[0] if found else None

    def run(self, number: int) -> RunDetails:
        """The run with a number. Raises UsageError for an unknown one."""
        with self._reading() as connection:
            return runs.run(connection, number, self._clock())

    def clusters_of_runs(self) -> tuple[str, ...]:
        """The clusters that runs have scanned, by name, or by identity where several have the same name."""
        with self._reading() as connection:
            return runs.clusters_of_runs(connection)

    def object_counts(self, scan_id: str) -> tuple[ObjectCount, ...]:
        """The counts of the kinds of a scan, in the order of its coverage; empty for a scan of an older version."""
        with self._reading() as connection:
            return scans.read_object_counts(connection, clean(scan_id))

    def check_schema(self) -> None:
        """Raise StoreError unless the database answers and has the schema of this version."""
        with as_store_error(self._address):
            check(self._engine, self._address)

    def all_clusters(self) -> every_cluster.AllClusters:
        """The scans and runs of every cluster in numbers, also of clusters whose scans have all failed."""
        with self._reading() as connection:
            return every_cluster.all_clusters(connection, self._clock())

    def clusters(self) -> tuple[clusters.StoredCluster, ...]:
        """The clusters that have a scan in history, the oldest first."""
        with self._reading() as connection:
            return lookup.scanned_clusters(connection)

    def cluster(self, name: str | None = None) -> StoredCluster:
        """The cluster with a name, a UID or an identity, else that of the newest scan. Raises UsageError if there is none."""
        with self._reading() as connection:
            return clusters.chosen(connection, name if name is None else clean(name), lookup.latest(connection, None))

    def days(self, cluster: int, since: date, until: date = date.max) -> tuple[Day, ...]:
        """The recorded days of a cluster, by its id, from a date to another one, the oldest first."""
        with self._reading() as connection:
            return trends.days(connection, cluster, since, until)

    @contextmanager
    def trend(
        self, cluster: int, since: date, chosen: Callable[[str], bool] | None = None, *, until: date = date.max
    ) -> Iterator[trends.Trend]:
        """All daily tallies of a cluster, by its id, of some days, to be read inside the block; of some policies or of all."""
        with self._reading_at_once() as connection:
            names = None if chosen is None else list(filter(chosen, trends.policies(connection)))
            yield trends.trend(connection, cluster, since, until, policies=names)

    def trend_of_policies(
        self, cluster: int, since: date, failing: Collection[str], *, until: date = date.max
    ) -> trends.TrendOfPolicies:
        """The recorded days of a cluster, by its id, and the numbers of outcomes among `failing` of each policy."""
        with self._reading_at_once() as connection:
            recorded = trends.days(connection, cluster, since, until)
            counts = trends.failing_by_policy(connection, cluster, since, until, failing=failing)
            return trends.TrendOfPolicies(recorded, counts)

    def trend_of_days(
        self, cluster: int, since: date, chosen: Callable[[str], bool], *, until: date = date.max
    ) -> trends.TrendOfDays:
        """The recorded days of a cluster, by its id, and the outcomes of chosen policies on each."""
        with self._reading_at_once() as connection:
            recorded = trends.days(connection, cluster, since, until)
            names = list(filter(chosen, trends.policies(connection)))
            outcomes = trends.outcomes_by_day(connection, cluster, since, until, names=names)
            return trends.TrendOfDays(recorded, outcomes)

    def times_to_fix(self, cluster: int, since: date, until: date = date.max) -> tuple[TimeToFix, ...]:
        """The times of the problems of a cluster, by its id, that scans saw fixed from a date to another one, by policy."""
        from scanner.store.history import daily

        with self._reading() as connection:
            return daily.times_to_fix(connection, cluster, since, until)

    def stats(self) -> sizes.Stats:
        """The size of the database."""
        with self._reading() as connection:
            return sizes.stats(connection)

    def find_scan(self, text: str, cluster: str | None = None) -> Scan:
        """The scan with an id, the beginning of an id, `last` or `last~N`. Raises UsageError."""
        with self._reading() as connection:
            scan = lookup.find_scan(connection, clean(text), cluster if cluster is None else clean(cluster))
            return with_current_state(scan, abandoned(connection, self._clock()))

    def scan_at(self, moment: datetime, cluster: str | None = None) -> Scan:
        """The complete or incomplete scan with the latest date up to a moment. Raises UsageError if there is none."""
        with self._reading() as connection:
            return lookup.scan_at(connection, moment, cluster if cluster is None else clean(cluster))

    def scan_of_cluster(self, cluster: int, scan_id: str) -> Scan | None:
        """The scan of a cluster, by its id, with a full id; None if there is none."""
        with self._reading() as connection:
            scan = lookup.scan_of_cluster(connection, cluster, clean(scan_id))
            return scan and with_current_state(scan, abandoned(connection, self._clock()))

    def newest_of_cluster(self, cluster: int, until: datetime | None = None) -> Scan | None:
        """The newest complete or incomplete scan of a cluster, by its id; None if there is none.

        With a moment, the one with the latest date up to then.
        """
        with self._reading() as connection:
            return lookup.newest_of_cluster(connection, cluster, until)

    def earlier_first(self, *scans: str) -> tuple[str, ...]:
        """Scans of a cluster, by their full ids, in the order of its history."""
        with self._reading() as connection:
            return lookup.earlier_first(connection, scans)

    def newest_scans(self) -> tuple[ClusterScans, ...]:
        """The newest scans of every cluster, also of those without a finished scan, the oldest cluster first."""
        with self._reading() as connection:
            return every_cluster.newest_scans(connection, self._clock())

    def runs_without_scan(self, most: int) -> tuple[RunsWithoutScan, ...]:
        """The names under which runs began, but never a scan: at most so many, those of the newest runs first."""
        with self._reading() as connection:
            return every_cluster.runs_without_scan(connection, most)

    def clusters_with(self, clusters: Collection[int], kind: str, namespace: str, name: str) -> frozenset[int]:
        """Those of some clusters, by id, in which the newest scan that could see an object saw it; case does not count in `kind`."""
        with self._reading() as connection:
            return recorded_objects.clusters_with(connection, clusters, clean(kind), clean(namespace), clean(name))

    def policy_specs(self, policy: PolicyKey, digests: Collection[str]) -> Mapping[str, JsonObject]:
        """The specs of a policy by their digests, as scans recorded them."""
        with self._reading() as connection:
            return rules.policy_specs(connection, policy, digests)

    def binding_specs(self, policy: PolicyKey, digests: Collection[str]) -> Mapping[tuple[str, str], JsonObject]:
        """The specs of the bindings of a policy by their names and digests, as scans recorded them."""
        with self._reading() as connection:
            return rules.binding_specs(connection, policy, digests)

    def check(self) -> None:
        """Check the schema of the database again. Raises as `open_reader` does."""
        with as_store_error(self._address):
            check(self._engine, self._address)

    def record(self, scan_id: str) -> SqlScan:
        """A finished scan, by its full id. Raises UsageError for an unknown id."""
        with as_store_error(self._address):
            return stored_scan.record(self._engine, self._address, clean(scan_id), self._clock())

    def scans_of_cluster(self, cluster: int, *, before: int | None = None, limit: int) -> ScanPage:
        """The newest scans of a cluster, by its id, whose numbers are lower than `before`."""
        with self._reading() as connection:
            return scans.scan_page(connection, cluster, self._clock(), before=before, limit=limit)

    def newest_of_clusters(self) -> Mapping[int, Scan]:
        """The newest complete or incomplete scan of every cluster, by the id of the cluster."""
        with self._reading() as connection:
            return scans.newest_of_clusters(connection)

    def population_page(
        self, scan_id: str, *, kind: str = "", after: PlaceOfPage | None = None, limit: int
    ) -> ObjectPage:
        """The objects of a finished scan, by its full id, that follow a place: of one kind, or of all. Raises UsageError."""
        with self._reading_at_once() as connection:
            stored = stored_scan.stored_scan(connection, clean(scan_id), abandoned(connection, self._clock()))
            if stored.revision is None:
                return ObjectPage((), 0, None)
            of = recorded_objects.PopulationOfScan(stored.cluster, stored.number, stored.revision)
            return recorded_objects.population_page(connection, of, kind=kind, after=after, limit=limit)

    def waivers_at(self, scan_id: str, moment: datetime) -> WaiverSet | None:
        """The newest waivers that a scan of the same cluster stored, if it had ended at a moment; None if none did."""
        with self._reading() as connection:
            return waivers.waivers_at(connection, clean(scan_id), moment)

    def problem_counts(
        self,
        scan_id: str,
        baseline: str = "",
        ids: Container[str] | None = None,
        *,
        waived: Mapping[str, frozenset[int]] | None = None,
        below: Collection[PolicyKey] = (),
    ) -> ProblemCounts:
        """The numbers of a finished scan's problems, by its full id.

        New are those that were not open in the scan `baseline` (a full id), or not among `ids`; by default, in the newest
        earlier scan that is comparable. `waived` has the rows of waived findings by the ids of scans: they count in neither scan.
        Problems of the policies in `below` do not count. Raises UsageError for a baseline of another cluster.
        """
        with self._reading() as connection:
            return problem_counts.problem_counts(connection, scan_id, baseline, ids, waived=waived or {}, below=below)

    def new_problems(
        self,
        scan_id: str,
        baseline: str = "",
        ids: Collection[str] | None = None,
        *,
        waived: Mapping[str, frozenset[int]] | None = None,
        waived_ids: Collection[str] = (),
    ) -> NewProblems:
        """The new ones of a finished scan's problems, as `problem_counts` counts them. Raises UsageError.

        A problem that does not count, because it is waived, is new if it was neither open nor among `waived_ids`.
        """
        with self._reading() as connection:
            return problem_counts.new_problems(
                connection, scan_id, baseline, ids, waived=waived or {}, waived_ids=waived_ids
            )

    def newest_scans_to_compare(self, cluster: StoredCluster) -> tuple[str, str]:
        """The ids of the two newest comparable scans of a cluster, complete or not, the earlier one first. Raises UsageError."""
        from scanner.store.read import scan_diff

        with self._reading() as connection:
            return scan_diff.newest_scans_to_compare(connection, cluster.id, cluster.name)

    def earlier_scan_to_compare(self, scan_id: str) -> str:
        """The id of the newest earlier scan that is comparable with a scan, by its full id. Raises UsageError."""
        from scanner.store.read import scan_diff

        with self._reading() as connection:
            return scan_diff.earlier_scan_to_compare(connection, scan_id, self._clock())

    def diff(self, before_id: str, now_id: str, owner_of: OwnerOf | None = None) -> ScanDiff:
        """The difference of two scans of a cluster, by their full ids, the earlier one first.

        Problems have the owners that `owner_of` gives, by default none.

        Raises UsageError for scans of two clusters, for scans without findings or without a report, and for the wrong order.
        """
        from scanner.store.read import scan_diff

        with as_store_error(self._address):
            return scan_diff.scan_diff(self._engine, self._address, before_id, now_id, self._clock(), owner_of)

    def next_notification(self, scan_id: str, route: str) -> Notification | None:
        """The oldest notification of a route about the cluster of a scan that is not delivered yet, None without one."""
        with self._reading() as connection:
            return notifications.oldest_pending(connection, scan_id, route)

    def notifications(self, scan_id: str) -> Mapping[tuple[str, str], int]:
        """The numbers of notifications about the cluster of a scan that were to be delivered, by route and state."""
        with self._reading() as connection:
            return notifications.counts_of_scan(connection, scan_id)

    def most_bytes(self) -> int | None:
        """The size that the database can reach, None if it is not known."""
        with self._reading() as connection:
            return sizes.most_bytes(connection)

    def finding(self, text: str) -> lookup.ExplainedFinding:
        """The finding whose fingerprint begins with `text`, in its current state. Raises UsageError, NotFound without any."""
        with self._reading() as connection:
            return lookup.find_finding(connection, text)

    def search_words(self, cluster: int, text: str, scan_id: str = "") -> tuple[WordMatches, ...]:
        """For each word of a text, the rows of a cluster, by its id, that match the word: see `WordMatches`.

        Titles of policies are those of a scan, by its full id; by default, of the newest scan in history. 256 characters and eight
        words count; a word without a letter and without a digit matches nothing.
        """
        with self._reading_at_once() as connection:
            return search_words(connection, cluster, clean(text), clean(scan_id))

    def search(
        self, text: str, limit: int = 20, owners: Iterable[OwnerKey] = DEFAULT_OWNER_KEYS
    ) -> search_hits.SearchHits:
        """The policies, workloads, objects, owners and messages of all clusters that match every word of a text, and those with such an id.

        At most `limit` of each are returned, the exact ones first. `owners` are the labels and annotations that name owners.
        256 characters and eight words count.
        """
        with self._reading_at_once() as connection:
            return search(connection, clean(text), limit, owners)

    def problem(self, text: str, cluster: str | int | None = None) -> lookup.ExplainedProblem:
        """The problem whose id begins with `text`, of a cluster or of the one that a scan saw it in last. Raises UsageError."""
        with self._reading() as connection:
            named = clean(cluster) if isinstance(cluster, str) else cluster
            return lookup.find_problem(connection, text, named)

    def close(self) -> None:
        """Close the connections."""
        close_connections(self._engine)

    def __enter__(self) -> Self:
        """Use the store, and close it at the end."""
        return self

    def __exit__(self, _: object, error: BaseException | None, _traceback: object) -> None:
        """Close. Raises StoreError in place of an unexpected error if the database is damaged."""
        self.close()
        if isinstance(error, Exception) and not isinstance(error, (AssayError, RuntimeError, OSError)):
            from scanner.store.upkeep.integrity import reject_damage

            reject_damage(self._address, error)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with as_store_error(self._address), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def _reading_at_once(self) -> Iterator[Connection]:
        """A connection whose queries all answer as of one moment."""
        with as_store_error(self._address), reading_at_once(self._engine) as connection:
            yield connection


class SqlStore(SqlReader):
    """Satisfies the Protocol `Store` of `scanner.scan.edges`, and reads stored scans."""

    def now(self) -> datetime | None:
        """The time of the database's clock; None for a file, which has none."""
        return self._clock() if self._address.path is None else None

    def register(self, cluster: ClusterIdentity, *, restored: bool = False) -> str:
        """Find or begin the history of a cluster; return what the user should know when a history begins, else an empty text.

        With `restored`, a given name goes on for a cluster that was restored or built anew.

        Raises StoreError, and UsageError if the name is that of another cluster.
        """
        with as_store_error(self._address), writing_shared(self._engine) as connection:
            return clusters.register(connection, cluster, restored=restored).note

    def begin_run(self, name: str, command_line: Iterable[str] = ()) -> int:
        """Record that a run begins; return its number. Raises StoreError."""
        with as_store_error(self._address), writing(self._engine) as connection:
            return runs.begin_run(connection, name, self._clock(), command_line)

    def name_run(self, number: int, name: str) -> None:
        """Record the name of a run. Raises StoreError."""
        with as_store_error(self._address), writing(self._engine) as connection:
            runs.name_run(connection, number, name)

    def begin_scan_of_run(self, number: int, scan_id: str) -> None:
        """Record the id of the scan that a run begins. Raises StoreError."""
        with as_store_error(self._address), writing(self._engine) as connection:
            runs.begin_scan(connection, number, scan_id)

    def end_run(self, number: int, *, exit_code: int, reason: str = "", scan_id: str = "") -> None:
        """Record the end of a run, and its scan if one began. Raises StoreError."""
        with as_store_error(self._address), writing(self._engine) as connection:
            runs.end_run(connection, number, exit_code=exit_code, reason=reason, scan_id=scan_id, now=self._clock())

    def begin(self, start: ScanStart) -> None:
        """Record that a scan runs, with its policies and bindings; mark dead scans as failed.

        Raises StoreError, also if what the scan builds on is damaged, and UsageError if the name of the cluster is that of another one.
        """
        from scanner.store.history import writer

        with as_store_error(self._address):
            self._mark_dead_scans_failed()
            writer.begin(self._engine, self._address, start, self._clock())

    def pack(self, result: PageResult) -> PageResult:
        """The result with `content` in place of its findings. Does not use the database."""
        from scanner.store.history import writer

        return writer.packed(result)

    def beat(self, scan_id: str) -> None:
        """Record that a scan still runs while it waits; may be called at any time, and writes every ten seconds at most.

        A database that is busy or does not answer gets no heartbeat: the next page reports the error.
        """
        from scanner.store.history import writer

        now = self._clock()
        if timedelta() <= now - self._beat < writer.BEAT:
            return
        self._beat = now
        with suppress(StoreError), as_store_error(self._address):
            writer.beat(self._engine, scan_id, now)

    def write_page(self, scan_id: str, result: PageResult) -> None:
        """Commit the results of a page together with its completion.

        Raises StoreError, also if the scan does not run.
        """
        from scanner.store.history import writer

        with as_store_error(self._address):
            writer.stage(self._engine, scan_id, result, self._clock())

    def write_controllers(self, scan_id: str, kind: Kind, objects: bytes) -> None:
        """Keep objects that were read for the workloads of others alone, packed by `audit.population`.

        Raises StoreError, also if the scan does not run.
        """
        from scanner.store.history import writer

        with as_store_error(self._address):
            writer.stage_controllers(self._engine, scan_id, kind, objects, self._clock())

    def workload_kinds(self, scan_id: str) -> frozenset[GroupKind]:
        """The kinds of the workloads of the findings that were open when a scan began, by its id. Raises StoreError."""
        from scanner.store.history import workload_states

        with self._reading() as connection:
            return workload_states.workload_kinds(connection, scan_id)

    def finish(self, scan_id: str, end: ScanEnd) -> Scan:
        """Merge the pages into history and make the scan visible, in one transaction.

        The scan's `new` counts findings that were not open before, including reopened ones.

        Raises StoreError, also if the scan does not run.
        """
        from scanner.store.history import writer

        with as_store_error(self._address):
            self.beat(scan_id)
            scan = writer.finish(self._engine, scan_id, end)
            merge_log(self._engine)
            return scan

    def plan_notifications(self, scan_id: str, routes: Collection[str]) -> None:
        """Record that the routes are to be notified about a finished scan, each once. Raises StoreError."""
        with as_store_error(self._address), writing(self._engine) as connection:
            notifications.plan(connection, scan_id, routes, self._clock())

    def end_notification(self, notification: Notification, state: NotificationState) -> None:
        """Record what became of a notification. Raises StoreError."""
        with as_store_error(self._address), writing(self._engine) as connection:
            notifications.end(connection, notification, state)

    def place(self, scan_id: str, objects: Iterable[PlacedObject]) -> None:
        """Store the files and lines of the objects of a scan, by its full id. Raises StoreError."""
        with as_store_error(self._address), writing(self._engine) as connection:
            share_texts(connection)
            places.write_places(connection, scan_id, objects)

    def _mark_dead_scans_failed(self) -> None:
        with self._engine.connect() as connection:
            dead = abandoned(connection, self._clock())
        if dead:
            with writing(self._engine) as connection:
                mark_failed(connection, dead)


def open_store(url: str, clock: Clock | None = None) -> SqlStore:
    """Open a database, and create it if it does not exist: `sqlite:PATH`, a path, or `postgresql://…`.

    The clock is by default that of the database's server, and of this machine for a file.

    Raises UsageError for an invalid URL, StoreError when the database cannot be used.
    """
    address = address_of(url)
    engine = _connected(address)
    try:
        with as_store_error(address):
            prepare(engine, address)
            return SqlStore(engine, address, clock or clock_of(engine))
    except BaseException:
        engine.dispose()
        raise


def open_reader(url: str, clock: Clock | None = None, *, most_seconds: float | None = None) -> SqlReader:
    """Open an existing database to read it, which needs neither write permission nor free space. The clock is that of `open_store`.

    Raises UsageError for an invalid URL, StoreError when this version cannot read the database. A reader that many people share has
    a limit of `most_seconds`: it raises QueryTooLong for a query that takes longer.
    """
    address = address_of(url)
    engine = reading_engine_for(address, most_seconds)
    try:
        with as_store_error(address):
            check(engine, address)
            return SqlReader(engine, address, clock or clock_of(engine))
    except BaseException:
        engine.dispose()
        raise


def upgrade(url: str, *, backup: bool = True) -> Upgraded:
    """Upgrade a database to the current schema. Raises as `open_store` does, and StoreError if it cannot be backed up.

    With `backup`, a SQLite file that has data is copied beside itself first.
    """
    address = address_of(url)
    engine = _connected(address)
    try:
        with as_store_error(address):
            return migrate(engine, address, backup=backup)
    finally:
        engine.dispose()


def _connected(address: Address) -> Engine:
    if address.path is not None:
        create_file(address.path)
    return engine_for(address)
