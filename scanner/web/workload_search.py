"""Finds workloads by name in the numbers of all clusters, which have every workload with an open problem."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import translate
from heapq import merge
from itertools import islice
from typing import Final, NamedTuple

from scanner.posture.severity import Severity
from scanner.report.lists.filters import CLUSTER_SCOPED
from scanner.web.fleet_rows import FleetRow
from scanner.web.scan_counts import CountedWorkload

_GLOB: Final = re.compile(r"[*?\[]")


class WorkloadInCluster(NamedTuple):
    """A workload with open problems in a cluster; `place` is its place in a list."""

    workload: CountedWorkload
    row: FleetRow

    @property
    def place(self) -> tuple[str, str, str, str]:
        """Name, namespace, kind and cluster."""
        own = self.workload
        return own.name, own.namespace, own.kind, self.row.key

    @property
    def severity(self) -> Severity:
        """The worst severity of its problems."""
        return tuple(Severity)[self.workload.rank]


@dataclass(frozen=True, slots=True)
class WorkloadQuery:
    """The workloads that a user asks for: names or globs, of which empty ones match everything; case does not count in the kind.

    `_cluster` is the namespace of cluster-scoped workloads.
    """

    name: str
    namespace: str = ""
    kind: str = ""

    @property
    def is_exact(self) -> bool:
        """Return whether at most one workload of a cluster matches."""
        return all((self.name, self.namespace, self.kind)) and not any(
            map(_GLOB.search, (self.name, self.namespace, self.kind))
        )

    @property
    def own_namespace(self) -> str:
        """The namespace, empty for cluster-scoped workloads."""
        return "" if self.namespace == CLUSTER_SCOPED else self.namespace


def matching(
    query: WorkloadQuery, rows: Iterable[FleetRow], after: tuple[str, str, str, str] | None, most: int
) -> list[WorkloadInCluster]:
    """The workloads that match, by name, namespace, kind and cluster: at most so many behind a place."""
    streams = [_of_cluster(query, row) for row in rows if row.counts is not None]
    ordered = merge(*streams, key=lambda found: found.place)
    return list(islice((found for found in ordered if after is None or found.place > after), most))


def _of_cluster(query: WorkloadQuery, row: FleetRow) -> Iterator[WorkloadInCluster]:
    """The workloads of one cluster, from the first one whose name begins as the query does."""
    workloads = row.counts.workloads if row.counts else ()
    beginning = _GLOB.split(query.name, maxsplit=1)[0]
    name, namespace, kind = _test(query.name), _namespace_test(query), _test(query.kind.lower())
    for workload in islice(workloads, bisect_left(workloads, (beginning,)), None):
        if not workload.name.startswith(beginning):
            return
        if name(workload.name) and namespace(workload.namespace) and kind(workload.kind.lower()):
            yield WorkloadInCluster(workload, row)


def _namespace_test(query: WorkloadQuery) -> Callable[[str], bool]:
    if query.namespace == CLUSTER_SCOPED:
        return lambda namespace: not namespace
    return _test(query.namespace)


def _test(pattern: str) -> Callable[[str], bool]:
    if not pattern:
        return lambda _: True
    if not _GLOB.search(pattern):
        return lambda text: text == pattern
    compiled = re.compile(translate(pattern))
    return lambda text: compiled.match(text) is not None
