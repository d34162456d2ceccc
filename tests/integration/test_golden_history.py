"""Forty scans of a changing cluster record what was written down before, in every database.

`golden_history.yaml` has the steps and the expected log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from difflib import unified_diff
from functools import partial
from pathlib import Path

import pytest

from scanner.cli.scanning.named_cluster import NamedCluster
from scanner.cluster.live.cluster import LiveCluster
from scanner.errors import UsageError
from scanner.model.population import GroupKind
from scanner.model.resource import Kind
from scanner.model.scans.cause import Cause
from scanner.model.scans.scan import ClusterIdentity, PageResult, Scan, ScanEnd, ScanStart, Scope
from scanner.model.scans.stored_finding import StoredFinding
from scanner.model.scans.stored_scan import StoredScan
from scanner.posture.problem_rows import Problem, problems
from scanner.scan.options import Options
from scanner.scan.run import run
from scanner.store import SqlStore, open_store
from scanner.store.upkeep.integrity import check_database
from tests.integration.golden import SCANNER, Fields, GoldenCluster, Step, golden_history
from tests.requirements import POSTGRES
from tests.store.databases import KINDS, count, prepared_database

NAME = "golden"
FIVE_MINUTES = timedelta(minutes=5)


@dataclass
class History:
    """One database: its scans, what each of them recorded, and when its findings and problems were seen first."""

    url: str
    store: SqlStore
    logs: dict[int, list[str]] = field(default_factory=dict)
    records: dict[int, StoredScan] = field(default_factory=dict)
    refused: str = ""


class View(NamedCluster):
    """The cluster under its name, with a version of the server that a step gives."""

    version = ""

    def now(self) -> None:
        """No time: the steps have the times of the scans."""

    def identity(self) -> ClusterIdentity:
        """See Cluster."""
        own = super().identity()
        return replace(own, server_version=self.version or own.server_version)


class Recorder:
    """Records a scan in the store of each history, as a given version of Assay; `between` happens after all lists, before the end."""

    def __init__(self, histories: Iterable[History], assay: str, between: Callable[[], None]) -> None:
        self._stores = [history.store for history in histories]
        self._assay = assay
        self._between = between

    def now(self) -> None:
        """No time: the steps have the times of the scans."""

    def begin(self, start: ScanStart) -> None:
        """See Store."""
        for store in self._stores:
            store.begin(replace(start, tool_version=self._assay or start.tool_version))

    def pack(self, result: PageResult) -> PageResult:
        """See Store: what is packed is the same for each of them."""
        return self._stores[0].pack(result)

    def beat(self, scan_id: str) -> None:
        """See Store."""
        for store in self._stores:
            store.beat(scan_id)

    def write_page(self, scan_id: str, result: PageResult) -> None:
        """See Store."""
        for store in self._stores:
            store.write_page(scan_id, result)

    def write_controllers(self, scan_id: str, kind: Kind, objects: bytes) -> None:
        """See Store."""
        for store in self._stores:
            store.write_controllers(scan_id, kind, objects)

    def workload_kinds(self, scan_id: str) -> frozenset[GroupKind]:
        """See Store."""
        [kinds] = {store.workload_kinds(scan_id) for store in self._stores}
        return kinds

    def finish(self, scan_id: str, end: ScanEnd) -> Scan:
        """See Store."""
        self._between()
        first, *others = [store.finish(scan_id, end) for store in self._stores]
        assert all(other == first for other in others)
        return first


class Player:
    """Plays the steps against one cluster, and records each scan of it in every database."""

    def __init__(self, cluster: GoldenCluster, now: datetime) -> None:
        """Start with a moment before the first scan."""
        self._cluster = cluster
        self._assay = self._server = ""
        self._now = now
        self.histories: dict[str, History] = {}

    def clock(self) -> datetime:
        """The moment of the current step."""
        return self._now

    def play(self, begin: Sequence[Fields], steps: Sequence[Step]) -> None:
        """Fill the cluster and play all steps. A step that names another one under `during` is overtaken by it."""
        for act in begin:
            self._cluster.do(act)
        overtaken_by = {step.during: step for step in steps if step.during}
        for step in steps:
            if step.step in overtaken_by:
                self._scan(overtaken_by[step.step], partial(self._play, step))
            elif not step.during:
                self._play(step)

    def _play(self, step: Step) -> None:
        for act in step.do:
            self._cluster.do(act)
        self._assay, self._server = step.assay or self._assay, step.server or self._server
        self._scan(step)

    def _scan(self, step: Step, between: Callable[[], None] = lambda: None) -> None:
        kubeconfig = str(self._cluster.server.kubeconfig_for(SCANNER))
        cluster = View(LiveCluster(kubeconfig=kubeconfig), NAME)
        cluster.version = self._server
        if step.restores:
            self._restore(cluster.identity())
        moments = iter([step.at - FIVE_MINUTES])
        self._now = step.at
        store = Recorder(self.histories.values(), self._assay, between)
        scope = Scope(namespaces=(step.flags["namespace"],) if step.flags else ())
        name = f"step-{step.step}"
        run(cluster, store, Options(scope), scan_id=name, clock=lambda: next(moments, step.at))
        for history in self.histories.values():
            record = history.store.read_scan(name)
            history.records[step.step], history.logs[step.step] = record, log_of(record)

    def _restore(self, identity: ClusterIdentity) -> None:
        for history in self.histories.values():
            history.refused = refusal(history.store, identity)
            history.store.register(identity, restored=True)


def refusal(store: SqlStore, identity: ClusterIdentity) -> str:
    """The reason why a name is refused; empty if it is not."""
    try:
        store.register(identity)
    except UsageError as error:
        return str(error)
    return ""


def log_of(record: StoredScan) -> list[str]:
    """What a scan recorded, in the form of the expected log."""
    names = {each.stored.problem: each.stored.finding.outcome.message for each in record.findings_by_problem()}
    lines = [f"scan {record.scan.state}, {record.unchecked} unchecked"]
    lines += [f"finding {line}" for stored in record.findings() if (line := finding_line(stored))]
    lines += [f"finding {finding_line(stored)}" for stored in record.resolved_findings()]
    lines += [
        f"problem {line}"
        for problem in problems(record.findings_by_problem())
        if (line := problem_line(problem, names[problem.id]))
    ]
    return sorted(lines)


def finding_line(stored: StoredFinding) -> str:
    """One line about a finding that the scan changed; empty for another one."""
    finding = stored.finding
    if stored.cause is None:
        return ""
    event = stored.status if stored.status != "open" else "continued" if stored.continues else "changed"
    binding = f"@{finding.binding}" if finding.binding != finding.policy else ""
    place = f"{finding.outcome.message}{binding} {finding.kind} {finding.namespace}/{finding.name}"
    return " ".join(filter(None, (event, place, stored.resolution, "by", shown(stored.cause))))


def problem_line(problem: Problem, name: str) -> str:
    """One line about a problem that began or ended with the scan; empty for another one."""
    if problem.status == "open":
        return ""
    workload = f"{problem.workload.kind} {problem.workload.namespace}/{problem.workload.name}"
    return " ".join(filter(None, (problem.status, name, workload, problem.resolution)))


def shown(cause: Cause) -> str:
    """A cause as the steps have it."""
    return "+".join(kind.value for kind in cause.kinds)


STEPS = golden_history()[1]


@pytest.fixture(scope="module")
def histories(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, History]]:
    """All steps, played once for all databases."""
    begin, steps = golden_history()
    folder = tmp_path_factory.mktemp("golden")
    with ExitStack() as kept:
        player = Player(GoldenCluster(assets, folder, kept), steps[0].at)
        for kind in KINDS if POSTGRES.place() else KINDS[:1]:
            url = kept.enter_context(prepared_database(kind, folder))
            player.histories[kind] = History(url, kept.enter_context(open_store(url, player.clock)))
        player.play(begin, steps)
        yield player.histories


@pytest.fixture(params=KINDS)
def history(histories: dict[str, History], request: pytest.FixtureRequest) -> History:
    """The history in one database."""
    if request.param not in histories:
        POSTGRES.require()
    return histories[request.param]


def test_every_scan_records_what_was_expected(history: History) -> None:
    """No false new finding or problem, no false fix, and the cause of every change."""
    differences = [
        line
        for step in STEPS
        for line in unified_diff(step.log, history.logs[step.step], f"step {step.step}", step.title, n=0, lineterm="")
    ]
    assert [] == differences, "\n".join(differences)


def test_no_problem_is_new_twice_or_reopened_while_it_is_open(history: History) -> None:
    """Counted over all scans, with any log of each of them."""
    known: dict[str, str] = {}
    for step in STEPS:
        for problem in problems(history.records[step.step].findings_by_problem()):
            before = known.get(problem.id, "")
            expected = {"": "new", "resolved": "reopened"}.get(before, "open")
            assert problem.status in {expected, "resolved"}, (step.title, before, problem)
            known[problem.id] = problem.status


def test_only_corrected_objects_are_fixes(history: History) -> None:
    """Four objects and a workload were corrected while all else that decides stayed; those are counted for the time to fix."""
    fixed = [step.step for step in STEPS if any(line.endswith(" fixed") for line in history.logs[step.step])]
    assert ([5, 14, 23, 25, 29], 5) == (fixed, count(history.url, "fixes"))


def test_first_seen_never_moves(history: History) -> None:
    """Neither that of a problem nor that of a finding, also of one that continues another."""
    first: dict[str, datetime] = {}
    for step in STEPS:
        record = history.records[step.step]
        for stored in record.findings():
            assert stored.first_seen == first.setdefault(stored.id, first.get(stored.continues, stored.first_seen))
        for problem in problems(record.findings_by_problem()):
            assert problem.first_seen == first.setdefault(problem.id, problem.first_seen)


def test_opened_at_is_the_beginning_of_the_episode(history: History) -> None:
    """It stays until the finding, or the last finding of the problem, is resolved."""
    opened: dict[str, datetime] = {}
    for step in STEPS:
        record = history.records[step.step]
        for stored in record.findings():
            if stored.continues:
                opened[stored.id] = opened[stored.continues]
            elif stored.status != "open":
                opened[stored.id] = step.at
            assert opened[stored.id] == stored.opened_at
        for problem in problems(record.findings_by_problem()):
            if problem.status in {"new", "reopened"}:
                opened[problem.id] = step.at
            assert opened[problem.id] == problem.opened_at


def test_a_report_of_a_day_stays_as_it_was(history: History) -> None:
    """After 40 scans, each record says what it said when its scan had ended."""
    again = {step.step: log_of(history.store.read_scan(f"step-{step.step}")) for step in STEPS}
    assert history.logs == again


def test_the_name_of_a_restored_cluster_has_to_be_confirmed(history: History) -> None:
    """The cluster has another UID, so that it could be another cluster."""
    assert "restored or built anew, add --restored-cluster to continue its history" in history.refused


def test_the_database_is_whole(history: History) -> None:
    """`assay db check` finds no problem."""
    assert [] == check_database(history.url, all_words=True)


def test_the_databases_agree(histories: dict[str, History]) -> None:
    """The same problems and findings have the same ids in each of them."""
    ids = {
        kind: [
            sorted((stored.id, stored.problem) for stored in history.records[step.step].findings()) for step in STEPS
        ]
        for kind, history in histories.items()
    }
    assert all(each == ids[KINDS[0]] for each in ids.values())
