"""The third promise, only seeing fixes: the findings that a scan may resolve, and why findings were resolved.

A scan resolves a finding only if it would have found it again, if it read all policies and the finding's is not bound any more, or if
the cluster does not serve the finding's kind any more. Findings in excluded, forbidden, incomplete or unevaluated
parts stay open. Kinds are compared by group and kind, because all versions of a group serve the same objects; if a scan
listed several versions of a kind, all of them must be complete.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import partial

from scanner.model.outcome import CheckKind, Gap, GapKind
from scanner.model.policy import BindingKey, PolicyKey
from scanner.model.population import GroupKind
from scanner.model.resource import api_group_of
from scanner.model.scans.scan import Coverage, CoverageState, ScanEnd, ScanState, Scope
from scanner.posture.history.causes import Coordinates, coordinates_of
from scanner.store.rows.row_ids import RowIdSet


@dataclass(frozen=True, slots=True)
class UnseenFinding:
    """An open finding that a scan did not find. `check` is the kind of its check."""

    language: str
    policy: str
    binding: str
    param_namespace: str
    param_name: str
    api_version: str
    kind: str
    namespace: str
    name: str
    check: str = CheckKind.VALIDATION

    @property
    def coordinates(self) -> Coordinates:
        """The parts of a decision that concern this finding."""
        invocation = self.language, self.policy, self.binding, self.param_namespace, self.param_name
        return coordinates_of(invocation, self.check, (self.api_version, self.kind, self.namespace, self.name))


@dataclass(frozen=True, slots=True)
class Reach:
    """The reach of a scan. `kinds` are the (group, kind) that were listed without any gap.

    `unread` are the documents that could not be read: any object may be in one of them. A finding of an earlier scan that could
    read them may be fixed, or hidden in such a document. `languages` are those of which every policy and binding was read, and
    `read` is what was read. `served` are the kinds that the cluster serves, empty if discovery was not complete.
    """

    nothing: bool
    scope: Scope
    policies: frozenset[PolicyKey]
    bindings: frozenset[BindingKey]
    kinds: frozenset[GroupKind]
    unread: frozenset[str] = frozenset()
    languages: frozenset[str] = frozenset()
    read: frozenset[PolicyKey | BindingKey] = frozenset()
    served: frozenset[GroupKind] = frozenset()

    def reaches(self, missing: UnseenFinding) -> bool:
        """Return whether the scan would have found the finding again, or saw that its kind is not served any more."""
        if self.nothing:
            return False
        if self.is_unserved(missing.api_version, missing.kind):
            return self._selects_rules(missing) and self._reaches_namespace(
                missing.api_version, missing.kind, missing.namespace, missing.name
            )
        if (api_group_of(missing.api_version), missing.kind) not in self.kinds:
            return False
        policy = missing.language, missing.policy
        if policy not in self.policies or (*policy, missing.binding) not in self.bindings:
            return False
        return self._selects_rules(missing) and self._reaches_namespace(
            missing.api_version, missing.kind, missing.namespace, missing.name
        )

    def unbinds(self, missing: UnseenFinding) -> bool:
        """Return whether the policy or the binding of a finding, within the scope of this scan, does not exist any more."""
        if self.nothing or self.unread or missing.language not in self.languages:
            return False
        if {missing.coordinates.policy_key, missing.coordinates.binding_key} <= self.read:
            return False
        if (self.scope.kinds or self.scope.skip_kinds) and (
            api_group_of(missing.api_version),
            missing.kind,
        ) not in self.kinds:
            return False
        return self._selects_rules(missing) and self._reaches_namespace(
            missing.api_version, missing.kind, missing.namespace, missing.name
        )

    def is_unserved(self, api_version: str, kind: str) -> bool:
        """Return whether the cluster does not serve a kind any more: all of its objects are gone."""
        if self.nothing or self.unread or self.scope.kinds or not self.served:
            return False
        return (api_group_of(api_version), kind) not in self.served

    def lists(self, api_version: str, kind: str, namespace: str, name: str) -> bool:
        """Return whether the scan would have listed an object if it existed."""
        if self.nothing or self.unread:
            return False
        if (api_group_of(api_version), kind) not in self.kinds and not self.is_unserved(api_version, kind):
            return False
        return self._reaches_namespace(api_version, kind, namespace, name)

    def selects(self, finding: UnseenFinding) -> bool:
        """Return whether a finding is in the scope of the scan, also if the scan could not list its kind. Labels of its object are not known."""
        if self.scope.selector or not self._selects_rules(finding):
            return False
        return self._reaches_namespace(finding.api_version, finding.kind, finding.namespace, finding.name)

    def _selects_rules(self, missing: UnseenFinding) -> bool:
        return _selects(missing.policy, self.scope.policies) and _selects(missing.binding, self.scope.bindings)

    def _reaches_namespace(self, api_version: str, kind: str, namespace: str, name: str) -> bool:
        if not _selects(namespace, self.scope.namespaces):
            return False
        # The exclusion of a namespace also excludes the Namespace object of that name.
        home = name if (api_version, kind) == ("v1", "Namespace") else namespace
        return not any(fnmatchcase(home, pattern) for pattern in self.scope.exclude_namespaces)


def compute_reach(
    scope: Scope,
    bindings: Iterable[BindingKey],
    end: ScanEnd,
    gaps: Iterable[Gap],
    policies: Iterable[PolicyKey] = (),
    *,
    nothing: bool = False,
) -> Reach:
    """The reach of a scan with this scope, these policies and bindings, in force or not, and this end.

    A scan that reaches `nothing` resolves nothing.
    """
    gaps, bindings = tuple(gaps), frozenset(bindings)
    return Reach(
        nothing=nothing or end.state is ScanState.FAILED or bool(scope.selector),
        scope=scope,
        policies=frozenset(end.evaluated_policies),
        bindings=bindings,
        kinds=_find_complete_kinds(end.coverage, gaps),
        unread=frozenset(gap.where for gap in gaps if gap.kind is GapKind.DOCUMENT),
        languages=frozenset(end.read_languages),
        read=bindings.union(policies),
        served=end.served,
    )


def compute_listing_reach(scope: Scope, coverage: Iterable[Coverage], gaps: Iterable[Gap]) -> Reach:
    """The reach of a stored scan, of which `lists` alone may be asked."""
    gaps = tuple(gaps)
    return Reach(
        nothing=bool(scope.selector),
        scope=scope,
        policies=frozenset(),
        bindings=frozenset(),
        kinds=_find_complete_kinds(coverage, gaps),
        unread=frozenset(gap.where for gap in gaps if gap.kind is GapKind.DOCUMENT),
    )


def _find_complete_kinds(coverage: Iterable[Coverage], gaps: tuple[Gap, ...]) -> frozenset[GroupKind]:
    listed: dict[GroupKind, bool] = {}
    for line in coverage:
        key = (api_group_of(line.api_version), line.kind)
        complete = line.state is CoverageState.LISTED and not any(_concerns(gap, line) for gap in gaps)
        listed[key] = listed.get(key, True) and complete
    return frozenset(key for key, complete in listed.items() if complete)


def _concerns(gap: Gap, line: Coverage) -> bool:
    """Return whether a gap concerns a kind or its objects: `where` begins with apiVersion/Kind."""
    kind = f"{line.api_version}/{line.kind}"
    return gap.where.startswith(kind) and not gap.where[len(kind) : len(kind) + 1].isalnum()


def _selects(name: str, patterns: tuple[str, ...]) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


class Resolution(StrEnum):
    """The reasons. Only `fixed` is remediation: nothing that decides about the finding changed but its workload.

    A `moved` finding goes on as one of another problem, because its object has another workload.
    """

    FIXED = "fixed"
    MOVED = "moved"
    NO_OBJECTS = "noObjects"
    OBJECT_GONE = "objectGone"
    RULES_CHANGED = "rulesChanged"
    UNBOUND = "unbound"
    NOT_MATCHED = "notMatched"


@dataclass(frozen=True, slots=True)
class WorkloadState:
    """The workload of a finding whose object is gone, as the scan found it.

    `objects` are its examined objects, by id; `has_same_kind` tells that one of them has the kind of the gone object. The workload
    `exists` if its own object does, see `workload_states`. `still_broken` tells that another finding of the problem is open.
    """

    objects: tuple[int, ...] = ()
    has_same_kind: bool = False
    exists: bool = False
    still_broken: bool = False

    @property
    def reason_without_objects(self) -> Resolution:
        """The reason if no other object of the workload was there to evaluate, or if the problem goes on in another one."""
        return Resolution.NO_OBJECTS if self.exists and not self.still_broken else Resolution.OBJECT_GONE


@dataclass(frozen=True, slots=True)
class DecidingRules:
    """The rules that decide about the findings of some coordinates.

    `bound` tells whether policy and binding exist, `invoked` whether there can be an invocation of the param, or of none; `matched`
    are the objects that the policy still matches; `changed` tells whether the rules changed in a part that may decide, `withheld`
    that this scan does not know a part that the earlier one knew; `failed`
    are the objects for which the whole invocation has an error, and `cause` is the id of the cause of a resolution.
    """

    bound: bool
    invoked: bool
    changed: bool
    withheld: bool
    failed: Callable[[], RowIdSet]
    matched: Callable[[], RowIdSet]
    cause: Callable[[Resolution], int]

    def find_reason(
        self, objects: Collection[int], workload: WorkloadState | None, evaluated: Callable[[], RowIdSet]
    ) -> Resolution | None:
        """The reason of a finding whose object exists; with the state of its `workload`, of one whose object is gone.

        `objects` are the object, or those of its workload, and `evaluated` those that the scan evaluated by the check. None if
        the scan evaluated none of the objects that replaced a gone one: it does not show whether the problem is fixed.
        """
        if self.withheld:
            return None
        if not self.bound:
            return Resolution.UNBOUND
        if workload is not None and (workload.still_broken or not objects):
            return workload.reason_without_objects
        if not self.invoked:
            return Resolution.RULES_CHANGED
        matched = self.matched()
        if not any(number in matched for number in objects):
            if workload is None or workload.has_same_kind:
                return Resolution.NOT_MATCHED
            return workload.reason_without_objects
        if self.changed or any(number in self.failed() for number in objects):
            return Resolution.RULES_CHANGED
        if workload is None or any(number in evaluated() for number in objects):
            return Resolution.FIXED
        return None


class MissingFindings:
    """Open findings that a scan did not find again: sixteen bytes for each, because there can be many."""

    def __init__(self) -> None:
        """Begin with none."""
        self.ids = array("I")
        self._objects = array("I")
        self._checks = array("I")
        self._places = array("I")
        self._coordinates: dict[Coordinates, int] = {}

    def add(self, number: int, object_id: int, check: int, coordinates: Coordinates) -> None:
        """Add a finding, by the ids of its row, of its object and of its check."""
        self.ids.append(number)
        self._objects.append(object_id)
        self._checks.append(check)
        self._places.append(self._coordinates.setdefault(coordinates, len(self._coordinates)))

    def select_rows(self, chosen: Collection[int], wanted: Callable[[Coordinates], bool]) -> Iterator[int]:
        """Those of some rows whose coordinates are wanted."""
        rows = RowIdSet(chosen)
        places = [wanted(coordinates) for coordinates in self._coordinates]
        return (
            number for number, place in zip(self.ids, self._places, strict=True) if places[place] and number in rows
        )

    def select_without_object(self, chosen: Collection[int], is_there: Callable[[int], bool]) -> Iterator[int]:
        """Those of some rows whose object this scan did not examine."""
        rows = RowIdSet(chosen)
        return (
            number
            for number, object_id in zip(self.ids, self._objects, strict=True)
            if number in rows and not is_there(object_id)
        )

    def group_by_reason(
        self,
        chosen: Collection[int],
        workloads: Mapping[int, WorkloadState],
        decisive: Callable[[Coordinates], DecidingRules],
        evaluated: Callable[[int], RowIdSet],
    ) -> Mapping[tuple[Resolution, int] | None, list[int]]:
        """Some rows by the reason of their resolution and the id of its cause; those of None are not resolved.

        `workloads` has the state of the workload of each row whose object is gone, `evaluated` returns the objects that this
        scan evaluated by a check.
        """
        rows = RowIdSet(chosen)
        of_place = [decisive(coordinates) for coordinates in self._coordinates]
        groups: defaultdict[tuple[Resolution, int] | None, list[int]] = defaultdict(list)
        columns = zip(self.ids, self._objects, self._checks, self._places, strict=True)
        for number, object_id, check, place in columns:
            if number not in rows:
                continue
            workload = workloads.get(number)
            objects = (object_id,) if workload is None else workload.objects
            reason = of_place[place].find_reason(objects, workload, partial(evaluated, check))
            groups[None if reason is None else (reason, of_place[place].cause(reason))].append(number)
        return groups
