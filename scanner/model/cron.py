"""Parses a schedule in the form of `spec.schedule` of a CronJob.

Source of truth: `ParseStandard` of github.com/robfig/cron v3, and `validateScheduleFormat` in pkg/apis/batch/validation of Kubernetes,
which denies time zones within the schedule.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from zoneinfo import ZoneInfo

from scanner.errors import UsageError
from scanner.model.schedule import Schedule

_NUMBER: Final = re.compile(r"\+?[0-9]{1,9}")
_ANY: Final = ("*", "?")
_LOW_AND_HIGH: Final = 2


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a schedule: its name in messages, and its bounds."""

    name: str
    low: int
    high: int
    names: Mapping[str, int] = field(default_factory=dict)


_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: Final = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of the month", 1, 31),
    _Field("month", 1, 12, {name: number for number, name in enumerate(_MONTHS, start=1)}),
    _Field("weekday", 0, 6, {name: number for number, name in enumerate(_WEEKDAYS)}),
)
_DESCRIPTORS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


def schedule_of(text: str, zone: ZoneInfo) -> Schedule:
    """The schedule that a text describes, in a time zone. Raises UsageError for a text that the API would deny, and `@every`."""
    if "TZ" in text:
        raise UsageError(
            f"schedule {text!r}: a CronJob has no TZ or CRON_TZ in its schedule. Name the zone with --time-zone"
        )
    if text.startswith("@every"):
        raise UsageError(
            f"schedule {text!r}: the times of @every depend on the creation of the CronJob. Write five fields, such as '17 2 * * *'"
        )
    parts = _DESCRIPTORS.get(text, text).split()
    if text.startswith("@") and text not in _DESCRIPTORS:
        raise _invalid(text, f"write one of {', '.join(_DESCRIPTORS)}, or five fields")
    if len(parts) != len(_FIELDS):
        raise _invalid(
            text, f"it has {len(parts)} fields instead of five: minute, hour, day of the month, month, weekday"
        )
    try:
        read = [_field(part, form) for part, form in zip(parts, _FIELDS, strict=True)]
    except ValueError as error:
        raise _invalid(text, str(error)) from error
    [minutes, hours, days, months, weekdays] = [frozenset(numbers) for numbers, _ in read]
    [_, _, day, _, weekday] = [is_any for _, is_any in read]
    return Schedule(minutes, hours, days, months, weekdays, any_day=day or weekday, zone=zone)


def _invalid(text: str, why: str) -> UsageError:
    return UsageError(f"schedule {text!r}: {why}. Example: '17 2 * * *', every day at 02:17")


def _field(text: str, form: _Field) -> tuple[set[int], bool]:
    """The numbers of a field, and whether a part of the field is `*` or `?` without a step. Raises ValueError."""
    numbers: set[int] = set()
    is_any = False
    for part in filter(None, text.split(",")):
        expression, *steps = part.split("/")
        low, high, is_open = _range(expression, form)
        if len(steps) > 1:
            raise ValueError(f"{form.name} {part!r} has more than one step")
        step = _number(steps[0], form) if steps else 1
        if steps and "-" not in expression:
            high = form.high
        _reject_outside(part, low, high, step, form)
        numbers.update(range(low, high + 1, step))
        is_any |= is_open and step == 1
    return numbers, is_any


def _range(text: str, form: _Field) -> tuple[int, int, bool]:
    """The first and the last number of a range, and whether it is `*` or `?`. Text after `*-` is ignored, as upstream does."""
    low, *high = text.split("-")
    if low in _ANY:
        return form.low, form.high, True
    if len(high) >= _LOW_AND_HIGH:
        raise ValueError(f"{form.name} {text!r} has too many hyphens")
    first = _named(low, form)
    return first, _named(high[0], form) if high else first, False


def _reject_outside(part: str, low: int, high: int, step: int, form: _Field) -> None:
    if low < form.low or high > form.high:
        raise ValueError(f"{form.name} {part!r} is not between {form.low} and {form.high}")
    if low > high:
        raise ValueError(f"{form.name} {part!r} ends before it begins")
    if step == 0:
        raise ValueError(f"{form.name} {part!r} has the step 0")


def _named(text: str, form: _Field) -> int:
    number = form.names.get(text.lower())
    return _number(text, form) if number is None else number


def _number(text: str, form: _Field) -> int:
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{form.name} {text!r} is not a number{' or a name' if form.names else ''}")
    return int(text)
