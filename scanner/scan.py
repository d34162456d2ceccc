"""The line: discover, list, match, resolve params, evaluate, record.

This is the one place that joins the pure questions to the two edges. The edges are described here, by the two
Protocols, and satisfied by shape: the whole run is tested with two in-memory objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Protocol

from scanner import __version__
from scanner.errors import ListFailed
from scanner.health import health_after, health_before
from scanner.model.json import JsonObject
from scanner.model.outcome import Gap, GapKind
from scanner.model.resource import Kind, Page, Resource, UserInfo, resource_of
from scanner.model.scan import (
    ClusterIdentity,
    Coverage,
    CoverageState,
    Health,
    PageResult,
    Scan,
    ScanEnd,
    ScanStart,
    ScanState,
    Scope,
)
from scanner.page import Judge, decode
from scanner.plan import KindPlan, equivalents, plan
from scanner.policies.validating import Bound, World, bind
from scanner.sources import Manifest, ParamTable, Rulebook, namespaces_needed, policy_kinds, rulebook

@dataclass(frozen=True, slots=True)
class Discovery:
    """What a cluster serves: every kind in every served version, a group's preferred version first.

    Kinds without the list verb, and subresources, are left out. `gaps` are groups that did not answer, and (for
    files) documents that could not be read.
    """

    kinds: tuple[Kind, ...]
    gaps: tuple[Gap, ...] = ()


class Cluster(Protocol):
    """A source of cluster state."""

    def identity(self) -> ClusterIdentity:
        """Which cluster this is."""
        ...

    def requester(self) -> UserInfo:
        """The identity that scans; it stands in for the requester in simulated requests."""
        ...

    def discover(self) -> Discovery:
        """Every served kind. Raises ClusterError when there is no cluster to talk to."""
        ...

    def pages(self, kind: Kind, *, namespace: str = "", selector: str = "") -> Iterator[Page]:
        """The objects of a kind, page by page, of one namespace or of all, narrowed by a label selector.

        Raises ListFailed when the list is refused or breaks off; pages already yielded stay good.
        """
        ...


class Store(Protocol):
    """Where a scan is recorded. Only the parent process writes."""

    def begin(self, start: ScanStart) -> None:
        """Record that a scan runs, with the policies and bindings it uses."""
        ...

    def page(self, scan_id: str, result: PageResult) -> None:
        """Commit one page's outcomes and its completion together."""
        ...

    def finish(self, scan_id: str, end: ScanEnd) -> Scan:
        """Merge the pages into history and make the scan visible, in one transaction."""
        ...


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked for.

    `manifests` come from policy files: policies, bindings and params; `gaps` are the documents among them that could
    not be read. `assume_bound` names policies and the action to preview them with.
    """

    scope: Scope = field(default_factory=Scope)
    manifests: tuple[Manifest, ...] = ()
    gaps: tuple[Gap, ...] = ()
    cluster_policies: bool = True
    assume_bound: tuple[tuple[str, str], ...] = ()


Progress = Callable[[Coverage], None]


def run(
    cluster: Cluster,
    store: Store,
    options: Options,
    *,
    scan_id: str,
    clock: Callable[[], datetime],
    progress: Progress = lambda _: None,
) -> Scan:
    """Scan a cluster into a store and return what was recorded.

    Raises ClusterError when there is nothing to talk to, StoreError when nothing can be recorded, UsageError for
    options that name what does not exist. Everything else that goes wrong is in the scan.
    """
    started = clock()
    identity = cluster.identity()
    discovery = cluster.discover()
    listing = _Listing(cluster, options.scope)
    rules = rulebook(_policy_documents(listing, discovery, options), options, discovery.kinds)
    store.begin(
        ScanStart(scan_id, identity, started, options.scope, __version__, rules.policies, rules.bindings),
    )
    setting = _setting(listing, discovery, rules, identity, cluster.requester(), options)
    gaps = [*options.gaps, *discovery.gaps, *rules.gaps, *setting.gaps]
    coverage: list[Coverage] = []
    matched: dict[tuple[str, str], int] = {}
    try:
        for line in setting.plans:
            coverage.append(_scan_kind(listing, line, setting.judge, store, scan_id, gaps, matched, progress))
    except KeyboardInterrupt:
        gaps.append(Gap(GapKind.LIST, "scan", "interrupted before every kind was listed; scan again"))
    incomplete = bool(gaps) or any(_incomplete(entry) for entry in coverage)
    health = {*setting.health, *health_after(setting.bound, matched, coverage)}
    end = ScanEnd(
        finished_at=clock(),
        state=ScanState.PARTIAL if incomplete else ScanState.COMPLETE,
        coverage=tuple(coverage),
        health=tuple(sorted(health)),
        gaps=tuple(dict.fromkeys(gaps)),
        evaluated_policies=tuple(entry.policy.name for entry in setting.bound),
    )
    return store.finish(scan_id, end)


def _incomplete(coverage: Coverage) -> bool:
    return coverage.state not in (CoverageState.LISTED, CoverageState.SKIPPED)


@dataclass(frozen=True, slots=True)
class _Setting:
    """Everything that is known before the first object is judged."""

    judge: Judge
    plans: tuple[KindPlan, ...]
    bound: tuple[Bound, ...]
    health: tuple[Health, ...]
    gaps: tuple[Gap, ...]


class _Listing:
    """The cluster's lists, within the scope that the user chose."""

    def __init__(self, cluster: Cluster, scope: Scope) -> None:
        self._cluster = cluster
        self._scope = scope

    def everything(self, kind: Kind, namespaces: Iterable[str] = ("",)) -> Iterator[Resource]:
        """Every object of a kind that judging needs, whatever the scope of what is judged."""
        for namespace in namespaces:
            for page in self._cluster.pages(kind, namespace=namespace):
                yield from _resources(page)

    def judged(self, kind: Kind) -> Iterator[Page]:
        """The pages to judge, numbered through the namespaces that the scope names."""
        number = 0
        for namespace in self._scope.namespaces or ("",):
            for page in self._cluster.pages(kind, namespace=namespace, selector=self._scope.selector):
                number += 1
                yield replace(page, number=number)

    def left_out(self, kind: Kind) -> str:
        """Why the user does not want to see a kind, or an empty string."""
        scope = self._scope
        if scope.kinds and not any(_names(pattern, kind) for pattern in scope.kinds):
            return "not named by --kind"
        if any(_names(pattern, kind) for pattern in scope.skip_kinds):
            return "left out by --skip-kind"
        if scope.namespaces and not kind.namespaced:
            return "cluster-scoped: left out by --namespace"
        return ""


