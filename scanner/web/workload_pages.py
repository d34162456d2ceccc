"""The page of one workload name across clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

import orjson
from starlette.requests import Request
from starlette.responses import Response

from scanner.web.answers import page_answer
from scanner.web.fleet import FleetPages, rows_key
from scanner.web.fleet_policies import by_name
from scanner.web.fleet_rows import FleetRow
from scanner.web.parameters import LONGEST, query_of, root_of, text_of
from scanner.web.refusals import BadRequest
from scanner.web.shell import query_link, render
from scanner.web.shells import fleet_shell
from scanner.web.workload_search import WorkloadInCluster, WorkloadQuery, matching

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
        found = matching(query, rows, _after(request), ROWS + 1) if query.name else []
        shown = found[:ROWS]
        given = {name: getattr(query, name) for name in _FIELDS}
        more = {**given, "after": orjson.dumps(shown[-1].place).decode()} if len(found) > ROWS else None
        return render(
            "web/workloads.html",
            "A workload across clusters",
            fleet_shell(self.fleet.library, request, "workloads"),
            query=query,
            shown=shown,
            more=query_link(f"{root_of(request)}/workloads", more) if more else "",
            others=self._without_problem(query, rows, shown),
            counted=sum(row.counts is not None for row in rows),
            unknown=[row for row in rows if not row.counts],
            findings_of=_findings_of,
        )

    def _without_problem(
        self, query: WorkloadQuery, rows: Sequence[FleetRow], found: Sequence[WorkloadInCluster]
    ) -> list[tuple[FleetRow, bool]]:
        """For one exact workload: the other clusters, and whether scans saw the workload there."""
        if not query.is_exact:
            return []
        with_problem = {each.row.key for each in found}
        others = sorted((row for row in rows if row.counts and row.key not in with_problem), key=by_name)[:ROWS]
        clusters = [row.cluster.id for row in others]
        with self.fleet.library.reading() as reader:
            present = reader.clusters_with(clusters, query.kind, query.own_namespace, query.name)
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
    own = workload.workload
    name = f"{own.kind} {'/'.join(filter(None, (own.namespace, own.name)))}"
    return f"findings.html?{urlencode({'workload': name, 'status': 'open'})}"
