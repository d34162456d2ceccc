"""The times of a cron schedule in a time zone, as the CronJob controller computes them.

Source of truth: `SpecSchedule.Next` of github.com/robfig/cron v3, which kube-controller-manager uses. When clocks go forward, times
in the skipped hour do not occur; when clocks go back, times in the repeated hour occur twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from scanner.errors import UsageError

_YEARS: Final = 5
"""The controller looks no further ahead."""
_NOON: Final = 12
_DECEMBER: Final = 12


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule in a time zone; `weekdays` counts from Sunday, 0, to Saturday, 6.

    With `any_day` a day needs both its day of the month and its weekday in the schedule, else one of them.
    """

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    zone: ZoneInfo

    def find_next(self, moment: datetime) -> datetime | None:
        """The first time of the schedule after a moment, in UTC; None if there is none within five years."""
        if not (self.minutes and self.hours and self.months):
            return None
        search = _Search(self.zone, moment)
        last = search.local.year + _YEARS
        while search.local.year <= last:
            if (
                search.find(self._has_month, search.to_next_month)
                and search.find(self._has_day, search.to_next_day)
                and search.find(self._has_hour, search.to_next_hour)
                and search.find(self._has_minute, search.to_next_minute)
                and search.find(_is_full_minute, search.to_full_minute)
            ):
                return search.moment
        return None

    def list_times(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """The times of the schedule from `start` to `end`, both included, in UTC."""
        time = self.find_next(start - timedelta(microseconds=1))
        while time is not None and time <= end:
            yield time
            time = self.find_next(time)

    def _has_month(self, local: datetime) -> bool:
        return local.month in self.months

    def _has_day(self, local: datetime) -> bool:
        day, weekday = local.day in self.days, local.isoweekday() % 7 in self.weekdays
        return (day and weekday) if self.any_day else (day or weekday)

    def _has_hour(self, local: datetime) -> bool:
        return local.hour in self.hours

    def _has_minute(self, local: datetime) -> bool:
        return local.minute in self.minutes


def _is_full_minute(local: datetime) -> bool:
    return local.second == 0


class _Search:
    """A moment that moves forward. A step that begins the next larger unit ends `find`, because that unit is checked again."""

    def __init__(self, zone: ZoneInfo, moment: datetime) -> None:
        """Begin with the next full second."""
        self._zone = zone
        self._moved = False
        self._go_to(moment.astimezone(UTC).replace(microsecond=0) + timedelta(seconds=1))

    def find(self, matches: Callable[[datetime], bool], step: Callable[[], bool]) -> bool:
        """Step until the local time matches; false if a step began the next larger unit."""
        while not matches(self.local):
            if step():
                return False
        return True

    def to_next_month(self) -> bool:
        """Go to the same day of the next month, usually the first; true in a new year. Days too many are carried, as in Go."""
        first = self._start_step(self.local.replace(day=1, hour=0, minute=0, second=0))
        years, month = divmod(first.month, _DECEMBER)
        next_first = first.replace(year=first.year + years, month=month + 1, day=1)
        self._go_to_local(next_first + timedelta(days=first.day - 1))
        return self.local.month == 1

    def to_next_day(self) -> bool:
        """Go to the next midnight; true in a new month. Where clocks skip midnight, the controller steps back to the hour before."""
        day = self._start_step(self.local.replace(hour=0, minute=0, second=0))
        before = self.moment
        self._go_to_local(day + timedelta(days=1))
        if self.moment <= before:  # a zone that left out a whole day, on which the controller would search for ever
            self._go_to(before + timedelta(days=1))
        hour = self.local.hour
        if hour:
            self._go_to(self.moment + timedelta(hours=24 - hour if hour > _NOON else -hour))
        return self.local.day == 1

    def to_next_hour(self) -> bool:
        """Go to the next hour; true in a new day."""
        self._start_step(self.local.replace(minute=0, second=0))
        self._go_to(self.moment + timedelta(hours=1))
        return self.local.hour == 0

    def to_next_minute(self) -> bool:
        """Go to the next minute; true in a new hour."""
        if not self._moved:
            self.to_full_minute()
        else:
            self._go_to(self.moment + timedelta(minutes=1))
        return self.local.minute == 0

    def to_full_minute(self) -> bool:
        """Go to the beginning of the next minute."""
        self._moved = True
        self._go_to(self.moment + timedelta(seconds=60 - self.local.second))
        return True

    def _start_step(self, beginning: datetime) -> datetime:
        """The local time. The first step begins at the beginning of its unit."""
        if not self._moved:
            self._moved = True
            self._go_to_local(beginning)
        return self.local

    def _go_to(self, moment: datetime) -> None:
        self.moment = moment
        self.local = moment.astimezone(self._zone).replace(tzinfo=None)

    def _go_to_local(self, local: datetime) -> None:
        """Go to a local time; one that clocks skip or repeat becomes a moment as `time.Date` of Go chooses it."""
        wall = local.replace(tzinfo=UTC)
        self._go_to(wall - self._offset(wall - self._offset(wall)))

    def _offset(self, moment: datetime) -> timedelta:
        return moment.astimezone(self._zone).utcoffset() or timedelta()


# Parses a schedule in the form of `spec.schedule` of a CronJob.
#
# Source of truth: `ParseStandard` of github.com/robfig/cron v3, and `validateScheduleFormat` in
# pkg/apis/batch/validation of Kubernetes, which denies time zones within the schedule.

_NUMBER: Final = re.compile(r"\+?[0-9]{1,9}")
_ANY: Final = ("*", "?")
_LOW_AND_HIGH: Final = 2


@dataclass(frozen=True, slots=True)
class _CronField:
    """A field of a schedule: its name in messages, and its bounds."""

    name: str
    low: int
    high: int
    names: Mapping[str, int] = field(default_factory=dict)


_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: Final = (
    _CronField("minute", 0, 59),
    _CronField("hour", 0, 23),
    _CronField("day of the month", 1, 31),
    _CronField("month", 1, 12, {name: number for number, name in enumerate(_MONTHS, start=1)}),
    _CronField("weekday", 0, 6, {name: number for number, name in enumerate(_WEEKDAYS)}),
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


def parse_schedule(text: str, zone: ZoneInfo) -> Schedule:
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
        raise _schedule_error(text, f"write one of {', '.join(_DESCRIPTORS)}, or five fields")
    if len(parts) != len(_FIELDS):
        raise _schedule_error(
            text, f"it has {len(parts)} fields instead of five: minute, hour, day of the month, month, weekday"
        )
    try:
        read = [_parse_field(part, cron_field) for part, cron_field in zip(parts, _FIELDS, strict=True)]
    except ValueError as error:
        raise _schedule_error(text, str(error)) from error
    [minutes, hours, days, months, weekdays] = [frozenset(numbers) for numbers, _ in read]
    [_, _, day, _, weekday] = [is_any for _, is_any in read]
    return Schedule(minutes, hours, days, months, weekdays, any_day=day or weekday, zone=zone)


def _schedule_error(text: str, why: str) -> UsageError:
    return UsageError(f"schedule {text!r}: {why}. Example: '17 2 * * *', every day at 02:17")


def _parse_field(text: str, cron_field: _CronField) -> tuple[set[int], bool]:
    """The numbers of a field, and whether a part of the field is `*` or `?` without a step. Raises ValueError."""
    numbers: set[int] = set()
    is_any = False
    for part in filter(None, text.split(",")):
        expression, *steps = part.split("/")
        low, high, is_open = _parse_range(expression, cron_field)
        if len(steps) > 1:
            raise ValueError(f"{cron_field.name} {part!r} has more than one step")
        step = _parse_number(steps[0], cron_field) if steps else 1
        # `5/15` means every fifteenth from 5 on, as in robfig/cron.
        if steps and "-" not in expression:
            high = cron_field.high
        _reject_outside(part, low, high, step, cron_field)
        numbers.update(range(low, high + 1, step))
        is_any |= is_open and step == 1
    return numbers, is_any


def _parse_range(text: str, cron_field: _CronField) -> tuple[int, int, bool]:
    """The first and the last number of a range, and whether it is `*` or `?`. Text after `*-` is ignored, as upstream does."""
    low, *high = text.split("-")
    if low in _ANY:
        return cron_field.low, cron_field.high, True
    if len(high) >= _LOW_AND_HIGH:
        raise ValueError(f"{cron_field.name} {text!r} has too many hyphens")
    first = _parse_value(low, cron_field)
    return first, _parse_value(high[0], cron_field) if high else first, False


def _reject_outside(part: str, low: int, high: int, step: int, cron_field: _CronField) -> None:
    if low < cron_field.low or high > cron_field.high:
        raise ValueError(f"{cron_field.name} {part!r} is not between {cron_field.low} and {cron_field.high}")
    if low > high:
        raise ValueError(f"{cron_field.name} {part!r} ends before it begins")
    if step == 0:
        raise ValueError(f"{cron_field.name} {part!r} has the step 0")


def _parse_value(text: str, cron_field: _CronField) -> int:
    number = cron_field.names.get(text.lower())
    return _parse_number(text, cron_field) if number is None else number


def _parse_number(text: str, cron_field: _CronField) -> int:
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{cron_field.name} {text!r} is not a number{' or a name' if cron_field.names else ''}")
    return int(text)
