"""Which cluster a run belongs to: that of its scan, or, if it began none, the one that its name stands for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from scanner.store.clusters import StoredCluster


def labels_of(stored: Sequence[StoredCluster]) -> Mapping[int, str]:
    """The names of clusters by their ids, or their identities where several have the same name."""
    names = [cluster.name for cluster in stored]
    return {cluster.id: cluster.identity if names.count(cluster.name) > 1 else cluster.name for cluster in stored}


class RunOwners:
    """The clusters of runs.

    A run without a scan belongs to the cluster with its name as label, else to the only cluster that runs of this name have scanned.
    """

    def __init__(self, labels: Mapping[int, str], runs: Iterable[tuple[int | None, str]]) -> None:
        """Take the labels of all clusters, and the cluster of the scan and the name of each run."""
        self._named = {label: cluster for cluster, label in labels.items()}
        self._scanned: defaultdict[str, set[int]] = defaultdict(set)
        for cluster, name in runs:
            if cluster is not None:
                self._scanned[name].add(cluster)

    def of(self, cluster: int | None, name: str) -> int | None:
        """The cluster of a run, by the cluster of its scan and its name; None if it belongs to none."""
        if cluster is not None:
            return cluster
        scanned = self._scanned.get(name, set())
        return self._named.get(name, next(iter(scanned)) if len(scanned) == 1 else None)
