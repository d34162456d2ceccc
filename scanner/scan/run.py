"""The line: discover, list, match, resolve params, evaluate, record.

This is the one place that joins the pure questions to the two edges. The edges are described here, by the two
Protocols, and satisfied by shape: the whole run is tested with two in-memory objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime
from fnmatch import fnmatchcase
from itertools import chain, count
from typing import TYPE_CHECKING, Protocol, TypeAlias, assert_never

from scanner import __version__
from scanner.admission.auditability import OPERATIONS, reading
from scanner.admission.evaluate import compile_policy
from scanner.audit.page import Judge, decode, item_fault
from scanner.audit.repeats import Seen
from scanner.cel import Decider
from scanner.errors import ListFailed, UsageError
from scanner.health import Counted, health_after, health_before, mutation_order, native_comparisons
from scanner.model.json import JsonObject, as_object
from scanner.model.outcome import Gap, GapKind
from scanner.model.policy import VALIDATING, Operation, Policy
from scanner.model.reading import Auditability
from scanner.model.release import Minor
from scanner.model.resource import Kind, Page, Resource, UserInfo, resource_of
from scanner.model.scan import (
    ClusterIdentity,
    Coverage,
    CoverageState,
    Health,
    Outside,
    PageResult,
    Scan,
    ScanEnd,
    ScanStart,
    ScanState,
    Scope,
)
from scanner.policies.kyverno import bind as kyverno
from scanner.policies.kyverno import configuration
from scanner.policies.kyverno import health as kyverno_health
from scanner.policies.kyverno.bind import AS_WRITTEN, Circumstances
from scanner.policies.kyverno.configuration import Configuration
from scanner.policies.kyverno.inventory import Inventory, Parse
from scanner.policies.kyverno.libraries import Network
from scanner.policies.kyverno.modes import MANNERS, Manner
from scanner.policies.mutating import bind as mutating
from scanner.policies.mutating.mutation import Schemas
from scanner.policies.plan import KindPlan, equivalents, lists, plan
from scanner.policies.validating.bind import Bound, World, bind
from scanner.policies.webhooks import described, unknown, webhook_kinds
from scanner.scan.policy_set import Manifest, ParamTable, Rulebook, namespaces_needed, policy_kinds, rulebook
from scanner.scan.workers import Job, Judged, Relay, Workers

if TYPE_CHECKING:
    from scanner.opinion.comparison import Comparison

_INTERRUPTED = "interrupted before every kind was listed"
_OF_KYVERNO = "KyvernoConfiguration"
_UNFILTERED = "Kyverno's resource filters are not known, and objects that they exempt count like all others"
_NAME_THEM = "Name the filters with --kyverno-resource-filters"
_NOT_ONE_MOMENT = (
    "Objects of this kind may be missing, so none of its findings is resolved. Scan again, "
    "when the server is less busy or with another --chunk-size"
)


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

    def authorizer(self) -> Decider | None:
        """Who answers what expressions ask about permissions; None where nobody may be asked.

        Raises ClusterError. What it cannot answer later is an AuthorizerFailed.
        """
        ...

    def schemas(self) -> Schemas:
        """How the objects of a kind are merged; asked only when some policy mutates."""
        ...

    def discover(self) -> Discovery:
        """Every served kind. Raises ClusterError when there is no cluster to talk to."""
        ...

    def expect(self, lists: Iterable[tuple[Kind, str, str]]) -> None:
        """Hear which lists are going to be read, in this order: kind, namespace and selector of each.

        A cluster that is far away may begin to fetch them.
        """
        ...

    def pages(self, kind: Kind, *, namespace: str = "", selector: str = "") -> Iterator[Page]:
        """The objects of a kind, page by page, of one namespace or of all, narrowed by a label selector.

        A namespace narrows no cluster-scoped kind but that of namespaces themselves, where it may.

        Raises ListFailed when the list is refused or breaks off; pages already yielded stay good.
        """
        ...

    def paused(self) -> AbstractContextManager[None]:
        """A block in which nothing is fetched, and no thread of the cluster's runs: the process may be forked."""
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
class KyvernoConfiguration:
    """Where Kyverno's configuration is: in a ConfigMap (namespace and name), or (`given`) with the user."""

    place: tuple[str, str] = (configuration.NAMESPACE, configuration.NAME)
    given: Configuration | None = None

    def wanted(self, rules: Rulebook, manner: Manner) -> bool:
        """Whether a scan has to read the ConfigMap: only Kyverno's webhook asks it."""
        return self.given is None and manner.server and any(not policy.unauditable() for policy in rules.kyverno)


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked for.

    `manifests` come from policy files: policies, bindings and params; `gaps` are the documents among them that could
    not be read. `assume_bound` names policies and the action to preview them with. `user` makes the simulated requests
    instead of the identity that scans. `kyverno_compat` says in whose manner Kyverno's policies judge: as admission does, or as
    Kyverno's `controller` or `cli` report; `parse` reads YAML for them, `network` makes the requests that they name, and
    `kyverno_configuration` tells what never gets to Kyverno's webhook.
    """

    scope: Scope = field(default_factory=Scope)
    manifests: tuple[Manifest, ...] = ()
    gaps: tuple[Gap, ...] = ()
    cluster_policies: bool = True
    assume_bound: tuple[tuple[str, str], ...] = ()
    user: UserInfo | None = None
    kyverno_compat: str = ""
    parse: Parse | None = None
    network: Network | None = None
    kyverno_configuration: KyvernoConfiguration = KyvernoConfiguration()


Progress = Callable[[Coverage], None]


def run(
    cluster: Cluster,
    store: Store,
    options: Options,
    *,
    scan_id: str,
    clock: Callable[[], datetime],
    progress: Progress = lambda _: None,
    workers: int = 1,
    little: int = 0,
    comparison: Comparison | None = None,
) -> Scan:
    """Scan a cluster into a store and return what was recorded.

    With more than one of them `workers` are the processes that judge, what comes after the first `little` bytes of pages.
    A `comparison` looks at the same pages, and has its say at the end.

    Raises ClusterError when there is nothing to talk to, StoreError when nothing can be recorded, UsageError for
    options that name what does not exist. Everything else that goes wrong is in the scan.
    """
    started = clock()
    seen = outlook(cluster, options, started, ahead=True)
    store.begin(_start(scan_id, started, seen))
    course = _Course(store, scan_id, progress, comparison)
    course.gaps = [*seen.gaps]
    # What is asked of the network is asked once in a scan, and over connections that no two processes can share.
    alone = options.network is not None
    with Workers(
        seen.setting.judge,
        seen.setting.plans,
        seen.listing.relay,
        cluster.paused,
        count=1 if alone else workers,
        little=little,
    ) as processes:
        course.judge(seen.setting, seen.listing, processes)
    return store.finish(scan_id, course.end(seen.setting, clock()))


def outlook(cluster: Cluster, options: Options, now: datetime, *, ahead: bool = False) -> Outlook:
    """What a scan with these options would judge at a moment, and by what. Raises like `run`.

    With `ahead` the cluster hears early what will be judged: the first pages come while policies are compiled.
    """
    identity = cluster.identity()
    discovery = cluster.discover()
    listing = _Listing(cluster, options.scope, ahead=ahead)
    documents = _policy_documents(listing, discovery, options)
    rules = rulebook(documents, options, discovery.kinds, identity.release.rules)
    viewer = _Viewer(identity, options.user or cluster.requester(), options.scope)
    inventory = Inventory(discovery.kinds, rules.entries, options.parse, options.network)
    manner = MANNERS[options.kyverno_compat]
    own = _own_configuration(listing, discovery, rules, viewer, options)
    circumstances = Circumstances(now, manner, inventory, viewer.operations, own.configuration)
    kyvernos = kyverno.bind(rules.kyverno, rules.exceptions, circumstances)
    setting = _setting(listing, discovery, rules, viewer, kyvernos, inventory)
    _reject_unknown(options.scope, discovery, setting)
    setting = replace(setting, outside=(*setting.outside, *own.outside))
    gaps = (*options.gaps, *discovery.gaps, *rules.gaps, *own.gaps, *setting.gaps)
    return Outlook(viewer, rules, setting, listing, gaps, kyvernos, inventory)


@dataclass(frozen=True, slots=True)
class Outlook:
    """A cluster as a scan sees it before it judges the first object."""

    viewer: _Viewer
    rules: Rulebook
    setting: _Setting
    listing: _Listing
    gaps: tuple[Gap, ...]
    kyverno: tuple[Bound, ...]
    inventory: Inventory

    @property
    def cluster(self) -> ClusterIdentity:
        """Which cluster it is."""
        return self.viewer.cluster

    @property
    def world(self) -> World:
        """What objects are judged by."""
        return self.setting.judge.world

    @property
    def plans(self) -> tuple[KindPlan, ...]:
        """The lists to make, as far as the scope goes."""
        return tuple(plan for plan in self.setting.plans if not self.listing.left_out(plan.kind))

    def objects(self, kind: Kind) -> Iterator[Resource]:
        """Every object of a kind that is within the scope. Raises ListFailed, and ValueError for an unreadable page."""
        excluded = self.viewer.scope.exclude_namespaces
        for pages in self.listing.judged(kind):
            for resource in (found for page in pages for found in _resources(page)):
                if not any(fnmatchcase(resource.namespace, pattern) for pattern in excluded):
                    yield resource


@dataclass(frozen=True, slots=True)
class _Viewer:
    """Which cluster is looked at, by whom, and what for."""

    cluster: ClusterIdentity
    user: UserInfo
    scope: Scope

    @property
    def files(self) -> bool:
        """Whether the cluster is made of files."""
        return self.cluster.source == "files"

    @property
    def rules(self) -> Minor:
        """The Kubernetes release whose rules judge."""
        return self.cluster.release.rules

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The operations of the simulated requests; the first that a rule names is taken."""
        return OPERATIONS[self.scope.operation]


