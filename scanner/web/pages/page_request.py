"""A page about a scan that a request asks for: the scan, its view, and what stands around the page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from functools import cached_property
from urllib.parse import urlencode

from starlette.requests import Request

from scanner.model.scans.scan import Scan
from scanner.report.html.site import Site
from scanner.report.html.templates import served_findings_link
from scanner.store.catalog.clusters import StoredCluster
from scanner.web.pages.exports import EXPORTS
from scanner.web.pages.shell import PERIODS, Shell, StyleSheet, path_of
from scanner.web.requests.addresses import ScanMoment
from scanner.web.requests.parameters import has_accounts
from scanner.web.views.library import ScanLibrary
from scanner.web.views.scan_view import ScanView


@dataclass(frozen=True)
class PageRequest:
    """A page about a scan that a request asks for."""

    library: ScanLibrary
    request: Request
    cluster: StoredCluster
    moment: ScanMoment
    scan: Scan
    path: str

    @property
    def root(self) -> str:
        """The path of the application."""
        return str(self.request.scope.get("root_path", ""))

    @cached_property
    def view(self) -> ScanView:
        """The view of the scan."""
        return self.library.view(self.scan, self.moment.day)

    @cached_property
    def shell(self) -> Shell:
        """The frame of the page."""
        cluster = f"{self.root}{cluster_path(self.library, self.cluster)}"
        day = self.moment.day or (self.scan.finished_at or self.scan.started_at).astimezone(UTC).date()
        return Shell(
            root=self.root,
            today=f"{self.library.clock().astimezone(UTC):%Y-%m-%d}",
            cluster=cluster,
            page=self._address,
            date=f"{day:%Y-%m-%d}",
            is_latest=not (self.moment.scan or self.moment.at),
            moment=f"{cluster}/{self.moment.path}",
            earlier=tuple((each.title, f"{each.beginning(day):%Y-%m-%d}") for each in PERIODS.values()),
            formats=tuple((name, file) for name, file in EXPORTS.items()),
            accounts=has_accounts(self.request),
        )

    @property
    def _address(self) -> str:
        """The path of the page with what it chooses: another moment has the same. A place in a list is one of this scan alone."""
        chosen = [(name, value) for name, value in self.request.query_params.multi_items() if name != "after"]
        return f"{self.path}?{urlencode(chosen)}" if chosen else self.path

    @cached_property
    def site(self) -> Site:
        """The site of the report with the names of the application."""
        provenance = self.view.document.provenance
        style = StyleSheet.of(provenance.scan_id, (provenance.policy_set_digest or "not known")[:16])
        return self.view.site(
            web=self.shell, findings_link=served_findings_link, style=style.text, style_hash=style.hash
        )


def cluster_path(library: ScanLibrary, cluster: StoredCluster) -> str:
    """The path of a cluster, from the path of the application."""
    return f"/clusters{path_of(library.key(cluster))}"
