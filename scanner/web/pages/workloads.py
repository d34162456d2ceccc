"""The page of one workload name across clusters."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import translate
from heapq import merge
from itertools import islice
from typing import Final, NamedTuple
from urllib.parse import urlencode

import orjson
from starlette.requests import Request
from starlette.responses import Response

from scanner.posture.severity import Severity
from scanner.report.lists.filters import CLUSTER_SCOPED
from scanner.web.pages.answers import page_answer
from scanner.web.pages.fleet import FleetPages, rows_key
from scanner.web.pages.shell import fleet_shell, query_link, render
from scanner.web.requests.parameters import LONGEST, query_of, root_of, text_of
from scanner.web.requests.refusals import BadRequest
from scanner.web.views.fleet_policies import name_sort_key
from scanner.web.views.fleet_rows import FleetRow
from scanner.web.views.scan_counts import CountedWorkload

# Finds workloads by name in the numbers of all clusters, which have every workload with an open problem.

_GLOB: Final = re.compile(r"[*?\[]")


class WorkloadInCluster(NamedTuple):
    """A workload with open problems in a cluster; `place` is its place in a list."""

    workload: CountedWorkload
    row: FleetRow

    @property
    def place(self) -> tuple[str, str, str, str]:
        """Name, namespace, kind and cluster."""
        counted = self.workload
        return counted.name, counted.namespace, counted.kind, self.row.key

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


def find_workloads(
    query: WorkloadQuery, rows: Iterable[FleetRow], after: tuple[str, str, str, str] | None, most: int
) -> list[WorkloadInCluster]:
    """The workloads that match, by name, namespace, kind and cluster: at most so many behind a place."""
    streams = [_find_in_cluster(query, row) for row in rows if row.counts is not None]
    ordered = merge(*streams, key=lambda workload: workload.place)
    return list(islice((found for found in ordered if after is None or found.place > after), most))


def _find_in_cluster(query: WorkloadQuery, row: FleetRow) -> Iterator[WorkloadInCluster]:
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


ROWS: Final = 100
_FIELDS: Final = ("name", "namespace", "kind")
_PARTS: Final = 4
_STARS: Final = 8


@dataclass(frozen=True)
class WorkloadPages:
    """Answers requests for workloads across clusters."""

    fleet: FleetPages

    def workloads(self, request: Request) -> Response:
        """The workloads that match, and a form."""
        query = _query(request)
        rows = self.fleet.rows()
        key = "workloads", tuple(rows_key(rows)), query_of(request), f"{self.fleet.library.clock():%Y-%m-%d}"
        return page_answer(request, self.fleet.rendered.page(key, lambda: self._page(request, query, rows)))

    def _page(self, request: Request, query: WorkloadQuery, rows: Sequence[FleetRow]) -> str:
        workloads = find_workloads(query, rows, _after(request), ROWS + 1) if query.name else []
        shown = workloads[:ROWS]
        fields = {name: getattr(query, name) for name in _FIELDS}
        more = {**fields, "after": orjson.dumps(shown[-1].place).decode()} if len(workloads) > ROWS else None
        return render(
            "web/workloads.html",
            "A workload across clusters",
            fleet_shell(self.fleet.library, request, "workloads"),
            query=query,
            shown=shown,
            more=query_link(f"{root_of(request)}/workloads", more) if more else "",
            others=self._find_without_problem(query, rows, shown),
            counted=sum(row.counts is not None for row in rows),
            unknown=[row for row in rows if not row.counts],
            findings_of=_findings_of,
        )

    def _find_without_problem(
        self, query: WorkloadQuery, rows: Sequence[FleetRow], shown: Sequence[WorkloadInCluster]
    ) -> list[tuple[FleetRow, bool]]:
        """For one exact workload: the other clusters, and whether scans saw the workload there."""
        if not query.is_exact:
            return []
        with_problem = {each.row.key for each in shown}
        others = sorted((row for row in rows if row.counts and row.key not in with_problem), key=name_sort_key)[:ROWS]
        clusters = [row.cluster.id for row in others]
        with self.fleet.library.use_reader() as reader:
            present = reader.find_clusters_with(clusters, query.kind, query.own_namespace, query.name)
        return [(row, row.cluster.id in present) for row in others]


def _query(request: Request) -> WorkloadQuery:
    query = WorkloadQuery(*(text_of(request, name) for name in _FIELDS))
    if any(text.count("*") > _STARS for text in (query.name, query.namespace, query.kind)):
        raise BadRequest(f"name, namespace and kind: at most {_STARS} stars.")
    return query


def _after(request: Request) -> tuple[str, str, str, str] | None:
    text = text_of(request, "after", 8 * LONGEST)
    if not text:
        return None
    try:
        parts = orjson.loads(text)
    except orjson.JSONDecodeError:
        parts = None
    if not isinstance(parts, list) or len(parts) != _PARTS or not all(isinstance(part, str) for part in parts):
        raise BadRequest("after: the list has no such line. Begin with its first page.")
    name, namespace, kind, key = parts
    return name, namespace, kind, key


def _findings_of(workload: WorkloadInCluster) -> str:
    """The list of findings of a workload in the report of its cluster."""
    counted = workload.workload
    name = f"{counted.kind} {'/'.join(filter(None, (counted.namespace, counted.name)))}"
    return f"findings.html?{urlencode({'workload': name, 'status': 'open'})}"