def _names(pattern: str, kind: Kind) -> bool:
    """Whether a kind is meant by `Pod`, `pods`, `deployments.apps` or a glob of these."""
    forms = (kind.kind, kind.plural, kind.resource, f"{kind.plural}.{kind.version}.{kind.group}")
    return any(fnmatchcase(form.lower(), pattern.lower()) for form in forms)


def _resources(page: Page) -> Iterator[Resource]:
    for item in decode(page):
        if isinstance(item, dict):
            yield resource_of(page.kind, {**item, "apiVersion": page.kind.api_version, "kind": page.kind.kind})


def _policy_documents(listing: _Listing, discovery: Discovery, options: Options) -> Iterator[Manifest | Gap]:
    yield from options.manifests
    if options.cluster_policies:
        for kind in policy_kinds(discovery.kinds):
            try:
                for resource in listing.everything(kind):
                    yield Manifest("cluster", resource.body)
            except (ListFailed, ValueError) as error:
                why = f"policies and bindings may be missing from this scan: {error}"
                yield Gap(GapKind.LIST, f"{kind.api_version}/{kind.kind}", why)


def _setting(
    listing: _Listing,
    discovery: Discovery,
    rules: Rulebook,
    identity: ClusterIdentity,
    user: UserInfo,
    options: Options,
) -> _Setting:
    kinds = discovery.kinds
    bound = bind(rules.policies, rules.bindings)
    params = ParamTable(kinds)
    gaps = [*_load_params(listing, params, bound, rules)]
    namespaces, trouble = _load_namespaces(listing, kinds)
    files = identity.source == "files"
    blind = {gap.where for gap in gaps}
    if trouble:
        gaps.append(trouble)
        blind |= {f"policy {entry.policy.name}" for entry in bound if namespaces_needed(entry)}
        gaps.extend(
            Gap(GapKind.EVALUATION, f"policy {entry.policy.name}", "it needs namespaces, which could not be listed")
            for entry in bound
            if namespaces_needed(entry)
        )
    sighted = tuple(entry for entry in bound if f"policy {entry.policy.name}" not in blind)
    world = World(
        params=params,
        namespaces=namespaces,
        implied_namespaces=files or trouble is not None,
        equivalents=equivalents(kinds),
        user=user,
    )
    judge = Judge(world, options.scope.exclude_namespaces, by_name=files)
    health = (*rules.health, *health_before(sighted, kinds, params))
    return _Setting(judge, plan(kinds, sighted), sighted, health, tuple(gaps))


