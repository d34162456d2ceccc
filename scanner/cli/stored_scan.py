"""The stored scan that a command is about, and on stderr the cluster that `last` chose if the database has several."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from scanner.cli.terminal import visible

if TYPE_CHECKING:
    from scanner.model.scan import ScanRecord
    from scanner.store import SqlReader

_LAST: Final = "last"


def stored_scan(store: SqlReader, text: str, cluster_name: str) -> ScanRecord:
    """The record of the scan that `text` names. Raises UsageError unless it names one scan."""
    scan = store.find_scan(text, cluster_name or None)
    if text.startswith(_LAST) and not cluster_name:
        _name_cluster(store, scan.cluster.name)
    return store.record(scan.id)


def _name_cluster(store: SqlReader, chosen: str) -> None:
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
