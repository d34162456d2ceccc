"""A scan as it is recorded: what was asked, what was seen, what was counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal

from scanner.model.opinion import Opinion
from scanner.model.outcome import Check, Finding, Gap
from scanner.model.policy import VALIDATING, Action, Binding, BindingKey, Policy, PolicyKey
from scanner.model.reading import UNKNOWN, Reading
from scanner.model.release import Release, release_of
from scanner.model.resource import UserInfo


class ScanState(StrEnum):
    """`running` only while the scan is being written; a killed one is found and marked `failed`."""

    RUNNING = "running"
    COMPLETE = "complete"
    PARTIAL = "partial"
    FAILED = "failed"


class CoverageState(StrEnum):
    """How far a kind was listed. `skipped` is the user's own choice and is no incompleteness.

    `inconsistent` is a list whose pages show different moments: what was there all the time was seen, and once.
    """

    LISTED = "listed"
    PARTIAL = "partial"
    INCONSISTENT = "inconsistent"
    FORBIDDEN = "forbidden"
    FAILED = "failed"
    SKIPPED = "skipped"


class OutcomeName(StrEnum):
    """The names under which outcomes are counted. The two errored ones tell what admission would have done.

    `notAuditable` are those skipped because nobody but a server could decide them.
    """

    PASSED = "passed"
    VIOLATED = "violated"
    ERRORED_DENY = "erroredWouldDeny"
    ERRORED_ADMIT = "erroredWouldAdmit"
    SKIPPED = "skipped"
    NOT_AUDITABLE = "notAuditable"
    WOULD_CHANGE = "wouldChange"
    EXCEPTED = "excepted"


@dataclass(frozen=True, slots=True)
class ClusterIdentity:
    """Which cluster was looked at. `uid` is the kube-system namespace's UID; `server_version` e.g. `v1.36.0`."""

    name: str
    uid: str = ""
    server_version: str = ""
    source: str = "cluster"

    @property
    def release(self) -> Release:
        """Whose rules judge it."""
        return release_of(self.server_version)


@dataclass(frozen=True, slots=True)
class Scope:
    """What the user asked to look at; empty tuples mean everything. Left out by choice is not incomplete.

    `operation` is the request that is simulated: `create`, `update`, or `auto` for the first of these that a rule names.
    """

    namespaces: tuple[str, ...] = ()
    exclude_namespaces: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    skip_kinds: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    bindings: tuple[str, ...] = ()
    selector: str = ""
    operation: str = "auto"


@dataclass(frozen=True, slots=True)
class Coverage:
    """The ledger line of one kind. `objects` counts what was listed, `evaluated` what some policy matched.

    `seconds` is the time it took the pages to come, `resource_version` the moment that the first of them shows.
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


@dataclass(frozen=True, slots=True)
class TallyKey:
    """Under what outcomes are counted: invocation, check, kind, namespace and outcome.

    `requester` sets those apart that can be different for whoever else makes the request; `language` is the policy's.
    """

    policy: str
    binding: str
    param_namespace: str
    param_name: str
    check: Check
    api_version: str
    kind: str
    namespace: str
    outcome: OutcomeName
    requester: bool = False
    language: str = VALIDATING

    @property
    def policy_key(self) -> PolicyKey:
        """Whose outcomes are counted."""
        return self.language, self.policy

    @property
    def binding_key(self) -> BindingKey:
        """By which binding."""
        return self.language, self.policy, self.binding


class HealthKind(StrEnum):
    """What can be wrong with a policy or binding, apart from the objects it judges."""

    UNBOUND = "unbound"
    DANGLING_BINDING = "danglingBinding"
    PARAM_KIND = "paramKindNotServed"
    PARAM_MISSING = "paramNotFound"
    NO_KIND = "matchesNoServedKind"
    NO_OBJECT = "matchedNoObject"
    COMPILE = "doesNotCompile"
    NOT_AUDITABLE = "notAuditable"
    TYPE_WARNING = "typeWarning"
    STALE_STATUS = "staleStatus"
    CONDITION = "statusCondition"
    HIDDEN_ERRORS = "hiddenErrors"
    NEAR_LIMIT = "nearCostLimit"
    DUPLICATE = "duplicateBinding"
    SHADOWED = "shadowedBinding"
    NOTE = "note"


@dataclass(frozen=True, slots=True, order=True)
class Health:
    """One entry of policy health. `binding` is empty when the entry is about the policy itself; `language` is the policy's."""

    kind: HealthKind
    policy: str
    binding: str
    detail: str
    language: str = VALIDATING

    @property
    def policy_key(self) -> PolicyKey:
        """What policy it is about."""
        return self.language, self.policy


