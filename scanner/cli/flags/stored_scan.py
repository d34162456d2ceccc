"""The stored scan of a command: the flags that name it, and the names of policies and namespaces that it has.

If the database has several clusters, the cluster that `last` chose is printed on stderr.
"""

from __future__ import annotations

import sys
from fnmatch import fnmatchcase
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Final

import typer

from scanner.cli.flags.completion import complete_scans
from scanner.cli.terminal.stdout import visible
from scanner.config.values import parse_end
from scanner.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from scanner.model.scans.stored_finding import StoredFinding
    from scanner.model.scans.stored_scan import StoredScan
    from scanner.store import SqlReader

LAST: Final = "last"
"""The name of the newest finished scan."""
SCAN_HELP: Final = "Scan id or the beginning of one, `last`, `last~1` …"
ScanOption = Annotated[str, typer.Option("--scan", metavar="SCAN", help=SCAN_HELP, autocompletion=complete_scans)]
ScanArgument = Annotated[str, typer.Argument(metavar="[SCAN]", help=SCAN_HELP, autocompletion=complete_scans)]
"""For commands whose subject is the scan; every other command has `ScanOption`."""


AtOption = Annotated[
    str,
    typer.Option(
        "--at",
        metavar="DATE",
        help="The newest scan that had ended by this date (its end, in UTC) or by this time in RFC 3339.",
        show_default=False,
    ),
]


def find_stored_scan(store: SqlReader, text: str, cluster_name: str, at: str = "") -> StoredScan:
    """The record of the scan that `text` names, or of the newest one that had ended `at` a date or time.

    Raises UsageError unless there is one such scan.
    """
    scan = (
        store.find_scan_at(parse_end(at, "--at"), cluster_name or None)
        if at
        else store.find_scan(text, cluster_name or None)
    )
    if text.startswith(LAST) and not cluster_name:
        name_chosen_cluster(store, scan.cluster.name)
    return store.read_scan(scan.id)


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


# Rejects names of policies and namespaces that a stored scan does not have: a typing error must not look like a clean
# cluster.

_SHOWN: Final = 10
CLUSTER_SCOPED: Final = "_cluster"


def reject_unknown_names(
    record: StoredScan, *, policies: Iterable[str], namespaces: Iterable[str], titles: Collection[str] = ()
) -> None:
    """Raise UsageError for a pattern that no policy, or no namespace, of a scan matches. Names of resolved findings are known."""
    for pattern in policies:
        own = sorted({*(used.policy.name for used in record.policies), *(key.policy for key in record.tallies)})
        if not _matches(pattern, chain(own, titles, (stored.finding.policy for stored in _list_findings(record)))):
            raise UsageError(f"--policy {pattern}: scan {record.scan.id} has no such policy. It has {_join_names(own)}")
    for pattern in namespaces:
        own = sorted({key.namespace for key in record.tallies} - {""})
        if pattern != CLUSTER_SCOPED and not _matches(pattern, chain(own, _list_other_namespaces(record))):
            raise UsageError(
                f"--namespace {pattern}: scan {record.scan.id} has no such namespace. It evaluated objects in {_join_names(own)}"
            )


def _list_other_namespaces(record: StoredScan) -> Iterator[str]:
    """The namespaces without an evaluated object, which are seldom asked for; those of resolved findings may be gone."""
    yield from record.namespaces()
    yield from (stored.finding.namespace for stored in _list_findings(record))


def _list_findings(record: StoredScan) -> Iterator[StoredFinding]:
    """The findings of a scan, those that it did not check and the resolved ones included."""
    return (each.stored for each in record.findings_by_problem())


def _matches(pattern: str, names: Iterable[str]) -> bool:
    return any(name == pattern or fnmatchcase(name, pattern) for name in names)


def _join_names(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}" if names else "none"
