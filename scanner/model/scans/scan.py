"""A scan as the store records it: its cluster and scope, its pages, and what was covered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from scanner.model.json import OMITTED_IF_DEFAULT
from scanner.model.outcome import Check, Finding, Gap
from scanner.model.policy import Action, Binding, BindingKey, Policy, PolicyKey
from scanner.model.reading import UNKNOWN_READING, Reading
from scanner.model.release import Release, release_of
from scanner.model.resource import UserInfo
from scanner.model.scans.method import Method

if TYPE_CHECKING:
    from scanner.model.population import Controller, GroupKind
    from scanner.model.rule import RuleObject
    from scanner.model.scans.baseline import Baseline
    from scanner.model.scans.cause import CauseKind
    from scanner.model.scans.health import Health
    from scanner.model.scans.opinion import Opinion
    from scanner.model.scans.out_of_scope import OutOfScope
    from scanner.model.scans.tally import TallyKey
    from scanner.model.waiver import WaiverSet

COUNTS_PATH: Final = "/metrics"
"""The path of the API server's metrics, among which are its counts of objects."""


@dataclass(frozen=True, slots=True)
class ServerCounts:
    """The number of stored objects by resource, such as `deployments.apps`, as the API server counts them about once a minute.

    `why_not` is the reason why they could not be read, or empty.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class ObjectCount:
    """The counts of a kind: the listed objects that the user's options excluded, and the server's at the start and the end.

    The server's counts are None if they were not read, or if the server does not count this kind.
    """

    excluded: int = 0
    at_start: int | None = None
    at_end: int | None = None


@dataclass(frozen=True, slots=True, order=True)
class UncoveredKind:
    """A kind that the cluster serves and that no bound policy can match, in its preferred version."""

    api_version: str
    kind: str


Digests: TypeAlias = bytes
"""Digests of pages in their order, 32 bytes each."""

SILENCE: Final = 300
"""Seconds without a heartbeat after which a scan on another host is dead, unless its requests may take almost as long."""


STDIN: Final = "stdin"
"""The identity of files that come from standard input."""


class ScanState(StrEnum):
    """`running` until the scan ends; the next scan marks a killed one `failed`. An `incomplete` scan did not see everything."""

    RUNNING = "running"
    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    FAILED = "failed"


class CoverageState(StrEnum):
    """The extent to which a kind was listed. `skipped` is the user's choice, and does not make a scan incomplete.

    `inconsistent` is a list whose pages show different moments: it has every object that existed throughout, once.
    """

    LISTED = "listed"
    PARTIAL = "partial"
    INCONSISTENT = "inconsistent"
    FORBIDDEN = "forbidden"
    FAILED = "failed"
    SKIPPED = "skipped"


class Emptiness(StrEnum):
    """The things that a scan lacked so that it had nothing to evaluate."""

    NONE = ""
    POLICIES = "policies"
    OBJECTS = "objects"


FILES: Final = "files"
"""The source of scans whose objects are those of files."""


@dataclass(frozen=True, slots=True)
class ClusterIdentity:
    """The scanned cluster. `uid` is the UID of the kube-system namespace; `server_version` e.g. `v1.36.0`.

    `given_name` is the name that the user gave, `server` a SHA-256 of the API server's CA and URL in hex, and `folder` the
    absolute path of the scanned files, or `stdin`. A stored scan has none of these three. `earlier_name` is the name that a stored
    scan recorded, if its cluster has another name now; else empty.
    """

    name: str
    uid: str = ""
    server_version: str = ""
    source: str = "cluster"
    given_name: str = ""
    server: str = ""
    folder: str = ""
    earlier_name: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The name of the cluster, and the one that its scan recorded if that is another one."""
        return (self.name, self.earlier_name) if self.earlier_name else (self.name,)

    @property
    def key(self) -> str:
        """The key of the cluster's history: all scans with this key share it."""
        if self.given_name:
            return f"name:{self.given_name}"
        return self.marks[0] if self.marks else f"name:{self.name}"

    @property
    def marks(self) -> tuple[str, ...]:
        """The marks that identify this cluster, without the names that users choose; the most reliable first."""
        marks = (("uid", self.uid), ("server", self.server), ("folder", self.folder))
        return tuple(STDIN if value == STDIN else f"{mark}:{value}" for mark, value in marks if value)

    @property
    def release(self) -> Release:
        """The release whose rules are applied."""
        return release_of(self.server_version)


