"""The history of a problem on one line of time: when its findings opened, changed and were resolved, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from itertools import groupby
from typing import Literal, NamedTuple, TypeAlias

from scanner.report.text.names import object_name
from scanner.report.text.titles import EVENTS, RESOLUTIONS, cause_text
from scanner.store.read.lookup import ExplainedProblem, FindingEvent

_NAMED = 5
_OPENED = frozenset({"new", "reopened"})

Change: TypeAlias = Literal["opened", "changed", "resolved"]


class ProblemMoment(NamedTuple):
    """A change of a problem by one scan: `kind` is opened, changed or resolved, `objects` names some of the objects."""

    at: datetime
    kind: Change
    what: str
    why: str
    objects: tuple[str, ...]
    more: int


class _Event(NamedTuple):
    at: datetime
    what: str
    why: str
    kind: Change
    name: str


def timeline_of(problem: ExplainedProblem) -> tuple[ProblemMoment, ...]:
    """The moments of a problem, the newest first. Events of pruned scans may be missing."""
    events = sorted(set(_events(problem)))
    groups = (list(members) for _, members in groupby(events, key=lambda each: each[:4]))
    return tuple(map(_moment, groups))[::-1]


def _moment(events: list[_Event]) -> ProblemMoment:
    names = list(Counter(event.name for event in events))
    first = events[0]
    return ProblemMoment(
        first.at, first.kind, first.what, first.why, tuple(names[:_NAMED]), max(0, len(names) - _NAMED)
    )


def _events(problem: ExplainedProblem) -> Iterator[_Event]:
    for finding in problem.findings:
        of_finding = finding.stored.finding
        name = f"{of_finding.kind} {object_name(of_finding)}"
        for event in finding.events:
            yield _Event(event.at, _what(event), cause_text(event.cause) if event.cause else "", _kind(event), name)


def _what(event: FindingEvent) -> str:
    if event.continues:
        return f"continues finding {event.continues}"
    if event.event in RESOLUTIONS:
        return f"resolved: {RESOLUTIONS[event.event]}"
    return EVENTS.get(event.event, event.event)


def _kind(event: FindingEvent) -> Change:
    if event.event in RESOLUTIONS:
        return "resolved"
    return "opened" if event.event in _OPENED else "changed"
