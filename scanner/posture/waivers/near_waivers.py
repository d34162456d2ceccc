"""Reasons for which a waiver does not apply to a finding: the fields that differ, and what the finding has instead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import NamedTuple

from scanner.model.waiver import Waiver, WaiverSubject
from scanner.posture.waivers.waived_checks import ReplacedCheck
from scanner.posture.waivers.waivers import IN_FORCE, WaiverRules, WaiverState, conditions_of, state_on

_FIELDS = {
    WaiverState.EXPIRED: "until",
    WaiverState.NOT_YET_ACTIVE: "from",
    WaiverState.SELF_APPROVED: "approvedBy",
    WaiverState.TOO_LONG: "until",
    WaiverState.TOO_BROAD: "namespace",
}


class Miss(NamedTuple):
    """A field on which a waiver fails: the value that it needs, and that of the finding or of the report."""

    field: str
    wanted: str
    given: str


class NearWaiver(NamedTuple):
    """A waiver that does not apply to a finding."""

    waiver: Waiver
    misses: tuple[Miss, ...]


class Report(NamedTuple):
    """The report whose waivers are compared: the names of its cluster, its day, the rules, and the replaced checks by waiver."""

    names: Sequence[str]
    day: date
    rules: WaiverRules
    replaced: Mapping[str, ReplacedCheck] = MappingProxyType({})


def list_misses(waiver: Waiver, subject: WaiverSubject, report: Report) -> Iterator[Miss]:
    """The fields on which a waiver fails for a finding of a report; none if it applies."""
    if waiver.cluster and not any(fnmatchcase(name, waiver.cluster) for name in report.names):
        yield Miss("cluster", waiver.cluster, report.names[0])
    for field, matches in conditions_of(waiver):
        if not matches(subject):
            yield Miss(field, _get_wanted(waiver, field), _get_given(subject, field))
        elif field == "check" and (replaced := report.replaced.get(waiver.name)):
            yield Miss("checkDigest", _join_digests(replaced.accepted), _join_digests(replaced.asked))
    state = state_on(waiver, report.day, report.rules)
    if state not in IN_FORCE:
        yield Miss(_FIELDS[state], _describe_need(waiver, state), _describe_day(report.day, state))


def find_nearest_waivers(waivers: Iterable[Waiver], subject: WaiverSubject, report: Report) -> list[NearWaiver]:
    """The waivers of the finding's policy that fail on one field, or if there are none, on two; by name."""
    near = [NearWaiver(waiver, tuple(list_misses(waiver, subject, report))) for waiver in waivers]
    for number in (1, 2):
        if nearest := [each for each in near if len(each.misses) == number]:
            return sorted(nearest, key=lambda each: each.waiver.name)
    return []


def _join_digests(digests: Iterable[str]) -> str:
    return " or ".join(sorted(digests))


def _get_wanted(waiver: Waiver, field: str) -> str:
    if field == "selector":
        return "its selector"
    text: str = getattr(waiver, field)
    return text


def _get_given(subject: WaiverSubject, field: str) -> str:
    match field:
        case "policy":
            return subject.policy
        case "check":
            return subject.check_id or subject.expression
        case "namespace":
            return subject.namespace or "no namespace"
        case "workload":
            return f"{subject.workload_kind}/{subject.workload_name}"
        case "object":
            return f"{subject.kind}/{subject.name}"
        case _:
            return ", ".join(f"{key}={value}" for key, value in subject.labels) or "no kept labels"


def _describe_need(waiver: Waiver, state: WaiverState) -> str:
    match state:
        case WaiverState.EXPIRED:
            return f"a day until {waiver.until}"
        case WaiverState.NOT_YET_ACTIVE:
            return f"a day from {waiver.since}"
        case WaiverState.SELF_APPROVED:
            return f"another person than {waiver.requested_by}"
        case WaiverState.TOO_LONG:
            return "a shorter time from the first day"
        case _:
            return "a namespace, workload, object or selector"


def _describe_day(day: date, state: WaiverState) -> str:
    if state in (WaiverState.EXPIRED, WaiverState.NOT_YET_ACTIVE):
        return str(day)
    return "the waiver as it is written"