def _start(scan_id: str, started: datetime, seen: Outlook) -> ScanStart:
    """What is known when the scan begins: policies that nothing puts into force are read as well."""
    rules, viewer = seen.rules, seen.viewer
    read = [(policy, reading(compile_policy(policy, viewer.rules), viewer.operations)) for policy in rules.policies]
    read += [(entry.policy, entry.reading) for entry in seen.kyverno if _is_written(entry)]
    return ScanStart(
        id=scan_id,
        cluster=viewer.cluster,
        started_at=started,
        scope=viewer.scope,
        tool_version=__version__,
        policies=(*rules.policies, *(entry.policy for entry in seen.kyverno if _is_written(entry))),
        bindings=(*rules.bindings, *(binding for entry in seen.kyverno for binding in entry.bindings)),
        requester=viewer.user,
        readings={policy.key: found for policy, found in read},
    )


def _is_written(entry: Bound) -> bool:
    """Whether this is a policy as it is written, and not a form that autogen gave it."""
    return all(binding.name == AS_WRITTEN for binding in entry.bindings)


@dataclass(frozen=True, slots=True)
class _Setting:
    """Everything that is known before the first object is judged."""

    judge: Judge
    plans: tuple[KindPlan, ...]
    bound: tuple[Bound, ...]
    health: tuple[Health, ...]
    gaps: tuple[Gap, ...]
    outside: tuple[Outside, ...]


