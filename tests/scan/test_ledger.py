"""The coverage of lists that do not show one moment: no object is lost unreported or counted twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from scanner.errors import ListFailed
from scanner.model.outcome import GapKind
from scanner.model.resource import Kind, Page
from scanner.model.scans.scan import CoverageState, ScanState, Scope
from scanner.model.scans.tally import OutcomeName
from scanner.scan.options import Options
from scanner.scan.prepare import prepare
from tests.documents import binding, namespace, pod, policy
from tests.scan.fakes import NOON, FakeCluster, scanned

WEB, API, DB = (pod(name, "default", hostNetwork=True) for name in ("web", "api", "db"))
RULES = (
    namespace("default"),
    policy("no-host-network", "!has(object.spec.hostNetwork)"),
    binding("no-host-network", "no-host-network"),
)
AGAIN = "the list expired after page 1 and was started again"


@dataclass
class InconsistentCluster(FakeCluster):
    """Lists these pages of pods, each with its inconsistency; then the list may break off."""

    shown: list[tuple[str, list[dict[str, object]]]] = field(default_factory=list)
    end: ListFailed | None = None

    def pages(self, kind: Kind, *, namespace: str = "", selector: str = "") -> Iterator[Page]:
        if kind.plural != "pods":
            yield from super().pages(kind, namespace=namespace, selector=selector)
            return
        for number, (inconsistency, items) in enumerate(self.shown, start=1):
            data = json.dumps({"items": items}).encode()
            yield Page(
                kind, number, data, resource_version=str(100 + number), seconds=0.25, inconsistency=inconsistency
            )
        if self.end:
            raise self.end


def showing(*pages: tuple[str, list[dict[str, object]]], end: ListFailed | None = None) -> InconsistentCluster:
    """A cluster with one policy for pods, and these pages of pods."""
    return InconsistentCluster(RULES, shown=list(pages), end=end)


def test_a_list_continued_at_a_later_moment_is_inconsistent() -> None:
    """Every object was listed, but not at one moment: coverage and a gap state this, and the scan is partial."""
    inconsistency = "the list expired after page 1 and was continued at a later moment"
    recorded = scanned(showing(("", [WEB]), (inconsistency, [API])))
    line = recorded.coverage("Pod")
    assert (CoverageState.INCONSISTENT, 2, 2, "101", inconsistency) == (
        line.state,
        line.objects,
        line.pages,
        line.resource_version,
        line.note,
    )
    assert (ScanState.INCOMPLETE, [(GapKind.LIST, "v1/Pod")]) == (
        recorded.scan.state,
        [(gap.kind, gap.where) for gap in recorded.gaps],
    )


def test_objects_of_a_list_that_was_begun_again_count_once() -> None:
    """Objects of earlier pages are skipped, and new objects are evaluated."""
    recorded = scanned(showing(("", [WEB, API]), (AGAIN, [WEB, API]), ("", [DB])))
    line = recorded.coverage("Pod")
    assert (CoverageState.INCONSISTENT, 3, 3, 3) == (line.state, line.objects, line.evaluated, line.pages)
    assert (3, 3) == (len(recorded.findings), recorded.counted(OutcomeName.VIOLATED))
    assert AGAIN == line.note


def test_a_repeated_object_counts_once() -> None:
    """A list that repeats objects without an error is inconsistent."""
    recorded = scanned(showing(("", [WEB, API]), ("", [API, DB, DB])))
    line = recorded.coverage("Pod")
    assert (CoverageState.INCONSISTENT, 3, "page 2 repeats 2 objects, counted once") == (
        line.state,
        line.objects,
        line.note,
    )
    assert 3 == len({finding.fingerprint for finding in recorded.findings}) == len(recorded.findings)


def test_an_inconsistent_list_that_breaks_off_is_partial() -> None:
    """The worse of the two problems decides the state."""
    recorded = scanned(showing(("", [WEB]), (AGAIN, [WEB, API]), end=ListFailed("failed", "it broke off")))
    assert (CoverageState.PARTIAL, 2) == (recorded.coverage("Pod").state, recorded.coverage("Pod").objects)


def test_coverage_has_the_sum_of_the_pages_seconds() -> None:
    """The seconds are those of the list requests."""
    assert 0.5 == scanned(showing(("", [WEB]), ("", [API]))).coverage("Pod").seconds


def test_large_objects_are_evaluated_like_others() -> None:
    """An object with two megabytes of annotations or five hundred containers is evaluated and counted."""
    large = pod(
        "large", "default", hostNetwork=True, containers=[{"name": f"c{number}", "image": "x"} for number in range(500)]
    )
    large["metadata"] = {**large["metadata"], "annotations": {"note": "x" * 2_000_000}}
    recorded = scanned(showing(("", [large, WEB])))
    assert (CoverageState.LISTED, 2, 2) == (
        recorded.coverage("Pod").state,
        recorded.coverage("Pod").objects,
        len(recorded.findings),
    )


def test_repeated_policies_are_read_once() -> None:
    """A list of policies that was started again does not look like two policies of one name."""
    cluster = FakeCluster([*RULES, WEB], page_size=1)
    doubled = replace(cluster, documents=[*RULES, *RULES[1:], WEB])
    assert scanned(cluster).end == scanned(doubled).end


def test_a_preparation_fetches_no_objects() -> None:
    """The plans of a scan are known without its lists."""
    cluster = FakeCluster([*RULES, WEB])
    prepare(cluster, Options(), NOON)
    assert [] == cluster.expected


def test_the_lists_are_announced_to_the_cluster() -> None:
    """They are announced in their order, without the kinds that the user leaves out."""
    cluster = FakeCluster([*RULES, WEB])
    scanned(cluster, Options(Scope(namespaces=("default",))))
    assert ["default/pods"] == cluster.expected
    scanned(cluster, Options(Scope(skip_kinds=("pods",))))
    assert [] == cluster.expected
