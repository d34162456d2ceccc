"""The pages about one scan: those of the static report at the same relative addresses, from live queries.

`/clusters/<cluster>/<moment>/<page>`: links between pages are relative, so the moment stays in the address of every page.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from functools import cached_property
from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from scanner.model.scan import Scan
from scanner.report.site import Site
from scanner.store.clusters import StoredCluster
from scanner.web.addresses import Moment
from scanner.web.answers import page_answer
from scanner.web.exports import EXPORTS, export
from scanner.web.finding_pages import findings_link, findings_page, problem_page
from scanner.web.library import Library
from scanner.web.refusals import NotThere
from scanner.web.rendered import RenderedPages
from scanner.web.scan_view import ScanView
from scanner.web.shell import Shell, Style, path_of

FIRST: Final = "index.html"


@dataclass(frozen=True)
class ScanPages:
    """Answers requests for pages about one scan."""

    library: Library
    rendered: RenderedPages

    def redirect(self, request: Request) -> Response:
        """Lead from `?at=` and `?scan=` of a cluster to the address of the page: by default, the summary of the newest scan."""
        cluster = self.library.cluster(request.path_params["cluster"])
        given = request.query_params
        moment = Moment(given.get("scan", ""), "" if given.get("scan") else given.get("at", ""))
        self.library.scan(cluster, moment)
        page = given.get("page", FIRST).lstrip("/")
        root = request.scope.get("root_path", "")
        return RedirectResponse(f"{root}{_cluster_path(self.library, cluster)}/{moment.path}/{page or FIRST}", 302)

    def redirect_to_first(self, request: Request) -> Response:
        """Lead from the address of a moment to the summary."""
        return RedirectResponse(f"{request.url.path.rstrip('/')}/{FIRST}", 302)

    def page(self, request: Request) -> Response:
        """The page that the path of a request names."""
        given = request.path_params
        moment = Moment(given.get("scan", ""), given.get("at", ""))
        cluster = self.library.cluster(given["cluster"])
        scan = self.library.scan(cluster, moment)
        path = given.get("page") or FIRST
        asked = AskedPage(self.library, request, cluster, moment, scan, path)
        if path == "population.csv":
            return export(asked.view, EXPORTS["csv-population"], request)
        if path.startswith("download/"):
            return export(asked.view, path.removeprefix("download/"), request)
        key = scan.id, moment, path, asked.root, tuple(sorted(request.query_params.items())), asked.shell.today
        return page_answer(request, self.rendered.page(key, asked.html), lasting=bool(moment.scan))


@dataclass(frozen=True)
class AskedPage:
    """A page about a scan that a request asks for."""

    library: Library
    request: Request
    cluster: StoredCluster
    moment: Moment
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
        """What stands around the page."""
        cluster = f"{self.root}{_cluster_path(self.library, self.cluster)}"
        day = self.moment.day or (self.scan.finished_at or self.scan.started_at).astimezone(UTC).date()
        return Shell(
            root=self.root,
            today=f"{self.library.clock().astimezone(UTC):%Y-%m-%d}",
            cluster=cluster,
            page=self.path,
            date=f"{day:%Y-%m-%d}",
            is_latest=not (self.moment.scan or self.moment.at),
            moment=f"{cluster}/{self.moment.path}",
            formats=tuple((name, file) for name, file in EXPORTS.items()),
        )

    @cached_property
    def site(self) -> Site:
        """The site of the report with the names of the application."""
        provenance = self.view.document.provenance
        style = Style.of(provenance.scan_id, (provenance.policy_set_digest or "not known")[:16])
        return self.view.site(web=self.shell, findings_link=findings_link, style=style.text, style_hash=style.hash)

    def html(self) -> str:
        """The page. Raises NotThere."""
        path = self.path
        if path == "findings.html":
            return findings_page(self)
        if path.startswith("problems/") and path.endswith(".html"):
            return problem_page(self, path.removeprefix("problems/").removesuffix(".html"))
        if path.startswith("f/"):
            return self._place(path.removeprefix("f/"))
        pages = self.view.pages(self.site)
        if path not in pages:
            raise NotThere(f"The report has no page {path[:120]!r}.")
        return pages[path].render()

    def _place(self, name: str) -> str:
        prefix = name[:3]
        if len(prefix) != len("000") or not set(prefix) <= set("0123456789abcdef"):
            raise NotThere(f"There is no page of findings {name[:80]!r}.")
        pages = self.view.places(self.site, prefix)
        if name not in pages:
            raise NotThere(
                f"Scan {self.scan.id} has no finding whose id begins with {prefix}. A finding that was resolved earlier is on the "
                "page of the scan that resolved it: search for its id."
            )
        return pages[name]


def _cluster_path(library: Library, cluster: StoredCluster) -> str:
    return f"/clusters{path_of(library.key(cluster))}"
