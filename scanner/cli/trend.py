"""`assay trend`: the daily tallies of a cluster as a table with lines of characters, as JSON or as CSV."""

from __future__ import annotations

import csv
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Final

import typer

from scanner.cli.database import DbOption, reader_at
from scanner.cli.output import standard_output
from scanner.cli.stored_scan import name_chosen_cluster
from scanner.cli.terminal import table, text, visible
from scanner.errors import UsageError
from scanner.model.scan import OutcomeName

if TYPE_CHECKING:
    from scanner.store.daily import DailyTally, Day

EPILOG = (
    "The last complete scan of each day (UTC) counts; a scan of some namespaces, kinds, policies or labels does not. "
    "Daily tallies stay when scans are pruned, for 400 days or longer."
)

_WIDTH: Final = 30
"""The longest line of characters."""
_NAME: Final = 28
"""The longest name of a policy: the table fits 80 columns."""
_LEVELS: Final = "▁▂▃▄▅▆▇█"
_ASCII_LEVELS: Final = "_.-:=+*#"
_FAILING: Final = frozenset(
    name.value for name in (OutcomeName.VIOLATED, OutcomeName.ERRORED_DENY, OutcomeName.WOULD_CHANGE)
)
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""The first characters of a cell that spreadsheets take for a formula."""
_COLUMNS: Final[Mapping[str, str]] = {
    OutcomeName.PASSED.value: "PASSED",
    OutcomeName.VIOLATED.value: "VIOLATED",
    OutcomeName.ERRORED_DENY.value: "ERRORED",
    OutcomeName.ERRORED_ADMIT.value: "ERRORED",
    OutcomeName.WOULD_CHANGE.value: "DRIFT",
}
_OTHER: Final = "OTHER"
_DEPENDS: Final = "DEPENDS"
_CSV: Final = ("day", "cluster", "language", "policy", "namespace", "outcome", "depends_on_requester", "count")


class TrendForm(StrEnum):
    """The forms of a trend."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


@dataclass(frozen=True, slots=True)
class Period:
    """The days of a trend, both included."""

    first: date
    last: date

    def __iter__(self) -> Iterator[date]:
        """The days in their order."""
        return (self.first + timedelta(days=number) for number in range((self.last - self.first).days + 1))


def command(
    policy: Annotated[
        str,
        typer.Option("--policy", metavar="NAME", help="Policy, or a pattern such as 'require-*'.", show_default=False),
    ] = "",
    days: Annotated[int, typer.Option("--days", min=1, metavar="N", help="Number of days, today included.")] = 90,
    output: Annotated[TrendForm, typer.Option("-o", "--output", help="Output format.")] = TrendForm.TABLE,
    db: DbOption = "",
    cluster_name: Annotated[
        str,
        typer.Option(
            "--cluster-name",
            metavar="NAME",
            help="Name, UID or path of the cluster. Default: the cluster of the newest scan.",
            show_default=False,
        ),
    ] = "",
) -> None:
    """Print the daily tallies of a cluster: outcomes by policy, namespace and day."""
    from datetime import UTC, datetime

    today = datetime.now(UTC).date()
    period = Period(today - timedelta(days=days - 1), today)
    with reader_at(db) as store:
        cluster = store.cluster(cluster_name or None)
        if not cluster_name:
            name_chosen_cluster(store, cluster.name)
        recorded = _selected(store.days(cluster.id, period.first), policy)
        match output:
            case TrendForm.JSON:
                _print_json(cluster.name, recorded)
            case TrendForm.CSV:
                _print_csv(cluster.name, recorded)
            case TrendForm.TABLE:
                _print_table(list(recorded), policy, period)


def _selected(recorded: Iterable[Day], policy: str) -> Iterator[Day]:
    if not policy:
        yield from recorded
        return
    for day in recorded:
        yield day._replace(tallies=tuple(each for each in day.tallies if fnmatchcase(each.policy, policy)))


def _print_table(recorded: Sequence[Day], policy: str, period: Period) -> None:
    if not recorded:
        sys.stderr.write(f"No complete scan of the whole cluster since {period.first}. Run: assay scan\n")
        return
    if policy and not any(day.tallies for day in recorded):
        raise UsageError(f"No daily tally is of a policy {policy!r}. `assay trend` lists the policies.")
    if policy:
        _print_days(recorded, period)
    else:
        _print_policies(recorded, period)