def _reject_unknown(scope: Scope, discovery: Discovery, setting: _Setting) -> None:
    """A typing error must not look like a clean cluster. What could not be listed is not called unknown."""
    for pattern in scope.kinds:
        if not discovery.gaps and not any(_names(pattern, kind) for kind in discovery.kinds):
            raise UsageError(f"--kind {pattern} matches nothing that the cluster serves: see `kubectl api-resources`")
    for name in scope.namespaces:
        if setting.judge.world.namespace(name) is None:
            raise UsageError(f"--namespace {name}: the cluster has no such namespace: see `kubectl get namespaces`")


class _Course:
    """What a scan has told its store so far, and what it still has to tell at the end."""

    def __init__(self, store: Store, scan_id: str, progress: Progress, comparison: Comparison | None = None) -> None:
        self._comparison = comparison
        self._store = store
        self._scan_id = scan_id
        self._progress = progress
        self.gaps: list[Gap] = []
        self._coverage: list[Coverage] = []
        self._counted = Counted()
        self._seen = Seen()
        self._seams: list[str] = []
        self._troubles: list[ListFailed] = []

    def judge(self, setting: _Setting, listing: _Listing, workers: Workers) -> None:
        """List and judge every kind; an interrupted scan still says what it did not list."""
        listing.expect(line.kind for line in setting.plans)
        try:
            steps: Iterator[Judged | _Mark] = workers.ordered(_steps(setting.plans, listing))
            for step in steps:
                self._take(step, listing, workers)
                if self._comparison and isinstance(step, Judged):
                    self._comparison.page(step.job.page, step.job.plan, setting.judge)
        except KeyboardInterrupt:
            self.gaps.append(Gap(GapKind.LIST, "scan", f"{_INTERRUPTED}; scan again"))
            self._coverage.extend(_untouched(line.kind) for line in setting.plans[len(self._coverage) :])

    def end(self, setting: _Setting, finished: datetime) -> ScanEnd:
        """What the store is told last."""
        incomplete = bool(self.gaps) or any(_incomplete(entry) for entry in self._coverage)
        after = health_after(setting.bound, self._counted, self._coverage)
        health = {*setting.health, *kyverno_health.without_noise(after, setting.bound)}
        return ScanEnd(
            finished_at=finished,
            state=ScanState.PARTIAL if incomplete else ScanState.COMPLETE,
            coverage=tuple(self._coverage),
            health=tuple(sorted(health)),
            gaps=tuple(dict.fromkeys(self.gaps)),
            outside=setting.outside,
            opinion=self._comparison.opinion() if self._comparison else None,
            evaluated_policies=tuple(
                entry.policy.key
                for entry in setting.bound
                if not entry.reading.reason and not kyverno_health.follows_reports(entry)
            ),
        )

    def _take(self, step: Judged | _Mark, listing: _Listing, workers: Workers) -> None:
        match step:
            case _Begun():
                self._coverage.append(_untouched(step.kind))
                self._seen, self._seams, self._troubles = Seen(), [], []
            case Judged():
                self._page(step, workers)
            case ListFailed():
                self._troubles.append(step)
            case _Ended():
                self._close(step.kind, listing)
            case _ as never:
                assert_never(never)

    def _page(self, judged: Judged, workers: Workers) -> None:
        page, result = judged.job.page, judged.result
        if known := self._seen.among(result.identities):
            result = workers.judge(judged.job, known)
        self._seen.add(result.identities)
        self._seams.extend(_seams(page, result))
        self._store.page(self._scan_id, result)
        self.gaps.extend(result.gaps)
        self._counted.add(result)
        self._coverage[-1] = _added(self._coverage[-1], page, result)
        self._progress(self._coverage[-1])

    def _close(self, kind: Kind, listing: _Listing) -> None:
        """A kind is listed; pages that were seen stay good when a list breaks off."""
        where = f"{kind.api_version}/{kind.kind}"
        self.gaps.extend(Gap(GapKind.LIST, where, error.why) for error in self._troubles)
        if note := listing.left_out(kind):
            self._cover(state=CoverageState.SKIPPED, note=note)
        elif self._troubles:
            seen = self._coverage[-1].pages > 0 or len(self._troubles) < len(listing.namespaces)
            state = CoverageState.PARTIAL if seen else CoverageState(self._troubles[0].state)
            self._cover(state=state, note="; ".join(dict.fromkeys(error.why for error in self._troubles)))
        elif any(gap.where == where for gap in self.gaps):
            self._cover(state=CoverageState.PARTIAL, note="part of the list could not be read")
        elif self._seams:
            self._cover(state=CoverageState.INCONSISTENT, note="; ".join(self._seams))
            self.gaps.append(Gap(GapKind.LIST, where, f"{self._coverage[-1].note}. {_NOT_ONE_MOMENT}"))
        else:
            self._cover(state=CoverageState.LISTED, note="")

    def _cover(self, *, state: CoverageState, note: str) -> None:
        self._coverage[-1] = replace(self._coverage[-1], state=state, note=note)


