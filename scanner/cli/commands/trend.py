"""`assay trend`: the daily tallies of a cluster and the times to fix, as tables, as JSON or as CSV.

The JSON has the form of `docs/trend.schema.json`.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache, partial
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from scanner.cli.flags.completion import complete_clusters, complete_policies
from scanner.cli.flags.database import DbOption, open_reader_at
from scanner.cli.flags.stored_scan import name_chosen_cluster
from scanner.cli.terminal.stdout import sentences, standard_output, table, text, visible
from scanner.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from scanner.posture.history.daily import Day, TimeToFix
    from scanner.store import SqlReader
    from scanner.store.read.trends import StoredTrend, TrendOfDays, TrendOfPolicies

    Show: TypeAlias = Callable[[], None]

EPILOG = (
    "The last complete scan of each day (UTC) counts; a scan of some namespaces, kinds, policies or labels does not. "
    "The time to fix is the time from the scan that opened a problem to the scan that saw the problem fixed. "
    "Daily tallies and fixes stay when scans are pruned, for 400 days or longer."
)

_WIDTH: Final = 30
"""The longest line of characters."""
_NARROWEST: Final = 10
"""The shortest line of characters."""
_GAP: Final = 2
_POLICY, _FIRST, _LAST = "POLICY", "FIRST", "LAST"
_WIDEST: Final = 70
"""The most bars."""
_AXIS: Final = 10
"""The columns of the scale beside bars."""
_NAME: Final = 28
"""The longest name of a policy: the table fits 80 columns."""
_LEVELS: Final = "▁▂▃▄▅▆▇█"
_ASCII_LEVELS: Final = "_.-:=+*#"
_OTHER: Final = "OTHER"
_RULES: Final = "(rules changed)"
_MARK: Final = "^"
_CHANGED: Final = "changed"
_DEPENDS: Final = "DEPENDS"
_CSV: Final = (
    "day",
    "cluster",
    "language",
    "policy",
    "namespace",
    "outcome",
    "depends_on_requester",
    "count",
    "rules_changed",
)
_FIXES_CSV: Final = ("cluster", "since", "until", "language", "policy", "fixed", "median_seconds", "p90_seconds")
_HOUR: Final = 3600


class TrendForm(StrEnum):
    """The forms of a trend."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


@dataclass(frozen=True, slots=True)
class TrendPeriod:
    """The days of a trend, both included."""

    first: date
    last: date

    def __iter__(self) -> Iterator[date]:
        """The days in their order."""
        return (self.first + timedelta(days=number) for number in range((self.last - self.first).days + 1))


def command(
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            metavar="NAME",
            help="Policy, or a pattern such as 'require-*'.",
            show_default=False,
            autocompletion=complete_policies,
        ),
    ] = "",
    days: Annotated[int, typer.Option("--days", min=1, metavar="N", help="Number of days, today included.")] = 90,
    fixes: Annotated[
        bool, typer.Option("--fixes", help="Print the times to fix alone, without daily tallies.")
    ] = False,
    output: Annotated[TrendForm, typer.Option("-o", "--output", help="Output format.")] = TrendForm.TABLE,
    db: DbOption = "",
    cluster_name: Annotated[
        str,
        typer.Option(
            "--cluster-name",
            metavar="NAME",
            help="Name, UID or path of the cluster. Default: the cluster of the newest scan.",
            show_default=False,
            autocompletion=complete_clusters,
        ),
    ] = "",
) -> None:
    """Print the daily tallies of a cluster, and the times to fix: outcomes by policy, namespace and day."""
    from datetime import UTC, datetime

    today = datetime.now(UTC).date()
    period = TrendPeriod(today - timedelta(days=days - 1), today)
    with open_reader_at(db) as store:
        cluster = store.cluster(cluster_name or None)
        if not cluster_name:
            name_chosen_cluster(store, cluster.name)
        every = store.times_to_fix(cluster.id, period.first, period.last)
        fixed = [each for each in every if _matches(policy, each.policy)]
        if policy and not fixed:
            _reject_unknown(store, cluster.id, policy, period)
        if output is TrendForm.TABLE and fixes:
            _print_fixes(fixed, period)
            return
        if output is TrendForm.TABLE:
            _print_table(store, cluster.id, policy, fixed, period)
            return
        chosen = partial(_matches, policy) if policy else None
        with nullcontext() if fixes else store.trend(cluster.id, period.first, chosen, until=period.last) as recorded:
            print_form = _print_json if output is TrendForm.JSON else _print_csv
            print_form(cluster.name, period, recorded, fixed)


