"""Whatever happens to a cluster, its history is that of a replay that keeps everything, and an old report stays as it was.

`REPLAYS` is the number of histories; `make nightly` sets it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from difflib import unified_diff
from io import BytesIO
from itertools import count
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scanner.model.outcome import Finding
from scanner.model.population import GroupKind
from scanner.model.resource import Kind
from scanner.model.scan import (
    ClusterIdentity,
    CoverageState,
    PageResult,
    Scan,
    ScanEnd,
    ScanRecord,
    ScanStart,
    Scope,
    StoredFinding,
)
from scanner.posture.problem_rows import problems
from scanner.posture.settings import DEFAULT_SETTINGS
from scanner.posture.triage import Triage
from scanner.posture.worst_problems import problems_of
from scanner.report import FORMATS
from scanner.report.document import document_of
from scanner.scan.options import Options
from scanner.scan.run import run
from scanner.store import SqlStore
from scanner.store.integrity import check_database
from tests.documents import DEPLOYMENTS, LIMITS, Document, binding, namespace, pod, policy, rule, thing
from tests.scan.fakes import FakeCluster, forbidden
from tests.store.made import DAWN
from tests.store.replay import Bound, Expected, Item, Kept, Problem, Replay, Rule

SPACES = ("shop", "bank")
PLURALS = {"Pod": "pods", "Deployment": "deployments"}
PARAM_KIND = {"apiVersion": "example.com/v1", "kind": "Limit"}
EXPRESSIONS = {
    "plain": (
        "object.spec.x > 1",
        "object.spec.x  >  1",
        "object.spec.x > 2",
        "object.spec.x != 3",
        "object.spec.x != 3 // three",
        "namespaceObject.metadata.labels.env != 'prod'",
    ),
    "limited": (
        "object.spec.x <= int(params.data.most)",
        "object.spec.x<=int(params.data.most)",
        "object.spec.x < int(params.data.most)",
        "object.spec.x != 2",
    ),
}
NAMES = ("a", "b")
FIRST = tuple(
    Item(kind, space, name, f"uid-{kind}-{space}-{name}", 1, x, owner)
    for kind, space, name, x, owner in (
        ("Pod", "shop", "a", 3, "a"),
        ("Pod", "shop", "b", 3, "a"),
        ("Pod", "bank", "a", 3, ""),
        ("Deployment", "shop", "a", 3, ""),
        ("Deployment", "bank", "b", 1, ""),
    )
)
"""The objects at first. The Pods of the Deployment a share its workload."""


@dataclass
class World:
    """The cluster as it is now."""

    items: dict[tuple[str, str, str], Item] = field(
        default_factory=lambda: {(item.kind, item.namespace, item.name): item for item in FIRST}
    )
    policies: dict[str, Rule] = field(
        default_factory=lambda: {
            "plain": Rule(("object.spec.x > 1", "object.spec.x != 3"), ("Pod",)),
            "limited": Rule(("object.spec.x <= int(params.data.most)",), ("Pod", "Deployment")),
        }
    )
    bindings: dict[tuple[str, str], Bound] = field(
        default_factory=lambda: {
            (name, "a"): Bound(with_params=name == "limited", of_production=False) for name in EXPRESSIONS
        }
    )
    params: dict[str, str] = field(default_factory=lambda: {"a": "2"})
    environments: dict[str, str] = field(default_factory=lambda: dict.fromkeys(SPACES, "prod"))
    server: str = "v1.36.0"
    assay: str = "1.0"
    uids: Iterator[int] = field(default_factory=lambda: count(1))

    def do(self, verb: str, *arguments: Any) -> None:
        """Change the cluster."""
        getattr(self, verb)(*arguments)

    def store(self, kind: str, space: str, name: str, x: int, owner: str) -> None:
        """Create or update an object."""
        own = owner if kind == "Pod" else ""
        old = self.items.get((kind, space, name))
        new = Item(kind, space, name, f"uid-{next(self.uids)}", 1, x, own)
        if old is not None:
            new = old._replace(version=old.version + 1, x=x, owner=own)
        self.items[kind, space, name] = new

    def remove(self, kind: str, space: str, name: str) -> None:
        """Delete an object."""
        self.items.pop((kind, space, name), None)

    def recreate(self, kind: str, space: str, name: str) -> None:
        """Delete an object, and create another one of the same name."""
        if old := self.items.pop((kind, space, name), None):
            self.store(kind, space, name, old.x, old.owner)

    def replace(self, space: str, name: str, other: str) -> None:
        """Delete a Pod, and create one of another name for the same controller."""
        if old := self.items.pop(("Pod", space, name), None):
            self.store("Pod", space, other, old.x, old.owner)

    def write(self, name: str, places: list[int], kinds: tuple[str, ...]) -> None:
        """Create or update a policy."""
        texts = EXPRESSIONS[name]
        self.policies[name] = Rule(tuple(texts[place % len(texts)] for place in places), kinds)

    def edit(self, name: str, index: int, place: int) -> None:
        """Write one expression of a policy anew."""
        if old := self.policies.get(name):
            texts = list(old.expressions)
            texts[index % len(texts)] = EXPRESSIONS[name][place % len(EXPRESSIONS[name])]
            self.policies[name] = Rule(tuple(texts), old.kinds)

    def insert(self, name: str, index: int, place: int) -> None:
        """Insert an expression into a policy."""
        if old := self.policies.get(name):
            texts = list(old.expressions)
            texts.insert(index, EXPRESSIONS[name][place % len(EXPRESSIONS[name])])
            self.policies[name] = Rule(tuple(texts), old.kinds)

    def forget(self, name: str) -> None:
        """Delete a policy."""
        self.policies.pop(name, None)

    def bind(self, name: str, own: str, of_production: bool) -> None:  # noqa: FBT001 -- drawn
        """Create or update a binding."""
        self.bindings[name, own] = Bound(name == "limited", of_production)

    def act(self, name: str, own: str, denies: bool) -> None:  # noqa: FBT001 -- drawn
        """Change the action of a binding."""
        if old := self.bindings.get((name, own)):
            self.bindings[name, own] = old._replace(denies=denies)

    def demand(self, own: str, demands: bool) -> None:  # noqa: FBT001 -- drawn
        """Change whether missing params are an error."""
        if old := self.bindings.get(("limited", own)):
            self.bindings["limited", own] = old._replace(demands=demands)

    def unbind(self, name: str, own: str) -> None:
        """Delete a binding."""
        self.bindings.pop((name, own), None)

    def rename(self, name: str, own: str, other: str) -> None:
        """Rename a binding."""
        if old := self.bindings.pop((name, own), None):
            self.bindings[name, other] = old

    def limit(self, name: str, most: str) -> None:
        """Create or update a param."""
        self.params[name] = most

    def unlimit(self, name: str) -> None:
        """Delete a param."""
        self.params.pop(name, None)

    def rename_param(self, name: str, other: str) -> None:
        """Rename a param."""
        if old := self.params.pop(name, None):
            self.params[other] = old

    def label(self, space: str, environment: str) -> None:
        """Change a label of a namespace."""
        self.environments[space] = environment

    def upgrade(self, part: str, version: str) -> None:
        """Change the version of the server or of Assay."""
        setattr(self, part, version)

    def documents(self) -> Iterator[Document]:
        """The manifests."""
        yield from (namespace(name, env=env) for name, env in self.environments.items())
        yield from (thing(LIMITS, name, data={"most": most}) for name, most in self.params.items())
        for name, own in self.policies.items():
            params = {"paramKind": PARAM_KIND} if name == "limited" else {}
            rules = [rule("pods")] * ("Pod" in own.kinds) + [rule("deployments", group="apps")] * (
                "Deployment" in own.kinds
            )
            yield policy(name, *own.expressions, matchConstraints={"resourceRules": rules}, **params)
        for (name, own_name), bound in self.bindings.items():
            spec: Document = {}
            if bound.with_params:
                spec["paramRef"] = {"selector": {}, "parameterNotFoundAction": "Deny" if bound.demands else "Allow"}
            if bound.of_production:
                spec["matchResources"] = {"namespaceSelector": {"matchLabels": {"env": "prod"}}}
            yield binding(f"{name}-{own_name}", name, "Deny" if bound.denies else "Audit", **spec)
        yield from map(manifest, self.items.values())


def manifest(item: Item) -> Document:
    """The manifest of an object."""
    made = pod(item.name, item.namespace) if item.kind == "Pod" else thing(DEPLOYMENTS, item.name, item.namespace)
    metadata = {**made["metadata"], "uid": item.uid, "resourceVersion": str(item.version)}
    if item.owner:
        owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": item.owner, "uid": "uid-of-owner"}
        metadata["ownerReferences"] = [{**owner, "controller": True}]
    return {**made, "metadata": metadata, "spec": {"x": item.x}}


@dataclass
class Versioned(FakeCluster):
    """A cluster with a name and a version of its own."""

    name: str = ""
    version: str = ""

    def identity(self) -> ClusterIdentity:
        return ClusterIdentity(self.name, self.name, self.version, self.source)


class Tee:
    """Records a scan in a store, and keeps what it recorded."""

    def __init__(self, store: SqlStore, assay: str) -> None:
        self._store = store
        self._assay = assay
        self.findings: dict[str, Finding] = {}
        self.ends: list[ScanEnd] = []

    def now(self) -> None:
        return None

    def begin(self, start: ScanStart) -> None:
        self._store.begin(replace(start, tool_version=self._assay))

    def packed(self, result: PageResult) -> PageResult:
        return result

    def beat(self, scan_id: str) -> None:
        self._store.beat(scan_id)

    def page(self, scan_id: str, result: PageResult) -> None:
        self.findings |= {finding.fingerprint[:12]: finding for finding in result.findings}
        self._store.page(scan_id, result)

    def controllers(self, scan_id: str, kind: Kind, objects: bytes) -> None:
        self._store.controllers(scan_id, kind, objects)

    def workload_kinds(self, scan_id: str) -> frozenset[GroupKind]:
        return self._store.workload_kinds(scan_id)

    def finish(self, scan_id: str, end: ScanEnd) -> Scan:
        self.ends.append(end)
        return self._store.finish(scan_id, end)


kinds = st.sampled_from(["Pod", "Pod", "Pod", "Deployment"])
spaces, names, rules = st.sampled_from(SPACES), st.sampled_from(NAMES), st.sampled_from(list(EXPRESSIONS))
places, indexes = st.integers(0, 5), st.integers(0, 2)
matched = st.sampled_from([("Pod",), ("Pod", "Deployment")])
OFTEN: tuple[st.SearchStrategy[tuple[Any, ...]], ...] = (
    st.tuples(st.just("store"), kinds, spaces, names, st.sampled_from([1, 3]), st.sampled_from(["", "a", "a"])),
    st.tuples(st.just("recreate"), kinds, spaces, names),
    st.tuples(st.just("replace"), spaces, names, names),
    st.tuples(st.just("edit"), rules, indexes, places),
    st.tuples(st.just("insert"), rules, indexes, places),
    st.tuples(st.just("rename"), rules, names, names),
    st.tuples(st.just("rename_param"), names, names),
    st.tuples(st.just("limit"), names, st.sampled_from(["1", "2", "3"])),
    st.tuples(st.just("label"), spaces, st.sampled_from(["prod", "test"])),
    st.tuples(st.just("act"), rules, names, st.booleans()),
    st.tuples(st.just("demand"), names, st.booleans()),
    st.tuples(st.just("unlimit"), names),
)
SELDOM: tuple[st.SearchStrategy[tuple[Any, ...]], ...] = (
    st.tuples(st.just("remove"), kinds, spaces, names),
    st.tuples(st.just("write"), rules, st.lists(places, min_size=1, max_size=3), matched),
    st.tuples(st.just("forget"), rules),
    st.tuples(st.just("bind"), rules, names, st.booleans()),
    st.tuples(st.just("unbind"), rules, names),
    st.sampled_from([("upgrade", "server", "v1.36.1"), ("upgrade", "server", "v1.37.0"), ("upgrade", "assay", "2.0")]),
)
acts = st.one_of(*OFTEN, *OFTEN, *SELDOM)
MOSTLY = 12


@dataclass(frozen=True)
class Question:
    """How a scan is made; it may not list the kinds that are `denied`."""

    namespaces: tuple[str, ...] = ()
    operation: str = "auto"
    denied: tuple[str, ...] = ()


questions = st.sampled_from(
    [Question()] * MOSTLY
    + [Question(namespaces=("shop",)), Question(operation="update"), Question(denied=("Pod",))]
    + [Question(denied=("Deployment",))]
)
steps = st.tuples(st.lists(acts, min_size=1, max_size=2), questions)
histories = st.lists(steps, min_size=4, max_size=7)
NUMBERS = count(1)
SETTINGS = settings(
    max_examples=int(os.environ.get("REPLAYS", "15")),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@given(history=histories)
@SETTINGS
def test_a_history_is_that_of_a_replay(store: SqlStore, url: str, history: list[tuple[Any, Question]]) -> None:
    """Intervals, clocks, continuations, resolutions and causes of findings, and problems; reports of a date do not change."""
    name, world, replay, reports = f"cluster-{next(NUMBERS)}", World(), Replay(), {}
    known: dict[str, Problem] = {}
    for number, (changes, question) in enumerate([((), Question()), *history]):
        for verb, *arguments in changes:
            world.do(verb, *arguments)
        at = DAWN + timedelta(hours=number)
        record, kept = scan(store, world, question, name, at)
        expected = replay.scan(kept)
        assert [] == list(differences(facts_of(expected), facts_of(recorded(record, expected, known))))
        reports[at] = report(record)
    again = {at: report(store.record(store.scan_at(at, name).id)) for at in reports}
    assert [] == [line for at in reports for line in unified_diff(reports[at], again[at], n=0)]
    assert [] == check_database(url)


def scan(store: SqlStore, world: World, question: Question, name: str, at: datetime) -> tuple[ScanRecord, Kept]:
    """Scan the cluster as it is now. Returns the record, and everything that decided."""
    refused = {PLURALS[kind]: forbidden(PLURALS[kind]) for kind in question.denied}
    cluster = Versioned(list(world.documents()), refused=refused, name=name, version=world.server)
    options = Options(Scope(namespaces=question.namespaces, operation=question.operation), allow_empty=True)
    tee = Tee(store, world.assay)
    scanned = run(cluster, tee, options, scan_id=f"{name} at {at:%H}", clock=lambda: at)
    [end] = tee.ends
    kept = Kept(
        at=at,
        policies=dict(world.policies),
        bindings={(policy, f"{policy}-{own}"): bound for (policy, own), bound in world.bindings.items()},
        params=dict(world.params),
        environments=dict(world.environments),
        items=tuple(world.items.values()),
        namespaces=question.namespaces,
        operation=question.operation,
        server=world.server,
        assay=world.assay,
        listed=frozenset(line.kind for line in end.coverage if line.state is CoverageState.LISTED),
        evaluated=frozenset(policy for _, policy in end.evaluated_policies),
        findings=tee.findings,
    )
    return store.record(scanned.id), kept


def check_problem_totals(record: ScanRecord) -> None:
    """Compare the numbers and the worst problems that the database finds with those of all findings."""
    triage = Triage(DEFAULT_SETTINGS, record)
    assert problems_of(replace(record, problem_totals=None), triage) == problems_of(record, triage)


def recorded(record: ScanRecord, expected: Expected, known: dict[str, Problem]) -> Expected:
    """What the store recorded. `known` are the problems of all scans by id: an id stands for one problem."""
    found = list(record.findings())
    ended = list(record.resolved())
    check_problem_totals(record)
    for stored in (*found, *ended):
        known.setdefault(stored.problem, expected.problem_of[stored.id])
    return Expected(
        findings={
            stored.id: (stored.status, stored.first_seen, stored.opened_at, cause(stored), stored.continues)
            for stored in found
        },
        resolved={
            stored.id: (stored.resolution, cause(stored), stored.first_seen, stored.opened_at) for stored in ended
        },
        problems={
            known[each.id]: (
                *(each.status, each.findings, each.resolution == "fixed"),
                *(each.first_seen, each.opened_at),
            )
            for each in problems(record.by_problem())
        },
        problem_of={stored.id: known[stored.problem] for stored in (*found, *ended)},
        unchecked=record.unchecked,
    )


def facts_of(log: Expected) -> dict[tuple[str, Any], Any]:
    """All facts of a log, by part and by finding or problem."""
    parts = {name: getattr(log, name) for name in ("findings", "resolved", "problems", "problem_of")}
    facts = {(name, key): value for name, part in parts.items() for key, value in part.items()}
    return {**facts, ("unchecked", ""): log.unchecked}


def differences(expected: Mapping[Any, Any], found: Mapping[Any, Any]) -> Iterator[str]:
    """One line for each fact that differs."""
    for key in sorted(expected.keys() | found.keys(), key=str):
        if expected.get(key) != found.get(key):
            yield f"{key}: expected {expected.get(key)}, found {found.get(key)}"


def cause(stored: StoredFinding) -> tuple[str, ...]:
    """The kinds of the cause of a change."""
    return tuple(kind.value for kind in stored.cause.kinds) if stored.cause else ()


def report(record: ScanRecord) -> list[str]:
    """The lines of the JSON report."""
    out = BytesIO()
    FORMATS["json"].render(document_of(record), out)
    return out.getvalue().decode().splitlines()
