"""`assay db`: upgrade, prune, rename-cluster, delete-cluster, check, reindex, stats, vacuum, backup, copy."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from scanner.cli.flags.completion import complete_clusters
from scanner.cli.flags.database import DatabaseTimeoutOption, DbOption, open_reader_at, wait_for_database
from scanner.cli.terminal.stdout import FormOption, OutputForm, standard_output, table, text, visible
from scanner.config.current import get_database_address
from scanner.errors import DatabaseUnusable, UsageError

if TYPE_CHECKING:
    from scanner.store.rows.sizes import Stats
    from scanner.store.upkeep.deletion import DeletionResult
    from scanner.store.upkeep.integrity import DatabaseProblem
    from scanner.store.upkeep.retention_plan import RetentionRule

_UNIT = 1024
_CHECK_EPILOG = (
    "Exit codes: 0 no problem · 2 usage, or no scan in the database · 4 the database has a problem or cannot be read."
)

application = typer.Typer(help="Manage the database.", no_args_is_help=True, rich_markup_mode=None)


@application.callback()
def _root() -> None:
    """Manage the database."""


@application.command()
def upgrade(
    db: DbOption = "",
    no_backup: Annotated[
        bool, typer.Option("--no-backup", help="Make no copy of a SQLite file before the upgrade.")
    ] = False,
    grant_select: Annotated[
        list[str] | None,
        typer.Option(
            "--grant-select",
            metavar="ROLE",
            help="Let this role of PostgreSQL read all tables, such as that of `assay serve` (repeatable).",
            show_default=False,
        ),
    ] = None,
    database_timeout: DatabaseTimeoutOption = "0",
) -> None:
    """Upgrade the database to this version of Assay. A SQLite file is copied first; copy PostgreSQL yourself with pg_dump."""
    from scanner.store import upgrade as run
    from scanner.store.database.address import address_of

    url = get_database_address(db)
    readers = grant_select or []
    upgraded = run(url, backup=not no_backup, readers=readers, wait=wait_for_database(database_timeout))
    place = address_of(url)
    result = "was upgraded to" if upgraded else "already has"
    sys.stderr.write(f"The database {place.text} {result} the schema of this version.\n")
    for role in readers:
        sys.stderr.write(f"The role {visible(role)} can read all tables.\n")
    if upgraded.backup:
        sys.stderr.write(
            f"A copy from before the upgrade is {upgraded.backup}. "
            "To go back: install the earlier version of Assay, end all scans, and run: "
            f"rm -f {quote(f'{place.text}-wal')} {quote(f'{place.text}-shm')} && "
            f"mv {quote(str(upgraded.backup))} {quote(place.text)}\n"
        )
    elif upgraded.migrated and not place.path:
        sys.stderr.write("To go back: install the earlier version of Assay, and restore the dump of pg_dump.\n")


@application.command(
    short_help="Delete the bodies of old scans.",
    epilog="A pruned scan stays in `assay scans` with its time, state and totals, but has no report. The time since when a "
    "finding is known, and the daily tallies of `assay trend`, stay true. The newest scan of each cluster and scope is never "
    "pruned. A prune can be interrupted and run again.",
)
def prune(
    db: DbOption = "",
    keep_days: Annotated[
        int | None,
        typer.Option("--keep-days", min=1, metavar="N", help="Keep the scans of the last N days.", show_default=False),
    ] = None,
    keep_monthly: Annotated[
        int,
        typer.Option(
            "--keep-monthly",
            min=0,
            metavar="M",
            help="Of older scans, keep the last complete scan of each of M months.",
        ),
    ] = 0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the scans that would be pruned, and change nothing.")
    ] = False,
    database_timeout: DatabaseTimeoutOption = "0",
) -> None:
    """Delete the bodies of old scans: their reports, objects and evidence."""
    from scanner.store import plan_prune
    from scanner.store import prune as run

    rule = _make_rule(keep_days, keep_monthly)
    if dry_run:
        planned = plan_prune(get_database_address(db), rule)
        if planned.scans:
            rows = ((s.id, s.cluster.name, f"{s.started_at:%Y-%m-%d %H:%M:%SZ}", s.state.value) for s in planned.scans)
            table(("SCAN", "CLUSTER", "STARTED", "STATE"), rows)
        size = "" if planned.bytes is None else f", about {_format_size(planned.bytes)}"
        text([f"Would prune {_count_noun(len(planned.scans), 'scan')}: {_count_noun(planned.rows, 'row')}{size}."])
        return
    pruned = wait_for_database(database_timeout).until_answered(lambda: run(get_database_address(db), rule))
    text(
        [
            f"Pruned {_count_noun(pruned.scans, 'scan')}: {_count_noun(pruned.rows, 'row')}{_describe_freed(pruned.bytes)}."
        ]
    )
    if not pruned.finished:
        sys.stderr.write(
            "Texts to which no row refers any more are left, because scans began or ended all the time. "
            "Run the command again when no scan runs.\n"
        )


@application.command(
    name="rename-cluster",
    short_help="Give the history of a cluster another name.",
    epilog="Scans, findings, runs and reports stay, and show the new name. The old name is free: a scan with it begins a new "
    "history. Histories are not joined. Exit codes: 0 renamed, or the name is the same · 2 usage · 4 the database cannot be written.",
)
def rename_cluster(
    old: Annotated[
        str,
        typer.Argument(
            metavar="OLD", help="Name, UID or path of the cluster, or its identity.", autocompletion=complete_clusters
        ),
    ],
    new: Annotated[str, typer.Argument(metavar="NEW", help="Name that later scans pass as --cluster-name.")],
    db: DbOption = "",
) -> None:
    """Give the history of a cluster another name. `assay scan --cluster-name NEW` continues the history."""
    from datetime import UTC, datetime

    from scanner.store.upkeep.renaming import rename_cluster as run

    renamed = run(get_database_address(db), old, new, datetime.now(UTC))
    if not renamed.changed:
        text([f"The history is named {renamed.name} already: nothing changed."])
        return
    scans = _count_noun(renamed.scans, "scan")
    text(
        [
            f"Renamed the history of {renamed.before} to {renamed.name}: {scans}.",
            "Scans continue it with this flag: " + f"--cluster-name {quote(renamed.name)}",
            "Change the name also in waivers, the file of a fleet, and routes of notifications that have the old one.",
        ]
    )


@application.command(
    name="delete-cluster",
    short_help="Delete a cluster with everything that belongs to it.",
    epilog="Scans of other clusters may run meanwhile. A deletion that is interrupted is continued by the next one. A tombstone "
    "with dates and counts, and without names, stays in `assay db stats`. Exit codes: 0 deleted · 2 usage, or the cluster is "
    "being scanned · 4 the database cannot be written.",
)
def delete_cluster(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Name, UID or path of the cluster, or its identity.", autocompletion=complete_clusters
        ),
    ],
    db: DbOption = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the number of rows that would be deleted, and change nothing.")
    ] = False,
) -> None:
    """Delete a cluster: its scans, runs, objects and findings, and the texts that no other cluster has."""
    from scanner.store.upkeep.deletion import delete_cluster as run
    from scanner.store.upkeep.deletion import plan_deletion

    if dry_run:
        planned = plan_deletion(get_database_address(db), name)
        table(("TABLE", "ROWS"), ((table_name, f"{rows:,}") for table_name, rows in sorted(planned.rows.items())))
        text(
            [
                "",
                f"Would delete {planned.name}: {_count_noun(sum(planned.rows.values()), 'row')},",
                "and the texts that no other cluster has.",
            ]
        )
        return
    for deleted in run(get_database_address(db), name):
        text(_describe_deletion(deleted))


def _describe_deletion(deleted: DeletionResult) -> Iterator[str]:
    numbers = f"{_count_noun(deleted.scans, 'scan')} and {_count_noun(deleted.runs, 'run')}"
    begun = ", which was begun earlier" if deleted.continued else ""
    yield f"Deleted {deleted.name or 'a cluster'}{begun}: {numbers}. Its tombstone is number {deleted.tombstone}."
    yield f"{_count_noun(deleted.rows, 'row')} are gone, and no other cluster has changed."
    if deleted.bytes:
        yield f"{_format_size(deleted.bytes)} are free for later scans."
        yield "To give them back to the disk, run: assay db vacuum"


@application.command(short_help="Check the database for damage.", epilog=_CHECK_EPILOG)
def check(
    db: DbOption = "",
    every_word: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Compare the words of all rows with the index of the search, not only of the newest 1,000 of each table.",
        ),
    ] = False,
) -> None:
    """Check the database: the file, references, intervals of history, digests, and the sums of what scans wrote."""
    from scanner.store.upkeep.integrity import check_database

    _print_problems(check_database(get_database_address(db), all_words=every_word))


@application.command(short_help="Make the index of the search anew.")
def reindex(db: DbOption = "") -> None:
    """Make the index of the search anew, after `assay db check` found that the index differs from the database."""
    from scanner.store.upkeep.maintenance import reindex as run

    run(get_database_address(db))
    text(["Made the index of the search anew."])


@application.command(short_help="Print the size of the database.")
def stats(db: DbOption = "", output: FormOption = OutputForm.TABLE) -> None:
    """Print the size of the database: rows and bytes of each table, scans of each cluster."""
    with open_reader_at(db) as store:
        sizes = store.stats()
    if output is OutputForm.JSON:
        _print_json(sizes)
        return
    table(
        ("TABLE", "ROWS", "SIZE"),
        ((row.name, f"{row.rows:,}", "" if row.bytes is None else _format_size(row.bytes)) for row in sizes.tables),
    )
    text([""])
    table(
        ("CLUSTER", "SCANS", "PRUNED", "OLDEST", "NEWEST"),
        (
            (row.name, f"{row.scans:,}", f"{row.pruned:,}", f"{row.oldest:%Y-%m-%d}", f"{row.newest:%Y-%m-%d}")
            for row in sizes.clusters
        ),
    )
    if sizes.deleted:
        text([""])
        table(
            ("TOMBSTONE", "DELETED", "SCANS", "RUNS", "OLDEST", "NEWEST"),
            (
                (
                    str(row.number),
                    f"{row.ended:%Y-%m-%d}" if row.ended else "begun",
                    f"{row.scans:,}",
                    f"{row.runs:,}",
                    f"{row.oldest:%Y-%m-%d}" if row.oldest else "",
                    f"{row.newest:%Y-%m-%d}" if row.newest else "",
                )
                for row in sizes.deleted
            ),
        )
    free = "" if sizes.free is None else f", {_format_size(sizes.free)} of them free"
    text(["", f"{_format_size(sizes.bytes)}{free}; {_format_size(sizes.per_day)} for each day."])


@application.command()
def vacuum(db: DbOption = "") -> None:
    """Give free space back to the disk, as after a prune. SQLite needs as much free space as the database has."""
    from scanner.store.upkeep.maintenance import vacuum as run

    vacuumed = run(get_database_address(db))
    text([f"The database has {_format_size(vacuumed.after)}; it had {_format_size(vacuumed.before)}."])


@application.command()
def backup(
    copy: Annotated[
        Path,
        typer.Argument(
            metavar="PATH", help="File of the copy, which must not exist; with --keep, the folder of the copies."
        ),
    ],
    db: DbOption = "",
    keep: Annotated[
        int | None,
        typer.Option(
            "--keep",
            min=1,
            metavar="N",
            help="Name the copy by its time, and delete older copies in the folder, except the newest N.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Copy a SQLite database to a new file, also while a scan runs. Use pg_dump for PostgreSQL."""
    from datetime import UTC, datetime

    from scanner.store.upkeep.maintenance import backup as run

    made = run(get_database_address(db), copy, keep=keep, now=datetime.now(UTC))
    text([f"The copy of the database is {made.copy}."])
    if made.deleted:
        text([f"Deleted {_count_noun(made.deleted, 'older copy', 'older copies')}."])


