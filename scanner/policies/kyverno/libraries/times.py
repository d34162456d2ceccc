"""`time.toCron` and `time.truncate`; `time.now` is a macro, see `syntax`.

Mirrors Kyverno's time library: cron fields without padding, in the zone of the timestamp, Sunday is 0;
truncation counts from the first second of year 1.

Rules: `docs/semantics/kyverno.md#kyvernos-functions`.
"""

from __future__ import annotations

from scanner.cel.values import runtime
from scanner.cel.values import times as clock
from scanner.cel.values.values import Duration, Timestamp, Value
from scanner.policies.kyverno.libraries.declared import Implementation

_CRON = ("minutes", "hours", "day_of_month_1_based", "month", "day_of_week")


def _to_cron(moment: Timestamp) -> Value:
    local = Timestamp(moment.nanoseconds + moment.offset * runtime.SECOND)
    minute, hour, day, month, weekday = (clock.get_part(local, name, "UTC") for name in _CRON)
    return f"{minute} {hour} {day} {month + 1} {weekday}"


def _truncate(moment: Timestamp, unit: Duration) -> Value:
    if unit.nanoseconds <= 0:
        return moment
    since_year_one = moment.nanoseconds - runtime.FIRST_SECOND * runtime.SECOND
    return Timestamp(moment.nanoseconds - since_year_one % unit.nanoseconds, moment.offset)


IMPLEMENTATION = Implementation({"time_to_cron": _to_cron, "time_truncate": _truncate})
