"""The run register of a cluster, and the completeness sheet of a run."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from scanner.errors import UsageError
from scanner.model.scans.run import RunDetails
from scanner.model.scans.stored_scan import StoredScan
from scanner.posture.run_register import RegisterEntry
from scanner.report.runs.document import (
    RegisterDocument,
    RegisterPeriod,
    has_ended,
    list_expected_runs,
    list_recorded_runs,
    sheet_of,
)
from scanner.report.runs.tables import facts, summary, write_comparison
from scanner.store import SqlReader
from scanner.store.catalog.clusters import StoredCluster
from scanner.web.pages.answers import Rendered, RenderedPages, page_answer, render_bytes
from scanner.web.pages.shell import Shell, cluster_path, cluster_shell, fleet_shell, query_link, render, today
from scanner.web.requests.addresses import beginning_of
from scanner.web.requests.parameters import after_key, query_of, text_of
from scanner.web.requests.refusals import BadRequest, NotThere
from scanner.web.views.kept import KeptValues, keep_recent
from scanner.web.views.library import ScanLibrary

ROWS: Final = 100
DAYS: Final = 90
"""The days of a register without a `since`."""
_KINDS: Final = 2_000
"""The kinds of a sheet that a page shows."""
_GAPS: Final = 500
_NUMBER: Final = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True)
class RunPages:
    """Answers requests for the runs of a cluster. Pages of registers, which depend on the time, are remembered for some seconds."""

    library: ScanLibrary
    rendered: RenderedPages
    registers: KeptValues[Rendered] = field(default_factory=keep_recent)

    def runs(self, request: Request) -> Response:
        """The register since a date, the newest entry first: beside the schedule of the configuration, if there is one."""
        cluster = self.library.any_cluster(request.path_params["cluster"])
        since = _moment(request, "since")
        key = cluster, since, query_of(request)
        return page_answer(
            request,
            self.registers.value(
                key, lambda: render_bytes(self._page(request, cluster, self._register(cluster, since)))
            ),
        )

    def sheet(self, request: Request) -> Response:
        """The completeness sheet of a run."""
        cluster = self.library.any_cluster(request.path_params["cluster"])
        number: str = request.path_params["number"]
        if not _NUMBER.fullmatch(number):
            raise NotThere(f"The cluster {cluster.name} has no such run.")
        with self.library.use_reader() as reader:
            details = reader.find_run_of_cluster(int(number), cluster.identity)
        if details is None:
            raise NotThere(f"The cluster {cluster.name} has no run {number}.")
        key = "run", cluster, details, query_of(request), today(self.library)
        return page_answer(request, self.rendered.page(key, lambda: self._sheet(request, cluster, details)))

    def _sheet(self, request: Request, cluster: StoredCluster, details: RunDetails) -> str:
        with self.library.use_reader() as reader:
            record, why_not = _record(reader, details)
            sheet = sheet_of(details, record, reader.object_counts(details.run.scan) if record else ())
        return render(
            "web/run.html",
            f"Run {details.run.number} of {cluster.name}",
            self._shell(request, cluster),
            cluster=cluster,
            path=cluster_path(request, cluster),
            has_report=self._has_report(cluster),
            sheet=sheet,
            facts=list(facts(sheet)),
            why_not=why_not,
            compared=write_comparison(sheet) if record else "",
            kinds_shown=_KINDS,
            gaps_shown=_GAPS,
        )

    def _register(self, cluster: StoredCluster, since: datetime | None) -> RegisterDocument:
        """The register since a moment that the user names, else of the last days since the first recorded run."""
        now, earliest = self.library.clock(), since or self._default_since()
        with self.library.use_reader() as reader:
            runs = reader.list_runs(cluster=cluster.identity, since=earliest)
            first = reader.find_first_run(cluster.identity)
        expectation = self.library.expectations.find(cluster.name)
        if expectation is None:
            return list_recorded_runs(runs, earliest, now, cluster.name)
        try:
            return list_expected_runs(runs, expectation, RegisterPeriod(since, first, earliest), now, cluster.name)
        except UsageError as error:
            raise BadRequest(f"since: {error}") from error

    def _page(self, request: Request, cluster: StoredCluster, document: RegisterDocument) -> str:
        path = f"{cluster_path(request, cluster)}/runs"
        keys = [_key(entry) for entry in document.entries]
        first = after_key(request, keys)
        following = keys[first + ROWS - 1] if len(keys) > first + ROWS else ""
        return render(
            "web/runs.html",
            f"Runs of {cluster.name}",
            self._shell(request, cluster),
            cluster=cluster,
            path=cluster_path(request, cluster),
            has_report=self._has_report(cluster),
            document=document,
            entries=document.entries[first : first + ROWS],
            first=first,
            since=f"{document.since:%Y-%m-%d}" if document.since else "",
            summary=summary(document),
            more=query_link(path, {"since": text_of(request, "since"), "after": following}) if following else "",
        )

    def _shell(self, request: Request, cluster: StoredCluster) -> Shell:
        """The shell of a cluster; without a finished scan it has no report to which the shell could lead."""
        if self._has_report(cluster):
            return cluster_shell(self.library, request, cluster)
        return fleet_shell(self.library, request, "")

    def _has_report(self, cluster: StoredCluster) -> bool:
        return any(each.id == cluster.id for each in self.library.clusters())

    def _default_since(self) -> datetime:
        day = self.library.clock().astimezone(UTC) - timedelta(days=DAYS)
        return day.replace(hour=0, minute=0, second=0, microsecond=0)


def _key(entry: RegisterEntry) -> str:
    """The key of an entry: its moment and the number of its run."""
    return f"{entry.moment.astimezone(UTC):%Y%m%dT%H%M%S.%fZ}-{entry.run.run.number if entry.run else 0}"


def _record(reader: SqlReader, details: RunDetails) -> tuple[StoredScan | None, str]:
    """The record of the scan of a run, or the reason why there is none."""
    if not has_ended(details):
        return None, ""
    try:
        return reader.read_scan(details.run.scan), ""
    except UsageError as error:
        return None, str(error)


def _moment(request: Request, name: str) -> datetime | None:
    text = text_of(request, name)
    try:
        return beginning_of(text) if text else None
    except ValueError as error:
        raise BadRequest(f"{name}: {error}") from error
