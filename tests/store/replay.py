"""The history of a cluster by its definitions, from all that was kept of every scan: slow, and without any database.

Nothing here is shared with the store. Revisions are places in a list of scans, and the state of a finding is a few fields.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias, cast

from scanner.model.outcome import Finding
from tests.store.check_names import CheckNames
from tests.store.kept_scan import Item, Kept, Workload

KINDS = (
    *("policy", "binding", "param", "exception", "namespace", "waiver", "firstScan", "coverage", "server", "assay"),
    *("options", "objectNotInEarlierScan", "objectCreated", "objectDeleted", "objectChanged"),
)
"""The kinds of causes, the strongest first."""

WEAKEST = ("rulesChanged", "unbound", "notMatched", "objectGone", "noObjects", "moved", "fixed")
"""The reasons of resolutions: the first that a finding has is that of its problem."""
EVIDENCE_OF_OBJECTS = {
    **dict.fromkeys(("objectGone", "noObjects"), "objectDeleted"),
    **dict.fromkeys(("fixed", "moved"), "objectChanged"),
}
"""What happened to the object of a finding that ended for a reason."""

Cause: TypeAlias = tuple[str, ...]
Problem: TypeAlias = tuple[Hashable, Workload]


class Recorded(NamedTuple):
    """An object that is there as far as scans could see, and its workload; `derived` if a controller above it was not read."""

    item: Item
    workload: Workload
    derived: bool


@dataclass(frozen=True)
class State:
    """A finding as it is now, or as it was when it was resolved. Numbers are revisions.

    `left` are the problems from which it moved in this episode; `cause` is that of its last change, or of its end.
    """

    finding: Finding
    problem: Problem
    first: int
    opened: int
    seen: int
    version: str
    since: int = 0
    cause: Cause = ()
    reopened: bool = False
    left: tuple[Problem, ...] = ()
    ended: int | None = None


class Member(NamedTuple):
    """What became of a finding in one problem: the revision and the reason of its end, empty while it is open."""

    ended: int | None = None
    reason: str = ""
    moved_to: Problem | None = None


@dataclass(frozen=True)
class Expected:
    """What a scan records: by fingerprint (and problem) the facts that a report has."""

    findings: dict[str, tuple[object, ...]] = field(default_factory=dict)
    resolved: dict[str, tuple[object, ...]] = field(default_factory=dict)
    problems: dict[Problem, tuple[object, ...]] = field(default_factory=dict)
    problem_of: dict[str, Problem] = field(default_factory=dict)
    unchecked: int = 0
    numbers: dict[str, int] = field(default_factory=dict)


class Replay:
    """Replays scans one after the other."""

    def __init__(self) -> None:
        """Begin without a scan."""
        self.scans: list[Kept] = []
        self.states: dict[str, State] = {}
        self.members: dict[Problem, dict[str, Member]] = {}
        self._departures: dict[tuple[Problem, str], Member] = {}
        self.first: dict[Problem, int] = {}
        self.opened: dict[Problem, int] = {}
        self.fixes: Counter[tuple[str, int, int]] = Counter()
        self.strays: set[Problem] = set()
        self.seen: frozenset[str] = frozenset()
        self.concerned: frozenset[Problem] = frozenset()
        self.open_at: list[frozenset[Problem]] = []
        self.there: dict[str, Recorded] = {}
        self._names = CheckNames()

    def scan(self, kept: Kept, *, overtaken: bool = False) -> Expected:
        """The log of the next scan; the newest one of an `overtaken` scan began after it, listed the cluster later, and ended first."""
        before, now = dict(self.states), len(self.scans)
        later = self.scans[-1] if overtaken else None
        self._names.carry_on(self.scans[-1] if self.scans else None, kept)
        self.scans.append(kept)
        workloads = self._record(kept, later)
        found = {
            name: self._seen(finding, before.get(name), workloads[finding.uid].workload, newer=later is not None)
            for name, finding in kept.findings.items()
        }
        outdated = {name for name in found if later and self._is_outdated(found[name], before.get(name), later)}
        seen = {name: state for name, state in found.items() if name not in outdated}
        appeared = [name for name in seen if name not in before or before[name].ended is not None]
        still_open = {name: state for name, state in before.items() if state.ended is None}
        moved = [name for name in seen if name in still_open and seen[name].problem != before[name].problem]
        missing = {
            name: state
            for name, state in still_open.items()
            if name not in seen and self._notices(state) and not (later and state.seen == now - 1)
        }
        continued = dict(self._continuations(missing, {name: seen[name] for name in appeared}))
        for name, of in continued.items():
            older = missing.pop(of)
            first = min(seen[name].first, older.first)
            seen[name] = replace(seen[name], first=first, opened=older.opened, reopened=older.reopened, left=older.left)
            del self.states[of]
            self._forget(of, older.problem)
        ending = {*missing, *continued.values()}
        left = {name: state for name, state in still_open.items() if name not in seen and name not in ending}
        broken = {state.problem for state in (*seen.values(), *left.values())}
        self.strays |= {state.problem for state in left.values() if self._strays(state)}
        ends = {name: self._resolution(state, broken) for name, state in missing.items()}
        self.states |= seen
        self.states |= {name: replace(state, ended=now, cause=ends[name][1]) for name, state in missing.items()}
        self.seen = frozenset(seen)
        self._set_clocks(still_open.values(), before, seen, moved)
        for name in moved:
            self.members[before[name].problem][name] = Member(now, "moved", seen[name].problem)
        for name in before.keys() & seen.keys():
            if (problem := before[name].problem) != seen[name].problem:
                self._departures[problem, name] = self.members[problem][name]
        for name, (reason, _) in ends.items():
            self.members[before[name].problem][name] = Member(now, reason)
        for name, state in seen.items():
            self.members.setdefault(state.problem, {})[name] = Member()
        ended = {before[name].problem for name in (*missing, *moved)}
        self._count_fixes(ended)
        self.concerned = frozenset({*(state.problem for state in seen.values()), *ended})
        self.open_at.append(frozenset(state.problem for state in self.states.values() if state.ended is None))
        new = [name for name in appeared if name not in continued]
        return Expected(
            findings={
                name: (
                    *(self.status(state), self._at(state.first), self._at(state.opened)),
                    *(state.cause if state.since == now else (), continued.get(name, "")),
                )
                for name, state in seen.items()
            }
            | {name: self._outdated(found[name]) for name in outdated},
            resolved={
                name: (*ends[name], self._at(state.first), self._at(state.opened)) for name, state in missing.items()
            },
            problems={problem: self.facts(problem) for problem in self.concerned},
            problem_of={name: state.problem for name, state in {**missing, **found, **seen}.items()},
            unchecked=len(left),
            numbers={"findings": len(found), "new": len(new), "resolved": len(missing)},
        )

    def _at(self, revision: int) -> datetime:
        return self.scans[revision].at

    def status(self, state: State) -> str:
        """The status of an open finding."""
        if state.opened < len(self.scans) - 1:
            return "open"
        return "reopened" if state.reopened else "new"

    def _forget(self, name: str, problem: Problem) -> None:
        """Forget a finding that goes on as another one, but for an earlier end: when it went from this problem to another one."""
        del self.members[problem][name]
        if departure := self._departures.get((problem, name)):
            self.members[problem][name] = departure

    def _strays(self, state: State) -> bool:
        """Whether the object of a finding that was not checked has another workload now: answers have that of the object."""
        recorded = self.there.get(state.finding.uid)
        return recorded is not None and recorded.workload != state.problem[1]

    def workload_of(self, problem: Problem) -> Workload | None:
        """The workload of a problem; None if one of its findings strayed."""
        return None if problem in self.strays else problem[1]

    def facts(self, problem: Problem) -> tuple[object, ...]:
        """The facts of a problem as of the newest scan: status, numbers of findings, reason, where it moved, clocks, workload."""
        members = self.members[problem].values()
        still_open = [member for member in members if member.ended is None]
        clocks = self._at(self.first[problem]), self._at(self.opened[problem])
        if still_open:
            now = len(self.scans) - 1
            begins = "new" if self.first[problem] == now else "reopened"
            status = begins if self.opened[problem] == now else "open"
            return status, len(still_open), "", frozenset(), *clocks, self.workload_of(problem)
        last = self.ended(problem)
        ends = [member for member in members if member.ended == last]
        moved_to = frozenset(member.moved_to for member in ends if member.moved_to is not None)
        return "resolved", 0, weakest(member.reason for member in ends), moved_to, *clocks, self.workload_of(problem)

    def ended(self, problem: Problem) -> int:
        """The revision that ended a problem."""
        return max(member.ended for member in self.members[problem].values() if member.ended is not None)

    def is_open(self, problem: Problem) -> bool:
        """Whether a finding of a problem is open."""
        return any(member.ended is None for member in self.members[problem].values())

    def was_open(self, problem: Problem, revision: int) -> bool:
        """Whether a finding of a problem was open after the scan of a revision."""
        return problem in self.open_at[revision]

    def continues_one_of(self, problem: Problem, revision: int) -> bool:
        """Whether an open problem goes on from another one that was open after the scan of a revision."""
        return any(
            of in self.open_at[revision]
            for name, state in self.states.items()
            if state.problem == problem and state.ended is None
            for of in state.left
        )

    def _count_fixes(self, ended: Iterable[Problem]) -> None:
        now = len(self.scans) - 1
        for problem in ended:
            reasons = {member.reason for member in self.members[problem].values() if member.ended == now}
            if not self.is_open(problem) and reasons == {"fixed"}:
                [[policy, *_], _] = cast("tuple[tuple[str, ...], object]", problem[0])
                self.fixes[policy, self.opened[problem], now] += 1

    def _is_outdated(self, found: State, before: State | None, later: Kept) -> bool:
        """Whether a later scan shows that a finding is not open: it resolved the finding, or would have it."""
        now = len(self.scans) - 1
        if before is not None and (before.ended is None or before.ended == now - 1):
            return before.ended is not None
        return later.operation == self.scans[now].operation and later.would_have(found.finding)

    def _outdated(self, found: State) -> tuple[object, ...]:
        """The facts of a finding that belongs to the newest scan alone."""
        return "outdated", self._at(found.first), self._at(len(self.scans) - 1), (), ""

    def _seen(self, finding: Finding, before: State | None, workload: Workload, *, newer: bool) -> State:
        """The state of a finding that the newest scan found. If the scan before it is `newer`, a finding stays as that saw it."""
        now = len(self.scans) - 1
        if newer and before is not None and before.ended is None and before.seen == now - 1:
            return replace(before, seen=now)
        problem = self._names.name(self.scans[now], finding), workload
        state = State(finding, problem, now, now, now, finding.resource_version, since=now)
        if before is None:
            return replace(state, cause=self._cause(state, before))
        if before.ended is not None:
            return replace(state, first=before.first, reopened=True, cause=self._cause(state, before))
        if (content(before.finding), before.problem) == (content(finding), problem):
            return replace(before, seen=now)
        left = before.left if before.problem == problem else (*before.left, before.problem)
        state = replace(state, first=before.first, opened=before.opened, reopened=before.reopened, left=left)
        return replace(state, cause=self._cause(state, before))

    # The objects.

    def _record(self, kept: Kept, later: Kept | None) -> Mapping[str, Recorded]:
        """Record the objects that are there after a scan, and return these and all that it listed.

        What a `later` scan saw of an object is newer.
        """
        recorded, newer = dict(self._recorded(kept)), dict[str, Recorded]()
        if later is not None:
            newer = {uid: earlier for uid, earlier in self.there.items() if later.sees(earlier.item)}
        own = {uid: each for uid, each in recorded.items() if later is None or not later.sees(each.item)}
        self.there = own | newer
        return recorded | newer

    def _recorded(self, kept: Kept) -> Iterator[tuple[str, Recorded]]:
        """The objects that are there after a scan: those that it listed, and those that it could not list."""
        listed = kept.of_kinds(kept.listed)
        tops = {item.uid: kept.top(item) for item in listed}
        known = {uid: earlier.workload for uid, earlier in self.there.items() if self._is_known(earlier)}
        for item in listed:
            workload, derived = tops[item.uid]
            if derived:
                alike = (each for each in listed if (each.kind, tops[each.uid]) == (item.kind, (workload, derived)))
                others = {known[each.uid] for each in alike if each.uid in known}
                if item.uid in known or len(others) == 1:
                    workload, derived = known.get(item.uid) or others.pop(), False
            yield item.uid, Recorded(item, workload, derived)
        for uid, earlier in self.there.items():
            sees = earlier.item.kind in kept.listed or earlier.item.kind not in kept.served
            if uid not in tops and not (sees and kept.covers(earlier.item.namespace)):
                yield uid, earlier

    def _is_known(self, earlier: Recorded) -> bool:
        """Whether a scan saw the workload above an object."""
        return not earlier.derived and earlier.workload != earlier.item.itself

    def _examined_of(self, workload: Workload) -> list[Item]:
        """The objects of a workload that the newest scan examined, itself included."""
        kept = self.scans[-1]
        own = (each for each in self.there.values() if workload in (each.workload, each.item.itself))
        return [each.item for each in own if kept.examined(each.item.uid)]

    def _exists(self, workload: Workload) -> bool:
        """Whether a workload exists by the newest scan, or, if that could not list its kind, by what is left of it."""
        kept, kind = self.scans[-1], workload[1]
        if kind in kept.metadata:
            return any(item.itself == workload for item in kept.of_kinds(kept.metadata))
        if any(each.item.itself == workload for each in self.there.values()):
            return True
        if kind in kept.listed:
            return False
        controllers = (item for item in kept.read if item.kind != "Pod" and item.owner is not None)
        return bool(self._examined_of(workload)) or any(kept.top(item)[0] == workload for item in controllers)

    # What a scan notices, and why.

    def _notices(self, state: State) -> bool:
        """Whether the newest scan would have found a finding again, or shows that its policy is not bound."""
        kept, finding = self.scans[-1], state.finding
        if not kept.covers(finding.namespace) or self.scans[state.seen].operation != kept.operation:
            return False
        if not self._bound(finding) or finding.kind not in kept.served:
            return True
        return finding.kind in kept.listed and finding.policy in kept.evaluated

    def _bound(self, finding: Finding) -> bool:
        kept = self.scans[-1]
        return finding.policy in kept.policies and (finding.policy, finding.binding) in kept.bindings

    def _resolution(self, state: State, broken: Collection[Problem]) -> tuple[str, Cause]:
        """The reason of a resolution and its cause. `broken` are the problems of which another finding is open."""
        finding = state.finding
        changes = set(self._deciding(finding, state.seen))
        reason = self._reason(state, rules_changed=bool(changes), broken=state.problem in broken)
        if reason == "rulesChanged":
            changes = changes or set(self._changes(finding, state.seen))
        changes |= {EVIDENCE_OF_OBJECTS[reason]} if reason in EVIDENCE_OF_OBJECTS else set()
        return reason, ordered(changes or {"objectChanged"})

    def _reason(self, state: State, *, rules_changed: bool, broken: bool) -> str:
        kept, finding = self.scans[-1], state.finding
        if not self._bound(finding):
            return "unbound"
        gone, workload = not kept.examined(finding.uid), state.problem[1]
        if gone and (finding.kind not in kept.served or broken):
            return "objectGone"
        objects = self._examined_of(workload) if gone else [kept.item(finding.uid)]
        without_objects = "noObjects" if gone and self._exists(workload) else "objectGone"
        if not objects:
            return without_objects
        if not self._invokes(finding, state.seen):
            return "rulesChanged"
        place = finding.policy, finding.binding
        if not any(kept.matches(*place, item.namespace, item.kind) for item in objects):
            same_kind = any(item.kind == finding.kind for item in objects)
            return "notMatched" if same_kind else without_objects
        return "rulesChanged" if rules_changed else "fixed"

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
        """Why a finding is new, reopened or changed."""
        finding, base = state.finding, self._base()
        if before is not None and before.ended is None:
            changes = set(self._changes(finding, before.seen))
            changed = before.version != finding.resource_version or before.problem != state.problem
            return ordered(changes | ({"objectChanged"} if changed or not changes else set()))
        if base is None:
            return ("firstScan",)
        then, changes = self.scans[base], set(self._deciding(finding, base))
        if before is not None and before.ended is not None and before.ended > base:
            # What had ended the finding is undone.
            undone = {"objectCreated" if kind == "objectDeleted" else kind for kind in before.cause}
            return ordered(changes | undone or {"objectChanged"})
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

    def _set_clocks(
        self, still_open: Iterable[State], before: Mapping[str, State], seen: Mapping[str, State], moved: Iterable[str]
    ) -> None:
        """Set the clocks of problems: one that was open keeps them, and one to which findings moved goes on with theirs."""
        now = len(self.scans) - 1
        open_before = {state.problem for state in still_open}
        origins: dict[Problem, list[Problem]] = {}
        for name in moved:
            origins.setdefault(seen[name].problem, []).append(before[name].problem)
        firsts, openings = dict(self.first), dict(self.opened)
        for problem in {state.problem for state in seen.values()} - open_before:
            of = origins.get(problem, [])
            self.first[problem] = min([now, *(firsts[each] for each in (problem, *of) if each in firsts)])
            self.opened[problem] = min([now, *(openings[each] for each in of)])


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


def weakest(reasons: Iterable[str]) -> str:
    """The reason of a problem, given those of its findings."""
    return min(reasons, key=WEAKEST.index)


def ordered(changes: Iterable[str]) -> Cause:
    """A cause: the kinds in their order."""
    return tuple(kind for kind in KINDS if kind in changes)
