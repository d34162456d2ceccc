"""Facts about evaluation on several cores.

The number of processes changes no result, and the end of a process loses no object.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from multiprocessing import active_children
from pathlib import Path
from typing import Any, cast

import orjson
import pytest

from scanner.cel import AuthorizerAnswer, Question
from scanner.cluster.schemas import KnownSchemas, builtin_schemas
from scanner.errors import AuthorizerFailed, ListFailed
from scanner.model.outcome import Gap, GapKind
from scanner.model.resource import Page
from scanner.model.scans.scan import CoverageState, PageResult, ScanState
from scanner.model.scans.tally import OutcomeName
from scanner.policies.kyverno.family import KyvernoOptions
from scanner.policies.language import with_options
from scanner.policies.plan import KindPlan
from scanner.scan.options import Options
from scanner.scan.run import run
from scanner.scan.workers.cores import count_cores
from scanner.scan.workers.pool import Job, JobResult, Workers
from scanner.scan.workers.relay import Relay
from tests.documents import CONFIG_MAPS, PODS, Document, binding, namespace, pod, policy, rule, thing
from tests.scan import test_drift
from tests.scan.fakes import NOON, FakeCluster, FakeStore, Recorded, scanned

SPACES = ("default", "prod", "test")
ALLOWED = "authorizer.group('').resource('pods').check('delete').allowed()"
REPEATED = "page 2 repeats 1 objects, counted once"


def rules(*resources: str) -> Document:
    """Constraints that match some resources."""
    return {"resourceRules": [rule(*resources)]}


def documents() -> list[Document]:
    """Pods and config maps in several namespaces, with policies that pass, are violated and fail."""
    return [
        *(namespace(space, env=space) for space in SPACES),
        *(pod(f"pod-{number:02}", SPACES[number % 3], spec={"x": number}) for number in range(17)),
        *(thing(CONFIG_MAPS, f"map-{number:02}", SPACES[number % 2], data={"n": str(number)}) for number in range(9)),
        policy("small", "object.spec.x < 9", "object.spec.x > 1", matchConstraints=rules("pods")),
        policy("even", "int(object.data.n) % 2 == 0", matchConstraints=rules("configmaps")),
        policy("broken", "object.data.n.x == 1", matchConstraints=rules("configmaps", "pods")),
        policy("named", "object.metadata.name != 'pod-03'", matchConstraints=rules("pods")),
        *(binding(name, name) for name in ("small", "even", "broken", "named")),
    ]


class Clerk:
    """An authorizer that keeps the questions that its own process received."""

    def __init__(self, answer: AuthorizerAnswer | None) -> None:
        self.asked: list[Question] = []
        self._answer = answer

    def decide(self, question: Question) -> AuthorizerAnswer:
        self.asked.append(question)
        if self._answer is None:
            raise AuthorizerFailed("it did not answer")
        return self._answer


def asking(clerk: Clerk) -> FakeCluster:
    """A cluster with a policy that reads the authorizer."""
    pods = [pod(f"pod-{number}") for number in range(9)]
    return FakeCluster([namespace("default"), *pods, policy("p", ALLOWED), binding("b", "p")], clerk=clerk)


def all_of(recorded: Recorded) -> tuple[object, ...]:
    """All records of a scan, but the number of workers in its method."""
    start = replace(recorded.start, method=replace(recorded.start.method, workers=1))
    return recorded.scan, start, recorded.end, recorded.pages


@pytest.mark.parametrize("workers", [2, 4, 9])
def test_the_number_of_workers_changes_nothing(workers: int) -> None:
    """The same pages are recorded in the same order, with the same end."""
    assert all_of(scanned(FakeCluster(documents()))) == all_of(scanned(FakeCluster(documents()), workers=workers))


class NoNetwork:
    """A network that must not be used."""

    def request(self, call: object, /) -> tuple[int, bytes]:
        raise AssertionError(call)

    def image(self, reference: str, /) -> None:
        raise AssertionError(reference)


def test_a_scan_with_a_network_uses_one_process() -> None:
    """Processes cannot share its connections, and each request is sent once in a scan."""
    alone: list[int] = []

    class Watching(FakeStore):
        def write_page(self, scan_id: str, result: PageResult) -> None:
            alone.append(len(active_children()))

    for network in (None, NoNetwork()):
        store = Watching()
        options = Options(languages=with_options(KyvernoOptions(network=network)))
        run(FakeCluster(documents()), store, options, scan_id="s1", clock=lambda: NOON, workers=2)
    pages = len(alone) // 2
    assert ([2] * pages, [0] * pages) == (alone[:pages], alone[pages:])


def test_all_workers_together_ask_the_authorizer_once() -> None:
    """The parent sends the check for every worker."""
    clerk = Clerk(AuthorizerAnswer(allowed=True))
    recorded = scanned(asking(clerk), workers=3)
    assert (9, 1) == (recorded.counted(OutcomeName.PASSED), len(clerk.asked))


def test_an_authorizer_without_an_answer_leaves_the_same_gaps() -> None:
    """A worker receives the error that the cluster raised in the parent."""
    alone = scanned(asking(Clerk(None)))
    assert all_of(alone) == all_of(scanned(asking(Clerk(None)), workers=3))
    assert 9 == sum(gap.kind is GapKind.EVALUATION for gap in alone.gaps)


def test_schemas_reach_the_workers() -> None:
    """Workers merge mutations with the schemas of the parent."""
    maps = [test_drift.config_map(f"map-{number}") for number in range(7)]
    cluster = test_drift.cluster(test_drift.LABEL, test_drift.binding("label"), *maps)
    alone = scanned(cluster)
    assert 7 == alone.counted(OutcomeName.WOULD_CHANGE)
    assert all_of(alone) == all_of(scanned(cluster, workers=2))


def test_a_repeated_object_is_counted_once() -> None:
    """It is counted once, whether one or two processes evaluated it."""
    maps = [thing(CONFIG_MAPS, name, "default", data={"n": "1"}) for name in ("a", "b", "c", "d")]
    shown = [[maps[0], maps[1]], [maps[1], maps[2]], [maps[2], maps[3]]]
    cluster = FakeCluster(documents(), raw={"configmaps": [orjson.dumps({"items": items}) for items in shown]})
    recorded = scanned(cluster, workers=2)
    coverage = recorded.coverage("ConfigMap")
    assert (CoverageState.INCONSISTENT, 4) == (coverage.state, coverage.objects)
    assert coverage.note.startswith(REPEATED)
    assert all_of(scanned(cluster)) == all_of(recorded)


@pytest.mark.parametrize("trouble", [KeyboardInterrupt(), ListFailed("failed", "it broke off")])
def test_a_list_that_ends_early_ends_in_any_number_of_processes(trouble: BaseException) -> None:
    """Coverage states it, only evaluated objects are counted, and no process stays."""
    recorded = scanned(FakeCluster(documents(), broken={"pods": trouble}), workers=3)
    evaluated = sum(page.objects for page in recorded.pages)
    assert ScanState.INCOMPLETE is recorded.scan.state
    assert sum(line.objects for line in recorded.end.coverage) == evaluated
    assert CoverageState.LISTED is not recorded.coverage("Pod").state
    assert [] == active_children()


@dataclass(frozen=True)
class DeadlyEvaluator:
    """A page evaluator that ends its process, or raises, as the page requires; files in `folder` count the ends."""

    folder: Path

    def evaluate(self, page: Page, plan: KindPlan, evaluated: object = ()) -> PageResult:
        content = orjson.loads(page.data)
        trace = self.folder / f"{page.number}"
        if trace.exists() < content.get("deaths", 0) or content.get("deaths") == 2:
            trace.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(content.get("seconds", 0))
        if content.get("raises"):
            raise LookupError("hostile text")
        if content.get("unsendable"):
            return PageResult("v1", "Pod", page.number, cast("int", lambda: 0), 0)
        return PageResult("v1", "Pod", page.number, objects=content["objects"], evaluated=content["objects"])


PLAN = KindPlan(PODS, ())


def page_results(folder: Path, pages: Iterable[dict[str, Any]], workers: int = 2) -> list[PageResult]:
    """The results of the pages."""
    relay = Relay(lambda: KnownSchemas(builtin_schemas()))
    page_evaluator: Any = DeadlyEvaluator(folder)
    jobs = [Job(Page(PODS, number, orjson.dumps(page)), PLAN) for number, page in enumerate(pages, start=1)]
    with Workers(page_evaluator, [PLAN], relay, nullcontext, count=workers) as processes:
        return [step.result for step in processes.evaluate_in_order(jobs) if isinstance(step, JobResult)]


def counted(results: Iterable[PageResult]) -> list[tuple[int, int]]:
    """The number of each page, and its number of objects."""
    return [(result.number, result.objects) for result in results]


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("deadly", [1, 2, 5, 8])
def test_a_worker_that_dies_is_replaced_and_its_page_evaluated_again(tmp_path: Path, workers: int, deadly: int) -> None:
    """No page is lost or counted twice, and the order is the same."""
    pages = [{"objects": number, "deaths": number == deadly} for number in range(1, 9)]
    results = page_results(tmp_path, pages, workers)
    assert [(number, number) for number in range(1, 9)] == counted(results)
    assert [] == [gap for result in results for gap in result.gaps]


@pytest.mark.parametrize("workers", [2, 3])
def test_a_page_with_which_two_workers_die_is_a_gap(tmp_path: Path, workers: int) -> None:
    """The page is not tried a third time; the other pages are complete."""
    pages = [{"objects": number, "deaths": 2 if number == 3 else 0} for number in range(1, 9)]
    results = page_results(tmp_path, pages, workers)
    assert [(number, 0 if number == 3 else number) for number in range(1, 9)] == counted(results)
    [gap] = [gap for result in results for gap in result.gaps]
    assert (GapKind.OBJECT, "v1/Pod") == (gap.kind, gap.where)
    assert gap.why.startswith("page 3 was not evaluated: ")
    assert "SIGKILL" in gap.why


def test_every_worker_may_die(tmp_path: Path) -> None:
    """Workers die one after the other, each with its page."""
    pages = [{"objects": number, "deaths": 1} for number in range(1, 9)]
    assert [(number, number) for number in range(1, 9)] == counted(page_results(tmp_path, pages))


@pytest.mark.parametrize(
    ("workers", "fault", "name"),
    [(1, "raises", "LookupError"), (2, "raises", "LookupError"), (2, "unsendable", "AttributeError")],
)
def test_an_internal_error_is_a_gap(tmp_path: Path, workers: int, fault: str, name: str) -> None:
    """The scan continues in any process, and the gap quotes no object."""
    results = page_results(tmp_path, [{"objects": 1}, {"objects": 2, fault: True}, {"objects": 3}], workers)
    assert [(1, 1), (2, 0), (3, 3)] == counted(results)
    assert (Gap(GapKind.OBJECT, "v1/Pod", f"page 2 was not evaluated: internal error: {name}; please report it"),) == (
        results[1].gaps
    )


def test_little_work_needs_no_other_process() -> None:
    """Processes start once enough bytes of pages were read."""
    relay = Relay(lambda: KnownSchemas({}))
    page_evaluator: Any = DeadlyEvaluator(Path())
    jobs = [Job(Page(PODS, number, b'{"objects": 1}'), PLAN) for number in range(1, 9)]
    size = len(jobs[0].page.data)
    with Workers(page_evaluator, [PLAN], relay, nullcontext, count=3, fork_after_bytes=3 * size) as processes:
        taken = [len(active_children()) for _ in processes.evaluate_in_order(iter(jobs))]
    assert [0, 0, 0, *[3] * 5] == taken


QUOTA, PERIOD = "cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"


@pytest.mark.parametrize(
    ("files", "most"),
    [
        ({"cpu.max": "max 100000"}, 64),
        ({"cpu.max": "100000 100000"}, 1),
        ({"cpu.max": "150000 100000"}, 2),
        ({"cpu.max": "5000 100000"}, 1),
        ({"cpu.max": "nonsense"}, 64),
        ({QUOTA: "-1", PERIOD: "100000"}, 64),
        ({QUOTA: "100000", PERIOD: "100000"}, 1),
        ({QUOTA: "150000", PERIOD: "100000"}, 2),
        ({QUOTA: "100000"}, 64),
        ({QUOTA: "100000", PERIOD: "nonsense"}, 64),
        ({}, 64),
    ],
    ids=str,
)
def test_a_container_has_as_many_cores_as_it_may_use(tmp_path: Path, files: dict[str, str], most: int) -> None:
    """The CPU limit of both versions of control groups is rounded up; the result is at most the number of processors and eight."""
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{content}\n")
    assert min(most, 8, len(os.sched_getaffinity(0))) == count_cores(tmp_path)


def test_a_scan_beats_while_its_workers_evaluate(tmp_path: Path) -> None:
    """A page that takes seconds is no silence."""
    relay = Relay(lambda: KnownSchemas({}))
    page_evaluator: Any = DeadlyEvaluator(tmp_path)
    beats: list[int] = []
    job = Job(Page(PODS, 1, b'{"objects": 1, "seconds": 1.5}'), PLAN)
    with Workers(
        page_evaluator, [PLAN], relay, nullcontext, count=2, beat=lambda: beats.append(os.getpid())
    ) as processes:
        list(processes.evaluate_in_order(iter([job])))
    assert {os.getpid()} == set(beats)


def test_a_scan_beats_while_it_waits_for_the_cluster() -> None:
    """The cluster calls the store's heartbeat of this scan."""
    cluster, store = FakeCluster([namespace("default")]), FakeStore()
    run(cluster, store, Options(), scan_id="s1", clock=lambda: NOON)
    cluster.beat()
    assert ["s1"] == store.beats
