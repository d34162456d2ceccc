"""What the ledger says of lists that do not show one moment: nothing is lost in silence, nothing counted twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from scanner.errors import ListFailed
from scanner.model.outcome import GapKind
from scanner.model.resource import Kind, Page
from scanner.model.scan import CoverageState, OutcomeName, ScanState, Scope
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
class Forgetful(FakeCluster):
    """Shows these pages of pods, each with what stands between it and the one before; then it may break off."""

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


def showing(*pages: tuple[str, list[dict[str, object]]], end: ListFailed | None = None) -> Forgetful:
    """A cluster with one policy about pods, and these pages of them."""
    return Forgetful(RULES, shown=list(pages), end=end)


def test_a_list_that_went_on_later_is_inconsistent() -> None:
    """Everything was seen, but not at one moment: the ledger and a gap say so, and the scan is not complete."""
    inconsistency = "the list expired after page 1 and was continued at a later moment"
    told = scanned(showing(("", [WEB]), (inconsistency, [API])))
    line = told.coverage("Pod")
    assert (CoverageState.INCONSISTENT, 2, 2, "101", inconsistency) == (
        line.state,
        line.objects,
        line.pages,
        line.resource_version,
        line.note,
    )
    assert (ScanState.PARTIAL, [(GapKind.LIST, "v1/Pod")]) == (
        told.scan.state,
        [(gap.kind, gap.where) for gap in told.gaps],
    )


def test_objects_of_a_list_that_was_begun_again_count_once() -> None:
    """What was judged before is passed over, what is new is judged."""
    told = scanned(showing(("", [WEB, API]), (AGAIN, [WEB, API]), ("", [DB])))
    line = told.coverage("Pod")
    assert (CoverageState.INCONSISTENT, 3, 3, 3) == (line.state, line.objects, line.evaluated, line.pages)
    assert (3, 3) == (len(told.findings), told.counted(OutcomeName.VIOLATED))
    assert AGAIN == line.note


def test_an_object_that_comes_twice_counts_once() -> None:
    """A server that repeats objects without a word makes its list doubtful."""
    told = scanned(showing(("", [WEB, API]), ("", [API, DB, DB])))
    line = told.coverage("Pod")
    assert (CoverageState.INCONSISTENT, 3, "page 2 repeats 2 objects, counted once") == (
        line.state,
        line.objects,
        line.note,
    )
    assert 3 == len({finding.fingerprint for finding in told.findings}) == len(told.findings)


def test_a_list_that_breaks_off_after_a_seam_is_partial() -> None:
    """The worse of two troubles decides."""
    told = scanned(showing(("", [WEB]), (AGAIN, [WEB, API]), end=ListFailed("failed", "it broke off")))
    assert (CoverageState.PARTIAL, 2) == (told.coverage("Pod").state, told.coverage("Pod").objects)


def test_the_ledger_adds_up_the_time_that_pages_took() -> None:
    """Seconds are the cluster's, not ours."""
    assert 0.5 == scanned(showing(("", [WEB]), ("", [API]))).coverage("Pod").seconds


def test_large_objects_are_objects_like_others() -> None:
    """Two megabytes of annotations, five hundred containers: judged, counted, and not in the way of the next one."""
    large = pod(
        "large", "default", hostNetwork=True, containers=[{"name": f"c{number}", "image": "x"} for number in range(500)]
    )
    large["metadata"] = {**large["metadata"], "annotations": {"note": "x" * 2_000_000}}
    told = scanned(showing(("", [large, WEB])))
    assert (CoverageState.LISTED, 2, 2) == (
        told.coverage("Pod").state,
        told.coverage("Pod").objects,
        len(told.findings),
    )


def test_policies_that_come_twice_are_read_once() -> None:
    """A list of policies that was begun again does not look like two policies of one name."""
    cluster = FakeCluster([*RULES, WEB], page_size=1)
    doubled = replace(cluster, documents=[*RULES, *RULES[1:], WEB])
    assert scanned(cluster).end == scanned(doubled).end


def test_who_only_looks_ahead_fetches_nothing() -> None:
    """What a scan would judge can be known without its lists."""
    cluster = FakeCluster([*RULES, WEB])
    prepare(cluster, Options(), NOON)
    assert [] == cluster.expected


def test_the_cluster_hears_what_will_be_listed() -> None:
    """In the order in which it will be, without what the user leaves out."""
    cluster = FakeCluster([*RULES, WEB])
    scanned(cluster, Options(Scope(namespaces=("default",))))
    assert ["default/pods"] == cluster.expected
    scanned(cluster, Options(Scope(skip_kinds=("pods",))))
    assert [] == cluster.expected
