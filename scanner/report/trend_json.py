"""The parts of a trend as JSON objects: `docs/trend.schema.json`. A minor version only adds fields."""

from __future__ import annotations

from datetime import timedelta

from scanner.model.json import Json
from scanner.posture.daily import DailyKey, Day, TimeToFix


def day_json(day: Day) -> dict[str, Json]:
    """A day without its tallies."""
    return {
        "day": day.day.isoformat(),
        "scanId": day.scan,
        "findings": day.findings,
        "new": day.new,
        "resolved": day.resolved,
        "rulesChanged": None if day.rules_changed is None else [part.value for part in day.rules_changed],
    }


def key_json(key: DailyKey) -> dict[str, str | bool]:
    """A tally without its count."""
    return {
        "language": key.language,
        "policy": key.policy,
        "namespace": key.namespace,
        "outcome": key.outcome,
        "dependsOnRequester": key.requester,
    }


def fix_json(fixed: TimeToFix) -> dict[str, str | int]:
    """The times to fix of a policy."""
    return {
        "language": fixed.language,
        "policy": fixed.policy,
        "problems": fixed.problems,
        "medianSeconds": seconds(fixed.median),
        "p90Seconds": seconds(fixed.p90),
    }


def seconds(took: timedelta) -> int:
    """A time in whole seconds."""
    return round(took.total_seconds())
