"""The stored scan that a command is about, and on stderr the cluster that `last` chose if the database has several."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Final

import typer

from scanner.cli.completion import scans
from scanner.cli.moments import end_of
from scanner.cli.terminal import visible

if TYPE_CHECKING:
    from scanner.model.scans.stored_scan import StoredScan
    from scanner.store import SqlReader

LAST: Final = "last"
"""The name of the newest finished scan."""
SCAN_HELP: Final = "Scan id or the beginning of one, `last`, `last~1` …"
ScanOption = Annotated[str, typer.Option("--scan", metavar="SCAN", help=SCAN_HELP, autocompletion=scans)]
ScanArgument = Annotated[str, typer.Argument(metavar="[SCAN]", help=SCAN_HELP, autocompletion=scans)]
"""For commands whose subject is the scan; every other command has `ScanOption`."""


def stored_scan(store: SqlReader, text: str, cluster_name: str, at: str = "") -> StoredScan:
    """The record of the scan that `text` names, or of the newest one that had ended `at` a date or time.

    Raises UsageError unless there is one such scan.
    """
    scan = (
        store.scan_at(end_of(at, "--at"), cluster_name or None) if at else store.find_scan(text, cluster_name or None)
    )
    if text.startswith(LAST) and not cluster_name:
        name_chosen_cluster(store, scan.cluster.name)
    return store.record(scan.id)


def name_chosen_cluster(store: SqlReader, chosen: str) -> None:
    """Print the cluster of the last scan on stderr if the database has several."""
    clusters = store.clusters()
    if len(clusters) > 1:
        names = [cluster.name for cluster in clusters]
        shown = (cluster.identity if names.count(cluster.name) > 1 else cluster.name for cluster in clusters)
        sys.stderr.write(
            visible(
                f"assay: the last scan is of {chosen}; the database has scans of {', '.join(shown)}: choose with --cluster-name"
            )
            + "\n"
        )
