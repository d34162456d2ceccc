"""A cluster that changes, and scans of it into a store that keep everything which decides about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import chain, count, repeat
from typing import Any

from scanner.model.outcome import Finding
from scanner.model.population import GroupKind
from scanner.model.resource import Kind
from scanner.model.scans.scan import ClusterIdentity, CoverageState, PageResult, Scan, ScanEnd, ScanStart, Scope
from scanner.model.scans.stored_scan import StoredScan
from scanner.scan.options import Options
from scanner.scan.run import run
from scanner.store import SqlStore
from tests.documents import DEPLOYMENTS, KINDS, LIMITS, PODS, Document, binding, namespace, policy, rule, thing
from tests.scan.fakes import FakeCluster, forbidden
from tests.store.kept_scan import GROUPS, Bound, Item, Kept, Owner, Rule

SPACES = ("shop", "bank")
REPLICA_SETS = Kind("apps", "v1", "ReplicaSet", "replicasets", namespaced=True)
WIDGETS = Kind("example.com", "v1", "Widget", "widgets", namespaced=True)
OF_ITEMS = {kind.kind: kind for kind in (PODS, REPLICA_SETS, DEPLOYMENTS, WIDGETS)}
PLURALS = {name: kind.plural for name, kind in OF_ITEMS.items()}
TEMPLATE = "1"
"""The template hash of every ReplicaSet, whose names end with it."""
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
    Item(kind, space, name, f"uid-{kind}-{space}-{name}", 1, x, owner, template)
    for kind, space, name, x, owner, template in (
        ("Widget", "shop", "a", 1, None, ""),
        ("Deployment", "shop", "a", 3, None, ""),
        ("Deployment", "bank", "b", 1, None, ""),
        ("ReplicaSet", "shop", "a-1", 1, Owner("Deployment", "a", "uid-Deployment-shop-a"), TEMPLATE),
        ("Pod", "shop", "a", 3, Owner("ReplicaSet", "a-1", "uid-ReplicaSet-shop-a-1"), TEMPLATE),
        ("Pod", "shop", "b", 3, Owner("ReplicaSet", "a-1", "uid-ReplicaSet-shop-a-1"), TEMPLATE),
        ("Pod", "bank", "a", 3, None, ""),
        ("Pod", "bank", "b", 3, Owner("Deployment", "b", "uid-of-another"), ""),
    )
)
"""The objects at first: the Pods of the Deployment a share its workload, and one Pod names a Deployment that is another now."""


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
    serves_widgets: bool = True
    resource_version: int = 100
    uids: Iterator[int] = field(default_factory=lambda: count(1))

    def do(self, verb: str, *arguments: Any) -> None:
        """Change the cluster."""
        self.resource_version += 1
        getattr(self, verb)(*arguments)

    def do_all(self, acts: Iterable[Sequence[Any]]) -> None:
        """Change the cluster by several acts."""
        for verb, *arguments in acts:
            self.do(verb, *arguments)

    def rest(self) -> None:
        """Change nothing."""

    def store(self, kind: str, space: str, name: str, x: int) -> None:
        """Create or update an object."""
        old = self.items.get((kind, space, name))
        new = Item(kind, space, name, f"uid-{next(self.uids)}", 1, x, None)
        if old is not None:
            new = old._replace(version=old.version + 1, x=x)
        self.items[kind, space, name] = new

    def own(self, space: str, kind: str, name: str, owner: tuple[str, str] | None) -> None:
        """Give an object another controller, which need not exist, or none."""
        old = self.items.get((kind, space, name))
        if old is None:
            return
        reference, template = None, TEMPLATE if kind == "ReplicaSet" else ""
        if owner is not None:
            above = self.items.get((owner[0], space, owner[1]))
            reference = Owner(*owner, above.uid if above else f"uid-of-no-{owner[0]}-{owner[1]}")
            template = TEMPLATE if "ReplicaSet" in (kind, owner[0]) else ""
        self._update(old._replace(owner=reference, template=template))

    def _update(self, item: Item) -> None:
        self.items[item.kind, item.namespace, item.name] = item._replace(version=item.version + 1)

    def remove(self, kind: str, space: str, name: str) -> None:
        """Delete an object; those below it keep their reference."""
        self.items.pop((kind, space, name), None)

    def orphan(self, kind: str, space: str, name: str) -> None:
        """Delete an object; those below it lose their reference."""
        if old := self.items.pop((kind, space, name), None):
            for item in [each for each in self.items.values() if each.owner and each.owner.uid == old.uid]:
                self._update(item._replace(owner=None))

    def cascade(self, kind: str, space: str, name: str) -> None:
        """Delete an object with all that is below it."""
        if old := self.items.get((kind, space, name)):
            for item in [old, *self._below(old)]:
                del self.items[item.kind, item.namespace, item.name]

    def scale(self, kind: str, space: str, name: str) -> None:
        """Delete the Pods below an object."""
        if old := self.items.get((kind, space, name)):
            for item in self._below(old):
                if item.kind == "Pod":
                    del self.items[item.kind, item.namespace, item.name]

    def rollout(self, space: str, name: str, x: int) -> None:
        """Replace the Pods below a Deployment by others."""
        if old := self.items.get(("Deployment", space, name)):
            self._update(old._replace(x=x))
            for item in self._below(old):
                if item.kind == "Pod":
                    del self.items[item.kind, item.namespace, item.name]
                    new = item._replace(name=f"{item.name[:1]}-{x}", uid=f"uid-{next(self.uids)}", version=1, x=x)
                    self.items[new.kind, space, new.name] = new

    def _below(self, item: Item) -> list[Item]:
        """All objects below an object."""
        own = [each for each in self.items.values() if each.owner and each.owner.uid == item.uid]
        return [*own, *(lower for each in own for lower in self._below(each))]

    def recreate(self, kind: str, space: str, name: str) -> None:
        """Delete an object, and create another one of the same name."""
        if old := self.items.get((kind, space, name)):
            self.items[kind, space, name] = old._replace(uid=f"uid-{next(self.uids)}", version=1)

    def replace(self, space: str, name: str, other: str) -> None:
        """Delete a Pod, and create one of another name for the same controller."""
        if old := self.items.pop(("Pod", space, name), None):
            self.items["Pod", space, other] = old._replace(name=other, uid=f"uid-{next(self.uids)}", version=1)

    def serve(self, serves: bool) -> None:  # noqa: FBT001 -- drawn
        """Create or delete the definition of Widgets; all of them go with it."""
        self.serves_widgets = serves
        if not serves:
            self.items = {key: item for key, item in self.items.items() if item.kind != "Widget"}

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
            rules = [rule(PLURALS[kind], group=GROUPS[kind]) for kind in own.kinds]
            yield policy(name, *own.expressions, matchConstraints={"resourceRules": rules}, **params)
        for (name, own_name), bound in self.bindings.items():
            spec: Document = {}
            if bound.with_params:
                spec["paramRef"] = {"selector": {}, "parameterNotFoundAction": "Deny" if bound.demands else "Allow"}
            if bound.of_production:
                spec["matchResources"] = {"namespaceSelector": {"matchLabels": {"env": "prod"}}}
            yield binding(f"{name}-{own_name}", name, "Deny" if bound.denies else "Audit", **spec)
        yield from map(manifest, self.items.values())

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds that the cluster serves."""
        return (*KINDS, REPLICA_SETS, *([WIDGETS] if self.serves_widgets else []))