def _load_params(
    listing: _Listing, params: ParamTable, bound: Iterable[Bound], rules: Rulebook
) -> Iterator[Gap]:
    for kind, entries in params.needed(bound).items():
        try:
            for resource in listing.everything(kind, params.namespaces(entries)):
                params.keep(resource, entries)
        except (ListFailed, ValueError) as error:
            for entry in entries:
                why = f"its params ({kind.resource}) could not be listed: {error}"
                yield Gap(GapKind.EVALUATION, f"policy {entry.policy.name}", why)
    for manifest in rules.params:
        params.add(manifest.body)


def _load_namespaces(listing: _Listing, kinds: Iterable[Kind]) -> tuple[dict[str, JsonObject], Gap | None]:
    kind = next((k for k in kinds if (k.group, k.version, k.plural) == ("", "v1", "namespaces")), None)
    if kind is None:
        return {}, Gap(GapKind.DISCOVERY, "v1/Namespace", "the cluster does not say that it serves namespaces")
    try:
        return {resource.name: resource.body for resource in listing.everything(kind)}, None
    except (ListFailed, ValueError) as error:
        return {}, Gap(GapKind.LIST, "v1/Namespace", str(error))


def _scan_kind(
    listing: _Listing,
    line: KindPlan,
    judge: Judge,
    store: Store,
    scan_id: str,
    gaps: list[Gap],
    matched: dict[tuple[str, str], int],
    progress: Progress,
) -> Coverage:
    """List one kind and judge it page by page; pages that were seen stay good when the list breaks off."""
    coverage = Coverage(line.kind.api_version, line.kind.kind, CoverageState.LISTED)
    if note := listing.left_out(line.kind):
        return replace(coverage, state=CoverageState.SKIPPED, note=note)
    try:
        for page in listing.judged(line.kind):
            result = judge.page(page, line)
            store.page(scan_id, result)
            gaps.extend(result.gaps)
            for key, count in result.matched.items():
                matched[key] = matched.get(key, 0) + count
            coverage = _added(coverage, page, result)
            progress(coverage)
    except ListFailed as error:
        gaps.append(Gap(GapKind.LIST, f"{line.kind.api_version}/{line.kind.kind}", error.why))
        state = CoverageState.PARTIAL if coverage.pages else CoverageState(error.state)
        return replace(coverage, state=state, note=error.why)
    if any(gap.where == f"{line.kind.api_version}/{line.kind.kind}" for gap in gaps):
        return replace(coverage, state=CoverageState.PARTIAL, note="part of the list could not be read")
    return coverage


def _added(coverage: Coverage, page: Page, result: PageResult) -> Coverage:
    return replace(
        coverage,
        objects=coverage.objects + result.objects,
        evaluated=coverage.evaluated + result.evaluated,
        pages=coverage.pages + 1,
        bytes=coverage.bytes + len(page.data),
        resource_version=coverage.resource_version or page.resource_version,
    )
