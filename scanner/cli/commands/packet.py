"""`assay packet`: the paper of one control over a period."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from scanner.cli.flags.database import ClusterNameOption, DbOption, open_reader_at
from scanner.cli.flags.flag_group import with_flag_groups
from scanner.cli.flags.report_formats import ControlsOption
from scanner.cli.flags.stored_scan import name_chosen_cluster
from scanner.cli.flags.waivers import Posture, WaiversOption
from scanner.cli.terminal.stdout import Code, sentences
from scanner.config.current import get_settings
from scanner.errors import UsageError

if TYPE_CHECKING:
    from scanner.posture.history.daily import Day
    from scanner.posture.run_register import RegisterEntry
    from scanner.proof.sampling import Sample
    from scanner.report.document.document import Document
    from scanner.report.paper.control_paper import ControlPaper, Period
    from scanner.store import SqlReader
    from scanner.store.catalog.clusters import StoredCluster

EPILOG: Final = (
    "Examples: `assay packet --control 5.2.2 --period 2026-Q4 --controls cis-kubernetes-5 --out 5.2.2.zip` · "
    "`assay packet --control cis-kubernetes-5/5.2.2 --period 2026-10-01..2026-11-15 --out 5.2.2.zip`. "
    "Exit codes: 0 written · 2 usage or configuration · 4 could not run."
)
_ITEMS: Final = 25
_MOST_ITEMS: Final = 50


@with_flag_groups
def command(
    control: Annotated[str, typer.Option("--control", metavar="ID", help="Control: its id, or FRAMEWORK/ID.")],
    period: Annotated[
        str,
        typer.Option(
            "--period", metavar="PERIOD", help="Days in UTC: 2026-Q4, 2026-10, 2026, or 2026-10-01..2026-11-15."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="New zip file to write.")],
    controls: ControlsOption = (),
    n: Annotated[
        int, typer.Option("--n", min=1, max=_MOST_ITEMS, metavar="N", help="Number of objects to draw for the sample.")
    ] = _ITEMS,
    seed: Annotated[
        str,
        typer.Option(
            "--seed",
            metavar="TEXT",
            help="Text that fixes the sample. Default: the control and the period.",
            show_default=False,
        ),
    ] = "",
    waivers: WaiversOption = None,
    db: DbOption = "",
    cluster_name: ClusterNameOption = "",
) -> None:
    """Write the paper of one control over a period into a zip: a page of at most 20 sheets, CSV files, and their digests."""
    from scanner.report.output import binary_file
    from scanner.report.paper.control_paper import parse_period
    from scanner.report.paper.files import write_paper

    days = parse_period(period)
    posture = Posture(get_settings(controls), waivers)
    if not posture.settings.frameworks:
        raise UsageError("there is no control mapping: name a file or folder with --controls PATH")
    if out.exists():
        raise UsageError(f"--out {out}: the file exists. Name a new one: a paper is never replaced")
    with open_reader_at(db) as store:
        cluster = store.cluster(cluster_name or None)
        if not cluster_name:
            name_chosen_cluster(store, cluster.name)
        paper = _make_paper(store, cluster, days, control, posture, _Draw(n, seed))
        with binary_file(out) as file:
            write_paper(paper, file)
    sentences(_conclude(paper, out))


class _Draw:
    """The size and the seed of the sample."""

    def __init__(self, items: int, seed: str) -> None:
        self.items, self.seed = items, seed


def _make_paper(
    store: SqlReader, cluster: StoredCluster, period: Period, control: str, posture: Posture, wanted: _Draw
) -> ControlPaper:
    from scanner.report.paper.control_paper import (
        ControlPaper,
        find_control,
        keep_changes,
        keep_findings,
        policies_of,
        write_population,
    )

    document = _read_last(store, cluster, period, posture)
    before_id, before = _read_before(store, cluster, period, posture)
    chosen = find_control(document, control)
    policies = policies_of(chosen, before)
    last = document.provenance.scan_id
    every = store.read_findings_of_period(before_id or None, last, {name for _, name in policies})
    findings = keep_findings(every, chosen, before)
    changes = store.compare_scans(before_id, last).rules if before else ()
    text = StringIO()
    write_population(document, chosen.control, findings, text)
    population = text.getvalue().encode("utf-8", "backslashreplace")
    return ControlPaper(
        period=period,
        chosen=chosen,
        document=document,
        before=before,
        before_id=before_id,
        findings=findings,
        runs=_list_runs(store, cluster, period),
        days=tuple(_list_days(store, cluster, period)),
        changes=keep_changes(changes, policies),
        population=population,
        sample=_draw(population, wanted, f"{chosen.name} {period.text}"),
        made_at=datetime.now(UTC).replace(microsecond=0),
    )


def _read_last(store: SqlReader, cluster: StoredCluster, period: Period, posture: Posture) -> Document:
    """The report of the last scan that ended in the period, as of that scan. Raises UsageError without one."""
    scan = store.find_newest_scan(cluster.id, period.end)
    if scan is None or (scan.finished_at or scan.started_at) < period.begin:
        raise UsageError(
            f"--period {period.text}: no scan of {cluster.name} ended from {period.first} to {period.last}. "
            "`assay scans` lists all scans"
        )
    return _read_document(store, scan.id, posture)


def _read_before(
    store: SqlReader, cluster: StoredCluster, period: Period, posture: Posture
) -> tuple[str, Document | None]:
    """The id and the report of the last scan before the period; an empty id if there is none, no report if it was pruned."""
    from datetime import timedelta

    scan = store.find_newest_scan(cluster.id, period.begin - timedelta(microseconds=1))
    if scan is None:
        return "", None
    pruned = store.find_pruned_scans([scan])
    return scan.id, None if pruned else _read_document(store, scan.id, posture)


def _read_document(store: SqlReader, scan: str, posture: Posture) -> Document:
    from scanner.report.document.document import document_of

    record = store.read_scan(scan)
    return document_of(record, posture.of(store, record))


def _list_runs(store: SqlReader, cluster: StoredCluster, period: Period) -> tuple[RegisterEntry, ...]:
    from scanner.posture.run_register import run_entry

    runs = store.list_runs(cluster=cluster.identity, since=period.begin)
    in_period = (each for each in runs if each.run.started_at <= period.end)
    return tuple(map(run_entry, sorted(in_period, key=lambda each: (each.run.started_at, each.run.number))))


def _list_days(store: SqlReader, cluster: StoredCluster, period: Period) -> Iterator[tuple[Day, str]]:
    from scanner.report.runs.trend import DayDigests

    with store.trend(cluster.id, period.first, until=period.last) as recorded:
        digests = DayDigests(recorded.keys)
        yield from (
            (day, digests.compute(tallies)) for day, tallies in zip(recorded.days, recorded.tallies, strict=True)
        )


def _draw(population: bytes, wanted: _Draw, seed: str) -> Sample | None:
    """The sample; None if the population is empty."""
    from scanner.proof.sampling import SampleOf, SampleRequest, SampleSize, draw

    request = SampleRequest(SampleOf.OBJECTS, SampleSize(wanted.items), wanted.seed or seed)
    return draw(request, BytesIO(population)) if population.count(b"\n") > 1 else None


def _conclude(paper: ControlPaper, out: Path) -> Iterator[str | Code]:
    """What the paper shows, and where it is."""
    from scanner.report.text.titles import CONTROL_STATES

    numbers, control = paper.numbers, paper.chosen.control
    yield f"{paper.chosen.name} {control.title}: {CONTROL_STATES[control.state]} at the end of {paper.period.text}."
    yield (
        f"Findings: {numbers.open_at_begin:,} open at the begin, {numbers.new:,} new, {numbers.reopened:,} reopened, "
        f"{numbers.resolved:,} resolved, {numbers.open_at_end:,} open at the end."
    )
    if paper.missing_days:
        days = len(paper.missing_days)
        yield f"{days:,} day{'s have' if days > 1 else ' has'} no complete scan of the whole cluster."
    yield f"The paper is in {out}: unpack it, and open index.html."
