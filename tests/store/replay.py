"""The history of a cluster by its definitions, from all that was kept of every scan: slow, and without any database.

Nothing here is shared with the store. Revisions are places in a list of scans, and the state of a finding is a few fields.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

from scanner.model.outcome import Finding

KINDS = (
    *("policy", "binding", "param", "exception", "namespace", "waiver", "firstScan", "coverage", "server", "assay"),
    *("options", "objectNotInEarlierScan", "objectCreated", "objectDeleted", "objectChanged"),
)
"""The kinds of causes, the strongest first."""

Cause: TypeAlias = tuple[str, ...]
Check: TypeAlias = tuple[str, str, str, int]
"""A check as its policy has it: policy, kind, expression, and the number of equal ones before it."""
Problem: TypeAlias = tuple[Hashable, tuple[str, ...]]


class Rule(NamedTuple):
    """A policy: its expressions, and the kinds that it matches."""

    expressions: tuple[str, ...]
    kinds: tuple[str, ...]

    @property
    def reads_namespaces(self) -> bool:
        """Whether an expression reads a label of the namespace."""
        return any("namespaceObject" in text for text in self.expressions)


class Bound(NamedTuple):
    """The content of a binding: whether it has params, and whether it selects namespaces of one environment.

    `demands` tells that missing params are an error, `denies` that violations are denied.
    """

    with_params: bool
    of_production: bool
    demands: bool = False
    denies: bool = False


class Item(NamedTuple):
    """An object; `owner` is the name of its controller, a Deployment."""

    kind: str
    namespace: str
    name: str
    uid: str
    version: int
    x: int
    owner: str

    @property
    def workload(self) -> tuple[str, ...]:
        """Group, kind, namespace and name of the workload."""
        if self.owner:
            return "apps", "Deployment", self.namespace, self.owner
        return "" if self.kind == "Pod" else "apps", self.kind, self.namespace, self.name


@dataclass(frozen=True)
class Kept:
    """Everything of a scan: the cluster, the question, and the findings by fingerprint."""

    at: datetime
    policies: Mapping[str, Rule]
    bindings: Mapping[tuple[str, str], Bound]
    params: Mapping[str, str]
    environments: Mapping[str, str]
    items: tuple[Item, ...]
    namespaces: tuple[str, ...]
    operation: str
    server: str
    assay: str
    listed: frozenset[str]
    evaluated: frozenset[str]
    findings: Mapping[str, Finding]

    def covers(self, namespace: str) -> bool:
        """Whether objects of a namespace were in the scope."""
        return not self.namespaces or namespace in self.namespaces

    def examined(self, uid: str) -> bool:
        """Whether an object was listed."""
        return any(item.uid == uid and item.kind in self.listed and self.covers(item.namespace) for item in self.items)

    @property
    def bound(self) -> dict[tuple[str, str], Bound]:
        """The bindings whose policies exist."""
        return {key: bound for key, bound in self.bindings.items() if key[0] in self.policies}

    @property
    def read_params(self) -> Mapping[str, str]:
        """The params, if a binding has params."""
        return self.params if any(bound.with_params for bound in self.bound.values()) else {}

    @property
    def readers(self) -> frozenset[str]:
        """The policies that read the label of namespaces, or have a binding that does."""
        own = self.bound.items()
        return frozenset(
            policy for (policy, _), bound in own if bound.of_production or self.policies[policy].reads_namespaces
        )

    def matches(self, policy: str, binding: str, namespace: str, kind: str) -> bool:
        """Whether a policy matches objects of a kind in a namespace through a binding."""
        selected = not self.bindings[policy, binding].of_production or self.environments[namespace] == "prod"
        return selected and kind in self.policies[policy].kinds


@dataclass(frozen=True)
class State:
    """A finding as it is now, or as it was when it was resolved. Numbers are revisions."""

    finding: Finding
    problem: Problem
    first: int
    opened: int
    seen: int
    version: str
    ended: int | None = None


@dataclass(frozen=True)
class Expected:
    """What a scan records: by fingerprint (and problem) the facts that a report has."""

    findings: dict[str, tuple[object, ...]] = field(default_factory=dict)
    resolved: dict[str, tuple[object, ...]] = field(default_factory=dict)
    problems: dict[Problem, tuple[object, ...]] = field(default_factory=dict)
    problem_of: dict[str, Problem] = field(default_factory=dict)
    unchecked: int = 0


class Replay:
    """Replays scans one after the other."""

    def __init__(self) -> None:
        """Begin without a scan."""
        self.scans: list[Kept] = []
        self.states: dict[str, State] = {}
        self._names: dict[Check, Hashable] = {}
        self._own: dict[Check, Hashable] = {}
        self._first: dict[Problem, int] = {}
        self._opened: dict[Problem, int] = {}

    def scan(self, kept: Kept) -> Expected:
        """The log of the next scan."""
        before, now = dict(self.states), len(self.scans)
        self._name_checks(kept)
        self.scans.append(kept)
        seen = {name: self._seen(name, finding, before.get(name)) for name, finding in kept.findings.items()}
        appeared = [name for name in seen if name not in before or before[name].ended is not None]
        causes = {name: self._cause(state, before.get(name)) for name, state in seen.items()}
        still_open = {name: state for name, state in before.items() if state.ended is None}
        missing = {name: state for name, state in still_open.items() if name not in seen and self._notices(state)}
        continued = dict(self._continuations(missing, {name: seen[name] for name in appeared}))
        for name, of in continued.items():
            older = missing.pop(of)
            seen[name] = replace(seen[name], first=min(seen[name].first, older.first), opened=older.opened)
            del self.states[of]
        ends = {name: self._resolution(state) for name, state in missing.items()}
        self.states |= seen
        self.states |= {name: replace(state, ended=now) for name, state in missing.items()}
        known = set(self._first)
        self._set_clocks(still_open.values(), seen.values())
        statuses = {
            name: "open" if name not in appeared or name in continued else "reopened" if name in before else "new"
            for name in seen
        }
        return Expected(
            findings={
                name: (
                    *(statuses[name], self._at(state.first), self._at(state.opened)),
                    *(causes[name], continued.get(name, "")),
                )
                for name, state in seen.items()
            },
            resolved={
                name: (*ends[name], self._at(state.first), self._at(state.opened)) for name, state in missing.items()
            },
            problems=dict(self._problems(still_open, seen, {name: ends[name][0] for name in missing}, known)),
            problem_of={name: state.problem for name, state in {**missing, **seen}.items()},
            unchecked=len(still_open) - len(missing) - len(continued) - sum(name in seen for name in still_open),
        )

    def _at(self, revision: int) -> datetime:
        return self.scans[revision].at

    def _seen(self, name: str, finding: Finding, before: State | None) -> State:
        """The state of a finding that the newest scan found."""
        now = len(self.scans) - 1
        problem = self._names[check_of(self.scans[now], finding)], item_of(self.scans[now], finding.uid).workload
        if before is None:
            return State(finding, problem, now, now, now, finding.resource_version)
        fresh = State(finding, problem, before.first, now, now, finding.resource_version)
        if before.ended is not None:
            return fresh
        if (content(before.finding), before.problem) == (content(finding), problem):
            return replace(before, seen=now)
        return replace(fresh, opened=before.opened)

    # The names of checks.

    def _name_checks(self, kept: Kept) -> None:
        """Give every check a name, which later versions of its policy carry on."""
        for policy in kept.policies:
            now = checks_of(kept, policy)
            before = checks_of(self.scans[-1], policy) if self.scans and policy in self.scans[-1].policies else []
            names = {key: self._names[of] for key, of in successors(before, now).items()}
            for key in now:
                if key not in names:
                    known = self._names.get(key)
                    names[key] = known if known not in {None, *names.values()} else _fresh(key, names)
            self._names |= names

    # What a scan notices, and why.

    def _notices(self, state: State) -> bool:
        """Whether the newest scan would have found a finding again, or shows that its policy is not bound."""
        kept, finding = self.scans[-1], state.finding
        if not kept.covers(finding.namespace) or self.scans[state.seen].operation != kept.operation:
            return False
        if not self._bound(finding):
            return True
        return finding.kind in kept.listed and finding.policy in kept.evaluated

    def _bound(self, finding: Finding) -> bool:
        kept = self.scans[-1]
        return finding.policy in kept.policies and (finding.policy, finding.binding) in kept.bindings

    def _resolution(self, state: State) -> tuple[str, Cause]:
        """The reason of a resolution and its cause."""
        kept, finding = self.scans[-1], state.finding
        changes = set(self._deciding(finding, state.seen))
        if not self._bound(finding):
            reason = "unbound"
        elif not kept.examined(finding.uid):
            reason = "objectGone"
        elif not self._invokes(finding, state.seen):
            reason = "rulesChanged"
        elif not kept.matches(finding.policy, finding.binding, finding.namespace, finding.kind):
            reason = "notMatched"
        else:
            reason = "rulesChanged" if changes else "fixed"
        changes |= {"objectGone": {"objectDeleted"}, "fixed": {"objectChanged"}}.get(reason, set())
        return reason, ordered(changes or {"objectChanged"})

    def _deciding(self, finding: Finding, revision: int) -> Iterator[str]:
        """The changes that may decide whether there is a finding: actions and patch releases of the server may not."""
        scans = self.scans[revision], self.scans[-1]
        own = finding.policy, finding.binding
        bindings = {bound and bound._replace(denies=False) for bound in (scan.bindings.get(own) for scan in scans)}
        minors = {scan.server.rpartition(".")[0] for scan in scans}
        equal = {part for part, values in (("binding", bindings), ("server", minors)) if len(values) == 1}
        return (part for part in self._changes(finding, revision) if part not in equal)

    def _invokes(self, finding: Finding, revision: int) -> bool:
        """Whether the newest scan can have an invocation: with its param, or with the error that there is none."""
        if finding.param_name:
            return finding.param_name in self.scans[-1].read_params
        if finding.check.kind.value != "configuration":
            return True
        before, now = self.scans[revision], self.scans[-1]
        own = finding.policy, finding.binding
        return before.bindings[own].demands == now.bindings[own].demands and not self._params_differ(before, now)

    def _params_differ(self, before: Kept, now: Kept) -> bool:
        return before.read_params != now.read_params

    def _changes(self, finding: Finding, revision: int) -> Iterator[str]:
        """What changed between the scan of a revision and the newest one, besides objects."""
        before, now = self.scans[revision], self.scans[-1]
        own = finding.policy, finding.binding
        if before.policies.get(finding.policy) != now.policies.get(finding.policy):
            yield "policy"
        if before.bindings.get(own) != now.bindings.get(own):
            yield "binding"
        both_bound = all(own in scan.bound for scan in (before, now))
        missing = finding.check.kind.value == "configuration" and both_bound and self._params_differ(before, now)
        if missing or (finding.param_name and self._param_changed(finding, before, now)):
            yield "param"
        known = before.readers and now.readers and finding.policy in before.readers | now.readers
        if known and before.environments[finding.namespace] != now.environments[finding.namespace]:
            yield "namespace"
        for name in ("server", "assay"):
            if getattr(before, name) != getattr(now, name):
                yield name
        if before.operation != now.operation:
            yield "options"

    def _param_changed(self, finding: Finding, *scans: Kept) -> bool:
        """Whether a param changed; where a scan has no reason to read the param, nothing is known about its deletion."""
        contents = [scan.read_params.get(finding.param_name) for scan in scans]
        known = all((finding.policy, finding.binding) in scan.bound for scan in scans)
        return contents[0] != contents[1] and (None not in contents or known)

    def _cause(self, state: State, before: State | None) -> Cause:
        """Why a finding is new, reopened or changed; empty for one that goes on as it was."""
        finding, base = state.finding, self._base()
        if before is not None and before.ended is None:
            if (content(before.finding), before.problem) == (content(finding), state.problem):
                return ()
            changes = set(self._changes(finding, before.seen))
            moved = before.version != finding.resource_version
            return ordered(changes | ({"objectChanged"} if moved or not changes else set()))
        if base is None:
            return ("firstScan",)
        if before is not None and before.ended is not None:
            base = max(base, before.ended)
        then, changes = self.scans[base], set(self._deciding(finding, base))
        if then.examined(finding.uid):
            return ordered(changes or {"objectChanged"})
        listed = finding.kind in then.listed and then.covers(finding.namespace)
        return ordered(changes | {"objectCreated" if listed else "coverage"})

    def _base(self) -> int | None:
        """The newest earlier scan that is comparable with the newest one, else the newest earlier one."""
        now = self.scans[-1]
        earlier = range(len(self.scans) - 2, -1, -1)
        alike = (
            each
            for each in earlier
            if (self.scans[each].namespaces, self.scans[each].operation) == (now.namespaces, now.operation)
        )
        return next(alike, next(iter(earlier), None))

    # Which finding goes on as which.

    def _continuations(self, gone: Mapping[str, State], come: Mapping[str, State]) -> Iterator[tuple[str, str]]:
        """Pairs of a finding and the finding that it continues."""
        gone, come = dict(gone), dict(come)
        for alike in (same_object, same_place):
            pairs = list(one_to_one(gone, come, alike))
            for later, earlier in pairs:
                del gone[earlier], come[later]
            yield from pairs
        yield from one_to_one(gone, come, self._renamed)

    def _renamed(self, gone: State, come: State) -> bool:
        """Whether only the name of a binding or of a param is another."""
        if (gone.problem, gone.finding.uid) != (come.problem, come.finding.uid):
            return False
        before, now = self.scans[gone.seen], self.scans[-1]
        bindings = [(state.finding.policy, state.finding.binding) for state in (gone, come)]
        params = [state.finding.param_name for state in (gone, come)]
        if params[0] == params[1]:
            return replaced(before.bindings, now.bindings, *bindings)
        return bindings[0] == bindings[1] and replaced(before.read_params, now.read_params, *params)

    # Problems.

    def _set_clocks(self, still_open: Iterable[State], seen: Iterable[State]) -> None:
        now = len(self.scans) - 1
        open_before = {state.problem for state in still_open}
        for state in seen:
            self._first.setdefault(state.problem, now)
            if state.problem not in open_before:
                self._opened[state.problem] = now

    def _problems(
        self, before: Mapping[str, State], seen: Mapping[str, State], ended: Mapping[str, str], known: set[Problem]
    ) -> Iterator[tuple[Problem, tuple[object, ...]]]:
        """The problems with a finding that the newest scan found or resolved."""
        open_before = {state.problem for state in before.values()}
        open_now = Counter(state.problem for state in self.states.values() if state.ended is None)
        reasons: dict[Problem, set[str]] = {}
        for name, reason in ended.items():
            reasons.setdefault(before[name].problem, set()).add(reason)
        for problem in {*(state.problem for state in seen.values()), *reasons}:
            status = "open" if problem in open_before else "reopened" if problem in known else "new"
            fixed = reasons.get(problem) == {"fixed"} and not open_now[problem]
            facts = status if open_now[problem] else "resolved", open_now[problem], fixed
            yield problem, (*facts, self._at(self._first[problem]), self._at(self._opened[problem]))


def _fresh(key: Check, names: Mapping[Check, Hashable]) -> Hashable:
    """The first name made of a check that no other check has."""
    return next(name for again in range(99) if (name := (key, again)) not in names.values())


def checks_of(kept: Kept, policy: str) -> list[Check]:
    """The checks of a policy, in their order."""
    texts = [text.strip() for text in kept.policies[policy].expressions]
    keys = [(policy, "validation", text, texts[:place].count(text)) for place, text in enumerate(texts)]
    return [*keys, (policy, "matchConditions", "", 0), (policy, "configuration", "", 0)]


def check_of(kept: Kept, finding: Finding) -> Check:
    """The check of a finding."""
    if finding.check.kind.value != "validation":
        return finding.policy, finding.check.kind.value, "", 0
    return checks_of(kept, finding.policy)[finding.check.index]


def successors(before: Sequence[Check], now: Sequence[Check]) -> dict[Check, Check]:
    """The checks that go on, each with the earlier one that it continues."""
    found = {key: key for key in now if key in before}
    for key in now:
        twins = [other for other in now if plain(other) == plain(key) and other not in before]
        earlier = [other for other in before if plain(other) == plain(key) and other not in now]
        if key in twins and len(twins) == len(earlier):
            found[key] = earlier[twins.index(key)]
    stayed = dict(found)
    for key in now:
        if key not in stayed:
            [*left] = neighbours(key, now, stayed)
            rivals = [other for other in now if other not in stayed and neighbours(other, now, stayed) == left]
            kept = {of: of for of in stayed.values()}
            lost = [other for other in before if other not in kept and neighbours(other, before, kept) == left]
            if len(rivals) == len(lost) == 1:
                found[key] = lost[0]
    return found


def neighbours(key: Check, keys: Sequence[Check], stayed: Mapping[Check, Check]) -> list[Check | None]:
    """The earlier forms of the nearest checks before and behind a check that stayed; None is an end."""
    own = [other for other in keys if other[1] == key[1]]
    place = own.index(key)
    behind = next((stayed[other] for other in own[place:] if other in stayed), None)
    return [next((stayed[other] for other in reversed(own[:place]) if other in stayed), None), behind]


def plain(key: Check) -> tuple[str, str, str]:
    """A check without spaces and comments, and without its ordinal."""
    return key[0], key[1], re.sub(r"\s|//.*", "", key[2])


def item_of(kept: Kept, uid: str) -> Item:
    """The object with a UID."""
    return next(item for item in kept.items if item.uid == uid)


def content(finding: Finding) -> Any:
    """The part of a finding that is shown, without the version and the excerpt of its object."""
    return finding._replace(resource_version="", evidence=replace(finding.evidence, excerpt=""))


def same_invocation(gone: State, come: State) -> bool:
    """Problem and invocation."""
    of = [
        (state.problem, state.finding.policy, state.finding.binding, state.finding.param_name) for state in (gone, come)
    ]
    return of[0] == of[1]


def same_object(gone: State, come: State) -> bool:
    """Problem, object and invocation."""
    return same_invocation(gone, come) and gone.finding.uid == come.finding.uid


def same_place(gone: State, come: State) -> bool:
    """Problem, name of the object, and invocation."""
    places = [(state.finding.kind, state.finding.namespace, state.finding.name) for state in (gone, come)]
    return same_invocation(gone, come) and places[0] == places[1]


def replaced(before: Mapping[Any, object], now: Mapping[Any, object], earlier: Any, later: Any) -> bool:
    """Whether a key is gone and another one is new, with the same content."""
    gone = earlier in before and earlier not in now
    return gone and later in now and later not in before and before[earlier] == now[later]


def one_to_one(
    gone: Mapping[str, State], come: Mapping[str, State], alike: Callable[[State, State], bool]
) -> Iterator[tuple[str, str]]:
    """The pairs of which neither side has another partner."""
    pairs = [(later, earlier) for earlier in gone for later in come if alike(gone[earlier], come[later])]
    for later, earlier in pairs:
        if sum(later == other or earlier == of for other, of in pairs) == 1:
            yield later, earlier


def ordered(changes: Iterable[str]) -> Cause:
    """A cause: the kinds in their order."""
    return tuple(kind for kind in KINDS if kind in changes)
