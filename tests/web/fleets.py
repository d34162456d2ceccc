"""A database with several clusters: one with two scans and a waiver, one with other rules, and some that went silent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from scanner.model.json import JsonObject
from scanner.model.outcome import Finding, Gap, GapKind
from scanner.model.policy import Binding, Policy
from scanner.model.scans.scan import ClusterIdentity, CoverageState, PageResult, ScanEnd, ScanStart, ScanState
from scanner.model.waiver import WaiverSet
from scanner.store import SqlStore, open_store
from tests.posture.waivers import waiver
from tests.store.made import CHECK, Round, binding, finding, listed, policy

NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)
"""The time at which the pages are read."""
STRICT: JsonObject = {
    "metadata": {"name": "replicas", "annotations": {"assay.dev/severity": "high"}},
    "spec": {"validations": [{"expression": CHECK.expression}]},
}
LOOSE: JsonObject = {**STRICT, "spec": {"validations": [{"expression": "object.spec.replicas <= 50"}]}}
REPLICAS = policy("replicas", manifest=STRICT, digest="a" * 64)
LOOSE_REPLICAS = policy("replicas", manifest=LOOSE, digest="b" * 64)
LABELS = policy("labels", digest="c" * 64)
DENY = binding("replicas", digest="d" * 64, manifest={"spec": {"validationActions": ["Deny"]}})
AUDIT = binding("replicas", digest="e" * 64, manifest={"spec": {"validationActions": ["Audit"]}}, actions=("Audit",))
WAIVED = "waived-app"
A, B, C = finding("web"), finding("api"), finding(WAIVED)
NEW = finding("cart", policy="labels", namespace="team-a")
MILD = finding("web", denies=False, actions=("Audit",))


class Clock:
    """A clock that the filling of the database sets."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        """The time."""
        return self.now


@dataclass(frozen=True)
class Scanned:
    """A scan of a cluster that began at a moment, five minutes before its end."""

    cluster: str
    began: datetime
    findings: tuple[Finding, ...] = ()
    policies: tuple[Policy, ...] = (REPLICAS, LABELS)
    bindings: tuple[Binding, ...] = (DENY, binding("labels", digest="f" * 64))
    state: ScanState = ScanState.COMPLETE
    gaps: tuple[Gap, ...] = ()
    digest: str = "1" * 64
    waivers: WaiverSet | None = None
    made: Round = field(default_factory=Round)

    @property
    def id(self) -> str:
        """The id of the scan."""
        return f"{self.began:%Y%m%dT%H%M%SZ}-{self.cluster}"

    def start(self) -> ScanStart:
        """The start of the scan."""
        return replace(
            self.made.start(1),
            id=self.id,
            cluster=ClusterIdentity(self.cluster, f"uid-{self.cluster}", "v1.36.0"),
            started_at=self.began,
            policies=self.policies,
            bindings=self.bindings,
            policy_set_digest=self.digest,
            waivers=self.waivers,
        )

    def pages(self) -> Iterable[PageResult]:
        """The pages of its findings."""
        return replace(self.made, findings=self.findings).pages()

    def end(self) -> ScanEnd:
        """The end of the scan."""
        coverage = (
            self.made.coverage if not self.gaps else (listed("Deployment"), listed("Pod", CoverageState.FORBIDDEN))
        )
        ended = self.began + timedelta(minutes=5)
        keys = tuple(each.key for each in self.policies)
        return replace(
            self.made.end(1),
            finished_at=ended,
            state=self.state,
            coverage=coverage,
            gaps=self.gaps,
            evaluated_policies=keys,
            read_languages=("ValidatingAdmissionPolicy",),
        )

    def record(self, store: SqlStore, clock: Clock) -> None:
        """Store the scan with its run."""
        clock.now = self.began
        run = store.begin_run(self.cluster, ["assay", "scan"])
        store.begin_scan_of_run(run, self.id)
        store.begin(self.start())
        for page in self.pages():
            store.write_page(self.id, page)
        clock.now = self.began + timedelta(minutes=5)
        store.finish(self.id, self.end())
        code = {ScanState.COMPLETE: 0, ScanState.INCOMPLETE: 3}.get(self.state, 4)
        store.end_run(run, exit_code=code, reason="" if code == 0 else "not everything was scanned", scan_id=self.id)


GAP = Gap(GapKind.LIST, "v1/Pod", "forbidden for the scanner")
PROD = (
    Scanned(
        "prod", NOW - timedelta(days=2), (A, C), waivers=WaiverSet((waiver("w", policy="replicas", object=WAIVED),))
    ),
    Scanned("prod", NOW - timedelta(hours=10), (A, B, C, NEW)),
)
STAGE = Scanned("stage", NOW - timedelta(hours=9), (MILD,), (LOOSE_REPLICAS,), (AUDIT,), digest="2" * 64)
SILENT = Scanned("silent", NOW - timedelta(days=10), (A,))
PARTIAL = (
    Scanned("partial", NOW - timedelta(days=1), (A,)),
    Scanned("partial", NOW - timedelta(hours=2), (A,), state=ScanState.INCOMPLETE, gaps=(GAP,)),
)


def fill(url: str) -> None:
    """Store all scans, a scan that failed, and a run that began no scan."""
    clock = Clock()
    with open_store(url, clock) as store:
        for scanned in (SILENT, PROD[0], PARTIAL[0], PROD[1], STAGE, PARTIAL[1]):
            scanned.record(store, clock)
        failed = Scanned("failed", NOW - timedelta(hours=1), state=ScanState.FAILED)
        failed.record(store, clock)
        clock.now = NOW - timedelta(minutes=30)
        run = store.begin_run("unreachable", ["assay", "scan"])
        store.end_run(run, exit_code=4, reason="the API server does not answer")
