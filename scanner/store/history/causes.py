"""The causes of what a scan changes in history: see `posture.history.causes`.

A finding that was open is compared with the scan that last saw it; a new one with the newest comparable scan, or else with the
newest scan. In a history without earlier scans, every cause is `firstScan`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, select, update

from scanner.model.outcome import Gap, GapKind
from scanner.model.policy import Binding, BindingKey, Policy, PolicyKey, policy_label
from scanner.model.resource import api_group_of
from scanner.model.scans.cause import Cause, CauseKind, cause_of
from scanner.model.scans.method import Method
from scanner.model.scans.scan import FILES, Coverage, CoverageState, Scope
from scanner.posture.history.causes import (
    RULES,
    CircumstanceChanges,
    Circumstances,
    Coordinates,
    Invoked,
    coordinates_of,
)
from scanner.posture.history.namespace_keys import namespace_keys
from scanner.store.catalog.rules import read_rules
from scanner.store.catalog.scans import find_newest_comparable
from scanner.store.database.engine import is_among
from scanner.store.history.evaluated_sets import NOT_EVALUATED, read_sets_of_scan
from scanner.store.history.resolution import Resolution, compute_listing_reach
from scanner.store.rows import codec
from scanner.store.rows.gap_lists import read_gaps
from scanner.store.rows.interning import Interner, chunks
from scanner.store.rows.row_ids import RowIdSet
from scanner.store.rows.shared_rows import RowOwners, read_owners
from scanner.store.rows.tables import (
    BINDINGS,
    CAUSES,
    CHECKS,
    COVERAGE,
    FINDINGS,
    KINDS,
    OBJECTS,
    POLICIES,
    SCAN_BINDINGS,
    SCAN_POLICIES,
    SCANS,
)

_BY_RESOLUTION: Final = {
    Resolution.FIXED: CauseKind.OBJECT_CHANGED,
    Resolution.MOVED: CauseKind.OBJECT_CHANGED,
    Resolution.NO_OBJECTS: CauseKind.OBJECT_DELETED,
    Resolution.OBJECT_GONE: CauseKind.OBJECT_DELETED,
}
_FIRST: Final = Cause(CauseKind.FIRST_SCAN)


class FindingPlace(NamedTuple):
    """A finding for the question whether an earlier scan evaluated its object."""

    check: int
    object_id: int
    api_version: str
    kind: str
    name: str
    coordinates: Coordinates


def locate_finding(
    check: int, object_id: int, check_kind: str, place: tuple[str, str, str, str], invocation: Invoked
) -> FindingPlace:
    """The place of a finding, by the ids of its check and of its object, and by `coordinates_of`."""
    api_version, kind, _, name = place
    return FindingPlace(check, object_id, api_version, kind, name, coordinates_of(invocation, check_kind, place))


class EarlierScan:
    """A scan with which another one is compared: its circumstances, and the objects and checks that it evaluated."""

    def __init__(self, connection: Connection, number: int, now: Circumstances) -> None:
        """Read a scan by its number."""
        self.comparison = CircumstanceChanges(read_circumstances(connection, number), now)
        self._examined: dict[tuple[str, str], list[RowIdSet]] = defaultdict(list)
        self._not_evaluated: dict[int, list[RowIdSet]] = defaultdict(list)
        for api_version, kind, sets in read_sets_of_scan(connection, number):
            self._examined[api_group_of(api_version), kind].append(sets.examined)
            for checks, ids in sets.sets:
                for check in (check for check, reason in checks if reason in NOT_EVALUATED):
                    self._not_evaluated[check].append(ids)
        gaps = tuple(_read_gaps(connection, number))
        self._failed_policies = frozenset(gap.where for gap in gaps if gap.kind is GapKind.EVALUATION)
        scope = connection.execute(select(SCANS.c.scope).where(SCANS.c.number == number)).scalar_one()
        coverage = tuple(_read_coverage(connection, number))
        self._reach = compute_listing_reach(codec.from_text(Scope, scope), coverage, gaps)
        # Older versions recorded no objects: whether an object existed is not known.
        self._recorded_objects = bool(self._examined) or not any(line.objects for line in coverage)

    def changes(self, finding: FindingPlace) -> Iterator[CauseKind]:
        """The changes since then of a finding that the scan does not have. If nothing else did, its object changed."""
        rules = self.comparison.list_deciding(finding.coordinates)
        yield from rules
        if self.has_examined(finding.api_version, finding.kind, finding.object_id):
            if self._could_not_evaluate(finding):
                yield CauseKind.COVERAGE
            elif not rules:
                yield CauseKind.OBJECT_CHANGED
        elif not self.lists(finding.api_version, finding.kind, finding.coordinates.namespace, finding.name):
            yield CauseKind.COVERAGE
        elif self._recorded_objects:
            yield find_appearance_cause(self.comparison)
        elif not rules:
            yield CauseKind.OBJECT_CHANGED

    def would_have(self, finding: FindingPlace) -> bool:
        """Return whether the scan would have a finding if it were so: it saw the object or its absence, and could evaluate the check."""
        key = finding.coordinates.policy_key, finding.coordinates.binding_key
        if key[0] not in self.comparison.before.policies or key[1] not in self.comparison.before.bindings:
            return False
        if self.has_examined(finding.api_version, finding.kind, finding.object_id):
            return not self._could_not_evaluate(finding)
        return self.lists(finding.api_version, finding.kind, finding.coordinates.namespace, finding.name)

    def has_examined(self, api_version: str, kind: str, object_id: int) -> bool:
        """Return whether the scan examined an object."""
        return any(object_id in ids for ids in self._examined.get((api_group_of(api_version), kind), ()))

    def lists(self, api_version: str, kind: str, namespace: str, name: str) -> bool:
        """Return whether the scan would have listed an object if it existed."""
        return self._reach.lists(api_version, kind, namespace, name)

    def _could_not_evaluate(self, finding: FindingPlace) -> bool:
        """Return whether the scan examined the object of a finding, but could not evaluate the check."""
        if policy_label(finding.coordinates.policy_key) in self._failed_policies:
            return True
        return any(finding.object_id in ids for ids in self._not_evaluated.get(finding.check, ()))


def find_appearance_cause(comparison: CircumstanceChanges) -> CauseKind:
    """The cause of a finding about an object that an earlier scan did not have: files tell nothing about its creation."""
    of_files = comparison.before.of_files or comparison.now.of_files
    return CauseKind.OBJECT_NOT_IN_EARLIER_SCAN if of_files else CauseKind.OBJECT_CREATED


def find_end_kinds(
    comparison: CircumstanceChanges, finding: Coordinates, resolution: Resolution | None, *, deleted: bool = False
) -> frozenset[CauseKind]:
    """The changes of a finding that was resolved, for a reason that may not be known; its object may be `deleted`.

    An error of the whole invocation, which stands instead of its checks, can come of a change that decides about no check.
    """
    kinds = {*comparison.list_deciding(finding)}
    if resolution is Resolution.RULES_CHANGED:
        kinds = kinds or {*comparison.list_changes(finding)}
    if resolution in _BY_RESOLUTION:
        kinds.add(_BY_RESOLUTION[resolution])
    if deleted:
        kinds.add(CauseKind.OBJECT_DELETED)
    return frozenset(kinds or {CauseKind.OBJECT_CHANGED})


def find_change_kinds(
    comparison: CircumstanceChanges, finding: Coordinates, *, object_changed: bool
) -> frozenset[CauseKind]:
    """The changes of a finding that is open before and after, texts included: if nothing else did, its object.

    An error of a configuration that lacks a param changes with the param or its kind, unless the object changed.
    """
    kinds = frozenset(comparison.list_changes(finding))
    if object_changed:
        return kinds | {CauseKind.OBJECT_CHANGED}
    unexplained = CauseKind.PARAM if comparison.refers_to_params(finding) else CauseKind.OBJECT_CHANGED
    return kinds or frozenset({unexplained})


class Causes:
    """The causes of one scan, while it is merged."""

    def __init__(self, connection: Connection, scan: int, cluster: int, revision: int) -> None:
        """The connection is in a transaction that writes history; `scan` will have the revision.

        `base` is the revision of the scan with which new findings are compared, 0 in a history without earlier scans.
        """
        self._connection = connection
        self._cluster = cluster
        self._number = scan
        self.circumstances: Final = read_circumstances(connection, scan)
        self._comparable = find_newest_comparable(connection, scan, revision)
        self.base: Final = self._comparable or self._find_newest(revision)
        self._rows = Interner(connection, CAUSES)
        self._ids: dict[Cause, int] = {}
        self._earlier: dict[int, EarlierScan] = {}

    @property
    def first_scan_cause(self) -> int | None:
        """The id of the cause of every finding of the first scan; None for later scans."""
        return None if self.base else self.id_of(_FIRST)

    def id_of(self, cause: Cause) -> int:
        """The id of a cause."""
        if cause not in self._ids:
            [self._ids[cause]] = self._rows.intern([(cause.kind.value, ",".join(cause.also))])
        return self._ids[cause]

    def compare_since(self, revision: int) -> CircumstanceChanges:
        """The changes since the scan of a revision."""
        return self._read_scan(revision).comparison

    @property
    def changed_rules(self) -> tuple[CauseKind, ...]:
        """The kinds of rules that differ from those of the newest comparable scan; none if there is no such scan."""
        if self._comparable is None or self._read_digest(self._comparable) == self._read_digest():
            return ()
        return tuple(kind for kind in self.compare_since(self._comparable).kinds if kind in RULES)

    def _read_digest(self, revision: int | None = None) -> str:
        """The digest of the rules of the scan of a revision, or of this scan."""
        scan = SCANS.c
        merged = (
            (scan.number == self._number,)
            if revision is None
            else (scan.cluster == self._cluster, scan.revision == revision)
        )
        return str(self._connection.execute(select(scan.policy_set_digest).where(*merged)).scalar_one())

    def find_end_cause(self, finding: Coordinates, resolution: Resolution, revision: int) -> int:
        """The id of the cause of a resolution; the scan of `revision` was the last to see the finding."""
        return self.id_of(cause_of(find_end_kinds(self.compare_since(revision), finding, resolution)))

    def attribute_new(self, numbers: Sequence[int], revision: int) -> None:
        """Write the causes of rows that were not open before, compared with the scan of a revision."""
        earlier = self._read_scan(revision)
        for portion in chunks(numbers):
            ids: defaultdict[int, list[int]] = defaultdict(list)
            for number, place in self.list_places(portion):
                ids[self.id_of(cause_of(set(earlier.changes(place))))].append(number)
            self._write(ids)

    def attribute_reopened(self, numbers: Sequence[int], ended: int, end_cause: int | None) -> None:
        """Write the causes of rows of findings that the scan of the revision `ended` had resolved, for a cause with an id.

        If the scan with which new findings are compared still saw them, what changed since then is not all: what had ended
        them is undone, too. The scan that ended them may be pruned, so it is not asked.
        """
        if ended <= self.base:
            self.attribute_new(numbers, self.base)
            return
        comparison = self.compare_since(self.base)
        # A deletion ends a finding by another kind than the one that brings it back.
        undone = {
            find_appearance_cause(comparison) if kind is CauseKind.OBJECT_DELETED else kind
            for kind in self._read_kinds(end_cause)
        }
        for portion in chunks(numbers):
            ids: defaultdict[int, list[int]] = defaultdict(list)
            for number, place in self.list_places(portion):
                kinds = undone.union(comparison.list_deciding(place.coordinates))
                ids[self.id_of(cause_of(kinds or {CauseKind.OBJECT_CHANGED}))].append(number)
            self._write(ids)

    def _read_kinds(self, cause: int | None) -> Sequence[CauseKind]:
        """The kinds of a cause, by its id; none for a row of an older version."""
        wanted = select(CAUSES.c.kind, CAUSES.c.also).where(CAUSES.c.id == cause)
        row = None if cause is None else self._connection.execute(wanted).one_or_none()
        return [] if row is None else [CauseKind(kind) for kind in (row.kind, *filter(None, row.also.split(",")))]

    def attribute_changed(self, numbers: Sequence[int], objects_changed: RowIdSet, revision: int) -> None:
        """Write the causes of rows that changed since the scan of a revision.

        `objects_changed` are the rows whose objects have another resource version or workload than the rows before them.
        """
        comparison = self.compare_since(revision)
        for portion in chunks(numbers):
            ids: defaultdict[int, list[int]] = defaultdict(list)
            for number, place in self.list_places(portion):
                kinds = find_change_kinds(comparison, place.coordinates, object_changed=number in objects_changed)
                ids[self.id_of(cause_of(kinds))].append(number)
            self._write(ids)

    def list_places(self, numbers: Sequence[int]) -> Iterator[tuple[int, FindingPlace]]:
        """The places of rows of findings, with the ids of the rows."""
        located = select_located(FINDINGS.c.id, FINDINGS.c.check, FINDINGS.c.object)
        chosen = located.where(is_among(self._connection, FINDINGS.c.id, numbers))
        for number, check_id, object_id, check_kind, *columns in self._connection.execute(chosen):
            yield number, locate_finding(check_id, object_id, check_kind, (*columns[:4],), (*columns[4:],))

    def _write(self, ids: defaultdict[int, list[int]]) -> None:
        for cause, numbers in ids.items():
            chosen = is_among(self._connection, FINDINGS.c.id, numbers)
            self._connection.execute(update(FINDINGS).where(chosen).values(cause=cause))

    def _read_scan(self, revision: int) -> EarlierScan:
        if revision not in self._earlier:
            merged = SCANS.c.cluster == self._cluster, SCANS.c.revision == revision
            number = self._connection.execute(select(SCANS.c.number).where(*merged)).scalar_one()
            self._earlier[revision] = EarlierScan(self._connection, number, self.circumstances)
        return self._earlier[revision]

    def _find_newest(self, before: int) -> int:
        merged = SCANS.c.cluster == self._cluster, SCANS.c.revision < before
        newest = select(SCANS.c.revision).where(*merged).order_by(SCANS.c.revision.desc()).limit(1)
        return self._connection.execute(newest).scalar() or 0


def select_located(*columns: ColumnElement[Any]) -> Select[Any]:
    """The query of some columns of findings, followed by the kind of the check, the place of the object, and the invocation."""
    check, identity = CHECKS.c, OBJECTS.c
    return (
        select(*columns)
        .add_columns(check.kind.label("check_kind"), KINDS.c.api_version, KINDS.c.kind)
        .add_columns(identity.namespace, identity.name)
        .add_columns(check.language, check.policy, check.binding, check.param_namespace, check.param_name)
        .join(CHECKS, check.id == FINDINGS.c.check)
        .join(KINDS, KINDS.c.id == FINDINGS.c.kind)
        .join(OBJECTS, identity.id == FINDINGS.c.object)
    )


def _read_gaps(connection: Connection, number: int) -> Iterator[Gap]:
    return (Gap(GapKind(kind), where, why) for _, kind, where, why in read_gaps(connection, number))


def _read_coverage(connection: Connection, number: int) -> Iterator[Coverage]:
    coverage = COVERAGE.c
    wanted = select(coverage.api_version, coverage.kind, coverage.state, coverage.objects).where(
        coverage.scan == number
    )
    for api_version, kind, state, objects in connection.execute(wanted):
        yield Coverage(api_version, kind, CoverageState(state), objects=objects)


def read_circumstances(connection: Connection, scan: int) -> Circumstances:
    """The circumstances of a scan, by its number."""
    own = SCANS.c
    columns = own.server_version, own.tool_version, own.source, own.scope, own.requester, own.method
    server, assay, source, scope, requester, method = connection.execute(
        select(*columns).where(own.number == scan)
    ).one()
    made = codec.from_text(Method, method) if method else Method()
    operation = codec.from_text(Scope, scope).operation
    owners = read_owners(connection, scan)
    rules = _StoredRules(connection, owners)
    return Circumstances(
        policies={key: row.spec_digest for key, row in rules.policies.items()},
        bindings={key: _digest_binding(row.spec_digest, row.document) for key, row in rules.bindings.items()},
        rules=read_rules(connection, owners.rules),
        server=server,
        assay=assay,
        options=(operation, requester, made.kyverno_compat, str(made.network), *made.network_to),
        sources=made.policy_sources,
        of_files=source == FILES,
        kyverno=made.kyverno_release,
        namespace_keys=cache(rules.find_namespace_keys),
        policy=rules.policy,
        binding=rules.binding,
    )


class _StoredRules:
    """The rows of the policies and bindings of a scan: a comparison asks for few of them, and decoding one takes long."""

    def __init__(self, connection: Connection, owners: RowOwners) -> None:
        """Read the rows that a scan has, by their owners."""
        policy, binding = POLICIES.c, BINDINGS.c
        policies = (
            select(policy.language, policy.name, policy.spec_digest, policy.document)
            .join(SCAN_POLICIES)
            .where(SCAN_POLICIES.c.scan == owners.policies)
        )
        bindings = (
            select(binding.language, binding.policy_name, binding.name, binding.spec_digest, binding.document)
            .join(SCAN_BINDINGS)
            .where(SCAN_BINDINGS.c.scan == owners.bindings)
        )
        self.policies = {(row.language, row.name): row for row in connection.execute(policies)}
        self.bindings = {(row.language, row.policy_name, row.name): row for row in connection.execute(bindings)}
        self.policy = cache(self._decode_policy)
        self.binding = cache(self._decode_binding)

    def find_namespace_keys(self, key: PolicyKey) -> frozenset[str]:
        """The labels of namespaces that a policy and its bindings read; none of a policy that the scan did not have."""
        policy = self.policy(key)
        if policy is None:
            return frozenset()
        bindings = (self.binding(each) for each in self.bindings if each[:2] == key)
        return namespace_keys(key[0], policy.manifest, *(binding.manifest for binding in bindings if binding))

    def _decode_policy(self, key: PolicyKey) -> Policy | None:
        return codec.from_text(Policy, self.policies[key].document) if key in self.policies else None

    def _decode_binding(self, key: BindingKey) -> Binding | None:
        return codec.from_text(Binding, self.bindings[key].document) if key in self.bindings else None


def _digest_binding(digest: str, document: str) -> str:
    """The digest of the spec of a binding: without its name, so that a binding that is renamed has the same one.

    A binding without a spec, which no manifest contains, has its own digest.
    """
    spec = codec.from_text(Binding, document).manifest.get("spec")
    if spec is None:
        return digest
    return sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()
