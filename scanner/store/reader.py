"""The store as reports, pages and metrics read it.

Every method is one short transaction, and raises StoreError for errors of the database.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from typing import TYPE_CHECKING, Self

from sqlalchemy import Connection, Engine

from scanner.errors import AssayError, UsageError
from scanner.model.json import JsonObject
from scanner.model.policy import PolicyKey
from scanner.model.population import ExaminedObject, ObjectPage, PlaceOfPage
from scanner.model.scans.census import OwnerOf
from scanner.model.scans.finding_period import FindingOfPeriod
from scanner.model.scans.notification import Notification
from scanner.model.scans.problem_numbers import IsBelow, NewProblems, ProblemCounts
from scanner.model.scans.run import RunDetails
from scanner.model.scans.scan import ObjectCount, Scan
from scanner.model.scans.stored_finding import StoredFinding
from scanner.model.texts import clean
from scanner.model.waiver import WaiverSet
from scanner.posture.owners import DEFAULT_OWNER_KEYS, OwnerKey
from scanner.store.catalog import clusters, every_cluster, notifications, rules, runs, scans, waivers
from scanner.store.catalog.clusters import StoredCluster
from scanner.store.catalog.every_cluster import ClusterScans, RunsWithoutScan
from scanner.store.catalog.scans import ScanPage, correct_state, find_abandoned_scans, find_pruned_scans
from scanner.store.database.address import Address, address_of
from scanner.store.database.clocks import Clock, clock_of
from scanner.store.database.engine import close_connections, make_reading_engine, reading_snapshot
from scanner.store.database.store_errors import as_store_error
from scanner.store.read import (
    finding_periods,
    lookup,
    object_checks,
    problem_counts,
    recorded_objects,
    search_hits,
    stored_scan,
    trends,
)
from scanner.store.read.search import search
from scanner.store.read.search_query import WordMatches, search_words
from scanner.store.read.stored_scan import SqlScan
from scanner.store.rows import sizes
from scanner.store.upkeep.reading_rights import read_tables_of_pages
from scanner.store.upkeep.schema import check_schema

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

    @property
    def address(self) -> str:
        """The address of the database, without a password."""
        return self._address.text

    def latest_scan(self, cluster: str | None = None) -> Scan | None:
        """The newest complete or partial scan, of one cluster (by name, UID or identity) or of any.

        Raises UsageError if several clusters have the name.
        """
        with self._reading() as connection:
            return lookup.find_latest_scan(connection, cluster if cluster is None else clean(cluster))

    def scans(self, limit: int = 50) -> tuple[Scan, ...]:
        """The newest scans in any state, the newest first."""
        with self._reading() as connection:
            dead = find_abandoned_scans(connection, self._clock())
            return tuple(correct_state(scan, dead) for scan in lookup.list_scans(connection, limit))

    def find_pruned_scans(self, scans: Sequence[Scan]) -> frozenset[str]:
        """The ids of those scans that were pruned."""
        with self._reading() as connection:
            return find_pruned_scans(connection, [scan.id for scan in scans])

    def list_runs(
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
            return runs.list_runs(connection, self._clock(), limit=limit, cluster=name, since=since, before=before)

    def find_first_run(self, cluster: str | None = None) -> datetime | None:
        """The begin of the first recorded run, of one cluster or of all; None without one. Raises as `list_runs` does."""
        with self._reading() as connection:
            return runs.find_first_run(connection, cluster if cluster is None else clean(cluster))

    def count_runs(self, *, cluster: str | None = None, since: datetime | None = None) -> int:
        """The number of all runs that `list_runs` lists without a limit. Raises as `list_runs` does."""
        with self._reading() as connection:
            return runs.count_runs(connection, cluster if cluster is None else clean(cluster), since)

    def find_run_of_cluster(self, number: int, cluster: str) -> RunDetails | None:
        """The run of a cluster (by identity) with a number; None if it is none of its runs. Raises UsageError without any run."""
        with self._reading() as connection:
            matching = runs.list_runs(connection, self._clock(), cluster=clean(cluster), number=number)
            return matching[0] if matching else None

    def find_run(self, number: int) -> RunDetails:
        """The run with a number. Raises UsageError for an unknown one."""
        with self._reading() as connection:
            return runs.find_run(connection, number, self._clock())

    def list_clusters_of_runs(self) -> tuple[str, ...]:
        """The clusters that runs have scanned, by name, or by identity where several have the same name."""
        with self._reading() as connection:
            return runs.list_clusters_of_runs(connection)

    def object_counts(self, scan_id: str) -> tuple[ObjectCount, ...]:
        """The counts of the kinds of a scan, in the order of its coverage; empty for a scan of an older version."""
        with self._reading() as connection:
            return scans.read_object_counts(connection, clean(scan_id))

    def check_schema(self) -> None:
        """Check the database again. Raises as `open_reader` does."""
        with as_store_error(self._address):
            check_schema(self._engine, self._address)

    def check_tables(self) -> None:
        """Check the database again, and read from every table that pages read.

        Raises as `open_reader` does, and MissingTableRight if the user of PostgreSQL may not read one of them.
        """
        self.check_schema()
        with self._reading() as connection:
            read_tables_of_pages(connection)

    def all_clusters(self) -> every_cluster.AllClusters:
        """The scans and runs of every cluster in numbers, also of clusters whose scans have all failed."""
        with self._reading() as connection:
            return every_cluster.read_all_clusters(connection, self._clock())

    def clusters(self) -> tuple[clusters.StoredCluster, ...]:
        """The clusters that have a scan in history, the oldest first."""
        with self._reading() as connection:
            return lookup.list_scanned_clusters(connection)

    def cluster(self, name: str | None = None) -> StoredCluster:
        """The cluster with a name, a UID or an identity, else that of the newest scan. Raises UsageError if there is none."""
        with self._reading() as connection:
            return clusters.choose_cluster(
                connection, name if name is None else clean(name), lookup.find_latest_scan(connection, None)
            )

    def days(self, cluster: int, since: date, until: date = date.max) -> tuple[Day, ...]:
        """The recorded days of a cluster, by its id, from a date to another one, the oldest first."""
        with self._reading() as connection:
            return trends.read_days(connection, cluster, since, until)

    @contextmanager
    def trend(
        self, cluster: int, since: date, chosen: Callable[[str], bool] | None = None, *, until: date = date.max
    ) -> Iterator[trends.StoredTrend]:
        """All daily tallies of a cluster, by its id, of some days, to be read inside the block; of some policies or of all."""
        with self._reading_snapshot() as connection:
            names = None if chosen is None else list(filter(chosen, trends.list_policies(connection)))
            yield trends.read_trend(connection, cluster, since, until, policies=names)

    def trend_of_policies(
        self, cluster: int, since: date, failing: Collection[str], *, until: date = date.max
    ) -> trends.TrendOfPolicies:
        """The recorded days of a cluster, by its id, and the numbers of outcomes among `failing` of each policy."""
        with self._reading_snapshot() as connection:
            recorded = trends.read_days(connection, cluster, since, until)
            counts = trends.count_failing_by_policy(connection, cluster, since, until, failing=failing)
            return trends.TrendOfPolicies(recorded, counts)

    def trend_of_days(
        self, cluster: int, since: date, chosen: Callable[[str], bool], *, until: date = date.max
    ) -> trends.TrendOfDays:
        """The recorded days of a cluster, by its id, and the outcomes of chosen policies on each."""
        with self._reading_snapshot() as connection:
            recorded = trends.read_days(connection, cluster, since, until)
            names = list(filter(chosen, trends.list_policies(connection)))
            outcomes = trends.count_outcomes_by_day(connection, cluster, since, until, names=names)
            return trends.TrendOfDays(recorded, outcomes)

    def times_to_fix(self, cluster: int, since: date, until: date = date.max) -> tuple[TimeToFix, ...]:
        """The times of the problems of a cluster, by its id, that scans saw fixed from a date to another one, by policy."""
        from scanner.store.history import daily

        with self._reading() as connection:
            return daily.read_times_to_fix(connection, cluster, since, until)

    def stats(self) -> sizes.Stats:
        """The size of the database."""
        with self._reading() as connection:
            return sizes.read_stats(connection)

    def find_scan(self, text: str, cluster: str | None = None) -> Scan:
        """The scan with an id, the beginning of an id, `last` or `last~N`. Raises UsageError."""
        with self._reading() as connection:
            scan = lookup.find_scan(connection, clean(text), cluster if cluster is None else clean(cluster))
            return correct_state(scan, find_abandoned_scans(connection, self._clock()))

    def find_scan_at(self, moment: datetime, cluster: str | None = None) -> Scan:
        """The complete or incomplete scan with the latest date up to a moment. Raises UsageError if there is none."""
        with self._reading() as connection:
            return lookup.find_scan_at(connection, moment, cluster if cluster is None else clean(cluster))

    def find_scan_of_cluster(self, cluster: int, scan_id: str) -> Scan | None:
        """The scan of a cluster, by its id, with a full id; None if there is none."""
        with self._reading() as connection:
            scan = lookup.find_scan_of_cluster(connection, cluster, clean(scan_id))
            return scan and correct_state(scan, find_abandoned_scans(connection, self._clock()))

    def find_newest_scan(self, cluster: int, until: datetime | None = None) -> Scan | None:
        """The newest complete or incomplete scan of a cluster, by its id; None if there is none.

        With a moment, the one with the latest date up to then.
        """
        with self._reading() as connection:
            return lookup.find_newest_scan(connection, cluster, until)

    def order_scans(self, *scans: str) -> tuple[str, ...]:
        """Scans of a cluster, by their full ids, in the order of its history."""
        with self._reading() as connection:
            return lookup.order_scans(connection, scans)

    def newest_scans(self) -> tuple[ClusterScans, ...]:
        """The newest scans of every cluster, also of those without a finished scan, the oldest cluster first."""
        with self._reading() as connection:
            return every_cluster.read_newest_scans(connection, self._clock())

    def runs_without_scan(self, most: int) -> tuple[RunsWithoutScan, ...]:
        """The names under which runs began, but never a scan: at most so many, those of the newest runs first."""
        with self._reading() as connection:
            return every_cluster.read_runs_without_scan(connection, most)

    def find_clusters_with(self, clusters: Collection[int], kind: str, namespace: str, name: str) -> frozenset[int]:
        """Those of some clusters, by id, in which the newest scan that could see an object saw it; case does not count in `kind`."""
        with self._reading() as connection:
            return recorded_objects.find_clusters_with(connection, clusters, clean(kind), clean(namespace), clean(name))

    def policy_specs(self, policy: PolicyKey, digests: Collection[str]) -> Mapping[str, JsonObject]:
        """The specs of a policy by their digests, as scans recorded them."""
        with self._reading() as connection:
            return rules.read_policy_specs(connection, policy, digests)

    def binding_specs(self, policy: PolicyKey, digests: Collection[str]) -> Mapping[tuple[str, str], JsonObject]:
        """The specs of the bindings of a policy by their names and digests, as scans recorded them."""
        with self._reading() as connection:
            return rules.read_binding_specs(connection, policy, digests)

    def read_scan(self, scan_id: str) -> SqlScan:
        """A finished scan, by its full id. Raises UsageError for an unknown id."""
        with as_store_error(self._address):
            return stored_scan.read_scan(self._engine, self._address, clean(scan_id), self._clock())

    def read_scan_page(self, cluster: int, *, before: int | None = None, limit: int) -> ScanPage:
        """The newest scans of a cluster, by its id, whose numbers are lower than `before`."""
        with self._reading() as connection:
            return scans.read_scan_page(connection, cluster, self._clock(), before=before, limit=limit)

    def find_newest_scan_of_clusters(self) -> Mapping[int, Scan]:
        """The newest complete or incomplete scan of every cluster, by the id of the cluster."""
        with self._reading() as connection:
            return scans.find_newest_scan_of_clusters(connection)

    def read_population_page(
        self, scan_id: str, *, kind: str = "", after: PlaceOfPage | None = None, limit: int
    ) -> ObjectPage:
        """The objects of a finished scan, by its full id, that follow a place: of one kind, or of all. Raises UsageError."""
        with self._reading_snapshot() as connection:
            of = self._population(connection, scan_id)
            if of is None:
                return ObjectPage((), 0, None)
            return recorded_objects.read_population_page(connection, of, kind=kind, after=after, limit=limit)

    def find_first_scan(self, cluster: int) -> Scan | None:
        """The first scan in history of a cluster, by its id; None if there is none."""
        with self._reading() as connection:
            return lookup.find_first_scan(connection, cluster)

    def read_findings_of_period(
        self, before: str | None, last: str, policies: Collection[str]
    ) -> tuple[FindingOfPeriod, ...]:
        """The findings of policies, by name, that were open after the scan `before` (None: ever), up to the scan `last`, by full ids."""
        with self._reading_snapshot() as connection:
            return tuple(finding_periods.read_findings_of_period(connection, before, last, policies))

    def read_known_findings(self, cluster: int, prefix: str) -> tuple[StoredFinding, ...]:
        """The last state of the findings of a cluster, by its id, whose ids begin with some hex digits, at most so many as a page shows."""
        with self._reading() as connection:
            return lookup.read_known_findings(connection, cluster, prefix)

    def read_objects_named(self, scan_id: str, *, kind: str, namespace: str, name: str) -> tuple[ExaminedObject, ...]:
        """An object of a finished scan, by its full id, and those of the workload with that name, with every check that matched them."""
        with self._reading_snapshot() as connection:
            of = self._population(connection, scan_id)
            if of is None:
                return ()
            return object_checks.read_objects_named(
                connection, of, kind=clean(kind), namespace=clean(namespace), name=clean(name), most=object_checks.MOST
            )

    def read_objects_that_passed(
        self, scan_id: str, policy: PolicyKey, *, after: int, most: int
    ) -> tuple[int, tuple[ExaminedObject, ...]]:
        """The number of objects of a finished scan that passed every check of a policy, and those that follow an id."""
        language, name = policy
        with self._reading_snapshot() as connection:
            of = self._population(connection, scan_id)
            if of is None:
                return 0, ()
            return object_checks.read_objects_that_passed(
                connection, of, language=language, policy=name, after=after, most=most
            )

    def _population(self, connection: Connection, scan_id: str) -> recorded_objects.PopulationOfScan | None:
        """The numbers by which the population of a scan is found; None for one without a place in history."""
        stored = stored_scan.read_scan_row(connection, clean(scan_id), find_abandoned_scans(connection, self._clock()))
        if stored.revision is None:
            return None
        return recorded_objects.PopulationOfScan(stored.cluster, stored.number, stored.revision)

    def find_waivers_at(self, scan_id: str, moment: datetime) -> WaiverSet | None:
        """The newest waivers that a scan of the same cluster stored, if it had ended at a moment; None if none did."""
        with self._reading() as connection:
            return waivers.find_waivers_at(connection, clean(scan_id), moment)

    def count_problems(
        self,
        scan_id: str,
        baseline: str = "",
        ids: Container[str] | None = None,
        *,
        waived: Mapping[str, frozenset[int]] | None = None,
        below: IsBelow | None = None,
    ) -> ProblemCounts:
        """The numbers of a finished scan's problems, by its full id.

        New are those that were not open in the scan `baseline` (a full id), or not among `ids`; by default, in the newest
        earlier scan that is comparable. `waived` has the rows of waived findings by the ids of scans: they count in neither scan.
        Problems of the checks that are `below` a severity do not count. Raises UsageError for a baseline of another cluster.
        """
        with self._reading() as connection:
            return problem_counts.count_problems(connection, scan_id, baseline, ids, waived=waived or {}, below=below)

    def find_new_problems(
        self,
        scan_id: str,
        baseline: str = "",
        ids: Collection[str] | None = None,
        *,
        waived: Mapping[str, frozenset[int]] | None = None,
        waived_ids: Collection[str] = (),
    ) -> NewProblems:
        """The new ones of a finished scan's problems, as `count_problems` counts them. Raises UsageError.

        A problem that does not count, because it is waived, is new if it was neither open nor among `waived_ids`.
        """
        with self._reading() as connection:
            return problem_counts.find_new_problems(
                connection, scan_id, baseline, ids, waived=waived or {}, waived_ids=waived_ids
            )

    def find_newest_scans_to_compare(self, cluster: StoredCluster) -> tuple[str, str]:
        """The ids of the two newest comparable scans of a cluster, complete or not, the earlier one first. Raises UsageError."""
        from scanner.store.read.diff import scan_pairs

        with self._reading() as connection:
            return scan_pairs.find_newest_scans_to_compare(connection, cluster.id, cluster.name)

    def find_earlier_scan_to_compare(self, scan_id: str) -> str:
        """The id of the newest earlier scan that is comparable with a scan, by its full id. Raises UsageError."""
        from scanner.store.read.diff import scan_pairs

        with self._reading() as connection:
            return scan_pairs.find_earlier_scan_to_compare(connection, scan_id, self._clock())

    def compare_since(self, scan_id: str, days: int) -> ScanDiff | None:
        """The difference of a scan, by its full id, and the newest comparable one that ended so many days before it, or earlier.

        With 0 days, of all scans before it. None if there is no such scan, or the scan failed.
        """
        from scanner.store.read.diff import scan_pairs

        with self._reading() as connection:
            try:
                earlier = scan_pairs.find_scan_before(connection, scan_id, days, self._clock())
            except UsageError:
                return None
        return self.compare_scans(earlier, scan_id) if earlier else None

    def compare_scans(self, before_id: str, now_id: str, owner_of: OwnerOf | None = None) -> ScanDiff:
        """The difference of two scans of a cluster, by their full ids, the earlier one first.

        Problems have the owners that `owner_of` gives, by default none.

        Raises UsageError for scans of two clusters, for scans without findings or without a report, and for the wrong order.
        """
        from scanner.store.read.diff import scan_diff

        with as_store_error(self._address):
            return scan_diff.compare_scans(self._engine, self._address, before_id, now_id, self._clock(), owner_of)

    def find_next_notification(self, scan_id: str, route: str) -> Notification | None:
        """The oldest notification of a route about the cluster of a scan that is not delivered yet, None without one."""
        with self._reading() as connection:
            return notifications.find_oldest_pending(connection, scan_id, route)

    def count_notifications(self, scan_id: str) -> Mapping[tuple[str, str], int]:
        """The numbers of notifications about the cluster of a scan that were to be delivered, by route and state."""
        with self._reading() as connection:
            return notifications.count_of_cluster(connection, scan_id)

    def most_bytes(self) -> int | None:
        """The size that the database can reach, None if it is not known."""
        with self._reading() as connection:
            return sizes.read_most_bytes(connection)

    def find_finding(self, text: str) -> lookup.ExplainedFinding:
        """The finding whose fingerprint begins with `text`, in its current state. Raises UsageError, NotFound without any."""
        with self._reading() as connection:
            return lookup.find_finding(connection, text)

    def search_words(self, cluster: int, text: str, scan_id: str = "") -> tuple[WordMatches, ...]:
        """For each word of a text, the rows of a cluster, by its id, that match the word: see `WordMatches`.

        Titles of policies are those of a scan, by its full id; by default, of the newest scan in history. 256 characters and eight
        words count; a word without a letter and without a digit matches nothing.
        """
        with self._reading_snapshot() as connection:
            return search_words(connection, cluster, clean(text), clean(scan_id))

    def search(
        self, text: str, limit: int = 20, owners: Iterable[OwnerKey] = DEFAULT_OWNER_KEYS
    ) -> search_hits.SearchHits:
        """The policies, workloads, objects, owners and messages of all clusters that match every word of a text, and those with such an id.

        At most `limit` of each are returned, the exact ones first. `owners` are the labels and annotations that name owners.
        256 characters and eight words count.
        """
        with self._reading_snapshot() as connection:
            return search(connection, clean(text), limit, owners)

    def find_problem(self, text: str, cluster: str | int | None = None) -> lookup.ExplainedProblem:
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
    def _reading_snapshot(self) -> Iterator[Connection]:
        """A connection whose queries all answer as of one moment."""
        with as_store_error(self._address), reading_snapshot(self._engine) as connection:
            yield connection


def open_reader(url: str, clock: Clock | None = None, *, most_seconds: float | None = None) -> SqlReader:
    """Open an existing database to read it, which needs neither write permission nor free space. The clock is that of `open_store`.

    Raises UsageError for an invalid URL, StoreError when this version cannot read the database. A reader that many people share has
    a limit of `most_seconds`: it raises QueryTooLong for a query that takes longer.
    """
    address = address_of(url)
    engine = make_reading_engine(address, most_seconds)
    try:
        with as_store_error(address):
            check_schema(engine, address)
            return SqlReader(engine, address, clock or clock_of(engine))
    except BaseException:
        engine.dispose()
        raise
