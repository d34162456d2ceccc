"""A scan keeps the API server's own counts of objects beside those of its lists."""

from __future__ import annotations

from collections.abc import Iterator

from scanner.model.outcome import Gap
from scanner.model.scans.scan import ObjectCount, ScanState, Scope, ServerCounts
from scanner.scan.options import Options
from tests.documents import binding, namespace, pod, policy
from tests.scan.fakes import FakeCluster, changed, forbidden, scanned

DOCUMENTS = [
    namespace("default"),
    namespace("kube-system"),
    pod("web", "default"),
    pod("db", "default"),
    pod("proxy", "kube-system"),
    policy("strict", "true"),
    binding("strict", "strict"),
]
COUNTS = ServerCounts({"pods": 3, "deployments.apps": 7})


def cluster(counts: ServerCounts = COUNTS) -> FakeCluster:
    """A cluster with three Pods, whose server has counts."""
    return FakeCluster(DOCUMENTS, counts=counts)


def counts_of(scope: Scope, counts: ServerCounts = COUNTS) -> tuple[ObjectCount, ...]:
    """The recorded counts of a scan."""
    return scanned(cluster(counts), Options(scope)).end.counts


def test_counts_are_those_of_the_kind() -> None:
    """Read before the lists and after them."""
    source = cluster()
    recorded = scanned(source, Options())

    assert (ObjectCount(0, 3, 3),) == recorded.end.counts
    assert (2, "") == (source.counted, recorded.start.method.without_counts)


def test_excluded_objects_are_counted() -> None:
    """They are in the list, and not examined."""
    recorded = scanned(cluster(), Options(Scope(exclude_namespaces=("kube-*",))))

    assert ((ObjectCount(1, 3, 3),), 2) == (recorded.end.counts, recorded.end.coverage[0].objects)


def test_a_scan_of_some_objects_does_not_read_the_counts() -> None:
    """They count all namespaces and all labels."""
    for scope in (Scope(namespaces=("default",)), Scope(selector="app=web")):
        source = cluster()
        recorded = scanned(source, Options(scope, allow_empty=True))

        assert ((ObjectCount(),), 0) == (recorded.end.counts, source.counted)
        assert recorded.start.method.without_counts.startswith("--namespace or --selector limits")


def test_a_missing_right_is_no_gap() -> None:
    """The scan is complete, and keeps the reason; there is no second attempt at the end."""
    source = cluster(ServerCounts(why_not="forbidden"))
    recorded = scanned(source, Options())
    gaps: tuple[Gap, ...] = recorded.gaps

    assert (ScanState.COMPLETE, (), "forbidden") == (recorded.end.state, gaps, recorded.start.method.without_counts)
    assert ((ObjectCount(),), 1) == (recorded.end.counts, source.counted)


def test_an_interrupt_during_the_last_count_keeps_the_scan() -> None:
    """Everything is listed by then."""
    answers: Iterator[ServerCounts] = iter([COUNTS])

    class Interrupted(FakeCluster):
        def object_counts(self) -> ServerCounts:
            answer = next(answers, None)
            if answer is None:
                raise KeyboardInterrupt
            return answer

    recorded = scanned(Interrupted(DOCUMENTS), Options())

    assert (ScanState.COMPLETE, (ObjectCount(0, 3, None),)) == (recorded.end.state, recorded.end.counts)


def test_counts_of_kinds_after_an_interrupt_stay_in_order() -> None:
    """A kind that was not listed has the count of the start alone."""
    source = changed(cluster(), refused={"pods": KeyboardInterrupt()})
    recorded = scanned(source, Options())

    assert (ScanState.INCOMPLETE, (ObjectCount(0, 3, None),)) == (recorded.end.state, recorded.end.counts)


def test_a_forbidden_kind_keeps_the_count() -> None:
    """It has the number of objects that the scan could not list."""
    recorded = scanned(changed(cluster(), refused={"pods": forbidden("pods")}), Options())

    assert (ObjectCount(0, 3, 3),) == recorded.end.counts