@dataclass(frozen=True, slots=True)
class _Begun:
    """From here on a kind is listed."""

    kind: Kind


@dataclass(frozen=True, slots=True)
class _Ended:
    """No other page of the kind will come."""

    kind: Kind


_Mark: TypeAlias = _Begun | ListFailed | _Ended


def _steps(plans: Iterable[KindPlan], listing: _Listing) -> Iterator[Job | _Mark]:
    """Every kind's pages, namespace by namespace, numbered through."""
    for line in plans:
        yield _Begun(line.kind)
        numbers = count(1)
        if not listing.left_out(line.kind):
            for pages in listing.judged(line.kind):
                yield from _pages(pages, line, numbers)
        yield _Ended(line.kind)


def _pages(pages: Iterator[Page], line: KindPlan, numbers: Iterator[int]) -> Iterator[Job | ListFailed]:
    try:
        for page in pages:
            yield Job(replace(page, number=next(numbers)), line)
    except ListFailed as error:
        yield error


def _untouched(kind: Kind) -> Coverage:
    return Coverage(kind.api_version, kind.kind, CoverageState.FAILED, note=_INTERRUPTED)


def _seams(page: Page, result: PageResult) -> Iterator[str]:
    """Why the list so far does not show one moment."""
    if page.seam:
        yield page.seam
    elif result.repeated:
        yield f"page {page.number} repeats {result.repeated} objects, counted once"


