"""`assay runs`."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Final

import typer

from scanner.cli.flags.completion import complete_clusters as cluster_names
from scanner.cli.flags.database import DbOption, open_reader_at
from scanner.cli.terminal.stdout import FormOption, OutputForm, text
from scanner.config.current import UTC_ZONE
from scanner.config.values import parse_beginning, parse_seconds
from scanner.config.values import parse_time_zone as zone_of
from scanner.errors import UsageError

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from scanner.report.runs.document import RegisterDocument, RunSheet
    from scanner.store import SqlReader

_SHOWN: Final = 50
_MOST: Final = 100_000

EPILOG = (
    "Examples: `assay runs` · `assay runs --expect '17 2 * * *' --time-zone Europe/Berlin --since 2026-01-01` · `assay runs 42`. "
    "Exit codes: 0 listed · 2 usage or configuration · 4 could not run."
)


def command(
    run: Annotated[
        int | None,
        typer.Argument(
            metavar="[RUN]", min=1, help="Number of a run: print its completeness sheet.", show_default=False
        ),
    ] = None,
    expect: Annotated[
        str,
        typer.Option(
            "--expect",
            metavar="SCHEDULE",
            help="Schedule of the expected runs, as in a CronJob: five fields such as '17 2 * * *', or @daily.",
            show_default=False,
        ),
    ] = "",
    time_zone: Annotated[
        str,
        typer.Option(
            "--time-zone",
            metavar="ZONE",
            help="With --expect: time zone of the schedule, such as Europe/Berlin. Default: Etc/UTC.",
            show_default=False,
        ),
    ] = "",
    tolerance: Annotated[
        str,
        typer.Option(
            "--tolerance",
            metavar="DURATION",
            help="With --expect: a run is late when it begins later than this after its time. Default: 10m.",
            show_default=False,
        ),
    ] = "",
    since: Annotated[
        str,
        typer.Option(
            "--since",
            metavar="DATE",
            help="Only expected times and runs since this date (UTC), or this time in RFC 3339. Default: since the first run.",
            show_default=False,
        ),
    ] = "",
    cluster_name: Annotated[
        str,
        typer.Option(
            "--cluster-name",
            metavar="NAME",
            help="Only runs of this cluster, by name, UID or path. Needed by --expect if the database has runs of several.",
            show_default=False,
            autocompletion=cluster_names,
        ),
    ] = "",
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            min=1,
            metavar="N",
            help="Number of entries to list, the newest first. Default: 50 in a table, all in JSON.",
            show_default=False,
        ),
    ] = None,
    output: FormOption = OutputForm.TABLE,
    db: DbOption = "",
) -> None:
    """List runs of `assay scan` with their states, compare them with a schedule, or print the completeness sheet of a run."""
    if run is not None:
        with open_reader_at(db) as store:
            sheet = _make_sheet(store, run)
        _print_sheet(sheet, output)
        return
    zone = zone_of(time_zone or UTC_ZONE)
    start = parse_beginning(since, "--since") if since else None
    allowed = timedelta(seconds=parse_seconds(tolerance or "10m", "--tolerance") or 0)
    with open_reader_at(db) as store:
        if expect:
            document = _compare_with_schedule(store, expect, zone, start, allowed, cluster_name)
        else:
            document = _list_runs(store, start, cluster_name)
    if not document.entries:
        sys.stderr.write("The database has no runs in this period. Run: assay scan\n")
    _print_register(document, output, limit)


def _list_runs(store: SqlReader, since: datetime | None, cluster_name: str) -> RegisterDocument:
    """The runs as recorded."""
    from scanner.report.runs.document import list_recorded_runs

    return list_recorded_runs(
        store.list_runs(cluster=cluster_name or None, since=since), since, datetime.now(UTC), cluster_name
    )


def _compare_with_schedule(
    store: SqlReader, expect: str, zone: ZoneInfo, since: datetime | None, tolerance: timedelta, cluster_name: str
) -> RegisterDocument:
    """The runs beside the times of a schedule. Raises UsageError for runs of several clusters."""
    from scanner.report.runs.document import RegisterPeriod, RunExpectation, list_expected_runs

    expectation = RunExpectation(expect, zone.key, tolerance)
    _ = expectation.times  # an invalid schedule is reported before anything about runs
    clusters = store.list_clusters_of_runs()
    if not cluster_name and len(clusters) > 1:
        raise UsageError(
            f"--expect needs --cluster-name: the database has runs of {', '.join(clusters)}, and a schedule expects runs of one"
        )
    runs = store.list_runs(cluster=cluster_name or None, since=since)
    period = RegisterPeriod(since, store.find_first_run(cluster_name or None))
    return list_expected_runs(runs, expectation, period, datetime.now(UTC), cluster_name)


def _make_sheet(store: SqlReader, number: int) -> RunSheet:
    """The sheet of a run, with the record of its scan if that has ended."""
    from scanner.report.runs.document import has_ended, sheet_of

    details = store.find_run(number)
    record = store.read_scan(details.run.scan) if has_ended(details) else None
    return sheet_of(details, record, store.object_counts(details.run.scan))


def _print_register(document: RegisterDocument, output: OutputForm, limit: int | None) -> None:
    from dataclasses import replace

    from scanner.report.runs import json, tables
    from scanner.report.text.screen import width_of

    if output is OutputForm.JSON:
        text(json.register_lines(replace(document, limit=limit)))
    elif document.entries:
        width = width_of(sys.stdout, os.environ)
        text(tables.register_lines(replace(document, limit=limit or _SHOWN), width))


def _print_sheet(sheet: RunSheet, output: OutputForm) -> None:
    from scanner.report.runs import json, tables
    from scanner.report.text.screen import width_of

    width = width_of(sys.stdout, os.environ)
    text(json.sheet_lines(sheet) if output is OutputForm.JSON else tables.sheet_lines(sheet, width))
