"""The page that compares two clusters, each at a moment: by default at that of its newest complete scan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from scanner.model.scans.scan import Scan, ScanState
from scanner.report.diff.words import choice_title
from scanner.report.html.templates import served_findings_link
from scanner.store import SqlReader
from scanner.store.catalog.clusters import StoredCluster
from scanner.store.read.open_problems import OpenProblem
from scanner.web.pages.answers import RenderedPages, page_answer
from scanner.web.pages.shell import (
    LATEST,
    PERIODS,
    cluster_path,
    fleet_shell,
    path_of,
    query_link,
    render,
    today,
)
from scanner.web.requests.addresses import ScanMoment, cluster_key, moment_of
from scanner.web.requests.parameters import query_of, root_of, text_of
from scanner.web.requests.refusals import BadRequest, ScanIsLater
from scanner.web.views.cluster_pairs import (
    PolicyPair,
    PolicyProblems,
    compare_problems,
    group_by_cause,
    pair_policies,
)
from scanner.web.views.fleet_counts import FleetCounts
from scanner.web.views.library import ScanLibrary
from scanner.web.views.scan_counts import CountedScan, triage_of

ROWS: Final = 500
"""The policies that differ that the page shows."""
_CLUSTERS: Final = 1_000
"""The clusters that the form offers."""
_LONGEST: Final = 512
_SCANS: Final = 100
"""The scans of a cluster that the form offers."""
PROBLEMS: Final = 20
"""The problems of a policy that one cluster alone has that the page shows."""


@dataclass(frozen=True, slots=True)
class Side:
    """The left or the right cluster: the path of its report, the numbers of its scan, and its scans with a report, the newest first.

    `written` is the moment as the request names it, empty for the newest complete scan or for the beginning of a period.
    """

    name: str
    written: str
    cluster: StoredCluster
    key: str
    report: str
    counts: CountedScan
    scans: tuple[Scan, ...]


@dataclass(frozen=True)
class CompareClusters:
    """Answers requests for the comparison of two clusters."""

    library: ScanLibrary
    counts: FleetCounts
    rendered: RenderedPages

    def compare(self, request: Request) -> Response:
        """The comparison, or the form alone."""
        sides = [side for name in _SIDES if (side := self._side(request, name))]
        clusters = tuple((cluster_key(cluster), cluster.name) for cluster in self.library.clusters())
        key = "clusters", clusters, tuple(side.counts.scan.id for side in sides), query_of(request), today(self.library)
        return page_answer(request, self.rendered.page(key, lambda: self._page(request, sides, clusters)))

    def _side(self, request: Request, name: str) -> Side | None:
        """A cluster and a moment: `prod.3fa29c1b`, `prod.3fa29c1b/2026-03-31`, or with the date in a field of its own."""
        text = text_of(request, name, _LONGEST)
        if not text:
            return None
        key, _, moment = text.partition("/")
        cluster = self.library.cluster(key)
        written = moment or text_of(request, f"{name}_at")
        scans = self._list_scans(cluster)
        scan_moment = moment_of(written) if written else self._find_moment(cluster, scans, text_of(request, "at"))
        counts = self.counts.count(self.library.scan(cluster, scan_moment).id)
        report = f"{cluster_path(request, cluster)}/{scan_moment.path}"
        return Side(name, written, cluster, cluster_key(cluster), report, counts, scans)

    def _find_moment(self, cluster: StoredCluster, scans: Sequence[Scan], period: str) -> ScanMoment:
        """The moment at which a period begins, or that of the newest complete scan. Raises BadRequest for an unknown period."""
        if not period:
            newest = next((scan for scan in scans if scan.state is ScanState.COMPLETE), None)
            latest = newest is None or newest.id == self.library.scan(cluster, LATEST).id
            return LATEST if newest is None or latest else ScanMoment(newest.id)
        if period not in PERIODS:
            raise BadRequest(f"at: one of {', '.join(PERIODS)}.")
        moment = ScanMoment(at=PERIODS[period].beginning(self.library.clock().astimezone(UTC).date()).isoformat())
        try:
            self.library.scan(cluster, moment)
        except ScanIsLater as later:
            return ScanMoment(later.scan)
        return moment

    def _list_scans(self, cluster: StoredCluster) -> tuple[Scan, ...]:
        """The newest scans of a cluster that have a report, the newest first."""
        with self.library.use_reader() as reader:
            page = reader.read_scan_page(cluster.id, limit=_SCANS)
        usable = (each.scan for each in page.scans if each.scan.finished_at and not each.pruned)
        return tuple(scan for scan in usable if scan.state is not ScanState.FAILED)

    def _page(self, request: Request, sides: list[Side], clusters: tuple[tuple[str, str], ...]) -> str:
        pairs, problems = self._compare(*sides) if len(sides) == len(_SIDES) else ([], [])
        differing = sum(bool(pair.difference) for pair in pairs)
        return render(
            "web/compare_clusters.html",
            "Two clusters compared",
            fleet_shell(self.library, request, "clusters"),
            sides=sides,
            fields=[_make_field(name, next((side for side in sides if side.name == name), None)) for name in _SIDES],
            clusters=sorted(clusters, key=lambda pair: (pair[1], pair[0]))[:_CLUSTERS],
            period=text_of(request, "at"),
            periods=[(name, period.title) for name, period in PERIODS.items()],
            pairs=pairs[:ROWS],
            shown_keys={each.pair.key for each in problems if each.one_sided},
            causes=group_by_cause(problems),
            alone=[sum(each.count(number) for each in problems) for number, _ in enumerate(sides)],
            both=sum(each.both for each in problems),
            problems_shown=PROBLEMS,
            differing=differing,
            total=len(pairs),
            same_set=_compare_sets(sides, differing),
            findings_of=served_findings_link,
            policy_link=lambda key: f"{root_of(request)}/policies{path_of(*key)}",
            quick=_link_periods(request, sides),
        )

    def _compare(self, left: Side, right: Side) -> tuple[list[PolicyPair], list[PolicyProblems]]:
        with self.library.use_reader() as reader:
            pairs = pair_policies(reader, left.counts, right.counts)
            problems = (self._read_problems(reader, side) for side in (left, right))
            return pairs, compare_problems(pairs, *problems)

    def _read_problems(self, reader: SqlReader, side: Side) -> Iterator[OpenProblem]:
        record = reader.read_scan(side.counts.scan.id)
        return record.open_problems(triage_of(reader, self.library.settings, record).waived.rows)


_SIDES: Final = ("left", "right")


class _Field(NamedTuple):
    """A list of clusters to choose from, and of the scans of the chosen one: values with their titles."""

    name: str
    chosen: str = ""
    cluster: str = ""
    scans: tuple[tuple[str, str], ...] = ()


def _make_field(name: str, side: Side | None) -> _Field:
    if side is None:
        return _Field(name)
    offered = [(f"{side.key}/scans/{scan.id}", choice_title(scan)) for scan in side.scans]
    chosen = f"{side.key}/{side.written}" if side.written else side.key
    if side.written and chosen not in dict(offered):
        offered.insert(0, (chosen, choice_title(side.counts.scan)))
    return _Field(name, chosen, side.cluster.name, tuple(offered))


def _link_periods(request: Request, sides: Sequence[Side]) -> list[tuple[str, str]]:
    """Links to the comparison of the same clusters at other moments."""
    both = {name: side.key for name, side in zip(_SIDES, sides, strict=False)}
    path = f"{root_of(request)}/compare"
    periods = ("", "Newest complete scans"), *((name, period.title) for name, period in PERIODS.items())
    return [(title, query_link(path, {**both, "at": name})) for name, title in periods]


def _compare_sets(sides: list[Side], differing: int) -> str:
    """Return whether the policy sets are equal, in words; empty without two sides."""
    digests = [side.counts.scan.policy_set_digest for side in sides]
    if len(digests) < len(_SIDES):
        return ""
    if not all(digests):
        return "not known: a scan of an older version has no digest"
    if len(set(digests)) == 1:
        return "equal"
    if differing:
        return "different"
    return (
        "policies and bindings are equal in content; the text, a param, an exception or labels of namespaces may differ"
    )