def _print_policies(recorded: Sequence[Day], period: Period) -> None:
    """A row for each policy: the failing outcomes of the days, of the first and of the last day."""
    failing: defaultdict[str, dict[date, int]] = defaultdict(dict)
    for day in recorded:
        for name, count in _failing_by_policy(day.tallies).items():
            failing[name][day.day] = count
    first, last = recorded[0].day, recorded[-1].day
    scanned, asked = len(recorded), len(list(period))
    text([f"Failing outcomes by policy, {period.first} to {period.last}; {scanned} of {asked} days have a scan.", ""])
    rows = (
        (_short(name), _line(counts, period), _number(counts.get(first)), _number(counts.get(last)))
        for name, counts in sorted(failing.items())
    )
    table(("POLICY", "DAYS", "FIRST", "LAST"), rows)
    new, resolved = sum(day.new for day in recorded), sum(day.resolved for day in recorded)
    text(["", f"{new:,} findings are new and {resolved:,} are resolved from {first} on."])


def _print_days(recorded: Sequence[Day], period: Period) -> None:
    """A row for each day: the outcomes of the chosen policies."""
    counted = {day.day: _by_column(day.tallies) for day in recorded}
    failing = {day.day: sum(_failing_by_policy(day.tallies).values()) for day in recorded}
    text([f"Failing outcomes: {_line(failing, period)}", ""])
    columns = (*dict.fromkeys(_COLUMNS.values()), _DEPENDS, _OTHER)
    shown = [name for name in columns if any(counts[name] for counts in counted.values())]
    rows = ((day.isoformat(), *(f"{counts[name]:,}" for name in shown)) for day, counts in counted.items())
    table(("DAY", *shown), rows)
    if _DEPENDS in shown:
        text(["", f"{_DEPENDS}: outcomes without a failure that may differ for another user."])


def _failing_by_policy(tallies: Iterable[DailyTally]) -> dict[str, int]:
    """The failing outcomes of every policy, also of those without any."""
    counts: Counter[str] = Counter()
    for each in tallies:
        counts[each.policy] += each.count if each.outcome in _FAILING else 0
    return counts


def _by_column(tallies: Iterable[DailyTally]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for each in tallies:
        depends = each.requester and each.outcome not in _FAILING
        counts[_DEPENDS if depends else _COLUMNS.get(each.outcome, _OTHER)] += each.count
    return counts


def _line(counts: Mapping[date, int], period: Period) -> str:
    """The counts of the days as characters of different heights; a day without a scan is a space."""
    days = list(period)
    size = -(-len(days) // _WIDTH)
    groups = (days[start : start + size] for start in range(0, len(days), size))
    values = [next((counts[day] for day in reversed(group) if day in counts), None) for group in groups]
    highest = max((value for value in values if value is not None), default=0)
    levels = _levels()
    return "".join(
        " " if value is None else levels[-(-value * (len(levels) - 1) // highest) if highest else 0] for value in values
    )


def _levels() -> str:
    try:
        _LEVELS.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return _ASCII_LEVELS
    return _LEVELS


def _short(name: str) -> str:
    name = visible(name)
    return name if len(name) <= _NAME else f"{name[: _NAME - 3]}..."


def _number(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"


def _print_json(cluster: str, recorded: Iterable[Day]) -> None:
    import orjson

    with standard_output() as out:
        out.write(f'{{"cluster":{orjson.dumps(cluster).decode()},"days":[')
        for number, day in enumerate(recorded):
            document = {
                "day": day.day,
                "scanId": day.scan,
                "findings": day.findings,
                "new": day.new,
                "resolved": day.resolved,
                "tallies": [_tally(each) for each in day.tallies],
            }
            out.write(f"{',' if number else ''}\n{orjson.dumps(document).decode()}")
        out.write("\n]}\n")


def _tally(tally: DailyTally) -> dict[str, str | bool | int]:
    return {
        "language": tally.language,
        "policy": tally.policy,
        "namespace": tally.namespace,
        "outcome": tally.outcome,
        "dependsOnRequester": tally.requester,
        "count": tally.count,
    }


def _print_csv(cluster: str, recorded: Iterable[Day]) -> None:
    with standard_output() as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(_CSV)
        for day in recorded:
            for each in day.tallies:
                names = (cluster, each.language, each.policy, each.namespace, each.outcome)
                cells = (_without_formula(visible(name)) for name in names)
                writer.writerow((day.day.isoformat(), *cells, str(each.requester).lower(), each.count))


def _without_formula(cell: str) -> str:
    """The cell, with an apostrophe before a text that a spreadsheet would take for a formula."""
    return f"'{cell}" if cell.startswith(_FORMULA) else cell
