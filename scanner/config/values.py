"""Parses the values of flags: durations, versions, time zones, dates and times. Raises UsageError for invalid ones."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING

from scanner.errors import UsageError
from scanner.model.release import NEWEST, format_minor, minor_of

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:ms|s|m|h))+")
_PART = re.compile(r"([0-9.]+)(ms|s|m|h)")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")


def parse_seconds(text: str, flag: str = "--request-timeout") -> float | None:
    """A duration in seconds, as kubectl's --request-timeout reads it: `30`, `30s`, `1m30s`.

    None for 0, which means no limit. Raises UsageError for another text.
    """
    if _NUMBER.fullmatch(text):
        return float(text) or None
    if not _DURATION.fullmatch(text):
        raise UsageError(f"{flag} {text}: write a duration such as 30, 30s, 2m or 1h; 0 for no limit")
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text)) or None


def parse_assumption(text: str) -> tuple[str, str]:
    """The name of the policy and the action in `--assume-bound POLICY[=ACTION]`; `Deny` by default.

    The action begins with a capital, as in the API; an unknown action is rejected later.
    """
    name, _, action = text.partition("=")
    return name, action.capitalize() or "Deny"


def parse_namespace_label(text: str, flag: str = "--namespace-label") -> tuple[str, str, str]:
    """The namespace, the key and the value in `--namespace-label NS=KEY=VALUE`; the value may be empty.

    Raises UsageError for another text.
    """
    namespace, equals, label = text.partition("=")
    key, second, value = label.partition("=")
    if not (namespace and equals and key and second):
        raise UsageError(f"{flag} {text}: write NAMESPACE=KEY=VALUE, such as shop=env=production")
    return namespace, key, value


def parse_namespace_labels(texts: Sequence[str]) -> dict[str, dict[str, str]]:
    """The labels of `--namespace-label` by namespace. Raises UsageError for a malformed one, and for two values of one key."""
    labels: dict[str, dict[str, str]] = {}
    for text in texts:
        namespace, key, value = parse_namespace_label(text)
        if labels.setdefault(namespace, {}).setdefault(key, value) != value:
            raise UsageError(
                f"--namespace-label {text}: the key {key} of namespace {namespace} has another value already"
            )
    return labels


def parse_kyverno_version(text: str, flag: str = "--kyverno-version") -> str:
    """The version of `--kyverno-version`, such as `1.18` or `v1.18.2`; empty when it is not given.

    Raises UsageError for another text.
    """
    if text and minor_of(text) is None:
        raise UsageError(f"{flag} {text}: write a release such as 1.19")
    return text


def parse_kubernetes_version(text: str, flag: str = "--kubernetes-version") -> str:
    """The version of `--kubernetes-version`, such as `1.36` or `v1.36.2`; empty when it is not given.

    Raises UsageError for another text.
    """
    if text and minor_of(text) is None:
        raise UsageError(f"{flag} {text}: write a version such as {format_minor(NEWEST)}")
    return text


def parse_time_zone(name: str, flag: str = "--time-zone") -> ZoneInfo:
    """The time zone with a name of the IANA database. Raises UsageError."""
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise UsageError(f"{flag} {name}: there is no such zone. Write a name such as Europe/Berlin") from error


def reject_empty(flags: Mapping[str, Sequence[str]]) -> None:
    """Raise UsageError for a flag with an empty value: an unset variable in a script must not widen a scan to everything."""
    for flag, values in flags.items():
        if any(not value.strip() for value in values):
            raise UsageError(f"{flag} has an empty value: give a value, or leave the flag out")


# Dates and times on the command line. They are UTC: a date means its end, and its beginning where a period begins.


def parse_end(text: str, flag: str) -> datetime:
    """The end of a date, or the time that an RFC 3339 text names. Raises UsageError."""
    try:
        if len(text) == len("2026-01-31"):
            return datetime.combine(date.fromisoformat(text) + timedelta(days=1), time(), UTC) - timedelta(
                microseconds=1
            )
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f"{flag} {text}: write a date such as 2026-03-31, or a time such as 2026-03-31T12:00:00Z"
        ) from error
    if moment.tzinfo is None:
        raise UsageError(f"{flag} {text}: a time needs a zone, such as {text}Z for UTC")
    return moment


def parse_beginning(text: str, flag: str) -> datetime:
    """The beginning of a date, or the time that an RFC 3339 text names. Raises UsageError."""
    moment = parse_end(text, flag).astimezone(UTC)
    return datetime.combine(moment.date(), time(), UTC) if len(text) == len("2026-01-31") else moment