@dataclass(frozen=True, slots=True)
class Scope:
    """The scope of a scan; empty tuples mean everything. A limited scope does not make a scan incomplete.

    `operation` is the simulated request: `create`, `update`, or `auto` for the first of these that a rule matches. `skip_languages` are
    policy languages that the user leaves out.
    """

    namespaces: tuple[str, ...] = ()
    exclude_namespaces: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    skip_kinds: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    bindings: tuple[str, ...] = ()
    selector: str = ""
    operation: str = "auto"
    skip_languages: tuple[str, ...] = field(default=(), metadata=OMITTED_IF_DEFAULT)

    @property
    def is_limited(self) -> bool:
        """Return whether the scan shows a chosen part alone. What the user excludes may be excluded from every scan: it limits none."""
        return bool(self.namespaces or self.kinds or self.policies or self.bindings or self.selector)


@dataclass(frozen=True, slots=True)
class Coverage:
    """The coverage of one kind. `objects` counts the listed objects, `evaluated` those that a policy matched.

    `bytes` is the size of its pages as received, `seconds` the duration of the list requests, `resource_version` that of the
    first page. `note` is empty, or the reason for the state. `page_digests` are empty if an older version recorded the scan.
    """

    api_version: str
    kind: str
    state: CoverageState
    objects: int = 0
    evaluated: int = 0
    pages: int = 0
    bytes: int = 0
    resource_version: str = ""
    note: str = ""
    seconds: float = 0.0
    page_digests: Digests = b""

    @property
    def digest(self) -> str:
        """The SHA-256, in hex, over the digests of all pages; empty if these are not known."""
        return sha256(self.page_digests).hexdigest() if self.page_digests else ""


@dataclass(frozen=True, slots=True)
class PolicyRecord:
    """A policy as the scan used it, with its bindings, the number of objects that it matched, and its auditability."""

    policy: Policy
    bindings: tuple[Binding, ...]
    matched: int
    actions: tuple[Action, ...] = ()
    reading: Reading = UNKNOWN_READING


