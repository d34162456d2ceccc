"""Small scans for tests."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from scanner.audit import object_sets, population
from scanner.audit.object_sets import InvocationKey, ObjectSets, SetKey
from scanner.model.json import JsonObject
from scanner.model.outcome import Check, CheckKind, Errored, Finding, Gap, Violated
from scanner.model.policy import VALIDATING, Binding, Policy
from scanner.model.population import PopulationMember
from scanner.model.resource import Kind
from scanner.model.scans.scan import (
    ClusterIdentity,
    Coverage,
    CoverageState,
    ObjectCount,
    PageResult,
    Scan,
    ScanEnd,
    ScanStart,
    ScanState,
    Scope,
)
from scanner.model.scans.stored_finding import StoredFinding
from scanner.model.scans.tally import OutcomeName, TallyKey
from scanner.store import SqlStore

DAWN = datetime(2026, 3, 1, 6, tzinfo=UTC)
CHECK = Check(CheckKind.VALIDATION, 0, "object.spec.replicas <= 5")
EVERYTHING = Scope()
PROD = ClusterIdentity("prod", "6d1c", "v1.36.0")


def clock() -> datetime:
    """The moment of the heartbeats of these scans."""
    return DAWN


def finding(
    name: str, *, kind: str = "Deployment", namespace: str = "shop", policy: str = "replicas", **more: object
) -> Finding:
    """A finding about an object; the fingerprint follows from policy, binding, kind, namespace and name."""
    made = Finding(
        fingerprint="",
        policy=policy,
        binding=f"{policy}-binding",
        param_namespace="",
        param_name="",
        check=CHECK,
        outcome=Violated("too many replicas"),
        api_version="v1" if kind in {"Pod", "Namespace"} else "apps/v1",
        kind=kind,
        namespace=namespace,
        name=name,
        uid=f"uid-{namespace}-{name}",
        resource_version="1",
        operation="CREATE",
        actions=("Deny", "Audit"),
        denies=True,
    )
    made = made._replace(**more)  # type: ignore[arg-type]
    identity = f"{made.policy}/{made.binding}/{made.kind}/{made.namespace}/{made.name}"
    return made._replace(fingerprint=hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest())


def policy(name: str, **more: object) -> Policy:
    """A policy of that name with a single check."""
    manifest: JsonObject = {"metadata": {"name": name}, "spec": {"validations": [{"expression": CHECK.expression}]}}
    made = Policy(VALIDATING, name, None, None, (), (), (), (), "Fail", manifest, f"digest of {name}")
    return replace(made, **more)  # type: ignore[arg-type]


def binding(policy_name: str, **more: object) -> Binding:
    """The binding of a policy."""
    made = Binding(VALIDATING, f"{policy_name}-binding", policy_name, None, None, ("Deny", "Audit"), {}, policy_name)
    return replace(made, **more)  # type: ignore[arg-type]


def listed(kind: str, state: CoverageState = CoverageState.LISTED) -> Coverage:
    """The coverage of a kind that was listed."""
    return Coverage("v1" if kind in {"Pod", "Namespace"} else "apps/v1", kind, state, objects=9, pages=1)


@dataclass(frozen=True)
class Round:
    """One scan from `begin` to `finish`; by default it lists everything and finds nothing."""

    findings: tuple[Finding, ...] = ()
    scope: Scope = EVERYTHING
    policies: tuple[str, ...] = ("replicas", "labels")
    bound: tuple[str, ...] = ("replicas", "labels")
    coverage: tuple[Coverage, ...] = (listed("Deployment"), listed("Pod"))
    gaps: tuple[Gap, ...] = ()
    state: ScanState = ScanState.COMPLETE
    cluster: ClusterIdentity = PROD
    counts: tuple[ObjectCount, ...] = ()

    def start(self, number: int) -> ScanStart:
        """The start of scan `number`; one scan is made each day."""
        policies = tuple(policy(name) for name in self.policies)
        bindings = tuple(binding(name) for name in self.bound)
        return ScanStart(f"scan-{number}", self.cluster, began(number), self.scope, "0.1.0", policies, bindings)

    def page(self) -> PageResult:
        """The only page, of a scan whose findings concern objects of one kind."""
        [page] = self.pages()
        return page

    def pages(self) -> list[PageResult]:
        """A page for each kind of object with findings, or an empty one."""
        kinds = sorted({(item.api_version, item.kind) for item in self.findings}) or [("apps/v1", "Deployment")]
        return [
            page_of(tuple(item for item in self.findings if (item.api_version, item.kind) == kind), *kind)
            for kind in kinds
        ]

    def end(self, number: int) -> ScanEnd:
        """The end of the scan."""
        return ScanEnd(
            ended(number),
            self.state,
            self.coverage,
            (),
            self.gaps,
            tuple((VALIDATING, name) for name in self.policies),
            counts=self.counts,
        )

    def record(self, store: SqlStore, number: int) -> Scan:
        """Store the whole scan."""
        store.begin(self.start(number))
        for page in self.pages():
            store.write_page(f"scan-{number}", page)
        return store.finish(f"scan-{number}", self.end(number))


def page_of(findings: tuple[Finding, ...], api_version: str, kind: str) -> PageResult:
    """A page of the objects that these findings concern, and of no other object."""
    tallies: dict[TallyKey, int] = {}
    sets: dict[SetKey, int] = {}
    places = {identity: place for place, identity in enumerate(dict.fromkeys(map(identity_of, findings)))}
    for item in findings:
        tallies[tally(item)] = tallies.get(tally(item), 0) + 1
        key = SetKey(InvocationKey(item.language, item.policy, item.binding), ((item.check, ""),))
        sets[key] = sets.get(key, 0) | 1 << places[identity_of(item)]
    group, _, version = api_version.rpartition("/")
    listed_kind = Kind(group, version, kind, plural="", namespaced=True)
    return PageResult(
        api_version,
        kind,
        1,
        len(places),
        len(places),
        findings,
        tallies,
        {(VALIDATING, "replicas", "replicas-binding"): 9},
        examined=population.pack([PopulationMember(listed_kind, *identity) for identity in places]),
        sets=object_sets.pack(ObjectSets(len(places), sets)),
        places=tuple(places[identity_of(item)] for item in findings),
    )


def identity_of(item: Finding) -> tuple[str, str, str]:
    """The identity of the object of a finding."""
    return item.namespace, item.name, item.uid


def began(number: int) -> datetime:
    """The start of scan `number`."""
    return DAWN + timedelta(days=number)


def ended(number: int) -> datetime:
    """The end of scan `number`."""
    return began(number) + timedelta(minutes=5)


def tally(item: Finding) -> TallyKey:
    """The key under which a finding is counted."""
    return TallyKey(
        policy=item.policy,
        binding=item.binding,
        param_namespace=item.param_namespace,
        param_name=item.param_name,
        check=item.check,
        api_version=item.api_version,
        kind=item.kind,
        namespace=item.namespace,
        outcome=OutcomeName.ERRORED_DENY if isinstance(item.outcome, Errored) else OutcomeName.VIOLATED,
        language=item.language,
    )


def statuses(findings: Iterable[StoredFinding]) -> dict[str, str]:
    """The status of the findings by name of the object."""
    return {item.finding.name: item.status for item in findings}


def snapshot(store: SqlStore, number: int) -> tuple[Any, ...]:
    """All data of a record."""
    record = store.read_scan(f"scan-{number}")
    told_once = (record.scan, record.previous, record.policies, record.coverage, record.health, record.gaps)
    return (*told_once, record.tallies, record.unchecked, list(record.findings()), list(record.resolved_findings()))
