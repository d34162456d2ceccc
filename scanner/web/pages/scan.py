"""The pages about one scan: those of the static report at the same relative addresses, from live queries.

`/clusters/<cluster>/<moment>/<page>`: links between pages are relative, so the moment stays in the address of every page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from scanner.web.pages.answers import RenderedPages, page_answer, render_bytes
from scanner.web.pages.exports import EXPORTS, export
from scanner.web.pages.findings import DOWNLOADS, FIELDS, download_findings, findings_page, problem_page
from scanner.web.pages.page_request import PageRequest, cluster_path
from scanner.web.requests.addresses import ScanMoment
from scanner.web.requests.refusals import NotThere
from scanner.web.views.library import ScanLibrary

FIRST: Final = "index.html"
FINDINGS: Final = "findings.html"


@dataclass(frozen=True)
class ScanPages:
    """Answers requests for pages about one scan."""

    library: ScanLibrary
    rendered: RenderedPages

    def redirect(self, request: Request) -> Response:
        """Lead from `?at=` and `?scan=` of a cluster to the address of the page: by default, the summary of the newest scan."""
        cluster = self.library.cluster(request.path_params["cluster"])
        given = request.query_params
        moment = ScanMoment(given.get("scan", ""), "" if given.get("scan") else given.get("at", ""))
        self.library.scan(cluster, moment)
        page = given.get("page", FIRST).lstrip("/")
        root = request.scope.get("root_path", "")
        return RedirectResponse(f"{root}{cluster_path(self.library, cluster)}/{moment.path}/{page or FIRST}", 302)

    def redirect_to_first(self, request: Request) -> Response:
        """Lead from the address of a moment to the summary."""
        return RedirectResponse(f"{request.url.path.rstrip('/')}/{FIRST}", 302)

    def page(self, request: Request) -> Response:
        """The page that the path of a request names."""
        given = request.path_params
        moment = ScanMoment(given.get("scan", ""), given.get("at", ""))
        cluster = self.library.cluster(given["cluster"])
        scan = self.library.scan(cluster, moment)
        path = given.get("page") or FIRST
        asked = PageRequest(self.library, request, cluster, moment, scan, path)
        if path == "population.csv":
            return export(asked.view, EXPORTS["csv-population"], request)
        if path.startswith("download/"):
            return _download(asked, path.removeprefix("download/"))
        if path.startswith("problems/"):  # the history of a problem goes on after the scan
            return page_answer(request, render_bytes(_html(asked)))
        query = tuple(request.query_params.get(name, "") for name in (*FIELDS, "after")) if path == FINDINGS else ()
        key = cluster, scan.id, moment, path, asked.root, query, asked.shell.today
        return page_answer(request, self.rendered.page(key, lambda: _html(asked)), lasting=bool(moment.scan))


def _download(asked: PageRequest, file: str) -> Response:
    return download_findings(asked, file) if file in DOWNLOADS else export(asked.view, file, asked.request)


def _html(asked: PageRequest) -> str:
    """The page. Raises NotThere."""
    path = asked.path
    if path == FINDINGS:
        return findings_page(asked)
    if path.startswith("problems/") and path.endswith(".html"):
        return problem_page(asked, path.removeprefix("problems/").removesuffix(".html"))
    if path.startswith("f/"):
        return _place(asked, path.removeprefix("f/"))
    pages = asked.view.pages(asked.site)
    if path not in pages:
        raise NotThere(f"The report has no page {path[:120]!r}.")
    return pages[path].render()


def _place(asked: PageRequest, name: str) -> str:
    prefix = name[:3]
    if len(prefix) != len("000") or not set(prefix) <= set("0123456789abcdef"):
        raise NotThere(f"There is no page of findings {name[:80]!r}.")
    pages = asked.view.places(asked.site, prefix)
    if name not in pages:
        raise NotThere(
            f"Scan {asked.scan.id} has no finding whose id begins with {prefix}. A finding that was resolved earlier is on the "
            "page of the scan that resolved it: search for its id."
        )
    return pages[name]