def _reject_unknown(store: SqlReader, cluster: int, policy: str, period: TrendPeriod) -> None:
    """Raise UsageError for a policy without a daily tally, unless no day has any."""
    recorded = store.trend_of_days(cluster, period.first, partial(_matches, policy), until=period.last)
    if recorded.days and not recorded.outcomes:
        raise UsageError(f"No daily tally is of a policy {policy!r}. `assay trend` lists the policies.")


def _print_table(store: SqlReader, cluster: int, policy: str, fixed: Sequence[TimeToFix], period: TrendPeriod) -> None:
    recorded, shown = _read_tables(store, cluster, policy, period)
    if not recorded:
        sys.stderr.write(f"No complete scan of the whole cluster since {period.first}. Run: assay scan\n")
    elif shown is not None:
        shown()
    if fixed:
        text([""] if recorded else [])
        _print_fixes(fixed, period)


@cache
def _list_failing_outcomes() -> frozenset[str]:
    from scanner.model.scans.tally import OutcomeName

    return frozenset((OutcomeName.VIOLATED.value, OutcomeName.ERRORED_DENY.value, OutcomeName.WOULD_CHANGE.value))


@cache
def _list_columns() -> Mapping[str, str]:
    """The columns of the table by the outcomes that they count."""
    from scanner.model.scans.tally import OutcomeName

    return {
        OutcomeName.PASSED.value: "PASSED",
        OutcomeName.VIOLATED.value: "VIOLATED",
        OutcomeName.ERRORED_DENY.value: "ERRORED",
        OutcomeName.ERRORED_ADMIT.value: "ERRORED",
        OutcomeName.WOULD_CHANGE.value: "DRIFT",
    }


def _read_tables(store: SqlReader, cluster: int, policy: str, period: TrendPeriod) -> tuple[Sequence[Day], Show | None]:
    """The recorded days, and the table of all policies, or of the days of some; None if no tally is of these."""
    if not policy:
        by_policy = store.trend_of_policies(cluster, period.first, _list_failing_outcomes(), until=period.last)
        return by_policy.days, partial(_print_policies, by_policy, period)
    by_day = store.trend_of_days(cluster, period.first, partial(_matches, policy), until=period.last)
    return by_day.days, partial(_print_days, by_day, period) if by_day.outcomes else None


def _matches(pattern: str, policy: str) -> bool:
    return not pattern or fnmatchcase(policy, pattern)


def _print_fixes(fixed: Sequence[TimeToFix], period: TrendPeriod) -> None:
    """A row for each policy with fixed problems."""
    if not fixed:
        sys.stderr.write(f"No scan saw a problem fixed since {period.first}.\n")
        return
    sentences([f"Time to fix of the problems fixed since {period.first}:", ""])
    rows = (
        (_shorten(each.policy), f"{each.problems:,}", _format_time(each.median), _format_time(each.p90))
        for each in fixed
    )
    table(("POLICY", "FIXED", "MEDIAN", "90 %"), rows)


def _format_time(took: timedelta) -> str:
    """A time in days, or in hours if it is shorter than two days."""
    seconds = took.total_seconds()
    return f"{seconds / _HOUR:.0f} h" if took < timedelta(days=2) else f"{seconds / (24 * _HOUR):.0f} d"


