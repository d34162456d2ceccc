"""Ends the open findings that a scan would have found but did not: they continue in other findings, or are resolved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from sqlalchemy import Connection, func, select, update

from scanner.model.outcome import CheckKind, GapKind
from scanner.model.scan import Scope
from scanner.posture.causes import Comparison, Coordinates
from scanner.store import codec
from scanner.store.causes import Causes
from scanner.store.continuations import find_continuations, join_rows
from scanner.store.engine import among
from scanner.store.history import History, InsertedRows, ScanPosition
from scanner.store.interning import CHUNK, chunks
from scanner.store.later_scans import LaterScans
from scanner.store.problem_clocks import end_moved, record_fixes, set_clocks
from scanner.store.resolution import Reach, UnseenFinding
from scanner.store.resolutions import Decisive, MissingFindings, WorkloadState
from scanner.store.row_ids import RowIdSet
from scanner.store.sightings import last_seen, merged_scans, open_findings
from scanner.store.tables import CHECKS, FINDINGS, GAPS, KINDS, OBJECTS, SCANS, TALLIES
from scanner.store.workload_states import ListedWorkloads, WorkloadStates

_AT_ONCE: Final = 50_000
"""The number of findings whose workloads are held in memory."""


class SimulatedRequest(NamedTuple):
    """The operation and the user (in the form of the store) of the requests that a scan simulated."""

    operation: str
    requester: str


@dataclass(frozen=True, slots=True)
class MergedLists:
    """What a scan did: its reach, the requests that it simulated, and the workloads that it listed.

    `later` are the scans that began after this one and were merged before it.
    """

    reach: Reach
    request: SimulatedRequest
    workloads: ListedWorkloads
    later: LaterScans


class Endings:
    """The end of the merge of one scan, after all its pages."""

    def __init__(self, connection: Connection, position: ScanPosition, history: History, causes: Causes) -> None:
        """The connection is in a transaction that writes history."""
        self._connection = connection
        self._position = position
        self._history = history
        self._causes = causes
        self._matched_objects: dict[tuple[str, ...], RowIdSet] = {}

    def write(self, merged: MergedLists) -> None:
        """Write what became of the findings that the scan did not find again, and the causes and clocks of those that it found.

        Findings that the scan would not have found are noted as unchecked.
        """
        inserted = self._history.inserted
        if merged.later:
            self._history.set_aside(list(self._overtaken(inserted, merged.later)))
        missing = self._missing(merged.reach)
        seen_at = self._last_seen(merged, missing)
        self._write_causes(inserted)
        self._write_changes(inserted)
        self._continue(seen_at, inserted)
        set_clocks(
            self._connection, self._position.cluster, inserted.appeared + inserted.moved, self._position.revision
        )
        resolved = RowIdSet(number for numbers in seen_at.values() for number in numbers)
        states = WorkloadStates(self._connection, self._position.cluster, merged.workloads)
        for revision, numbers in seen_at.items():
            for start in range(0, len(numbers), _AT_ONCE):
                portion = numbers[start : start + _AT_ONCE]
                gone = list(missing.without_object(portion, merged.workloads.examined))
                self._resolve(missing, revision, portion, states.of(gone, resolved))
        if any(seen_at.values()):
            record_fixes(self._connection, self._position.cluster, self._position.revision)

    def _overtaken(self, inserted: InsertedRows, later: LaterScans) -> Iterator[int]:
        """The inserted rows that a later scan has overtaken: it listed the object later, and has no such finding, or the row before."""
        ended = [(0, inserted.new), *((key[0], numbers) for key, numbers in inserted.reopened.items())]
        for revision, numbers in ended:
            for portion in chunks(numbers):
                for number, place in self._causes.places(portion):
                    if later.overtook(place, revision):
                        yield number
        following = dict(zip(inserted.before, inserted.changed, strict=True))
        for portion in chunks(list(following)):
            wanted = select(FINDINGS.c.id, FINDINGS.c.since).where(among(self._connection, FINDINGS.c.id, portion))
            before = {following[row.id]: (row.id, row.since) for row in self._connection.execute(wanted)}
            for number, place in self._causes.places(list(before)):
                if later.saw(place, *before[number]):
                    yield number

    def _missing(self, reach: Reach) -> MissingFindings:
        """The open findings that this scan would have found but did not; the others are noted as unchecked."""
        position, sets = self._position, self._history.sets
        # A scan that was merged meanwhile may have seen objects that did not exist yet when this scan listed them.
        between = {"after": position.base, "before": position.revision}
        meanwhile = list(merged_scans(self._connection, position.cluster, **between))
        missing = MissingFindings()
        for number, since, check, object_id, finding in self._unseen():
            found = reach.reaches(finding) and not sets.not_evaluated(check, object_id)
            if (found or reach.unbinds(finding)) and not any(scan.saw(number, since) for scan in meanwhile):
                missing.add(number, object_id, check, finding.coordinates)
            else:
                self._history.unchecked.add(number)
        return missing

    def _last_seen(self, merged: MergedLists, missing: MissingFindings) -> dict[int, list[int]]:
        """The missing findings by the revision of the scan that last saw them, without those that this scan may not see."""
        position, unchecked = self._position, self._history.unchecked
        seen_at = last_seen(self._connection, position.cluster, missing.ids, before=position.revision)
        for revision, numbers in seen_at.items():
            for number in self._hidden(merged, missing, revision, numbers):
                unchecked.add(number)
        return {
            revision: [number for number in numbers if number not in unchecked] for revision, numbers in seen_at.items()
        }

    def _hidden(
        self, merged: MergedLists, missing: MissingFindings, revision: int, numbers: Sequence[int]
    ) -> Iterator[int]:
        """The findings last seen by the scan of a revision that may be missing for a reason of this scan."""
        if merged.reach.unread - self._unread(revision):
            yield from numbers
            return
        yield from self._of_other_requests(revision, numbers, merged.request)
        comparison = self._causes.since(revision)
        if comparison.before.sources != comparison.now.sources:
            yield from missing.those(numbers, lambda finding: not self._bound(finding))

    def _bound(self, finding: Coordinates) -> bool:
        """Return whether the policy and the binding of a finding exist."""
        now = self._causes.circumstances
        return finding.policy_key in now.policies and finding.binding_key in now.bindings

    def _write_causes(self, inserted: InsertedRows) -> None:
        causes = self._causes
        if inserted.new:
            causes.attribute_new(inserted.new, causes.base)
        for (ended, end_cause), reopened in inserted.reopened.items():
            causes.attribute_reopened(reopened, ended, end_cause)

    def _write_changes(self, inserted: InsertedRows) -> None:
        """Write the causes of the findings that changed, and end the problems that some of them left."""
        if not inserted.changed:
            return
        following = dict(zip(inserted.before, inserted.changed, strict=True))
        seen_at = last_seen(self._connection, self._position.cluster, inserted.before, before=self._position.revision)
        for revision, numbers in seen_at.items():
            after = [following[number] for number in numbers]
            self._causes.attribute_changed(after, inserted.objects_changed, revision)
        left = RowIdSet(inserted.left)
        seen = {number: revision for revision, numbers in seen_at.items() for number in numbers if number in left}
        end_moved(self._connection, zip(inserted.left, inserted.moved, strict=True), seen)

    def _continue(self, seen_at: dict[int, list[int]], inserted: InsertedRows) -> None:
        """Join findings that continue others, and take these from those to resolve."""
        revisions = {revision: RowIdSet(numbers) for revision, numbers in seen_at.items()}

        def since(number: int) -> Comparison:
            return self._causes.since(next(revision for revision, rows in revisions.items() if number in rows))

        gone = [number for numbers in seen_at.values() for number in numbers]
        pairs = [
            (before.number, now.number)
            for before, now in find_continuations(self._connection, gone, inserted.appeared, since)
        ]
        join_rows(self._connection, pairs, self._position.revision)
        continued = RowIdSet(before for before, _ in pairs)
        for revision, numbers in seen_at.items():
            seen_at[revision] = [number for number in numbers if number not in continued]
        reopened = RowIdSet(number for numbers in inserted.reopened.values() for number in numbers)
        self._history.changes.new -= len(pairs)
        self._history.changes.reopened -= sum(now in reopened for _, now in pairs)

    def _resolve(
        self,
        missing: MissingFindings,
        revision: int,
        numbers: Sequence[int],
        workloads: Mapping[int, WorkloadState],
    ) -> None:
        """Resolve findings that the scan of a revision was the last to see; those that this scan cannot decide are unchecked."""
        comparison = self._causes.since(revision)

        def decisive(finding: Coordinates) -> Decisive:
            return Decisive(
                bound=self._bound(finding),
                invoked=comparison.invokes(finding),
                changed=bool(comparison.deciding(finding)),
                failed=lambda: self._failed(finding),
                matched=lambda: self._matched(finding),
                cause=lambda resolution: self._causes.ended(finding, resolution, revision),
            )

        for reason, ids in missing.by_reason(numbers, workloads, decisive, self._history.sets.evaluated).items():
            if reason is None:
                for number in ids:
                    self._history.unchecked.add(number)
                continue
            resolution, cause = reason
            self._history.changes.resolved += len(ids)
            ended = {"until": self._position.revision, "last_seen": revision, "resolution": resolution.value}
            for portion in chunks(ids):
                chosen = among(self._connection, FINDINGS.c.id, portion)
                self._connection.execute(update(FINDINGS).where(chosen).values(**ended, end_cause=cause))

    def _matched(self, finding: Coordinates) -> RowIdSet:
        """The objects that this scan matched for the policy, binding and param of a finding."""
        return self._with_checks(finding, CheckKind)

    def _failed(self, finding: Coordinates) -> RowIdSet:
        """The objects for which the whole invocation of a finding has an error, which stands instead of its checks."""
        whole = [kind for kind in (CheckKind.CONDITIONS, CheckKind.CONFIGURATION) if kind is not finding.check]
        return self._with_checks(finding, whole)

    def _with_checks(self, finding: Coordinates, kinds: Iterable[CheckKind]) -> RowIdSet:
        """The objects that this scan matched for checks of some kinds of the invocation of a finding."""
        key = *finding.invocation, *kinds
        if key not in self._matched_objects:
            own = CHECKS.c
            place = own.language, own.policy, own.binding, own.param_namespace, own.param_name
            same = (column == text for column, text in zip(place, finding.invocation, strict=True))
            wanted = select(own.id).where(*same, own.kind.in_([kind.value for kind in kinds]))
            checks = frozenset(self._connection.execute(wanted).scalars())
            self._matched_objects[key] = self._history.sets.matched(checks)
        return self._matched_objects[key]

    def _of_other_requests(self, revision: int, numbers: Sequence[int], request: SimulatedRequest) -> Sequence[int]:
        """The findings of a scan that may be missing now because this scan simulated another operation or user."""
        then = (SCANS.c.cluster == self._position.cluster) & (SCANS.c.revision == revision)
        number, scope, requester = self._connection.execute(
            select(SCANS.c.number, SCANS.c.scope, SCANS.c.requester).where(then)
        ).one()
        if codec.from_text(Scope, scope).operation != request.operation:
            return numbers
        return [] if requester == request.requester else self._depending_on_user(number, numbers)

    def _depending_on_user(self, scan: int, numbers: Sequence[int]) -> list[int]:
        """The findings whose outcome depended on the user of a scan's requests."""
        checks = select(TALLIES.c.check).where(TALLIES.c.scan == scan, TALLIES.c.requester)
        depending: list[int] = []
        for portion in chunks(numbers):
            chosen = among(self._connection, FINDINGS.c.id, portion) & FINDINGS.c.check.in_(checks)
            depending.extend(self._connection.execute(select(FINDINGS.c.id).where(chosen)).scalars())
        return depending

    def _unread(self, revision: int) -> frozenset[str]:
        """The documents that the scan of a revision could not read."""
        scan = (SCANS.c.cluster == self._position.cluster) & (SCANS.c.revision == revision)
        wanted = select(GAPS.c.where).join(SCANS).where(scan, GAPS.c.kind == GapKind.DOCUMENT.value)
        return frozenset(self._connection.execute(wanted).scalars())

    def _unseen(self) -> Iterator[tuple[int, int, int, int, UnseenFinding]]:
        """The open findings that this scan did not find: id, first revision, ids of check and object, and description."""
        still_open = open_findings(self._position.cluster)
        count = self._connection.execute(select(func.count()).select_from(still_open.subquery())).scalar_one()
        if count == self._history.open_seen:
            return
        numbers = self._connection.execute(still_open.execution_options(yield_per=CHUNK)).scalars()
        described = (
            select(FINDINGS.c.id, FINDINGS.c.since, FINDINGS.c.check, FINDINGS.c.object)
            .add_columns(CHECKS.c.language, CHECKS.c.policy, CHECKS.c.binding)
            .add_columns(CHECKS.c.param_namespace, CHECKS.c.param_name)
            .add_columns(KINDS.c.api_version, KINDS.c.kind, OBJECTS.c.namespace, OBJECTS.c.name)
            .add_columns(CHECKS.c.kind.label("check_kind"))
            .join(CHECKS, CHECKS.c.id == FINDINGS.c.check)
            .join(KINDS, KINDS.c.id == FINDINGS.c.kind)
            .join(OBJECTS, OBJECTS.c.id == FINDINGS.c.object)
        )
        for portion in chunks([number for number in numbers if not self._history.saw(number)]):
            for number, since, check, object_id, *about in self._connection.execute(
                described.where(among(self._connection, FINDINGS.c.id, portion))
            ):
                yield number, since, check, object_id, UnseenFinding(*about)
