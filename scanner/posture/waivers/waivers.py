"""The waivers that apply on a day, and the findings to which they apply.

A waiver is never stored as applied: its state follows from the file, the day of the report and the findings of the scan. So an
edited waiver changes no earlier report, and a waiver that expires needs no scan to end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final, NamedTuple, TypeAlias

from scanner.model.population import Pairs
from scanner.model.scans.stored_finding import StoredFinding
from scanner.model.selector import Requirement
from scanner.model.waiver import CandidateFilter, Waiver, WaiverSet, WaiverSubject

__all__ = ["Waiver", "WaiverSet", "WaiverSubject"]

EXPIRING_DAYS: Final = 7
"""The number of days before its end in which a waiver is expiring, unless the configuration has another number."""


class WaiverState(StrEnum):
    """The states of a waiver on a day. Those that apply are `active` and `expiring`; `unused` waivers would apply, too."""

    ACTIVE = "active"
    EXPIRING = "expiring"
    EXPIRED = "expired"
    NOT_YET_ACTIVE = "notYetActive"
    UNUSED = "unused"
    TOO_BROAD = "tooBroad"
    TOO_LONG = "tooLong"
    SELF_APPROVED = "selfApproved"
    UNKNOWN_POLICY = "unknownPolicy"
    UNKNOWN_CHECK = "unknownCheck"


IN_FORCE: Final = frozenset({WaiverState.ACTIVE, WaiverState.EXPIRING})


@dataclass(frozen=True, slots=True)
class WaiverRules:
    """The rules for waivers: `longest_days` from the first to the last day, or any number; `expiring_days` before the end."""

    longest_days: int | None = None
    expiring_days: int = EXPIRING_DAYS


@dataclass(frozen=True, slots=True)
class AppliedWaiver:
    """The waiver of a finding: its name, its state (`active` or `expiring`), and the last day on which it applies."""

    name: str
    state: WaiverState
    until: date


def state_on(waiver: Waiver, day: date, rules: WaiverRules) -> WaiverState:
    """The state of a waiver on a day in UTC, as far as it does not depend on findings."""
    if waiver.requested_by.strip().casefold() == waiver.approved_by.strip().casefold():
        return WaiverState.SELF_APPROVED
    if is_too_broad(waiver):
        return WaiverState.TOO_BROAD
    if day > waiver.until:
        return WaiverState.EXPIRED
    if _is_too_long(waiver, rules):
        return WaiverState.TOO_LONG
    if waiver.since is not None and day < waiver.since:
        return WaiverState.NOT_YET_ACTIVE
    expiring = waiver.until - day < timedelta(days=rules.expiring_days)
    return WaiverState.EXPIRING if expiring else WaiverState.ACTIVE


def is_too_broad(waiver: Waiver) -> bool:
    """Return whether a waiver would waive a policy as a whole: that is a change of the policy's binding, not a waiver."""
    return not (waiver.namespace or waiver.workload or waiver.object or waiver.selector.requirements)


def _is_too_long(waiver: Waiver, rules: WaiverRules) -> bool:
    """Return whether a waiver applies for more days than allowed. Without a first day, the number of days is unknown."""
    if rules.longest_days is None:
        return False
    return waiver.since is None or (waiver.until - waiver.since).days + 1 > rules.longest_days


def select_by_cluster(waivers: Iterable[Waiver], names: Collection[str]) -> Iterator[Waiver]:
    """The waivers for the cluster with one of these names: a stored scan has that of its time, and that of today."""
    return (
        waiver for waiver in waivers if not waiver.cluster or any(fnmatchcase(name, waiver.cluster) for name in names)
    )


def subject_of(stored: StoredFinding, check_id: str) -> WaiverSubject:
    """The facts about a stored finding that a waiver can name."""
    finding = stored.finding
    workload = stored.workload
    return WaiverSubject(
        finding.policy,
        check_id,
        finding.check.expression.strip(),
        finding.namespace,
        finding.kind,
        finding.name,
        workload.kind if workload else finding.kind,
        workload.name if workload else finding.name,
        stored.kept.object.labels if stored.kept else (),
    )


_Condition: TypeAlias = Callable[[WaiverSubject], bool]


def conditions_of(waiver: Waiver) -> Iterator[tuple[str, _Condition]]:
    """The fields of a waiver that restrict it, besides the cluster and the days, and the test of each."""
    yield "policy", lambda subject: subject.policy == waiver.policy
    if check := waiver.check:
        yield "check", lambda subject: check in (subject.check_id, subject.expression)
    if namespace := waiver.namespace:
        yield "namespace", lambda subject: subject.namespace == namespace
    if waiver.workload:
        workload = _reference(waiver.workload)
        yield "workload", lambda subject: _is_named(workload, subject.workload_kind, subject.workload_name)
    if waiver.object:
        named = _reference(waiver.object)
        yield "object", lambda subject: _is_named(named, subject.kind, subject.name)
    if requirements := waiver.selector.requirements:
        yield "selector", lambda subject: _selects(requirements, subject)


