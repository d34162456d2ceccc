"""Deletes the intervals of findings and objects in which no scan with a report lies.

The latest row of a finding always stays, because its first revision is the time since when the finding is known; so do the rows
of a problem without a latest row, the last ones of findings that left a problem, and those of the scan with which a report is
compared. The intervals of objects that name the workload and the owner of such a finding stay with it. Without a report that shows
a row, its evidence goes. Ended intervals never change, so they are found without a lock and deleted in portions.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import Connection, Engine, Select, and_, bindparam, delete, exists, or_, select, update

from scanner.store.closing_sums import OF_FINDINGS, OF_POPULATION, Rewriting
from scanner.store.engine import among, lock_history, writing
from scanner.store.interning import chunks
from scanner.store.problem_clocks import is_last_in_problem
from scanner.store.retention_bodies import last_seeing, scans_of
from scanner.store.retention_plan import Needed, ScanRow, baselines
from scanner.store.row_ids import RowIdSet
from scanner.store.tables import ALONE, FINDINGS, OPEN, POPULATION

PORTION: Final = 10_000
"""The number of rows that one transaction deletes."""


@dataclass(frozen=True, slots=True)
class Unneeded:
    """Rows without a report: ids of `findings` to delete, ids of those that lose their evidence, and keys of `population`."""

    findings: RowIdSet = field(default_factory=RowIdSet)
    evidence: RowIdSet = field(default_factory=RowIdSet)
    objects: array[int] = field(default_factory=lambda: array("I"))
    since: array[int] = field(default_factory=lambda: array("I"))

    @property
    def rows(self) -> int:
        """The number of rows to delete."""
        return self.findings.count + len(self.objects)


def unneeded(connection: Connection, cluster: int, scans: Sequence[ScanRow], going: Iterable[int] = ()) -> Unneeded:
    """The rows of a cluster that no report needs if the scans with the numbers `going` are pruned, too."""
    gone = frozenset(going)
    reported = sorted(
        scan.revision for scan in scans if scan.revision is not None and not scan.pruned and scan.number not in gone
    )
    found = Unneeded()
    compared = sorted({*reported, *baselines(scans, gone)})
    _findings(connection, cluster, Needed(reported), Needed(compared), found)
    # A report shows the workload of a resolved object as of the revision before, and an open finding that of its last scan.
    asked = {*reported, *(revision - 1 for revision in reported), *last_seeing(connection, cluster, scans)}
    _population(connection, cluster, Needed(sorted(asked)), found)
    return found


def _findings(connection: Connection, cluster: int, reported: Needed, compared: Needed, found: Unneeded) -> None:
    own = FINDINGS.c
    later = FINDINGS.alias("later").c
    latest = select(later.problem).where(
        later.cluster == cluster, later.superseded.is_(None), later.problem.is_not(None)
    )
    # An object with another workload takes its finding to another problem: then no latest row has the clock of the first one.
    alone = and_(own.event.not_in(ALONE), own.problem.is_not(None), own.problem.not_in(latest)).label("alone")
    columns = (
        own.id,
        own.since,
        own.until,
        own.superseded,
        own.last_seen,
        own.continues,
        own.evidence,
        own.excerpt,
        alone,
        is_last_in_problem().label("last"),
    )
    ended = select(*columns).where(own.cluster == cluster, own.until != OPEN).execution_options(yield_per=1000)
    with connection.execute(ended) as rows:
        for number, since, until, superseded, last_seen, continues, evidence, excerpt, keeps_clock, last in rows:
            # The report of the scan that resolved a finding shows the finding.
            if reported.within(since, until if last_seen is None else until + 1):
                continue
            # A comparison of two scans gives the reason of a resolution between them, and follows what was continued.
            asked = (last_seen is not None and reported.within(until, superseded or until)) or (
                continues is not None and reported.within(0, since)
            )
            needed = keeps_clock or asked or last or compared.within(since, until)
            if superseded is not None and not needed:
                found.findings.add(number)
            elif evidence is not None or excerpt is not None:
                found.evidence.add(number)


def _population(connection: Connection, cluster: int, asked: Needed, found: Unneeded) -> None:
    own = POPULATION.c
    ended = select(own.object, own.since, own.until).where(own.cluster == cluster, own.until != OPEN)
    ordered = ended.order_by(own.object, own.since).execution_options(yield_per=1000)
    with connection.execute(ordered) as rows, connection.execute(_of_findings(cluster)) as of_findings:
        needed = ((row.object, row.since) for row in of_findings if row.id not in found.findings)
        following = next(needed, None)
        for object_id, since, until in rows:
            while following is not None and following < (object_id, since):
                following = next(needed, None)
            if following != (object_id, since) and not asked.within(since, until):
                found.objects.append(object_id)
                found.since.append(since)


def _of_findings(cluster: int) -> Select[tuple[int, int, int]]:
    """The intervals that name the workloads of findings while they stay: ids of findings and keys of intervals.

    They are the intervals as the last scans with ended findings saw the objects, and the last ones of objects that were gone while
    their findings were open, because no scan checked them.
    """
    own, interval, later = FINDINGS.c, POPULATION.c, POPULATION.alias("later").c
    as_last_seen = and_(
        *(own.last_seen.is_not(None), is_last_in_problem()),
        *(interval.since < own.until, interval.until > own.last_seen),
    )
    goes_on = exists().where(later.object == interval.object, later.since == interval.until)
    gone_before = and_(own.event.not_in(ALONE), interval.until > own.since, interval.until < own.until, ~goes_on)
    wanted = select(own.id, interval.object, interval.since).join_from(
        FINDINGS, POPULATION, and_(interval.object == own.object, or_(as_last_seen, gone_before))
    )
    ordered = wanted.where(own.cluster == cluster).order_by(interval.object, interval.since)
    return ordered.execution_options(yield_per=1000)


def delete_unneeded(engine: Engine, cluster: int) -> int:
    """Delete the rows of a cluster that no report needs, in portions; return their number. Safe to interrupt and to repeat."""
    with engine.connect() as connection:
        found = unneeded(connection, cluster, scans_of(connection, cluster))
    for portion in _portions(found.findings):
        with writing(engine) as connection:
            lock_history(connection, cluster)
            sums = Rewriting(connection)
            for numbers in chunks(portion):
                chosen = among(connection, FINDINGS.c.id, numbers)
                with sums.of(OF_FINDINGS, chosen):
                    connection.execute(delete(FINDINGS).where(chosen))
    for portion in _portions(found.evidence):
        with writing(engine) as connection:
            lock_history(connection, cluster)
            sums = Rewriting(connection)
            for numbers in chunks(portion):
                chosen = among(connection, FINDINGS.c.id, numbers)
                with sums.of(OF_FINDINGS, chosen):
                    emptied = update(FINDINGS).where(chosen, FINDINGS.c.until != OPEN)
                    connection.execute(emptied.values(evidence=None, excerpt=None))
    one = delete(POPULATION).where(
        POPULATION.c.object == bindparam("of_object"), POPULATION.c.since == bindparam("begin")
    )
    for start in range(0, len(found.objects), PORTION):
        own, since = found.objects[start : start + PORTION], found.since[start : start + PORTION]
        with writing(engine) as connection:
            lock_history(connection, cluster)
            keys = [{"of_object": each, "begin": begin} for each, begin in zip(own, since, strict=True)]
            sums = Rewriting(connection)
            for some in chunks(keys):
                objects = sorted({key["of_object"] for key in some})
                with sums.of(OF_POPULATION, among(connection, POPULATION.c.object, objects)):
                    connection.execute(one, some)
    return found.rows


def _portions(numbers: Iterable[int]) -> Iterator[list[int]]:
    portion: list[int] = []
    for number in numbers:
        portion.append(number)
        if len(portion) == PORTION:
            yield portion
            portion = []
    if portion:
        yield portion
