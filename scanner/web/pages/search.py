"""The page of the search over all clusters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from scanner.errors import UsageError
from scanner.report.html.place_pages import place_path
from scanner.report.html.templates import served_findings_link
from scanner.store import SqlReader
from scanner.store.catalog.clusters import StoredCluster
from scanner.store.read.search_hits import FindingHit, Hits, SearchHits
from scanner.store.rows.search_entries import MOST_WORDS
from scanner.web.pages.answers import page_answer, render_bytes
from scanner.web.pages.shell import cluster_path, fleet_shell, path_of, query_link, render
from scanner.web.requests.parameters import root_of, text_of
from scanner.web.requests.refusals import BadRequest
from scanner.web.views.library import ScanLibrary

SHOWN: Final = 20
"""The hits of each kind."""
MOST: Final = 200
"""The hits of a page of one kind."""
CLUSTERS: Final = 10
"""The clusters that a hit names."""
_TITLES: Final[Mapping[str, str]] = {
    "problems": "Problems",
    "findings": "Findings",
    "checks": "Checks",
    "scans": "Scans",
    "policies": "Policies",
    "workloads": "Workloads",
    "owners": "Owners",
    "messages": "Messages",
    "objects": "Objects",
}
"""The kinds of hits in the order of the page: those with such an id first."""


class Section(NamedTuple):
    """The hits of one kind. `link` leads to more of them, or is empty."""

    kind: str
    title: str
    hits: tuple[object, ...]
    more: bool
    link: str


@dataclass(frozen=True)
class SearchPages:
    """Answers requests for searches."""

    library: ScanLibrary

    def search(self, request: Request) -> Response:
        """The page with the hits, or with the form alone."""
        text, only = text_of(request, "q"), text_of(request, "only")
        if only and only not in _TITLES:
            raise BadRequest(f"only: one of {', '.join(_TITLES)}.")
        with self.library.use_reader() as reader:
            hits = reader.search(text, MOST if only else SHOWN, self.library.settings.owners) if text else SearchHits()
            problems = _problems_of(reader, hits.findings.first)
        page = render(
            "web/search.html",
            f"Search: {text}" if text else "Search",
            fleet_shell(self.library, request, "search", text),
            text=text,
            words=" ".join(text.split()[:MOST_WORDS]),
            only=only,
            sections=list(_sections(hits, text, only, f"{root_of(request)}/search")),
            whole=query_link(f"{root_of(request)}/search", {"q": text}),
            most=MOST,
            clusters_shown=CLUSTERS,
            problem_of=problems.get,
            place_of=place_path,
            findings_of=served_findings_link,
            report_of=lambda cluster: f"{cluster_path(request, cluster)}/latest",
            cluster_of=lambda cluster: cluster_path(request, cluster),
            policy_link=lambda language, name: f"{root_of(request)}/policies{path_of(language, name)}",
            workload_link=lambda hit: query_link(
                f"{root_of(request)}/workloads",
                {"name": hit.name, "namespace": hit.namespace or "_cluster", "kind": hit.kind},
            ),
            path_of=path_of,
        )
        return page_answer(request, render_bytes(page))


def _sections(found: SearchHits, text: str, only: str, path: str) -> Iterator[Section]:
    for kind, title in _TITLES.items():
        hits: Hits[object] = getattr(found, kind)
        if hits.first and only in ("", kind):
            link = query_link(path, {"q": text, "only": kind}) if hits.more and not only else ""
            yield Section(kind, title, hits.first, hits.more, link)


def _problems_of(reader: SqlReader, hits: Iterable[FindingHit]) -> dict[tuple[StoredCluster, str], str]:
    """The problems of resolved findings, by cluster and id: no page of the newest scan has such a finding."""
    problems: dict[tuple[StoredCluster, str], str] = {}
    for hit in hits:
        if not hit.open and (problem := _problem_of(reader, hit)):
            problems[hit.cluster, hit.id] = problem
    return problems


def _problem_of(reader: SqlReader, hit: FindingHit) -> str:
    """The problem of a finding, empty for one of an older version."""
    try:
        return reader.find_finding(hit.id).stored.problem
    except UsageError:  # several findings begin so, or a scan was pruned meanwhile
        return ""