@dataclass(frozen=True, slots=True, order=True)
class OutOfScope:
    """Something of the cluster that decides about requests as well, but that a scan does not evaluate."""

    kind: str
    name: str
    why: str


@dataclass(frozen=True, slots=True)
class PolicyRecord:
    """A policy as the scan used it, with its bindings, what it matched and what its expressions read."""

    policy: Policy
    bindings: tuple[Binding, ...]
    matched: int
    actions: tuple[Action, ...] = ()
    reading: Reading = UNKNOWN


@dataclass(frozen=True, slots=True)
class PageResult:
    """Everything that came out of one page of objects; committed to the store as a whole or not at all.

    `identities` name the objects that were judged, by UID or else by place, and are not stored; `repeated` counts those
    that had been judged before and were passed over; `strained` has the largest share of its budgets that an evaluation
    of a policy used, for policies that had to be counted; `bare` counts, by binding, the objects that were
    matched and not evaluated, because there is no param for them.
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


@dataclass(frozen=True, slots=True)
class ScanStart:
    """What is known when a scan begins: `requester` makes the simulated requests; `readings` go by language and name of the policies."""

    id: str
    cluster: ClusterIdentity
    started_at: datetime
    scope: Scope
    tool_version: str
    policies: tuple[Policy, ...]
    bindings: tuple[Binding, ...]
    requester: UserInfo = field(default_factory=UserInfo)
    readings: Mapping[PolicyKey, Reading] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScanEnd:
    """What is known when it ends."""

    finished_at: datetime
    state: ScanState
    coverage: tuple[Coverage, ...]
    health: tuple[Health, ...]
    gaps: tuple[Gap, ...]
    evaluated_policies: tuple[PolicyKey, ...]
    outside: tuple[OutOfScope, ...] = ()
    opinion: Opinion | None = None


@dataclass(frozen=True, slots=True)
class Scan:
    """A recorded scan, without its findings. Of the requester, only the name and the groups are kept."""

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


@dataclass(frozen=True, slots=True)
class StoredFinding:
    """A finding with its history: `id` is the short handle people type; `resolved_at` is None while it is open.

    A `preview` comes from a binding that the scan only assumed: it has no history, and no other scan knows of it.
    """

    id: str
    finding: Finding
    status: Literal["new", "open", "reopened", "resolved", "preview"]
    first_seen: datetime
    last_seen: datetime
    resolved_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ScanRecord:
    """Everything a report says about one stored scan. Findings are streamed: there can be many.

    `findings` yields what this scan saw, ordered by policy, binding, param, check, kind, namespace, name; `resolved`
    what it saw fixed; `unchecked` counts findings that are still open but that this scan did not look at; `opinion` is what
    another engine said, if it was asked.
    """

    scan: Scan
    previous: Scan | None
    policies: tuple[PolicyRecord, ...]
    coverage: tuple[Coverage, ...]
    health: tuple[Health, ...]
    gaps: tuple[Gap, ...]
    tallies: Mapping[TallyKey, int]
    findings: Callable[[], Iterator[StoredFinding]]
    resolved: Callable[[], Iterator[StoredFinding]]
    unchecked: int = 0
    outside: tuple[OutOfScope, ...] = ()
    opinion: Opinion | None = None