def _print_policies(trend: TrendOfPolicies, period: TrendPeriod) -> None:
    """A row for each policy: the failing outcomes of the days, of the first and of the last day."""
    recorded = trend.days
    first, last = recorded[0].day, recorded[-1].day
    scanned, asked = len(recorded), len(list(period))
    sentences([f"Open findings, {period.first} to {period.last}; {scanned} of {asked} days have a scan.", ""])
    # Without the days before the first scan, which would be empty columns.
    shown = TrendPeriod(first, period.last)
    _print_bars({day.day: day.findings for day in recorded}, recorded, shown)
    text(["", "Failing outcomes by policy:", ""])
    numbers = {name: (counts.get(first), counts.get(last)) for name, counts in trend.failing.items()}
    groups = _group_days(shown, _find_room(numbers))
    rows = (
        (_shorten(name), _draw_line(trend.failing[name], groups), *map(_format_number, ends))
        for name, ends in numbers.items()
    )
    table((_POLICY, "DAYS", _FIRST, _LAST), chain(rows, _mark_changes(recorded, groups)))
    if any(day.rules_changed for day in recorded):
        sentences(["", _describe_changed_rules(recorded)])
    new, resolved = sum(day.new for day in recorded), sum(day.resolved for day in recorded)
    sentences(["", f"{new:,} findings are new and {resolved:,} are resolved from {first} on."])


def _find_room(numbers: Mapping[str, tuple[int | None, int | None]]) -> int:
    """The columns that a terminal has for the line of a policy, beside its name and numbers."""
    from scanner.report.text.screen import width_of

    cells = [
        (_POLICY, _FIRST, _LAST),
        *((_shorten(name), *map(_format_number, ends)) for name, ends in numbers.items()),
    ]
    others = sum(max(map(len, column)) + _GAP for column in zip(*cells, strict=True))
    return max(_NARROWEST, min(_WIDTH, width_of(sys.stdout, os.environ) - others))


def _print_bars(counts: Mapping[date, int], recorded: Sequence[Day], period: TrendPeriod) -> None:
    """Numbers of the days as bars, as wide as the terminal allows."""
    from scanner.cli.terminal.bars import can_draw_blocks, draw_bars
    from scanner.report.text.screen import width_of

    room = max(_WIDTH, min(_WIDEST, width_of(sys.stdout, os.environ) - _AXIS))
    changed = {day.day for day in recorded if day.rules_changed}
    text(draw_bars(counts, _group_days(period, room), changed, blocks=can_draw_blocks()))


def _print_days(trend: TrendOfDays, period: TrendPeriod) -> None:
    """A row for each day: the outcomes of the chosen policies."""
    recorded = trend.days
    outcomes = {day.day: trend.outcomes.get(day.day, {}) for day in recorded}
    counted = {day: _count_by_column(counts) for day, counts in outcomes.items()}
    failing = {
        day: sum(count for (outcome, _), count in counts.items() if outcome in _list_failing_outcomes())
        for day, counts in outcomes.items()
    }
    text(["Failing outcomes by day:", ""])
    _print_bars(failing, recorded, TrendPeriod(recorded[0].day, period.last))
    text([""])
    columns = (*dict.fromkeys(_list_columns().values()), _DEPENDS, _OTHER)
    shown = [name for name in columns if any(counts[name] for counts in counted.values())]
    changed = {day.day: _CHANGED for day in recorded if day.rules_changed}
    rules = ("RULES",) if changed else ()
    rows = (
        (day.isoformat(), *(f"{counts[name]:,}" for name in shown), *([changed.get(day, "")] if rules else []))
        for day, counts in counted.items()
    )
    table(("DAY", *shown, *rules), rows)
    if rules:
        sentences(["", _describe_changed_rules(recorded)])
    if _DEPENDS in shown:
        sentences(["", f"{_DEPENDS}: outcomes without a failure that may differ for another user."])


def _mark_changes(recorded: Iterable[Day], groups: Sequence[Sequence[date]]) -> Iterator[tuple[str, ...]]:
    """A row that marks the days whose rules differ from those of the day before; none if there is no such day."""
    changed = {day.day for day in recorded if day.rules_changed}
    if changed:
        marks = "".join(_MARK if changed.intersection(group) else " " for group in groups)
        yield _RULES, marks, "", ""


def _describe_changed_rules(recorded: Iterable[Day]) -> str:
    """The parts of the rules that changed on any day, in a sentence."""
    from scanner.posture.history.rule_digests import RulesPart
    from scanner.report.text.titles import RULES_PARTS

    changed = {part for day in recorded for part in day.rules_changed or ()}
    parts = "; ".join(RULES_PARTS[part] for part in RulesPart if part in changed)
    return f"The rules changed on the marked days, compared with the day before: {parts}."


