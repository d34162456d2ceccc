"""`time.toCron` and `time.truncate`; `time.now` is a macro, see `syntax`.

Mirrors Kyverno's time library: cron fields without padding, in UTC, Sunday is 0; truncation counts from
the first second of year 1.

Rules: `docs/semantics/kyverno.md#kyvernos-functions`.
"""

from __future__ import annotations

from scanner.cel.functions.declaration import Function, Library, Overload
from scanner.cel.functions.pricing import ONE
from scanner.cel.types.type_system import DURATION, STRING, TIMESTAMP
from scanner.cel.values import runtime
from scanner.cel.values import times as clock
from scanner.cel.values.values import Duration, Timestamp, Value

_CRON = ("minutes", "hours", "day_of_month_1_based", "month", "day_of_week")


def _to_cron(moment: Timestamp) -> Value:
    minute, hour, day, month, weekday = (clock.get_part(moment, name, "UTC") for name in _CRON)
    return f"{minute} {hour} {day} {month + 1} {weekday}"


def _truncate(moment: Timestamp, unit: Duration) -> Value:
    if unit.nanoseconds <= 0:
        return moment
    since_year_one = moment.nanoseconds - runtime.FIRST_SECOND * runtime.SECOND
    return Timestamp(moment.nanoseconds - since_year_one % unit.nanoseconds)


LIBRARY = Library(
    "kyverno.time",
    (
        Function("time.toCron", (Overload("time_to_cron", (TIMESTAMP,), STRING, _to_cron),), cost=ONE),
        Function("time.truncate", (Overload("time_truncate", (TIMESTAMP, DURATION), TIMESTAMP, _truncate),), cost=ONE),
    ),
)
