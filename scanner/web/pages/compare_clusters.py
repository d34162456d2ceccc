"""The page that compares two clusters, each at a moment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from scanner.model.policy import PolicyKey
from scanner.store.catalog.clusters import StoredCluster
from scanner.web.pages.answers import RenderedPages, page_answer
from scanner.web.pages.shell import cluster_path, findings_link, fleet_shell, path_of, render, today
from scanner.web.requests.addresses import ScanMoment, cluster_key, moment_of
from scanner.web.requests.parameters import query_of, root_of, text_of
from scanner.web.views.fleet_counts import FleetCounts
from scanner.web.views.fleet_policies import sort_key
from scanner.web.views.library import ScanLibrary
from scanner.web.views.scan_counts import NONE, CountedPolicy, CountedScan, Numbers

ROWS: Final = 500
"""The policies that differ that the page shows."""
_CLUSTERS: Final = 1_000
"""The clusters that the form offers."""
_LONGEST: Final = 512


@dataclass(frozen=True, slots=True)
class Side:
    """One of both clusters: the path of its report, and the numbers of its scan."""

    cluster: StoredCluster
    key: str
    moment: ScanMoment
    report: str
    counts: CountedScan


class PolicyPair(NamedTuple):
    """A policy in both clusters, None where it is missing."""

    key: PolicyKey
    left: CountedPolicy | None
    right: CountedPolicy | None

    @property
    def difference(self) -> str:
        """The difference in words, empty if there is none besides numbers."""
        bound = [bool(policy and policy.bindings_in_force) for policy in (self.left, self.right)]
        if bound == [True, False]:
            return "bound on the left only"
        if bound == [False, True]:
            return "bound on the right only"
        if bound == [False, False]:
            return ""
        return ", ".join(_differences(self.left, self.right))

    @property
    def numbers(self) -> tuple[Numbers, Numbers]:
        """The open problems on both sides."""
        left, right = (policy.numbers if policy else NONE for policy in (self.left, self.right))
        return left, right


def _differences(left: CountedPolicy | None, right: CountedPolicy | None) -> Iterator[str]:
    if left is None or right is None:
        return
    if left.digest != right.digest:
        yield "another spec"
    if left.actions != right.actions:
        yield f"actions {' and '.join(left.actions) or 'none'}, and {' and '.join(right.actions) or 'none'}"
    if {(each.name, each.digest) for each in left.bindings_in_force} != {
        (each.name, each.digest) for each in right.bindings_in_force
    }:
        yield "other bindings"


def pairs_of(left: CountedScan, right: CountedScan) -> list[PolicyPair]:
    """The policies of both scans, by name: those that differ first."""
    keys = sorted({*left.policies, *right.policies}, key=sort_key)
    pairs = [PolicyPair(key, left.policies.get(key), right.policies.get(key)) for key in keys]
    return sorted(pairs, key=lambda pair: not pair.difference)


@dataclass(frozen=True)
class CompareClusters:
    """Answers requests for the comparison of two clusters."""

    library: ScanLibrary
    counts: FleetCounts
    rendered: RenderedPages

    def compare(self, request: Request) -> Response:
        """The comparison, or the form alone."""
        sides = [side for name in ("left", "right") if (side := self._side(request, name))]
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
        scan_moment = moment_of(moment or text_of(request, f"{name}_at"))
        counts = self.counts.count(self.library.scan(cluster, scan_moment).id)
        own_key = cluster_key(cluster)
        return Side(cluster, own_key, scan_moment, f"{cluster_path(request, cluster)}/{scan_moment.path}", counts)

    def _page(self, request: Request, sides: list[Side], clusters: tuple[tuple[str, str], ...]) -> str:
        pairs = pairs_of(*(side.counts for side in sides)) if len(sides) == 2 else []  # noqa: PLR2004 - left and right
        return render(
            "web/compare_clusters.html",
            "Two clusters compared",
            fleet_shell(self.library, request, "clusters"),
            sides=sides,
            chosen={name: _read_choice(request, name) for name in ("left", "right")},
            clusters=sorted(clusters, key=lambda pair: (pair[1], pair[0]))[:_CLUSTERS],
            pairs=pairs[:ROWS],
            differing=sum(bool(pair.difference) for pair in pairs),
            total=len(pairs),
            same_set=_compare_sets(sides),
            findings_of=findings_link,
            policy_link=lambda key: f"{root_of(request)}/policies{path_of(*key)}",
        )


def _compare_sets(sides: list[Side]) -> str:
    """Return whether the policy sets are equal, in words; empty without two sides."""
    digests = [side.counts.scan.policy_set_digest for side in sides]
    if len(digests) < 2:  # noqa: PLR2004 - left and right
        return ""
    if not all(digests):
        return "not known: a scan of an older version has no digest"
    return "equal" if len(set(digests)) == 1 else "different"


def _read_choice(request: Request, name: str) -> tuple[str, str]:
    """The values of the fields: the key of a cluster, and the moment as a user writes it."""
    key, _, moment = text_of(request, name, _LONGEST).partition("/")
    scan_moment = moment_of(moment or text_of(request, f"{name}_at"))
    return key, scan_moment.at or scan_moment.scan