def _added(coverage: Coverage, page: Page, result: PageResult) -> Coverage:
    """The ledger line with one more page; until the last one has come the list is partial."""
    return replace(
        coverage,
        state=CoverageState.PARTIAL,
        objects=coverage.objects + result.objects,
        evaluated=coverage.evaluated + result.evaluated,
        pages=coverage.pages + 1,
        bytes=coverage.bytes + len(page.data),
        resource_version=coverage.resource_version or page.resource_version,
        seconds=round(coverage.seconds + page.seconds, 3),
    )


def _incomplete(coverage: Coverage) -> bool:
    return coverage.state not in (CoverageState.LISTED, CoverageState.SKIPPED)


class _Listing:
    """The cluster's lists, within the scope that the user chose."""

    def __init__(self, cluster: Cluster, scope: Scope, *, ahead: bool) -> None:
        self._cluster = cluster
        self._ahead = ahead
        self._scope = scope
        self.relay = Relay(cluster.schemas)
        self.scoped = scope.namespaces
        self.namespaces = scope.namespaces or ("",)

    def everything(self, kind: Kind, namespaces: Iterable[str] = ("",)) -> Iterator[Resource]:
        """Every object of a kind that judging needs, once, whatever the scope of what is judged.

        Raises ListFailed, and ValueError for a page that cannot be read.
        """
        seen: set[tuple[str, str]] = set()
        for namespace in namespaces:
            for resource in self._listed(kind, namespace):
                if (resource.namespace, resource.name) not in seen:
                    seen.add((resource.namespace, resource.name))
                    yield resource

    def _listed(self, kind: Kind, namespace: str) -> Iterator[Resource]:
        """The objects of one list; it fails at its end where it may have hidden some."""
        seams: list[str] = []
        for page in self._cluster.pages(kind, namespace=namespace):
            seams += [page.seam] if page.seam else []
            yield from _resources(page)
        if seams:
            raise ListFailed(
                "failed", f"cannot list all {kind.resource}: {'; '.join(dict.fromkeys(seams))}. Scan again"
            )

    def expect(self, kinds: Iterable[Kind]) -> None:
        """Tell the cluster what is going to be judged, if it is."""
        wanted = [kind for kind in kinds if self._ahead and not self.left_out(kind)]
        self._cluster.expect((kind, place, self._scope.selector) for kind in wanted for place in self.namespaces)

    def authorizer(self) -> Decider | None:
        """See Cluster; whoever asks may be another process."""
        decider = self._cluster.authorizer()
        return self.relay.to(decider) if decider else None

    def judged(self, kind: Kind) -> Iterator[Iterator[Page]]:
        """The pages to judge, for each namespace that the scope names or for all of them at once."""
        for namespace in self.namespaces:
            yield self._cluster.pages(kind, namespace=namespace, selector=self._scope.selector)

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
        if fault := item_fault(page.kind, item):
            raise ValueError(fault)
        yield resource_of(page.kind, {**as_object(item), "apiVersion": page.kind.api_version, "kind": page.kind.kind})


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
    viewer: _Viewer,
    kyvernos: tuple[Bound, ...],
    inventory: Inventory,
) -> _Setting:
    kinds = discovery.kinds
    namespaces, trouble = _load_namespaces(listing, kinds)
    listing.expect(lists(kinds, _in_force(rules, kyvernos), viewer.operations))
    bound = (*_bound(listing, rules, viewer), *kyvernos)
    params = ParamTable(kinds)
    blind = (
        *_unknown_param_kinds(bound, params, discovery),
        *_load_params(listing, params, bound, rules),
        *_load_inventory(listing, inventory, kyvernos),
        *(
            _blind(entry, "it needs namespaces, which could not be listed")
            for entry in bound
            if trouble and namespaces_needed(entry)
        ),
    )
    unseen = {gap.where for gap in blind}
    sighted = tuple(entry for entry in bound if _title(entry) not in unseen)
    world = World(
        params=params,
        namespaces=namespaces,
        implied_namespaces=viewer.files or trouble is not None,
        equivalents=equivalents(kinds),
        user=viewer.user,
        operations=viewer.operations,
        authorizer=_authorizer(listing, sighted, viewer),
    )
    judge = Judge(world, viewer.scope.exclude_namespaces, by_name=viewer.files)
    others = [entry for entry in sighted if not kyverno_health.is_kyverno(entry)]
    health = (
        *rules.health,
        *health_before(rules.policies, others, kinds, world),
        *native_comparisons.of_policies(others, kinds),
        *mutation_order.of_policies(others, kinds, viewer.rules),
        *kyverno_health.of_policies(rules.kyverno, kyvernos, kinds),
    )
    return _Setting(
        judge=judge,
        plans=plan(kinds, sighted, viewer.operations),
        bound=sighted,
        health=health,
        gaps=(*((trouble,) if trouble else ()), *blind),
        outside=tuple(_outside(listing, kinds)),
    )


