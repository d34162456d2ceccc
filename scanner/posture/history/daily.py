"""The nouns of a trend: days with their last complete scan, the keys of daily tallies, and times to fix."""

from __future__ import annotations

from datetime import date, timedelta
from typing import NamedTuple

from scanner.posture.history.rule_digests import RulesPart


class Day(NamedTuple):
    """A day of a cluster, and its last complete scan.

    `new` and `resolved` are the sums over all scans of the day. `rules_changed` has
    the parts of the rules that differ from those of the recorded day before; None if there is none, or if the rules of one of both
    days are not known.
    """

    day: date
    scan: str
    findings: int
    new: int
    resolved: int
    rules_changed: tuple[RulesPart, ...] | None = None


class DailyKey(NamedTuple):
    """The outcomes of a policy in a namespace; `requester` marks outcomes that may differ for another user."""

    language: str
    policy: str
    namespace: str
    outcome: str
    requester: bool


class TimeToFix(NamedTuple):
    """The fixed problems of a policy: their number, and for how long half and nine tenths of them were open at most."""

    language: str
    policy: str
    problems: int
    median: timedelta
    p90: timedelta
