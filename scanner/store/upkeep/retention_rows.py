"""Prunes the bodies of scans: the rows of a scan go, and its row in `scans` stays as a tombstone.

Later scans ask three questions about the scan that last saw an open finding: did it see the finding, with which policies and
rules, and for which user. The tombstone of such a scan keeps the answers: its policies, bindings and rules, the documents that
it could not read, and the tallies that depend on the requester. A later prune deletes them when no open finding needs them.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from sqlalchemy import (
    Connection,
    Delete,
    Engine,
    Select,
    Table,
    Update,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)

from scanner.model.outcome import GapKind
from scanner.store.catalog.scans import mode_of
from scanner.store.database.engine import is_among, lock_history, share_texts, writing
from scanner.store.history.problem_clocks import is_last_in_problem
from scanner.store.history.resolution import Resolution
from scanner.store.history.sightings import select_open_findings
from scanner.store.rows.closing_sums import FINDING_PARTS, POPULATION_PARTS, SumUpdater, forget_sums, hand_over
from scanner.store.rows.gap_lists import read_gaps, write_gaps
from scanner.store.rows.interning import chunks
from scanner.store.rows.logical_rows import GAPS, PARTS, PARTS_BY_TABLE, REPORTS, SHARED_TABLES, TALLIES
from scanner.store.rows.row_ids import RowIdSet, intersection, unpack_row_ids
from scanner.store.rows.shared_rows import RowOwners
from scanner.store.rows.tables import (
    COVERAGE,
    FINDINGS,
    OPEN,
    POPULATION,
    SCAN_PLACES,
    SCANS,
    SINGLE_SCAN_EVENTS,
    UNCHECKED,
)
from scanner.store.rows.tally_lists import read_tally_rows, write_tallies
from scanner.store.upkeep.retention_plan import NeededRevisions, RetainedScan, find_next_owners, list_baselines

EVALUATION_ROWS: Final = frozenset({"policies", "bindings", "rules"})
"""The shared rows that the last scan with an open finding keeps."""


def read_scans(connection: Connection, cluster: int, dead: Collection[int] = ()) -> list[RetainedScan]:
    """The scans of a cluster. Those with the numbers `dead` have failed, even if the database does not record it yet."""
    scan = SCANS.c
    question = scan.source, scan.scope, scan.requester
    owners = (scan[f"{name}_of"] for name in RowOwners._fields)
    columns = (
        scan.number,
        scan.revision,
        scan.state,
        scan.finished_at,
        scan.base,
        scan.pruned_at,
        scan.preview,
        scan.method,
    )
    wanted = select(*columns, *question, *owners).where(scan.cluster == cluster).order_by(scan.number)
    modes: dict[str, tuple[object, ...]] = {}
    rows: list[RetainedScan] = []
    for number, revision, state, finished_at, base, pruned_at, preview, method, *rest in connection.execute(wanted):
        if method not in modes:
            modes[method] = mode_of(method)
        rows.append(
            RetainedScan(
                number,
                revision,
                "failed" if number in dead else state,
                finished_at,
                (*rest[: len(question)], modes[method]),
                base,
                RowOwners(*rest[len(question) :]),
                pruned_at is not None,
                preview,
            )
        )
    return rows


def find_last_seeing_revisions(connection: Connection, cluster: int, scans: Iterable[RetainedScan]) -> frozenset[int]:
    """The revisions of the scans that were the last to see an open finding."""
    unassigned = RowIdSet(connection.execute(select_open_findings(cluster)).scalars())
    unchecked = select(UNCHECKED.c.scan, UNCHECKED.c.findings).join(SCANS).where(SCANS.c.cluster == cluster)
    blind = {scan: bytes(findings) for scan, findings in connection.execute(unchecked)}
    revisions: set[int] = set()
    merged = [(scan.revision, scan.number) for scan in scans if scan.revision is not None]
    for revision, number in sorted(merged, reverse=True):
        if not unassigned.count:
            break
        unseen = intersection(unassigned, unpack_row_ids(blind.get(number)))
        if unseen.count < unassigned.count:
            revisions.add(revision)
        unassigned = unseen
    return frozenset(revisions)


class BodyPruner:
    """Prunes scans of one cluster, over a connection that holds the locks of `engine.lock_bodies`."""

    def __init__(self, connection: Connection, cluster: int, scans: Sequence[RetainedScan]) -> None:
        """Take all scans of the cluster."""
        self._connection = connection
        self._cluster = cluster
        self._scans = scans
        seeing = find_last_seeing_revisions(connection, cluster, scans)
        self._asked = frozenset(scan.number for scan in scans if scan.revision in seeing)

    def prune(self, numbers: Sequence[int], now: datetime) -> int:
        """Delete the bodies of scans; return the number of deleted rows.

        Scans that were pruned before may be given again: what no open finding needs any more is deleted.
        """
        deleted = sum(self._delete_shared(rows, table, numbers) for rows, table in SHARED_TABLES.items())
        for portion in chunks(numbers):
            deleted += self._delete_own(portion)
            forget_sums(self._connection, REPORTS, portion)
            fresh = is_among(self._connection, SCANS.c.number, portion) & SCANS.c.pruned_at.is_(None)
            emptied = {"pruned_at": now, "matched": "", "opinion": ""}
            self._connection.execute(update(SCANS).where(fresh).values(**emptied))
        self._trim_unchecked(numbers)
        return deleted

    def _delete_own(self, numbers: Sequence[int]) -> int:
        """Delete the rows that scans have alone."""
        deleted = self._delete(COVERAGE, numbers) + self._delete(SCAN_PLACES, numbers)
        others = [number for number in numbers if number not in self._asked]
        for part in (GAPS, TALLIES):
            forget_sums(self._connection, part, others)
        of_others = is_among(self._connection, SCANS.c.number, others)
        self._connection.execute(update(SCANS).where(of_others).values(gaps=None, tallies=None))
        for number in numbers:
            if number in self._asked:
                self._shorten_lists(number)
        return deleted

    def _shorten_lists(self, scan: int) -> None:
        """Of the lists of a scan, keep the documents that it could not read, and the tallies that depend on the requester."""
        share_texts(self._connection)
        before = read_gaps(self._connection, scan), read_tally_rows(self._connection, scan)
        gaps = [gap for gap in before[0] if gap.kind == GapKind.DOCUMENT.value]
        tallies = [row for row in before[1] if row.requester]
        if (gaps, tallies) == before:
            return
        written = write_tallies(self._connection, tallies)
        values = {"gaps": write_gaps(self._connection, gaps), "tallies": written.number if written else None}
        self._connection.execute(update(SCANS).where(SCANS.c.number == scan).values(**values))
        updater = SumUpdater(self._connection)
        updater.replace(GAPS, scan, before[0], gaps)
        updater.replace(TALLIES, scan, before[1], tallies)

    def _delete_shared(self, rows: str, table: Table, numbers: Sequence[int]) -> int:
        """Delete the rows of a table, or give them to the oldest scan that stays and shares them."""
        keeping = self._asked if rows in EVALUATION_ROWS else frozenset[int]()
        going = frozenset(numbers) - keeping
        gone = going | (frozenset(scan.number for scan in self._scans if scan.pruned) - keeping)
        column = SCANS.c[f"{rows}_of"]
        for owner, successor in find_next_owners(self._scans, rows, going, gone).items():
            self._connection.execute(update(table).where(table.c.scan == owner).values(scan=successor))
            hand_over(self._connection, PARTS[table.name], owner, successor)
            sharing = (SCANS.c.cluster == self._cluster) & (column == owner)
            self._connection.execute(update(SCANS).where(sharing).values({column: successor}))
            self._connection.execute(update(SCANS).where(SCANS.c.number == successor).values({column: 0}))
        deleted = 0
        for portion in chunks(sorted(going)):
            deleted += self._delete(table, portion)
            of_portion = is_among(self._connection, SCANS.c.number, portion)
            self._connection.execute(update(SCANS).where(of_portion, column != 0).values({column: 0}))
        return deleted

    def _delete(self, table: Table, numbers: Sequence[int]) -> int:
        """Delete the rows of scans, and their sums."""
        if not numbers:
            return 0
        for part in PARTS_BY_TABLE[table.name]:
            forget_sums(self._connection, part, numbers)
        return self._connection.execute(delete(table).where(is_among(self._connection, table.c.scan, numbers))).rowcount

    def _trim_unchecked(self, numbers: Sequence[int]) -> None:
        """Of the findings that a pruned scan left unchecked, keep those that are still open: others have a time of their own."""
        still_open: RowIdSet | None = None
        unchecked = UNCHECKED.c
        for portion in chunks(numbers):
            wanted = select(unchecked.scan, unchecked.findings).where(
                is_among(self._connection, unchecked.scan, portion)
            )
            for scan, data in self._connection.execute(wanted).all():
                if still_open is None:
                    still_open = RowIdSet(self._connection.execute(select_open_findings(self._cluster)).scalars())
                before = unpack_row_ids(bytes(data))
                left = intersection(still_open, before)
                if left.count == before.count:
                    continue
                self._connection.execute(delete(UNCHECKED).where(unchecked.scan == scan))
                if left.count:
                    self._connection.execute(insert(UNCHECKED).values(scan=scan, findings=left.pack()))


def count_rows(connection: Connection, numbers: Sequence[int]) -> dict[str, int]:
    """The number of rows that scans have in each table, without those that scans share."""
    counts: Counter[str] = Counter()
    for portion in chunks(numbers):
        counted = select(func.count()).select_from(COVERAGE).where(is_among(connection, COVERAGE.c.scan, portion))
        counts[COVERAGE.name] += connection.execute(counted).scalar_one()
    return counts


# Deletes the intervals of findings and objects in which no scan with a report lies.
#
# The latest row of a finding always stays, because its first revision is the time since when the finding is known; so
# do the rows of a problem without a latest row, the last ones of findings that left a problem, and those of the scan
# with which a report is compared. The intervals of objects that name the workload and the owner of such a finding
# stay with it. Without a report that shows a row, its evidence goes. Ended intervals never change, so they are found
# without a lock and deleted in portions.

PORTION: Final = 10_000
"""The number of rows that one transaction deletes."""


@dataclass(frozen=True, slots=True)
class UnneededRows:
    """Rows without a report: ids of `findings` to delete, ids of those that lose their evidence, and keys of `population`."""

    findings: RowIdSet = field(default_factory=RowIdSet)
    evidence: RowIdSet = field(default_factory=RowIdSet)
    objects: array[int] = field(default_factory=lambda: array("I"))
    since: array[int] = field(default_factory=lambda: array("I"))

    @property
    def rows(self) -> int:
        """The number of rows to delete."""
        return self.findings.count + len(self.objects)


def find_unneeded(
    connection: Connection, cluster: int, scans: Sequence[RetainedScan], going: Iterable[int] = ()
) -> UnneededRows:
    """The rows of a cluster that no report needs if the scans with the numbers `going` are pruned, too."""
    gone = frozenset(going)
    reported = sorted(
        scan.revision for scan in scans if scan.revision is not None and not scan.pruned and scan.number not in gone
    )
    unneeded = UnneededRows()
    compared = sorted({*reported, *list_baselines(scans, gone)})
    _find_findings(connection, cluster, NeededRevisions(reported), NeededRevisions(compared), unneeded)
    # A report shows the workload of a resolved object as of the revision before, and an open finding that of its last scan.
    shown = {
        *reported,
        *(revision - 1 for revision in reported),
        *find_last_seeing_revisions(connection, cluster, scans),
    }
    _find_intervals(connection, cluster, NeededRevisions(sorted(shown)), unneeded)
    return unneeded


def _find_findings(
    connection: Connection, cluster: int, reported: NeededRevisions, compared: NeededRevisions, unneeded: UnneededRows
) -> None:
    finding = FINDINGS.c
    later = FINDINGS.alias("later").c
    latest = select(later.problem).where(
        later.cluster == cluster, later.superseded.is_(None), later.problem.is_not(None)
    )
    # An object with another workload takes its finding to another problem: then no latest row has the clock of the first one.
    alone = and_(
        finding.event.not_in(SINGLE_SCAN_EVENTS), finding.problem.is_not(None), finding.problem.not_in(latest)
    ).label("alone")
    columns = (
        finding.id,
        finding.since,
        finding.until,
        finding.superseded,
        finding.last_seen,
        finding.continues,
        finding.evidence,
        finding.excerpt,
        alone,
        is_last_in_problem().label("last"),
    )
    ended = select(*columns).where(finding.cluster == cluster, finding.until != OPEN).execution_options(yield_per=1000)
    with connection.execute(ended) as rows:
        for number, since, until, superseded, last_seen, continues, evidence, excerpt, keeps_clock, last in rows:
            # The report of the scan that resolved a finding shows the finding.
            if reported.overlap(since, until if last_seen is None else until + 1):
                continue
            # A comparison of two scans gives the reason of a resolution between them, and follows what was continued.
            explains = (last_seen is not None and reported.overlap(until, superseded or until)) or (
                continues is not None and reported.overlap(0, since)
            )
            needed = keeps_clock or explains or last or compared.overlap(since, until)
            if superseded is not None and not needed:
                unneeded.findings.add(number)
            elif evidence is not None or excerpt is not None:
                unneeded.evidence.add(number)


def _find_intervals(connection: Connection, cluster: int, shown: NeededRevisions, unneeded: UnneededRows) -> None:
    interval = POPULATION.c
    ended = select(interval.object, interval.since, interval.until).where(
        interval.cluster == cluster, interval.until != OPEN
    )
    ordered = ended.order_by(interval.object, interval.since).execution_options(yield_per=1000)
    with connection.execute(ordered) as rows, connection.execute(_select_needed_intervals(cluster)) as of_findings:
        needed = ((row.object, row.since) for row in of_findings if row.id not in unneeded.findings)
        following = next(needed, None)
        for object_id, since, until in rows:
            while following is not None and following < (object_id, since):
                following = next(needed, None)
            if following != (object_id, since) and not shown.overlap(since, until):
                unneeded.objects.append(object_id)
                unneeded.since.append(since)


def _select_needed_intervals(cluster: int) -> Select[tuple[int, int, int]]:
    """The intervals that name the workloads of findings while they stay: ids of findings and keys of intervals.

    They are the intervals as the last scans with ended findings saw the objects, the last ones of objects that were gone while
    their findings were open, because no scan checked them, and the ones that tell that a fixed finding's object went on: without
    one, a comparison takes it for an object that another one of its workload replaced.
    """
    finding, interval, later = FINDINGS.c, POPULATION.c, POPULATION.alias("later").c
    as_last_seen = and_(
        *(finding.last_seen.is_not(None), is_last_in_problem()),
        *(interval.since < finding.until, interval.until > finding.last_seen),
    )
    goes_on = exists().where(later.object == interval.object, later.since == interval.until)
    gone_before = and_(
        finding.event.not_in(SINGLE_SCAN_EVENTS),
        interval.until > finding.since,
        interval.until < finding.until,
        ~goes_on,
    )
    went_on = and_(
        finding.resolution == Resolution.FIXED.value, interval.since <= finding.until, interval.until > finding.until
    )
    needed = or_(as_last_seen, gone_before, went_on)
    wanted = select(finding.id, interval.object, interval.since).join_from(
        FINDINGS, POPULATION, and_(interval.object == finding.object, needed)
    )
    ordered = wanted.where(finding.cluster == cluster).order_by(interval.object, interval.since)
    return ordered.execution_options(yield_per=1000)


def delete_unneeded(engine: Engine, cluster: int) -> int:
    """Delete the rows of a cluster that no report needs, in portions; return their number. Safe to interrupt and to repeat."""
    with engine.connect() as connection:
        unneeded = find_unneeded(connection, cluster, read_scans(connection, cluster))
    _change_findings(engine, cluster, unneeded.findings, delete(FINDINGS))
    without_evidence = update(FINDINGS).where(FINDINGS.c.until != OPEN).values(evidence=None, excerpt=None)
    _change_findings(engine, cluster, unneeded.evidence, without_evidence)
    _delete_intervals(engine, cluster, unneeded)
    return unneeded.rows


def _change_findings(engine: Engine, cluster: int, ids: Iterable[int], change: Delete | Update) -> None:
    for portion in _split_portions(ids):
        with writing(engine) as connection:
            lock_history(connection, cluster)
            sums = SumUpdater(connection)
            for numbers in chunks(portion):
                chosen = is_among(connection, FINDINGS.c.id, numbers)
                with sums.updating(FINDING_PARTS, chosen):
                    connection.execute(change.where(chosen))


def _delete_intervals(engine: Engine, cluster: int, unneeded: UnneededRows) -> None:
    interval = delete(POPULATION).where(
        POPULATION.c.object == bindparam("of_object"), POPULATION.c.since == bindparam("begin")
    )
    for start in range(0, len(unneeded.objects), PORTION):
        objects_of_portion, since = unneeded.objects[start : start + PORTION], unneeded.since[start : start + PORTION]
        with writing(engine) as connection:
            lock_history(connection, cluster)
            keys = [{"of_object": each, "begin": begin} for each, begin in zip(objects_of_portion, since, strict=True)]
            sums = SumUpdater(connection)
            for some in chunks(keys):
                objects = sorted({key["of_object"] for key in some})
                with sums.updating(POPULATION_PARTS, is_among(connection, POPULATION.c.object, objects)):
                    connection.execute(interval, some)


def _split_portions(numbers: Iterable[int]) -> Iterator[list[int]]:
    portion: list[int] = []
    for number in numbers:
        portion.append(number)
        if len(portion) == PORTION:
            yield portion
            portion = []
    if portion:
        yield portion