@dataclass(frozen=True, slots=True)
class _OwnConfiguration:
    """Kyverno's configuration, and what a scan does not know of it."""

    configuration: Configuration = configuration.NOTHING
    gaps: tuple[Gap, ...] = ()
    outside: tuple[Outside, ...] = ()


def _own_configuration(
    listing: _Listing, discovery: Discovery, rules: Rulebook, viewer: _Viewer, options: Options
) -> _OwnConfiguration:
    """The configuration by which Kyverno's webhook filters requests, if any of its policies is evaluated as it would."""
    asked = options.kyverno_configuration
    if not asked.wanted(rules, MANNERS[options.kyverno_compat]):
        return _OwnConfiguration(asked.given or configuration.NOTHING)
    where = "/".join(asked.place)
    try:
        found = _config_map(listing, discovery.kinds, rules, asked.place)
    except (ListFailed, ValueError) as error:
        return _OwnConfiguration(
            gaps=(Gap(GapKind.LIST, f"ConfigMap {where}", f"{_UNFILTERED}: {error}. {_NAME_THEM}"),)
        )
    if found is None:
        why = f"there is no such ConfigMap: {_UNFILTERED}. {_NAME_THEM}"
        return _OwnConfiguration(outside=(Outside(_OF_KYVERNO, where, why),))
    own = configuration.configuration_of(found)
    user = viewer.user.username
    excluded = own.excludes(viewer.user)
    why = f"{excluded}: Kyverno admits every request of {user}; its policies are evaluated as for other users"
    return _OwnConfiguration(own, outside=(Outside(_OF_KYVERNO, where, why),) if excluded else ())


def _config_map(listing: _Listing, kinds: Iterable[Kind], rules: Rulebook, place: tuple[str, str]) -> JsonObject | None:
    """The ConfigMap of a namespace and name, from policy files or from the cluster."""
    kind = next((it for it in kinds if (it.group, it.version, it.plural) == ("", "v1", "configmaps")), None)
    given = (it for it in rules.params if (it.kind.group, it.kind.plural) == ("", "configmaps"))
    listed = listing.everything(kind, (place[0],)) if kind else iter(())
    return next((it.body for it in chain(given, listed) if (it.namespace, it.name) == place), None)


def _in_force(rules: Rulebook, kyvernos: Iterable[Bound]) -> Iterator[Policy]:
    """The policies that something binds, not compiled yet."""
    named = {binding.policy_key for binding in rules.bindings}
    yield from (policy for policy in rules.policies if policy.key in named)
    yield from (entry.policy for entry in kyvernos)


def _bound(listing: _Listing, rules: Rulebook, viewer: _Viewer) -> tuple[Bound, ...]:
    """The policies in force, of every language."""
    checking = [policy for policy in rules.policies if policy.language != mutating.LANGUAGE]
    changing = [policy for policy in rules.policies if policy.language == mutating.LANGUAGE]
    of_changing = [binding for binding in rules.bindings if binding.language == mutating.LANGUAGE]
    bound = bind(
        checking,
        [binding for binding in rules.bindings if binding.language != mutating.LANGUAGE],
        viewer.operations,
        viewer.rules,
        listing.relay,
    )
    if not changing or not of_changing:
        return bound
    return (*bound, *mutating.bind(changing, of_changing, listing.relay, viewer.operations, viewer.rules))


