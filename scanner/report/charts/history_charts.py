"""The charts of a report: problems over time, what came and went, ages, times to fix, and where the problems are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final, NamedTuple

from scanner.model.policy import PolicyKey
from scanner.model.scans.problem_history import HistoryDay, ProblemHistory, find_percentile
from scanner.model.scans.register import DayCounts
from scanner.posture.history.rule_digests import RulesPart
from scanner.posture.severity import Severity
from scanner.report.charts.columns import ColumnChart, Series, draw_columns
from scanner.report.charts.heat_map import HeatMap, make_heat_map
from scanner.report.text.numbers import plural
from scanner.report.text.titles import RULES_PARTS

_LEAST_DAYS: Final = 2
_NO_SCAN: Final = "No complete scan"
_RULES_CHANGED: Final = "Rules changed"
_PRUNED: Final = "scan was pruned"
_DAY: Final = timedelta(days=1)
_AGES: Final = (
    ("under 1 day", _DAY),
    ("1 to 7 days", 7 * _DAY),
    ("7 to 30 days", 30 * _DAY),
    ("30 to 90 days", 90 * _DAY),
    ("90 days to 1 year", 365 * _DAY),
    ("over 1 year", timedelta.max),
)


class FixLine(NamedTuple):
    """The fixed problems of a policy: their number, and the times within which half and nine tenths of them were fixed."""

    policy: PolicyKey
    problems: int
    median: timedelta
    p90: timedelta


@dataclass(frozen=True, slots=True)
class HistoryCharts:
    """The charts of a report; None where there is nothing to draw."""

    severity: ColumnChart | None
    changes: ColumnChart | None
    ages: ColumnChart | None
    heat: HeatMap | None
    fixes: ColumnChart | None
    fix_lines: tuple[FixLine, ...]


def draw_history(history: ProblemHistory, end: datetime) -> HistoryCharts:
    """The charts of a history whose scan ended at a moment."""
    days = _fill_days(history.days)
    return HistoryCharts(
        severity=_draw_severity(days),
        changes=_draw_changes(days),
        ages=_draw_ages(history, end),
        heat=make_heat_map({(each.namespace, each.policy): each.problems for each in history.cells}),
        fixes=_draw_fixes(history),
        fix_lines=tuple(_list_fix_lines(history)),
    )


def draw_days(days: Sequence[DayCounts], what: str, *, name: str = "days", changes: bool = True) -> ColumnChart | None:
    """One number for each recorded day; days between them without one are gaps. None for fewer than two days."""
    if len(days) < _LEAST_DAYS:
        return None
    recorded = {each.day: each for each in days}
    period = _list_period(days[0].day, days[-1].day)
    series = [Series(what, "s-open", tuple(recorded[day].findings if day in recorded else None for day in period))]
    first, last = days[0], days[-1]
    highest = max(each.findings for each in days)
    notes = [_write_changes(recorded.get(day)) for day in period] if changes else ()
    return draw_columns(
        name,
        what,
        f"At the end of each day with a complete scan: {first.findings:,} on {first.day}, {last.findings:,} on {last.day}, at most {highest:,}.",
        [str(day) for day in period],
        series,
        labels=[_label(day) for day in period],
        unit=what,
        place_name="Day",
        gap_name=_NO_SCAN,
        notes=notes,
        newest_first=True,
    )


def _label(day: date) -> str:
    """The month and the day: the year stands in the description."""
    return f"{day:%m-%d}"


def _write_changes(day: DayCounts | None) -> str:
    return f"{day.new:,} new, {day.resolved:,} resolved" if day else _NO_SCAN.lower()


def _list_period(first: date, last: date) -> list[date]:
    return [first + timedelta(days=number) for number in range((last - first).days + 1)]


def _fill_days(days: Sequence[HistoryDay]) -> list[HistoryDay]:
    """All days from the first to the last one."""
    if not days:
        return []
    known = {each.day: each for each in days}
    return [known.get(day, HistoryDay(day, None)) for day in _list_period(days[0].day, days[-1].day)]


def _draw_severity(days: Sequence[HistoryDay]) -> ColumnChart | None:
    counted = [(each.day, sum(each.open)) for each in days if each.open is not None]
    if len(counted) < _LEAST_DAYS:
        return None
    (first, began), (last, ended) = counted[0], counted[-1]
    missing = len(days) - len(counted)
    series = [
        Series(str(severity).capitalize(), f"s-{severity}", tuple(_of_rank(each, severity.rank) for each in days))
        for severity in Severity
    ]
    return draw_columns(
        "severity",
        "Open problems by severity",
        f"At the end of each day: {began:,} on {first}, {ended:,} on {last}, at most {max(total for _, total in counted):,}. "
        f"{plural(missing, 'day')} of {len(days):,} {'has' if missing == 1 else 'have'} no number. Waived problems count.",
        [str(each.day) for each in days],
        series,
        labels=[_label(each.day) for each in days],
        unit="Problems",
        place_name="Day",
        marks=[(number, _name_parts(each.rules_changed)) for number, each in enumerate(days) if each.rules_changed],
        mark_name=_RULES_CHANGED,
        gap_name=_NO_SCAN,
        notes=[_note(each) for each in days],
        newest_first=True,
    )


def _of_rank(day: HistoryDay, rank: int) -> int | None:
    return None if day.open is None else day.open[rank]


def _name_parts(parts: Iterable[str]) -> str:
    return f"{_RULES_CHANGED}: {'; '.join(RULES_PARTS[RulesPart(part)] for part in parts)}"


def _note(day: HistoryDay) -> str:
    notes = [_name_parts(day.rules_changed)] if day.rules_changed else []
    if day.open is None:
        notes.append(f"{_NO_SCAN.lower()}{f': {_PRUNED}' if day.pruned else ''}")
    return "; ".join(notes)


def _draw_changes(days: Sequence[HistoryDay]) -> ColumnChart | None:
    new, reopened, fixed = (sum(getattr(each, name) for each in days) for name in ("new", "reopened", "fixed"))
    if len(days) < _LEAST_DAYS or not new + reopened + fixed:
        return None
    series = [
        Series("New", "s-new", tuple(each.new for each in days)),
        Series("Reopened", "s-reopened", tuple(each.reopened for each in days)),
        Series("Fixed", "s-fixed", tuple(each.fixed for each in days), below=True),
    ]
    return draw_columns(
        "changes",
        "New, reopened and fixed problems by day",
        f"{new:,} new and {reopened:,} reopened problems stand above the axis, {fixed:,} fixed ones below, on the days of the scans "
        "that saw them so. What the first scan found is not new; what ended for another reason than a fix is not fixed.",
        [str(each.day) for each in days],
        series,
        labels=[_label(each.day) for each in days],
        unit="Problems",
        place_name="Day",
        newest_first=True,
    )


def _draw_ages(history: ProblemHistory, end: datetime) -> ColumnChart | None:
    if not history.ages:
        return None
    counts = Counter[tuple[int, int]]()
    for each in history.ages:
        counts[each.rank, _find_place(end - each.opened)] += each.problems
    series = [
        Series(
            str(severity).capitalize(),
            f"s-{severity}",
            tuple(counts[severity.rank, place] for place in range(len(_AGES))),
        )
        for severity in Severity
    ]
    total = sum(counts.values())
    old = sum(number for (_, place), number in counts.items() if _AGES[place][1] > 30 * _DAY)
    return draw_columns(
        "ages",
        "Ages of open problems",
        f"{old:,} of {plural(total, 'open problem')} {'has' if old == 1 else 'have'} been open for 30 days or longer, as of this scan.",
        [name for name, _ in _AGES],
        series,
        unit="Problems",
        place_name="Open for",
    )


def _find_place(took: timedelta) -> int:
    return next(place for place, (_, end) in enumerate(_AGES) if took < end or end == timedelta.max)


def _draw_fixes(history: ProblemHistory) -> ColumnChart | None:
    if not history.fixed:
        return None
    counts, times = Counter[int](), Counter[timedelta]()
    for each in history.fixed:
        counts[_find_place(each.took)] += each.problems
        times[each.took] += each.problems
    return draw_columns(
        "fixes",
        "Time to fix",
        f"Of {plural(times.total(), 'problem')} that scans of these days saw fixed, half were "
        f"open for {write_time(find_percentile(times, 50))} at most, nine tenths for {write_time(find_percentile(times, 90))}.",
        [name for name, _ in _AGES],
        [Series("Fixed", "s-fixed", tuple(counts[place] for place in range(len(_AGES))))],
        unit="Problems",
        place_name="Fixed after",
    )


def _list_fix_lines(history: ProblemHistory) -> list[FixLine]:
    """The policies with fixed problems, the slowest first."""
    by_policy: dict[PolicyKey, Counter[timedelta]] = {}
    for each in history.fixed:
        by_policy.setdefault(each.policy, Counter())[each.took] += each.problems
    lines = [
        FixLine(policy, times.total(), find_percentile(times, 50), find_percentile(times, 90))
        for policy, times in by_policy.items()
    ]
    return sorted(lines, key=lambda line: (-line.median, line.policy))


def write_time(took: timedelta) -> str:
    """A time in days, or in hours if it is shorter than two days."""
    hours = took.total_seconds() / 3600
    return plural(round(hours), "hour") if took < 2 * _DAY else plural(round(hours / 24), "day")
