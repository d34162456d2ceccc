"""The pages about one scan: those of the static report at the same relative addresses, from live queries.

`/clusters/<cluster>/<moment>/<page>`: links between pages are relative, so the moment stays in the address of every page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from scanner.store.catalog.clusters import StoredCluster
from scanner.web.pages.answers import RenderedPages, page_answer, render_bytes
from scanner.web.pages.exports import EXPORTS, export
from scanner.web.pages.findings import DOWNLOADS, FIELDS, download_findings, findings_page, problem_page
from scanner.web.pages.objects import OBJECT, PASSED, object_page, passed_page
from scanner.web.pages.page_request import PageRequest, cluster_path
from scanner.web.pages.sample import FIELDS as SAMPLE_FIELDS
from scanner.web.pages.sample import PAGE as SAMPLE
from scanner.web.pages.sample import download_sample, sample_page
from scanner.web.requests.addresses import ScanMoment
from scanner.web.requests.refusals import NotThere, ScanIsLater
from scanner.web.views.library import ScanLibrary

FIRST: Final = "index.html"
FINDINGS: Final = "findings.html"
_FILES: Final = {"population.csv": "csv-population", "rules.csv": "csv-rules", "rules.json": "json-rules"}
"""The files beside the pages of a report, and their formats."""
_MERGED: Final = {
    "appendix.html": "method.html#words",
    "drift.html": "findings.html?action=change&status=unresolved",
    "opinion.html": "method.html#opinion",
    "population.html": "coverage.html#population",
}
"""The pages of earlier releases that have become parts of others: their addresses last."""
_FORM_OF_SAMPLE: Final = "coverage.html#population"
_OF_SAMPLE: Final = {"sample/population.csv": "population.csv", "sample/sample.csv": "sample.csv"}
"""The files of a sample, which depend on the parameters of a request."""


@dataclass(frozen=True)
class ScanPages:
    """Answers requests for pages about one scan."""

    library: ScanLibrary
    rendered: RenderedPages

    def redirect(self, request: Request) -> Response:
        """Lead from `?at=` and `?scan=` of a cluster to the address of the page: by default, the summary of the newest scan."""
        cluster = self.library.cluster(request.path_params["cluster"])
        parameters = request.query_params
        moment = ScanMoment(parameters.get("scan", ""), "" if parameters.get("scan") else parameters.get("at", ""))
        try:
            self.library.scan(cluster, moment)
        except ScanIsLater as later:
            moment = ScanMoment(later.scan)
        page = parameters.get("page", FIRST).lstrip("/")
        root = request.scope.get("root_path", "")
        return RedirectResponse(f"{root}{cluster_path(self.library, cluster)}/{moment.path}/{page or FIRST}", 302)

    def redirect_to_first(self, request: Request) -> Response:
        """Lead from the address of a moment to the summary."""
        return RedirectResponse(f"{request.url.path.rstrip('/')}/{FIRST}", 302)

    def _lead_to(self, request: Request, cluster: StoredCluster, scan: str, path: str) -> Response:
        """Lead from a moment before the first scan to that scan."""
        root, query = request.scope.get("root_path", ""), request.url.query
        address = f"{root}{cluster_path(self.library, cluster)}/{ScanMoment(scan).path}/{quote(path)}"
        return RedirectResponse(f"{address}?{query}" if query else address, 302)

    def page(self, request: Request) -> Response:
        """The page that the path of a request names."""
        parameters = request.path_params
        moment = ScanMoment(parameters.get("scan", ""), parameters.get("at", ""))
        cluster = self.library.cluster(parameters["cluster"])
        path = parameters.get("page") or FIRST
        try:
            scan = self.library.scan(cluster, moment)
        except ScanIsLater as later:
            return self._lead_to(request, cluster, later.scan, path)
        page = PageRequest(self.library, request, cluster, moment, scan, path)
        if path in _MERGED:
            return RedirectResponse(_MERGED[path], 302)
        if path == SAMPLE and not request.query_params:
            return RedirectResponse(_FORM_OF_SAMPLE, 302)
        if path in _FILES:
            return export(page.view, EXPORTS[_FILES[path]], request)
        if path.startswith("download/"):
            file = path.removeprefix("download/")
            return download_findings(page, file) if file in DOWNLOADS else export(page.view, file, request)
        if path in _OF_SAMPLE:
            return download_sample(page, _OF_SAMPLE[path])
        if path.startswith("problems/"):  # the history of a problem goes on after the scan
            return page_answer(request, render_bytes(_html(page)))
        query = tuple(request.query_params.get(name, "") for name in _PARAMETERS.get(path, ()))
        key = cluster, scan.id, moment, path, page.root, query, page.shell.today
        return page_answer(request, self.rendered.page(key, lambda: _html(page)), lasting=bool(moment.scan))


_MADE: Final[Mapping[str, Callable[[PageRequest], str]]] = {
    FINDINGS: findings_page,
    OBJECT: object_page,
    PASSED: passed_page,
    SAMPLE: sample_page,
}
"""The pages that depend on the parameters of a request."""
_PARAMETERS: Final[Mapping[str, Sequence[str]]] = {
    FINDINGS: (*FIELDS, "after"),
    OBJECT: ("kind", "namespace", "name"),
    PASSED: ("language", "policy", "after"),
    SAMPLE: SAMPLE_FIELDS,
}


def _html(page: PageRequest) -> str:
    """The page. Raises NotThere."""
    path = page.path
    if path in _MADE:
        return _MADE[path](page)
    if path.startswith("problems/") and path.endswith(".html"):
        return problem_page(page, path.removeprefix("problems/").removesuffix(".html"))
    if path.startswith("f/"):
        return _place(page, path.removeprefix("f/"))
    found = page.view.find_page(page.site, path)
    if found is None:
        raise NotThere(f"The report has no page {path[:120]!r}.")
    return found.render()


def _place(page: PageRequest, name: str) -> str:
    prefix = name[:3]
    if len(prefix) != len("000") or not set(prefix) <= set("0123456789abcdef"):
        raise NotThere(f"There is no page of findings {name[:80]!r}.")
    with page.library.use_reader() as reader:
        known = reader.read_known_findings(page.cluster.id, prefix)
    pages = page.view.places(page.site, prefix, known)
    if name not in pages:
        raise NotThere(f"No scan of {page.cluster.name} that is kept has a finding whose id begins with {prefix}.")
    return pages[name]