def _count_by_column(outcomes: Mapping[tuple[str, bool], int]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for (outcome, requester), count in outcomes.items():
        depends = requester and outcome not in _list_failing_outcomes()
        counts[_DEPENDS if depends else _list_columns().get(outcome, _OTHER)] += count
    return counts


def _draw_line(counts: Mapping[date, int], groups: Sequence[Sequence[date]]) -> str:
    """The counts of groups of days as characters of different heights; a day without a scan is a space."""
    values = [next((counts[day] for day in reversed(group) if day in counts), None) for group in groups]
    highest = max((value for value in values if value is not None), default=0)
    levels = _find_levels()
    return "".join(
        " " if value is None else levels[-(-value * (len(levels) - 1) // highest) if highest else 0] for value in values
    )


def _group_days(period: TrendPeriod, room: int) -> Sequence[Sequence[date]]:
    """The days of each character of a line with room for so many; every policy has the same."""
    days = list(period)
    size = -(-len(days) // room)
    return [days[start : start + size] for start in range(0, len(days), size)]


def _find_levels() -> str:
    try:
        _LEVELS.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return _ASCII_LEVELS
    return _LEVELS


def _shorten(name: str) -> str:
    name = visible(name)
    return name if len(name) <= _NAME else f"{name[: _NAME - 3]}..."


def _format_number(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"


def _print_json(cluster: str, period: TrendPeriod, recorded: StoredTrend | None, fixed: Iterable[TimeToFix]) -> None:
    """Print one object; the days, of which there can be many, one on each line."""
    import orjson

    from scanner.report.runs.trend import DayDigests, day_json, fix_json, key_json

    head = {
        "cluster": cluster,
        "since": period.first,
        "until": period.last,
        "fixes": [fix_json(each) for each in fixed],
    }
    with standard_output() as out:
        out.write(orjson.dumps(head).decode()[:-1])
        if recorded is None:
            out.write("}\n")
            return
        out.write(',"days":[')
        keys = [f'{orjson.dumps(key_json(key)).decode()[:-1]},"count":' for key in recorded.keys]
        digests = DayDigests(recorded.keys)
        for number, (day, tallies) in enumerate(zip(recorded.days, recorded.tallies, strict=True)):
            document = orjson.dumps({**day_json(day), "digest": digests.compute(tallies)}).decode()[:-1]
            listed = ",".join([f"{keys[place]}{count}}}" for place, count in tallies])
            out.write(f'{"," if number else ""}\n{document},"tallies":[{listed}]}}')
        out.write("\n]}\n")


def _print_csv(cluster: str, period: TrendPeriod, recorded: StoredTrend | None, fixed: Iterable[TimeToFix]) -> None:
    """Print one table: daily tallies, or times to fix alone."""
    if recorded is None:
        _print_fixes_csv(cluster, period, fixed)
    else:
        _print_tallies_csv(cluster, recorded)


def _print_tallies_csv(cluster: str, recorded: StoredTrend) -> None:
    from scanner.report.formats import csv

    keys = [csv.line((*map(visible, key[:-1]), str(key.requester).lower())) for key in recorded.keys]
    with standard_output() as out:
        csv.write(out, _CSV, ())
        for day, tallies in zip(recorded.days, recorded.tallies, strict=True):
            begin, end = csv.line((day.day.isoformat(), visible(cluster))), _describe_change(day)
            out.write("".join([f"{begin},{keys[place]},{count},{end}\n" for place, count in tallies]))


def _describe_change(day: Day) -> str:
    """Return whether the rules changed since the day before; empty if that is not known."""
    return "" if day.rules_changed is None else str(bool(day.rules_changed)).lower()


def _print_fixes_csv(cluster: str, period: TrendPeriod, fixed: Iterable[TimeToFix]) -> None:
    from scanner.report.formats import csv
    from scanner.report.runs.trend import seconds

    def cells(each: TimeToFix) -> tuple[str, ...]:
        names = map(visible, (each.language, each.policy))
        numbers = each.problems, seconds(each.median), seconds(each.p90)
        return visible(cluster), period.first.isoformat(), period.last.isoformat(), *names, *map(str, numbers)

    with standard_output() as out:
        csv.write(out, _FIXES_CSV, map(cells, fixed))
