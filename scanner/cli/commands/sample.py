"""`assay sample`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated, BinaryIO, Final

import typer

from scanner.cli.flags.completion import complete_policies
from scanner.cli.flags.database import ClusterNameOption, DbOption, open_reader_at
from scanner.cli.flags.flag_group import with_flag_groups
from scanner.cli.flags.stored_scan import LAST, ScanOption, find_stored_scan
from scanner.cli.flags.waivers import PostureFlags
from scanner.cli.terminal.stdout import Code, sentences
from scanner.errors import UsageError
from scanner.proof.sampling import STRATA, SampleOf, SampleRequest, SampleSize, draw, size_for

if TYPE_CHECKING:
    from scanner.report.document.document import Document
    from scanner.report.formats.samples import SampleDescription
    from scanner.store import SqlReader

EPILOG: Final = (
    "Examples: `assay sample --policy require-labels --of passes --n 25 --seed 2026-Q4 --out sample/` · "
    "`assay sample --confidence 95 --tolerable 5 --seed 2026-Q4 --stratify namespace --out sample/` · "
    "`assay sample --of runs --n 10 --seed 2026-Q4 --since 2026-10-01 --until 2026-12-31 --out runs/` · "
    "`assay sample --n 25 --seed 2026-Q4 --snapshot scan.snapshot --out packet.zip`. "
    "Exit codes: 0 drawn · 1 a verdict of the packet differs · 2 usage or configuration · 4 could not run."
)
_ITEMS: Final = 25
_DIFFERS: Final = 1
_SHOWN: Final = 25
_FLAGS_OF_SCANS: Final = ("scan", "at", "controls", "waivers")


@with_flag_groups
def command(
    context: typer.Context,
    seed: Annotated[
        str,
        typer.Option(
            "--seed", metavar="TEXT", help="Text that fixes the choice; agree on it before the population is known."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="DIR|PACKET.zip",
            help="Folder to write: new, empty, or of an earlier sample. With --snapshot: new file.",
        ),
    ],
    of: Annotated[SampleOf, typer.Option("--of", help="Items of the population.")] = SampleOf.OBJECTS,
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            metavar="NAME",
            help="Only objects that this policy matched, or only its passes or findings. Default: all policies.",
            show_default=False,
            autocompletion=complete_policies,
        ),
    ] = "",
    n: Annotated[
        int | None,
        typer.Option("--n", metavar="N", help="Number of items to draw. Default: 25.", show_default=False),
    ] = None,
    confidence: Annotated[
        int | None,
        typer.Option(
            "--confidence",
            metavar="PERCENT",
            help="With --tolerable: compute the number of items for this confidence, if no item deviates.",
            show_default=False,
        ),
    ] = None,
    tolerable: Annotated[
        int | None,
        typer.Option(
            "--tolerable",
            metavar="PERCENT",
            help="With --confidence: the part of the population that may deviate.",
            show_default=False,
        ),
    ] = None,
    stratify: Annotated[
        str,
        typer.Option(
            "--stratify",
            metavar="COLUMNS",
            help="Draw from each stratum: namespace, kind or owner, or several of these with commas.",
            show_default=False,
        ),
    ] = "",
    since: Annotated[
        str,
        typer.Option(
            "--since",
            metavar="DATE",
            help="With --of runs: first day of the period (UTC). Default: the day of the first run.",
            show_default=False,
        ),
    ] = "",
    until: Annotated[
        str,
        typer.Option(
            "--until",
            metavar="DATE",
            help="With --of runs: last day of the period (UTC). Default: the day of the newest run.",
            show_default=False,
        ),
    ] = "",
    snapshot: Annotated[
        Path | None,
        typer.Option(
            "--snapshot",
            metavar="FILE",
            help="Make a packet: the items with everything that their verdicts depend on, from the snapshot of the scan.",
            show_default=False,
        ),
    ] = None,
    scan: ScanOption = LAST,
    *,
    posture_flags: PostureFlags,
    db: DbOption = "",
    cluster_name: ClusterNameOption = "",
) -> None:
    """Draw a sample by a rule that another person can follow: of objects, passes, findings, or days of the register."""
    from scanner.cli.scanning.packets import write_packet
    from scanner.proof.reperformance import ItemState, count_states, describe
    from scanner.report.formats.samples import SampleDescription, sample_of

    request = SampleRequest(of, _read_size(n, confidence, tolerable), seed, _read_strata(stratify))
    _reject_combinations(request, policy, since, until)
    if of is SampleOf.RUNS:
        _reject_flags_of_scans(context)
    _reject_target(out, snapshot, of)
    with open_reader_at(db) as store, TemporaryFile() as population:
        if of is SampleOf.RUNS:
            subject = _write_register(store, cluster_name, since, until, population)
            description = SampleDescription(draw(request, population), subject)
        else:
            document = _read_document(store, scan, cluster_name, posture_flags)
            description = sample_of(document, request, policy, population)
            if snapshot:
                results = write_packet(store, document, description, population, snapshot, out)
                sentences(
                    (*_list_items(description), *map(_keep_indented, describe(results)), "", f"The packet is {out}.")
                )
                raise typer.Exit(_DIFFERS if count_states(results)[ItemState.DIFFERS] else 0)
        _write_folder(description, population, out)
    where = f"The list is in {out}."
    if of is not SampleOf.RUNS:
        where += " It has no objects: a packet with what decided about each item needs --snapshot."
    sentences((*_list_items(description), where))


def _write_folder(description: SampleDescription, population: BinaryIO, out: Path) -> None:
    """Write the population, the sample and the rule into a folder. Raises UsageError for one with other files."""
    from scanner.report.formats import samples
    from scanner.report.output import binary_file, replace_folder

    with replace_folder(out) as folder:
        population.seek(0)
        with binary_file(folder / samples.POPULATION_FILE) as file:
            shutil.copyfileobj(population, file)
        with binary_file(folder / samples.SAMPLE_FILE) as file:
            samples.write_sample(description.sample, file)
        with binary_file(folder / samples.RULE_FILE) as file:
            samples.write_rule(description, file)
        with binary_file(folder / samples.DATA_FILE) as file:
            samples.write_data(description, file)


def _list_items(description: SampleDescription) -> Iterator[str | Code]:
    """The rule and the items."""
    yield from map(_keep_indented, description.lines(_SHOWN))
    yield ""
    yield from (Code(f"{place:>6}  {item.id}") for place, item in enumerate(description.sample.items[:_SHOWN], 1))
    if (more := len(description.sample.items) - _SHOWN) > 0:
        yield f"        and {more} more in sample.csv"
    yield ""


def _keep_indented(line: str) -> str | Code:
    return Code(line) if line.startswith(" ") else line


def _read_size(n: int | None, confidence: int | None, tolerable: int | None) -> SampleSize:
    """The number of items that the flags name or compute. Raises UsageError for flags that do not fit."""
    if confidence is None and tolerable is None:
        return SampleSize(_ITEMS if n is None else n)
    if n is not None:
        raise UsageError("--confidence and --tolerable compute the number of items: leave out --n")
    if confidence is None or tolerable is None:
        raise UsageError("--confidence and --tolerable need each other: name both, or the number of items with --n")
    return size_for(confidence, tolerable)


def _read_strata(text: str) -> tuple[str, ...]:
    """The columns in the order of STRATA, which is part of the rule, after unknown names, which a message needs."""
    names = list(filter(None, map(str.strip, text.split(","))))
    return (*(name for name in names if name not in STRATA), *(name for name in STRATA if name in names))


def _reject_combinations(request: SampleRequest, policy: str, since: str, until: str) -> None:
    """Raise UsageError for flags that belong to another population."""
    if request.of is SampleOf.RUNS and policy:
        raise UsageError("--of runs draws days of the register, which has no policies: leave out --policy")
    if request.of is not SampleOf.RUNS and (since or until):
        raise UsageError("--since and --until need --of runs: the population of a scan is that of its own time")


def _reject_flags_of_scans(context: typer.Context) -> None:
    """Raise UsageError for a typed flag that is about a scan; the configuration may have its key for other commands."""
    from scanner.cli.flags.screen import is_typed

    for flag in _FLAGS_OF_SCANS:
        if is_typed(context, flag):
            raise UsageError(f"--of runs draws days of the register, and no scan: leave out --{flag}")


def _reject_target(out: Path, snapshot: Path | None, of: SampleOf) -> None:
    """Raise UsageError for a packet without a snapshot, and for a folder with one."""
    is_packet = out.suffix == ".zip"
    if snapshot and of is SampleOf.RUNS:
        raise UsageError("--snapshot has objects, and no runs: leave it out with --of runs")
    if snapshot and not is_packet:
        raise UsageError(f"--out {out}: a packet is a file: name one that ends with .zip")
    if is_packet and not snapshot:
        raise UsageError(
            f"--out {out}: a packet needs --snapshot FILE, the snapshot of the scan; name a folder for the list alone"
        )
    if out.exists() and is_packet:
        raise UsageError(f"--out {out} exists already: name a new file")


def _read_document(store: SqlReader, scan: str, cluster_name: str, flags: PostureFlags) -> Document:
    from scanner.report.document.document import document_of

    posture = flags.posture()
    record = find_stored_scan(store, scan, cluster_name, posture.at)
    return document_of(record, posture.of(store, record), posture.day)


def _write_register(store: SqlReader, cluster_name: str, since: str, until: str, into: BinaryIO) -> str:
    """Write the days of the register of a cluster, and return the words that name the cluster. Raises UsageError."""
    from scanner.posture.run_register import run_entry
    from scanner.report.formats.samples import write_days
    from scanner.report.text.numbers import plural

    clusters = store.list_clusters_of_runs()
    if not cluster_name and len(clusters) > 1:
        raise UsageError(f"--of runs needs --cluster-name: the database has runs of {', '.join(clusters)}")
    first, last = _parse_day(since, "--since"), _parse_day(until, "--until")
    if first and last and first > last:
        raise UsageError(f"--since {first} is later than --until {last}")
    write_days([*map(run_entry, store.list_runs(cluster=cluster_name or None))], first, last, into)
    ahead = _count_days_ahead(first, last)
    of_future = f", of which {plural(ahead, 'day has', 'days have')} not begun" if ahead else ""
    return f"cluster {cluster_name or next(iter(clusters), 'without runs')}{of_future}"


def _count_days_ahead(first: date | None, last: date | None) -> int:
    """The days of a period that have not begun: no run can be missing on them."""
    tomorrow = datetime.now(UTC).date() + timedelta(days=1)
    return max(0, (last - max(first or tomorrow, tomorrow)).days + 1) if last else 0


def _parse_day(text: str, flag: str) -> date | None:
    from scanner.config.values import parse_beginning

    return parse_beginning(text, flag).date() if text else None