@dataclass(frozen=True, slots=True)
class PageResult:
    """The results of one page of objects, which the store commits together.

    `identities` name the evaluated objects, by UID or else as `namespace/name`, and are not stored; `repeated` counts objects
    that were skipped because an earlier page had them, `excluded` those in namespaces that the user excluded. `budget_use` has,
    by policy, the largest share of the cost budget (0 to 1) that an evaluation used, if its cost was counted. `without_param`
    counts, by binding, the matched objects that were not evaluated because no param exists for them.

    `examined` has the examined objects in the order of the list (`audit.population`), `sets` the sets of them by invocation
    (`audit.object_sets`), and `places` the place of each finding's object among them. `controllers` has one
    reference to each kind of their controllers. `digest` is that of the page as received: see `audit.items`. A store may
    keep `findings` and `places` in a form of its own, `content`. `redacted` counts, by policy, the checks that were skipped because they
    may read what a snapshot withholds.
    """

    api_version: str
    kind: str
    number: int
    objects: int
    evaluated: int
    findings: tuple[Finding, ...] = ()
    tallies: dict[TallyKey, int] = field(default_factory=dict)
    matched: dict[BindingKey, int] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()
    identities: tuple[str, ...] = ()
    repeated: int = 0
    budget_use: dict[PolicyKey, float] = field(default_factory=dict)
    without_param: dict[BindingKey, int] = field(default_factory=dict)
    examined: bytes = b""
    sets: bytes = b""
    places: tuple[int, ...] = ()
    content: bytes = b""
    controllers: tuple[Controller, ...] = ()
    digest: Digests = b""
    excluded: int = 0
    redacted: dict[PolicyKey, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScanStart:
    """The facts at the start of a scan. `requester` is the user of the simulated requests.

    `policy_set_digest` covers what decides: specs and `rules`; `description_digest` what describes: annotations.
    After `silence` seconds without a heartbeat, other hosts take the scan for dead. `waivers` are those that the scan read, or None
    if it read none. With `accept_damage`, it builds on rows that were damaged.
    """

    id: str
    cluster: ClusterIdentity
    started_at: datetime
    scope: Scope
    tool_version: str
    policies: tuple[Policy, ...]
    bindings: tuple[Binding, ...]
    requester: UserInfo = field(default_factory=UserInfo)
    readings: Mapping[PolicyKey, Reading] = field(default_factory=dict)
    rules: tuple[RuleObject, ...] = ()
    policy_set_digest: str = ""
    description_digest: str = ""
    method: Method = field(default_factory=Method)
    silence: int = SILENCE
    waivers: WaiverSet | None = None
    accept_damage: bool = False


class ListVersion(NamedTuple):
    """The resource version of the lists of a kind, the lowest of several. `rules` tells that they decide about other objects."""

    api_version: str
    kind: str
    resource_version: str
    rules: bool = False


@dataclass(frozen=True, slots=True)
class ScanEnd:
    """The facts at the end of a scan. `evaluated_policies` are those whose findings the scan may resolve.

    `controllers` are the kinds of the objects' controllers: true for a namespaced kind. `uncovered` are the served kinds that no
    bound policy covers. `notes` are sentences for the report. `counts` are in the order of `coverage`. `read_languages` are the
    languages of which every policy and binding was read: another policy of these is not bound any more. `served` are all kinds
    that the cluster serves, empty if discovery was not complete. `metadata_kinds` were listed to the end for workloads alone.
    `emptiness` is what the scan had none of, if that makes it incomplete. `lists` are its lists with resource versions; an older one
    than that of an earlier scan is a gap, unless the cluster was `restored`.
    """

    finished_at: datetime
    state: ScanState
    coverage: tuple[Coverage, ...]
    health: tuple[Health, ...]
    gaps: tuple[Gap, ...]
    evaluated_policies: tuple[PolicyKey, ...]
    outside: tuple[OutOfScope, ...] = ()
    opinion: Opinion | None = None
    controllers: Mapping[GroupKind, bool] = field(default_factory=dict)
    uncovered: tuple[UncoveredKind, ...] = ()
    notes: tuple[str, ...] = ()
    counts: tuple[ObjectCount, ...] = ()
    read_languages: tuple[str, ...] = ()
    served: frozenset[GroupKind] = frozenset()
    metadata_kinds: frozenset[GroupKind] = frozenset()
    emptiness: Emptiness = Emptiness.NONE
    lists: tuple[ListVersion, ...] = ()
    restored: bool = False


@dataclass(frozen=True, slots=True)
class Scan:
    """A stored scan without its findings; `findings`, `new` and `resolved` are their numbers.

    Of the requester, the store keeps the name and the groups. The digests of scans by older versions, and of sets with withheld
    content of unknown version, are empty: not known. `notes` are sentences about parts of the record that are less exact. A
    `preview` has assumed bindings.
    """

    id: str
    cluster: ClusterIdentity
    started_at: datetime
    finished_at: datetime | None
    state: ScanState
    scope: Scope
    tool_version: str
    findings: int = 0
    new: int = 0
    resolved: int = 0
    requester: UserInfo = field(default_factory=UserInfo)
    policy_set_digest: str = ""
    description_digest: str = ""
    notes: tuple[str, ...] = ()
    preview: bool = False


@dataclass(frozen=True, slots=True)
class ScanRecord:
    """Facts of a stored scan besides its findings and its population: see `model.scans.stored_scan`.

    `unchecked` counts findings that are still open, but that this scan did not check; `opinion` is the second opinion, if any.
    `rules`, `uncovered` and `method` are empty or None for a scan of an older version. `check_ids` are the ids of the checks
    (`posture.problem_ids`). `comparable` is the newest earlier scan of the same scope, operation, requester and mode, which may be
    pruned, with `comparable_method`, and `changed_rules` are the kinds of rules that differ from those of that scan: none if they are not known. `baseline`
    is that with which a user or a gate compares the scan.
    """

    scan: Scan
    previous: Scan | None
    policies: tuple[PolicyRecord, ...]
    coverage: tuple[Coverage, ...]
    health: tuple[Health, ...]
    gaps: tuple[Gap, ...]
    tallies: Mapping[TallyKey, int]
    unchecked: int = 0
    outside: tuple[OutOfScope, ...] = ()
    opinion: Opinion | None = None
    rules: tuple[RuleObject, ...] = ()
    uncovered: tuple[UncoveredKind, ...] = ()
    method: Method | None = None
    check_ids: Mapping[tuple[PolicyKey, Check], str] = field(default_factory=dict)
    comparable: Scan | None = None
    comparable_method: Method | None = None
    changed_rules: tuple[CauseKind, ...] = ()
    baseline: Baseline | None = None


# Detect a scan that had nothing to evaluate: such a scan is not complete, because silence is never success.


def find_emptiness(*, bound: bool, objects: int, scope: Scope) -> Emptiness:
    """Return the things that a scan lacked: no policy is bound, or no object was listed although the user narrowed nothing."""
    if not bound:
        return Emptiness.POLICIES
    return Emptiness.OBJECTS if not objects and scope == Scope() else Emptiness.NONE


def is_empty(record: ScanRecord) -> bool:
    """Return whether a stored scan had nothing to evaluate."""
    bound = any(policy_record.bindings for policy_record in record.policies)
    objects = sum(line.objects for line in record.coverage)
    return find_emptiness(bound=bound, objects=objects, scope=record.scan.scope) is not Emptiness.NONE