@application.command(
    short_help="Copy the database into another one, of SQLite or PostgreSQL.",
    epilog="TO must be empty or new. A copy that was interrupted is continued by the same command, if FROM has not changed since. "
    "Suspend scheduled scans before: what is written to FROM meanwhile is not in the copy. Set the passwords of PostgreSQL in "
    "PGPASSWORD or a password file, because other users of the machine see arguments. Exit codes: 0 copied and verified · 2 usage, "
    "or a scan runs · 4 a database cannot be used, or the copy differs.",
)
def copy(
    source: Annotated[str, typer.Argument(metavar="FROM", help="Database to copy, which is only read: path or URL.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="Database that becomes the copy: path or URL.")],
) -> None:
    """Copy the database FROM into the empty database TO, and compare the rows of every table."""
    from scanner.store.database.address import address_of
    from scanner.store.upkeep.copying import copy_database

    copied = copy_database(source, target)
    if copied.continued:
        sys.stderr.write("Continued the copy that was begun earlier.\n")
    if copied.source_changed:
        sys.stderr.write("FROM has changed since the copy began: what was written meanwhile is not in the copy.\n")
    tables = sum(map(bool, copied.rows.values()))
    text(
        [
            f"Copied {_count_noun(copied.scans, 'scan')} to {address_of(target).text}:",
            f"{_count_noun(sum(copied.rows.values()), 'row')} of {_count_noun(tables, 'table')}, equal in number and content.",
        ]
    )


def _make_rule(days: int | None, months: int) -> RetentionRule:
    from scanner.store.upkeep.retention_plan import RetentionRule

    if days is None:
        raise UsageError("--keep-days is missing. Pass the number of days whose scans stay, such as --keep-days 90.")
    return RetentionRule(days, months)


def _print_problems(problems: Sequence[DatabaseProblem]) -> None:
    if not problems:
        text(["The database has no problem."])
        return
    text(f"{problem.where}: {problem.what}. {problem.remedy}" for problem in problems)
    raise DatabaseUnusable(f"the database has {_count_noun(len(problems), 'problem')}; see above for what to do")


def _describe_freed(freed: int | None) -> str:
    if freed is None:
        return ". PostgreSQL uses their space for later rows"
    return f", {_format_size(freed)} for later scans. `assay db vacuum` gives them back to the disk" if freed else ""


def _print_json(sizes: Stats) -> None:
    import orjson

    document = {
        "bytes": sizes.bytes,
        "freeBytes": sizes.free,
        "bytesPerDay": sizes.per_day,
        "tables": [row._asdict() for row in sizes.tables],
        "clusters": [row._asdict() for row in sizes.clusters],
        "deletedClusters": [row._asdict() for row in sizes.deleted],
    }
    with standard_output() as out:
        out.write(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")


def _count_noun(number: int, noun: str, several: str = "") -> str:
    return f"{number:,} {noun if number == 1 else several or f'{noun}s'}"


def _format_size(number: int) -> str:
    """A number of bytes as text: `812 bytes`, `4.2 MiB`."""
    size = float(number)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < _UNIT:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= _UNIT
    return f"{size:.1f} TiB"