def manifest(item: Item) -> Document:
    """The manifest of an object."""
    metadata: Document = {"uid": item.uid, "resourceVersion": str(item.version)}
    if item.template:
        metadata["labels"] = {"pod-template-hash": item.template}
    if item.owner is not None:
        kind, name, uid = item.owner
        api_version = OF_ITEMS[kind].api_version
        metadata["ownerReferences"] = [
            {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": True}
        ]
    return thing(OF_ITEMS[item.kind], item.name, item.namespace, metadata=metadata, spec={"x": item.x})


@dataclass
class Versioned(FakeCluster):
    """A cluster with a name and a version of its own."""

    name: str = ""
    version: str = ""

    def identity(self) -> ClusterIdentity:
        return ClusterIdentity(self.name, self.name, self.version, self.source)


class Tee:
    """Records a scan in a store, and keeps what it recorded. `meanwhile` happens after the lists, before the scan ends."""

    def __init__(self, store: SqlStore, assay: str, meanwhile: Callable[[], object]) -> None:
        self._store = store
        self._assay = assay
        self._meanwhile = meanwhile
        self.findings: dict[str, Finding] = {}
        self.ends: list[ScanEnd] = []

    def now(self) -> None:
        return None

    def begin(self, start: ScanStart) -> None:
        self._store.begin(replace(start, tool_version=self._assay))

    def pack(self, result: PageResult) -> PageResult:
        return result

    def beat(self, scan_id: str) -> None:
        self._store.beat(scan_id)

    def write_page(self, scan_id: str, result: PageResult) -> None:
        self.findings |= {finding.fingerprint[:12]: finding for finding in result.findings}
        self._store.write_page(scan_id, result)

    def write_controllers(self, scan_id: str, kind: Kind, objects: bytes) -> None:
        self._store.write_controllers(scan_id, kind, objects)

    def workload_kinds(self, scan_id: str) -> frozenset[GroupKind]:
        return self._store.workload_kinds(scan_id)

    def finish(self, scan_id: str, end: ScanEnd) -> Scan:
        self.ends.append(end)
        self._meanwhile()
        return self._store.finish(scan_id, end)


@dataclass(frozen=True)
class Question:
    """How a scan is made; it may not list the kinds that are `denied`."""

    namespaces: tuple[str, ...] = ()
    operation: str = "auto"
    denied: tuple[str, ...] = ()


def scan(
    store: SqlStore,
    world: World,
    question: Question,
    name: str,
    at: datetime,
    scan_id: str,
    *,
    takes: timedelta = timedelta(),
    meanwhile: Callable[[], object] = lambda: None,
) -> tuple[StoredScan, Kept]:
    """Scan the cluster as it is now, which `takes` some time. Returns the record, and everything that decided.

    `meanwhile` happens after the lists, before the scan ends; it may change the cluster and scan it.
    """
    lists = [place for kind in question.denied for place in (PLURALS[kind], f"metadata/{PLURALS[kind]}")]
    refused = {place: forbidden(place) for place in lists}
    documents = list(world.documents())
    cluster = Versioned(
        documents,
        kinds=world.kinds,
        refused=refused,
        name=name,
        version=world.server,
        resource_version=str(world.resource_version),
    )
    as_it_is = partial(
        Kept,
        at=at + takes,
        policies=dict(world.policies),
        bindings={(policy, f"{policy}-{own}"): bound for (policy, own), bound in world.bindings.items()},
        params=dict(world.params),
        environments=dict(world.environments),
        items=tuple(world.items.values()),
        namespaces=question.namespaces,
        operation=question.operation,
        server=world.server,
        assay=world.assay,
    )
    options = Options(Scope(namespaces=question.namespaces, operation=question.operation), allow_empty=True)
    tee = Tee(store, world.assay, meanwhile)
    moments = chain([at], repeat(at + takes))
    scanned = run(cluster, tee, options, scan_id=scan_id, clock=lambda: next(moments))
    [end] = tee.ends
    kept = as_it_is(
        listed=frozenset(line.kind for line in end.coverage if line.state is CoverageState.LISTED),
        metadata=frozenset(kind for _, kind in end.metadata_kinds),
        served=frozenset(kind for _, kind in end.served),
        evaluated=frozenset(policy for _, policy in end.evaluated_policies),
        findings=tee.findings,
    )
    return store.read_scan(scanned.id), kept