def _authorizer(listing: _Listing, bound: Iterable[Bound], viewer: _Viewer) -> Decider | None:
    """Who answers, if any policy asks: nobody is asked about nobody."""
    asks = any(Auditability.AUTHORIZER in entry.reading.classes for entry in bound)
    return listing.authorizer() if asks and viewer.user.username else None


def _outside(listing: _Listing, kinds: Iterable[Kind]) -> Iterator[Outside]:
    """The webhooks of the cluster: not to be allowed to see what is not evaluated anyway is no gap, but it is said."""
    for kind in webhook_kinds(kinds):
        try:
            yield from [described(configuration) for configuration in listing.everything(kind)]
        except (ListFailed, ValueError) as error:
            yield unknown(kind, str(error))


def _title(entry: Bound) -> str:
    language = "" if entry.policy.language == VALIDATING else f" ({entry.policy.language})"
    return f"policy {entry.policy.name}{language}"


def _blind(entry: Bound, why: str) -> Gap:
    """What becomes of a policy that could only be judged wrongly."""
    return Gap(GapKind.EVALUATION, _title(entry), why)


def _unknown_param_kinds(bound: Iterable[Bound], params: ParamTable, discovery: Discovery) -> Iterator[Gap]:
    """Policies whose paramKind may well be served, by an API group that did not answer."""
    silent = {gap.where for gap in discovery.gaps if gap.kind is GapKind.DISCOVERY}
    for entry in bound:
        kind = entry.policy.param_kind
        if kind and params.kind(kind) is None and silent & {kind.api_version, "/api", "/apis"}:
            yield _blind(entry, f"its paramKind {kind.kind} belongs to {kind.api_version}, which did not answer")


def _load_params(listing: _Listing, params: ParamTable, bound: Iterable[Bound], rules: Rulebook) -> Iterator[Gap]:
    for kind, entries in params.needed(bound).items():
        try:
            for resource in listing.everything(kind, params.namespaces(kind, entries, listing.scoped)):
                params.keep(resource, entries)
        except (ListFailed, ValueError) as error:
            yield from (
                _blind(entry, f"its params ({kind.resource}) could not be listed: {error}") for entry in entries
            )
    for param in rules.params:
        params.put(param)


def _load_inventory(listing: _Listing, inventory: Inventory, bound: Iterable[Bound]) -> Iterator[Gap]:
    """List what expressions read; a policy that reads what cannot be listed could only be judged wrongly."""
    listed: dict[tuple[Kind, str], str] = {}
    for entry in bound:
        wanted = [(kind, place) for kind, places in inventory.wanted(entry).items() for place in places]
        for kind, place in wanted if not entry.reading.reason else ():
            if (kind, place) not in listed:
                listed[kind, place] = _listed(listing, inventory, kind, place)
            if why := listed[kind, place]:
                yield _blind(entry, f"it reads {kind.resource}, which could not be listed: {why}")


def _listed(listing: _Listing, inventory: Inventory, kind: Kind, place: str) -> str:
    """Why the objects that expressions read could not be listed, or an empty string."""
    try:
        inventory.put(kind, place, listing.everything(kind, (place,)))
    except (ListFailed, ValueError) as error:
        return str(error)
    return ""


def _load_namespaces(listing: _Listing, kinds: Iterable[Kind]) -> tuple[dict[str, JsonObject], Gap | None]:
    kind = next((k for k in kinds if (k.group, k.version, k.plural) == ("", "v1", "namespaces")), None)
    if kind is None:
        return {}, Gap(GapKind.DISCOVERY, "v1/Namespace", "the cluster does not say that it serves namespaces")
    try:
        return {resource.name: resource.body for resource in _needed_namespaces(listing, kind)}, None
    except (ListFailed, ValueError) as error:
        return {}, Gap(GapKind.LIST, "v1/Namespace", str(error))


def _needed_namespaces(listing: _Listing, kind: Kind) -> Iterator[Resource]:
    """All of them, or those that the user names: whoever is confined to a namespace may read that one only."""
    try:
        yield from listing.everything(kind, listing.namespaces)
    except ListFailed:
        if not listing.scoped:
            raise
        yield from listing.everything(kind)
