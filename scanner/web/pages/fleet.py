"""The list of all clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from scanner.report.html.templates import served_findings_link
from scanner.store.catalog.every_cluster import ClusterScans
from scanner.web.pages.answers import RenderedPages, page_answer
from scanner.web.pages.shell import fleet_shell, query_link, render
from scanner.web.requests.addresses import cluster_key
from scanner.web.requests.parameters import after_key, query_of, root_of, text_of
from scanner.web.views.fleet_counts import Counted, FleetCounts
from scanner.web.views.fleet_rows import STATE_TITLES, FleetRow, fleet_row, fleet_sentence, silence_rule
from scanner.web.views.library import Fleet, ScanLibrary

ROWS: Final = 100
"""The clusters of one page."""


@dataclass(frozen=True)
class FleetPages:
    """Answers requests for the list of clusters, and gives other pages its rows."""

    library: ScanLibrary
    counts: FleetCounts
    rendered: RenderedPages

    def rows(self) -> list[FleetRow]:
        """All clusters: the silent ones first, then those without a complete scan, then the worst."""
        fleet = self.library.fleet().clusters
        now = self._now()
        counted = self.counts.get([each.usable.id for each in fleet if each.usable])
        rows = [self._row(each, counted.get(each.usable.id) if each.usable else None, now) for each in fleet]
        return sorted(rows, key=lambda row: row.order)

    def clusters(self, request: Request) -> Response:
        """The list."""
        rows = self.rows()
        fleet = self.library.fleet()
        key = (
            "clusters",
            tuple(rows_key(rows)),
            fleet.unscanned,
            fleet.without_run,
            f"{self._now():%Y-%m-%dT%H:%M}",
            query_of(request),
        )
        page = self.rendered.page(key, lambda: self._page(request, rows, fleet))
        return page_answer(request, page)

    def _page(self, request: Request, rows: Sequence[FleetRow], fleet: Fleet) -> str:
        text, sort = text_of(request, "text"), text_of(request, "sort")
        chosen = [row for row in rows if text.casefold() in row.cluster.name.casefold()]
        if sort == "name":
            chosen.sort(key=lambda row: (row.cluster.name, row.key))
        first = after_key(request, [row.key for row in chosen])
        shown = chosen[first : first + ROWS]
        after = shown[-1].key if first + ROWS < len(chosen) else ""
        path = f"{root_of(request)}/"
        return render(
            "web/clusters.html",
            "Clusters",
            fleet_shell(self.library, request, "clusters"),
            rows=shown,
            total=len(chosen),
            first=first,
            more=query_link(path, {"text": text, "sort": sort, "after": after}) if after else "",
            findings_of=served_findings_link,
            text=text,
            sort=sort,
            sentence=fleet_sentence(rows),
            rule=silence_rule(self.library.expectations),
            state_titles=STATE_TITLES,
            unscanned=fleet.unscanned,
            without_run=fleet.without_run,
        )

    def _row(self, scans: ClusterScans, counted: Counted | None, now: datetime) -> FleetRow:
        return fleet_row(cluster_key(scans.cluster), scans, counted, now, self.library.expectations)

    def _now(self) -> datetime:
        return self.library.clock().astimezone(UTC)


def rows_key(rows: Sequence[FleetRow]) -> list[tuple[object, ...]]:
    """The key of the content of a page with these rows, without the time."""
    return [
        (row.cluster, row.newest, row.usable, row.complete, row.last_run, row.counts is not None, row.why_not)
        for row in rows
    ]