def _reference(text: str) -> tuple[str, str]:
    """Kind in lower case and name; the kind is empty for a name of any kind."""
    kind, _, name = text.rpartition("/")
    return kind.lower(), name


def _is_named(reference: tuple[str, str], kind: str, name: str) -> bool:
    return reference[1] == name and reference[0] in ("", kind.lower())


def _selects(requirements: Iterable[Requirement], subject: WaiverSubject) -> bool:
    labels = dict(subject.labels)
    return all(requirement.matches(labels) for requirement in requirements)


class IndexedWaiver(NamedTuple):
    """A waiver with the conditions that its place in the index does not answer."""

    waiver: Waiver
    conditions: tuple[_Condition, ...]


@dataclass(slots=True)
class _WaiversOfPolicy:
    """The waivers of one policy, each by its most selective exact field. `others` have none."""

    objects: defaultdict[str, list[IndexedWaiver]] = field(default_factory=lambda: defaultdict(list))
    workloads: defaultdict[str, list[IndexedWaiver]] = field(default_factory=lambda: defaultdict(list))
    labels: defaultdict[tuple[str, str], list[IndexedWaiver]] = field(default_factory=lambda: defaultdict(list))
    namespaces: defaultdict[str, list[IndexedWaiver]] = field(default_factory=lambda: defaultdict(list))
    others: list[IndexedWaiver] = field(default_factory=list)

    def add(self, tested: IndexedWaiver) -> None:
        """Add a waiver by the field that the fewest findings have."""
        waiver = tested.waiver
        if waiver.object:
            self.objects[_reference(waiver.object)[1]].append(tested)
        elif waiver.workload:
            self.workloads[_reference(waiver.workload)[1]].append(tested)
        elif exact := next((each for each in waiver.selector.requirements if each.operator == "In"), None):
            for value in dict.fromkeys(exact.values):
                self.labels[exact.key, value].append(tested)
        elif waiver.namespace:
            self.namespaces[waiver.namespace].append(tested)
        else:
            self.others.append(tested)


class WaiverIndex:
    """Waivers by what they name, so that a finding is compared with few of them."""

    def __init__(self, waivers: Iterable[Waiver]) -> None:
        """Take waivers."""
        self._places: dict[str, _WaiversOfPolicy] = {}
        for waiver in waivers:
            # The policy is the first condition, and the first step in the index.
            conditions = tuple(condition for _, condition in conditions_of(waiver))[1:]
            self._places.setdefault(waiver.policy, _WaiversOfPolicy()).add(IndexedWaiver(waiver, conditions))

    @property
    def findings(self) -> CandidateFilter:
        """The findings to which the waivers may apply."""
        places = self._places.values()
        return CandidateFilter(
            frozenset(self._places),
            frozenset(name for waivers in places for name in waivers.objects),
            frozenset(name for waivers in places for name in waivers.workloads),
            frozenset(name for waivers in places for name in waivers.namespaces),
            frozenset(label for waivers in places for label in waivers.labels),
            any(waivers.others for waivers in places),
        )

    def may_apply(self, policy: str, name: str, workload: str, namespace: str, labels: Pairs) -> bool:
        """Return whether `near` has any waiver: much quicker."""
        places = self._places.get(policy)
        if places is None:
            return False
        if name in places.objects or workload in places.workloads or namespace in places.namespaces or places.others:
            return True
        if by_label := places.labels:
            for pair in labels:
                if pair in by_label:
                    return True
        return False

    def find_near(self, policy: str, name: str, workload: str, namespace: str, labels: Pairs) -> list[IndexedWaiver]:
        """The waivers that may apply to a finding, given names of its policy, object, workload and namespace, and its labels."""
        places = self._places.get(policy)
        if places is None:
            return []
        candidates = [*places.others]
        if name in places.objects:
            candidates += places.objects[name]
        if workload in places.workloads:
            candidates += places.workloads[workload]
        if namespace in places.namespaces:
            candidates += places.namespaces[namespace]
        if by_label := places.labels:
            for pair in labels:
                if pair in by_label:
                    candidates += by_label[pair]
        return candidates


def select_matching(near: Iterable[IndexedWaiver], subject: WaiverSubject) -> list[Waiver]:
    """The waivers that apply to a finding, of those that may: the one that applies longest first, then by name."""
    waivers = [tested.waiver for tested in near if all(condition(subject) for condition in tested.conditions)]
    if len(waivers) > 1:
        waivers.sort(key=lambda waiver: (-waiver.until.toordinal(), waiver.name))
    return waivers
