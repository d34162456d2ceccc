"""Old scans lose their bodies: what is kept reads as before, and later scans resolve what they would have resolved."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import date
from hashlib import sha256
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scanner.errors import UsageError
from scanner.model.outcome import Evidence, Finding, Gap, GapKind, Reason, Violated
from scanner.model.policy import VALIDATING, Validation
from scanner.model.resource import UserInfo
from scanner.model.rule import RuleObject, RuleType
from scanner.model.scans.health import Health, HealthKind
from scanner.model.scans.method import Method
from scanner.model.scans.scan import ClusterIdentity, PageResult, ScanEnd, ScanRecord, ScanStart, ScanState, Scope
from scanner.model.waiver import CandidateFilter
from scanner.posture.problem_rows import problems
from scanner.store import SqlStore, open_store, plan_prune, prune
from scanner.store.upkeep.retention_plan import RetentionRule
from tests.store.databases import count as rows_of
from tests.store.databases import emptied, path_of
from tests.store.made import CHECK, EVERYTHING, Round, binding, clock, ended, finding, policy
from tests.store.test_daily import days_of
from tests.store.test_fixes import Fixing
from tests.store.test_integrity import problems_of
from tests.store.test_problems import OTHER, record_pods
from tests.thorough import examples

UNREAD = Gap(GapKind.DOCUMENT, "shop.yaml, document 1", "line 4, column 1: found a tab")
UNIVERSE = tuple(
    finding(name, kind=kind, namespace=namespace, policy=name_of_policy)
    for name in ("a", "b")
    for kind, namespace in (("Deployment", "shop"), ("Pod", "bank"))
    for name_of_policy in ("replicas", "labels")
)
WEB = finding("web")
PREVIEWED = finding("a", policy="sandbox"), finding("b", policy="sandbox")
EVERY_POLICY = "replicas", "labels"


@dataclass(frozen=True)
class Step:
    """A scan, and how the database is pruned after it; a late scan ends after the scan that begins after it."""

    findings: tuple[Finding, ...] = ()
    scope: Scope = EVERYTHING
    bound: tuple[str, ...] = EVERY_POLICY
    gaps: tuple[Gap, ...] = ()
    state: ScanState = ScanState.COMPLETE
    user: str = "alice"
    policies: int = 0
    health: int = 0
    preview: bool = False
    late: bool = False
    prune: RetentionRule | None = None

    def start(self, number: int, cluster: ClusterIdentity) -> ScanStart:
        """The start of the scan."""
        start = replace(Round(bound=self.bound, scope=self.scope, cluster=cluster).start(number))
        return replace(
            start,
            policies=tuple(policy(name, digest=f"{name} {self.policies}") for name in (*EVERY_POLICY, "sandbox")),
            bindings=(*map(binding, self.bound), *[binding("sandbox", assumed=True)] * self.preview),
            requester=UserInfo(self.user),
            rules=(RuleObject(RuleType.PARAM, "limit", f"digest {self.policies}", {"limit": self.policies}),),
        )

    def pages(self, history: int) -> Iterator[PageResult]:
        """The pages of a scan of a history; the outcomes of the policy `labels` depend on the requester."""
        seen = (item for item in self.findings if item.namespace in (self.scope.namespaces or ("shop", "bank")))
        evaluated = [item for item in seen if item.policy in self.bound] + list(PREVIEWED * self.preview)
        for page in Round(tuple(item._replace(fingerprint=fingerprint(item, history)) for item in evaluated)).pages():
            tallies = {key._replace(requester=key.policy == "labels"): value for key, value in page.tallies.items()}
            yield replace(page, tallies=tallies)

    def end(self, number: int) -> ScanEnd:
        """The end of the scan."""
        end = Round(gaps=self.gaps, state=self.state).end(number)
        return replace(end, health=(Health(HealthKind.NOTE, "labels", "", f"note {self.health}"),))


def fingerprint(item: Finding, history: int) -> str:
    """The fingerprint of a finding, which is another one in each history."""
    return sha256(f"{history} {item.fingerprint}".encode()).hexdigest()


def versions(item: Finding) -> st.SearchStrategy[Finding]:
    """The finding with one of two messages."""
    evidence = Evidence((Reason("object.spec.replicas", "7", "spec.replicas"),), excerpt="{replicas: 7}")
    return st.sampled_from(
        [item._replace(outcome=Violated(message), evidence=evidence) for message in ("too many", "far too many")]
    )


found = st.lists(st.sampled_from(UNIVERSE), unique=True, max_size=6).flatmap(
    lambda items: st.tuples(*map(versions, items))
)
rules = st.sampled_from(
    [RetentionRule(1), RetentionRule(1), RetentionRule(2), RetentionRule(1, 1), RetentionRule(2, 2)]
)
MOSTLY = 5
steps = st.builds(
    Step,
    found,
    state=st.sampled_from([*[ScanState.COMPLETE] * MOSTLY, ScanState.INCOMPLETE, ScanState.FAILED]),
    policies=st.integers(0, 1),
    health=st.integers(0, 1),
    preview=st.sampled_from([*[False] * MOSTLY, True]),
    late=st.sampled_from([*[False] * MOSTLY, True]),
    prune=st.sampled_from([None, RetentionRule(1), RetentionRule(1), RetentionRule(2), RetentionRule(1, 1)]),
)
BLIND: tuple[dict[str, Any], ...] = (
    {"bound": ("replicas",)},
    {"bound": ("labels",)},
    {"gaps": (UNREAD,)},
    {"bound": ("replicas",), "user": "bob"},
)
SCOPES: tuple[dict[str, Any], ...] = (
    {},
    {"user": "bob"},
    {"scope": Scope(namespaces=("shop",))},
    {"scope": Scope(selector="app=web")},
    {"scope": Scope(operation="update")},
    {"scope": Scope(policies=("labels",))},
)
questions = st.sampled_from([*BLIND * 2, *SCOPES, {}, {}])
# Findings stay open and unchecked while several scans ask the same question.
periods = st.tuples(questions, st.lists(steps, min_size=1, max_size=4)).map(
    lambda period: [replace(step, **period[0]) for step in period[1]]
)
histories = st.lists(periods, min_size=3, max_size=6).map(
    lambda history: [step for period in history for step in period]
)
NUMBERS = count(1)
HISTORIES = count()
TOGETHER = 2
"""The number of histories that a database holds: they share rows, and every prune visits all of them."""
SETTINGS = settings(
    max_examples=examples(9),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


class TestAnyHistory:
    """A class of its own, so that another process can run it."""

    @pytest.mark.long
    @given(history=histories, rule=rules)
    @SETTINGS
    def test_pruning_changes_nothing_that_is_kept(
        self, url: str, reference: str, history: list[Step], rule: RetentionRule
    ) -> None:
        """In any history, later scans and kept reports are those of a database that is never pruned, and nothing is damaged."""
        compare(url, reference, [*history, Step(prune=rule)])


@dataclass(frozen=True)
class LadderStep(Step):
    """A scan after bindings were renamed, checks re-worded, objects recreated, and policies deleted.

    `names` are the names of the bindings of both policies, empty for a policy without one; `objects` are the objects that fail,
    by name, with the number of their recreations; an object without a number passes.
    """

    names: tuple[str, str] = ("one", "one")
    reworded: tuple[bool, bool] = (False, False)
    objects: tuple[int | None, int | None] = (0, 0)
    deleted: int = 0

    @property
    def rules(self) -> Iterator[tuple[str, str, str]]:
        """The policies that exist, with their expressions and their bindings."""
        for place, name in enumerate(EVERY_POLICY[self.deleted :]):
            yield name, (OTHER if self.reworded[place] else CHECK).expression, self.names[place]

    def start(self, number: int, cluster: ClusterIdentity) -> ScanStart:
        """The start of the scan."""
        started = super().start(number, cluster)
        policies = (
            replace(policy(name), validations=(Validation(expression),), digest=expression)
            for name, expression, _ in self.rules
        )
        bindings = (binding(name, name=bound) for name, _, bound in self.rules if bound)
        return replace(started, policies=tuple(policies), bindings=tuple(bindings), rules=(), method=Method())

    def pages(self, history: int) -> Iterator[PageResult]:
        """The page of both objects."""
        examined = tuple(
            ladder_finding(history, name, *rule, again or 0)
            for name, again in zip("ab", self.objects, strict=True)
            for rule in self.rules
            if rule[2]
        )
        passing = tuple(item for item in examined if self.objects["ab".index(item.name)] is None)
        yield from Fixing(examined, fixed=passing).pages()

    def end(self, number: int) -> ScanEnd:
        """The end of the scan."""
        end = super().end(number)
        evaluated = tuple((VALIDATING, name) for name, _, bound in self.rules if bound)
        return replace(end, evaluated_policies=evaluated, read_languages=(VALIDATING,))


def ladder_finding(history: int, name: str, policy_name: str, expression: str, bound: str, again: int) -> Finding:
    """A finding whose fingerprint follows from all that the ladder can change."""
    check = replace(CHECK, expression=expression)
    made = finding(name, policy=policy_name, binding=bound, check=check, uid=f"{name}-{again}")
    identity = f"{history} {policy_name} {expression} {bound} {made.uid}"
    return made._replace(fingerprint=sha256(identity.encode()).hexdigest())


ladder_steps = st.builds(
    LadderStep,
    names=st.tuples(*[st.sampled_from(["one", "one", "one", "other", ""])] * 2),
    reworded=st.tuples(*[st.sampled_from([False, False, True])] * 2),
    objects=st.tuples(*[st.sampled_from([0, 0, 0, 1, None])] * 2),
    deleted=st.sampled_from([0, 0, 0, 0, 1]),
    state=st.sampled_from([*[ScanState.COMPLETE] * MOSTLY, ScanState.INCOMPLETE, ScanState.FAILED]),
    prune=st.sampled_from([None, RetentionRule(1), RetentionRule(1), RetentionRule(2), RetentionRule(1, 1)]),
)


class TestAnyContinuation:
    """A class of its own, so that another process can run it."""

    @pytest.mark.long
    @given(history=st.lists(ladder_steps, min_size=6, max_size=14), rule=rules)
    @SETTINGS
    def test_pruning_changes_no_continuation(
        self, url: str, reference: str, history: list[LadderStep], rule: RetentionRule
    ) -> None:
        """Causes, reasons, episodes and the clocks of problems are those of a database that is never pruned, and so are fixes."""
        compare(url, reference, [*history, LadderStep(prune=rule)])


def test_an_object_that_was_fixed_and_fails_again_is_not_taken_for_a_replaced_one(url: str, reference: str) -> None:
    """It is recreated twice, passes once, and fails again: the deletions between the kept scans are those of all scans."""
    recreated = [LadderStep(objects=(number, 0)) for number in (1, 0, None, 1)]
    unbound = LadderStep(names=("one", ""))
    compare(
        url,
        reference,
        [LadderStep(state=ScanState.INCOMPLETE), *recreated, unbound, LadderStep(prune=RetentionRule(1))],
    )


def compare(url: str, reference: str, history: Sequence[Step]) -> None:
    """Store a history in a database that is pruned, and in one that is not, and compare what they answer."""
    if next(HISTORIES) % TOGETHER == 0:
        emptied(url)
        emptied(reference)
    with open_store(url, clock) as store, open_store(reference, clock) as unpruned:
        compare_stores(url, store, unpruned, history)


def compare_stores(url: str, store: SqlStore, reference: SqlStore, history: Sequence[Step]) -> None:
    """Do so with open stores."""
    first = next(NUMBERS)
    cluster = ClusterIdentity(f"cluster-{first}")
    numbers: list[int] = []
    waiting: list[tuple[int, Step]] = []
    for step in history:
        number = next(NUMBERS)
        numbers.append(number)
        for each in (store, reference):
            each.begin(step.start(number, cluster))
            for page in step.pages(first):
                each.write_page(f"scan-{number}", page)
        if step.prune:
            prune(url, step.prune, ended(number))
        due, waiting = ([], [(number, step)]) if step.late and not waiting else ([(number, step), *waiting], [])
        for number_due, step_due in due:
            end = replace(step_due.end(number_due), finished_at=ended(number))
            assert reference.finish(f"scan-{number_due}", end) == store.finish(f"scan-{number_due}", end)
        if step.prune:
            prune(url, step.prune, ended(number))
        assert findings_of(reference, first) == findings_of(store, first)
    assert [] == problems_of(url)
    kept = [number for number in numbers if not is_pruned(store, number)]
    assert [whole(reference, number) for number in kept] == [whole(store, number) for number in kept]
    assert answered(reference, cluster) == answered(store, cluster)
    for before, now in pairwise(kept):
        assert difference_of(reference, before, now) == difference_of(store, before, now)


@pytest.fixture
def reference(prepared: dict[str, str], tmp_path: Path) -> str:
    """The URL of a database that is never pruned."""
    return f"sqlite:///{shutil.copy(path_of(prepared['sqlite']), tmp_path / 'reference.db')}"


def is_pruned(store: SqlStore, number: int) -> bool:
    """Whether a scan has no report any more."""
    return bool(store.find_pruned_scans([store.find_scan(f"scan-{number}")]))


def whole(store: SqlStore, number: int) -> dict[str, Any]:
    """The record of a scan with the answers of the database; ids of rows are left out."""
    record = store.read_scan(f"scan-{number}")
    values = {item.name: getattr(record, item.name) for item in fields(ScanRecord)}
    streams = {name: list(getattr(record, name)()) for name in ("findings", "resolved_findings", "findings_by_problem")}
    everywhere = CandidateFilter(frozenset(EVERY_POLICY), frozenset(), frozenset(), frozenset(), frozenset(), any=True)
    numbers = {
        "census": record.census(),
        "excepted": record.count_excepted(),
        "candidates": sorted(str(each._replace(row=0)) for each in record.candidates(everywhere)),
    }
    objects = {each.id: each for each in record.population()}
    evaluated = [
        (each.check, each.policy, sorted(name.name for number, name in objects.items() if number in each.evaluated))
        for each in record.evaluated_objects()
    ]
    population = sorted(str(each._replace(id=0)) for each in objects.values())
    problems = store.count_problems(f"scan-{number}")
    return {**values, **streams, **numbers, "population": population, "evaluated": evaluated, "problems": problems}


def difference_of(store: SqlStore, before: int, now: int) -> dict[str, Any]:
    """The difference of two scans; empty if they cannot be compared."""
    try:
        found = store.compare_scans(f"scan-{before}", f"scan-{now}")
    except UsageError:
        return {}
    values = {item.name: getattr(found, item.name) for item in fields(found) if item.name != "list_problems"}
    return {**values, "problems": [list(found.list_problems(kind, None)) for kind in found.causes]}


def findings_of(store: SqlStore, history: int) -> dict[str, tuple[Any, ...]]:
    """The state and the times of every finding; of an open one, also its content and its policy."""
    states: dict[str, tuple[Any, ...]] = {}
    for item in UNIVERSE:
        with suppress(UsageError):
            explained = store.find_finding(fingerprint(item, history))
            stored = explained.stored
            if stored.status == "outdated":  # It was never open, and goes with its scan.
                continue
            times = stored.status, stored.first_seen, stored.last_seen, stored.resolved_at, explained.scan
            content = (stored, explained.policy) if stored.status in {"new", "open", "reopened"} else ()
            states[item.fingerprint] = (*times, *content)
    return states


def answered(store: SqlStore, cluster: ClusterIdentity) -> tuple[list[Any], ...]:
    """The daily tallies and the times to fix of a cluster."""
    with suppress(UsageError):
        number = store.cluster(cluster.name).id
        return days_of(store, number, date.min), list(store.times_to_fix(number, date.min))
    return ()


def test_a_pruned_scan_has_a_tombstone_and_no_report(store: SqlStore, url: str) -> None:
    """Its time, state, totals and digest stay; its report is refused in one sentence."""
    Round((WEB,)).record(store, 1)
    Round().record(store, 2)
    before = store.scans()
    pruned = prune(url, RetentionRule(1), ended(9))

    assert (before, frozenset({"scan-1"})) == (store.scans(), store.find_pruned_scans(before))
    assert 1 == pruned.scans
    with pytest.raises(UsageError, match="Scan scan-1 was pruned on 2026-03-10 and has no report any more"):
        store.read_scan("scan-1")


def test_a_finding_that_reopens_is_as_old_as_ever(store: SqlStore, url: str) -> None:
    """All scans with its first row were pruned."""
    Round((WEB,)).record(store, 1)
    Round().record(store, 2)
    Round().record(store, 3)
    prune(url, RetentionRule(1), ended(9))
    Round((WEB,)).record(store, 10)

    [stored] = store.read_scan("scan-10").findings()
    assert ("reopened", ended(1)) == (stored.status, stored.first_seen)


def test_evidence_without_a_report_goes(store: SqlStore, url: str) -> None:
    """The finding stays as resolved, with the interval that names its workload; the values of its object and its messages go."""
    evidence = Evidence((Reason("object.spec.replicas", "7", "spec.replicas"),), excerpt="{replicas: 7}")
    Round((WEB._replace(evidence=evidence), finding("other")._replace(evidence=evidence))).record(store, 1)
    for number in (2, 3):
        Round().record(store, number)
    prune(url, RetentionRule(1), ended(9))

    assert "resolved" == store.find_finding(WEB.fingerprint).stored.status
    assert Evidence() == store.find_finding(WEB.fingerprint).stored.finding.evidence
    assert [0, 0, 2, 0] == [rows_of(url, table) for table in ("evidence", "excerpts", "population", "tally_lists")]


@pytest.mark.parametrize(
    ("days", "months", "kept"),
    [
        pytest.param(9, 0, [32, 40, 70], id="the last days"),
        pytest.param(9, 1, [31, 32, 40, 70], id="the last complete scan of one month"),
        pytest.param(9, 3, [1, 31, 32, 40, 70], id="of three months, of which two have one"),
        pytest.param(99, 0, [1, 2, 31, 32, 40, 70], id="all days"),
    ],
)
def test_days_and_months_are_kept(store: SqlStore, url: str, days: int, months: int, kept: list[int]) -> None:
    """The scans end on 2, 3, 4 March and on 1, 2, 10 April (UTC); the newest complete and the newest partial one stay."""
    ends = {1: ended(20), 2: ended(25), 31: ended(31), 32: ended(32), 40: ended(33), 70: ended(40)}
    states = {2: ScanState.INCOMPLETE, 32: ScanState.INCOMPLETE, 40: ScanState.INCOMPLETE}
    for number, finished_at in ends.items():
        each = Round()
        store.begin(each.start(number))
        end = replace(each.end(number), finished_at=finished_at, state=states.get(number, ScanState.COMPLETE))
        store.finish(f"scan-{number}", end)
    prune(url, RetentionRule(days, months), ended(41))

    gone = store.find_pruned_scans(store.scans())
    assert kept == [number for number in ends if f"scan-{number}" not in gone]


def test_the_newest_scan_of_each_question_is_kept(store: SqlStore, url: str) -> None:
    """Later scans of the same scope are compared with it, however old it is."""
    Round(scope=Scope(namespaces=("shop",))).record(store, 1)
    Round(state=ScanState.FAILED).record(store, 2)
    Round().record(store, 3)
    Round().record(store, 4)
    prune(url, RetentionRule(1), ended(90))

    assert {"scan-2", "scan-3"} == store.find_pruned_scans(store.scans())


def test_a_running_scan_keeps_what_it_is_compared_with(store: SqlStore, url: str) -> None:
    """Also the scan whose policies it shares, and the scans that ended after its begin."""
    Round((WEB,)).record(store, 1)
    Round((WEB,)).record(store, 2)
    store.begin(Round().start(3))
    Round((WEB,)).record(store, 4)
    Round((WEB,)).record(store, 5)

    assert 0 == prune(url, RetentionRule(1), ended(90)).scans
    assert 0 == store.finish("scan-3", Round().end(3)).resolved
    assert 4 == prune(url, RetentionRule(1), ended(90)).scans
    assert [] == problems_of(url)


BLIND_ROUND = Round(bound=("labels",))


def test_a_finding_of_a_pruned_user_is_not_resolved_for_another(store: SqlStore, url: str) -> None:
    """The scan that last saw the finding is pruned, and it was made for another user."""
    begun = replace(Round((WEB,)).start(1), requester=UserInfo("alice"))
    store.begin(begun)
    [page] = Round((WEB,)).pages()
    store.write_page("scan-1", replace(page, tallies={key._replace(requester=True): 1 for key in page.tallies}))
    store.finish("scan-1", Round().end(1))
    for number in (2, 3):
        store.begin(replace(BLIND_ROUND.start(number), requester=UserInfo("alice")))
        store.finish(f"scan-{number}", BLIND_ROUND.end(number))
    prune(url, RetentionRule(1), ended(9))
    scans = {}
    for number, user in ((10, "bob"), (11, "alice")):
        store.begin(replace(Round().start(number), requester=UserInfo(user)))
        scans[user] = store.finish(f"scan-{number}", Round().end(number)).resolved

    assert "scan-1" in store.find_pruned_scans(store.scans())
    assert {"bob": 0, "alice": 1} == scans


def test_a_document_that_became_unreadable_hides_findings_of_pruned_scans(store: SqlStore, url: str) -> None:
    """A finding of a scan that could read the document stays open; one of a scan that could not is resolved."""
    Round((WEB,), gaps=(UNREAD,)).record(store, 1)
    BLIND_ROUND.record(store, 2)
    replace(BLIND_ROUND, gaps=(UNREAD,)).record(store, 3)
    prune(url, RetentionRule(1), ended(9))
    scan = Round(gaps=(UNREAD,)).record(store, 10)

    assert "scan-1" in store.find_pruned_scans(store.scans())
    assert 1 == scan.resolved


def test_a_tombstone_answers_for_findings_only_while_they_are_open(store: SqlStore, url: str) -> None:
    """The policies of the scan that last saw a finding are shown with it, and go when the finding is resolved."""
    Round((WEB,), policies=("replicas", "older")).record(store, 1)
    for number in (2, 3):
        BLIND_ROUND.record(store, number)
    prune(url, RetentionRule(1), ended(9))
    explained = store.find_finding(WEB.fingerprint)
    for number in (10, 11):
        Round().record(store, number)
    prune(url, RetentionRule(1), ended(20))

    assert explained.policy is not None
    assert ("scan-1", "replicas", ended(1)) == (explained.scan.id, explained.policy.name, explained.stored.last_seen)
    assert 0 == rows_of(url, "policies WHERE name = 'older'")


def test_a_prune_can_be_repeated_and_plans_what_it_does(store: SqlStore, url: str) -> None:
    """The plan names the scans and writes nothing; a second prune finds nothing to do."""
    for number in range(1, 6):
        Round((WEB, finding(f"pod-{number}", kind="Pod"))).record(store, number)
    planned = plan_prune(url, RetentionRule(2), ended(5))
    again = plan_prune(url, RetentionRule(2), ended(5))
    done = prune(url, RetentionRule(2), ended(5))

    assert planned == again
    assert ["scan-1", "scan-2"] == [scan.id for scan in planned.scans]
    assert (2, planned.rows) < (done.scans, done.rows)
    planned, done = plan_prune(url, RetentionRule(2), ended(5)), prune(url, RetentionRule(2), ended(5))
    assert (0, ()) == (planned.rows, planned.scans)
    assert (0, 0) == (done.scans, done.rows)


def test_each_cluster_has_its_own_rule(store: SqlStore, url: str) -> None:
    """The newest scan of a cluster that is scanned no more stays."""
    Round((WEB,)).record(store, 1)
    for number in (2, 3):
        Round((WEB,), cluster=ClusterIdentity("depot")).record(store, number)
    prune(url, RetentionRule(1), ended(90))

    assert {"scan-2"} == store.find_pruned_scans(store.scans())
    assert ["web"] == [item.finding.name for item in store.read_scan("scan-1").findings()]


TWO_MONTHS = 27, 28, 29, 33, 34
"""Three scans in March, two in April."""


def test_a_kept_scan_keeps_what_it_resolved(store: SqlStore, url: str) -> None:
    """Also if the finding was reopened since, and the scans around are pruned."""
    web = WEB._replace(evidence=Evidence((Reason("object.spec.replicas", "7", "spec.replicas"),)))
    for number, findings in zip(TWO_MONTHS, [(web,), (web,), (), (web,), (web,)], strict=True):
        Round(findings).record(store, number)
    resolved = list(store.read_scan("scan-29").resolved_findings())
    prune(url, RetentionRule(1, 2), ended(40))

    assert {"scan-27", "scan-28", "scan-33"} == store.find_pruned_scans(store.scans())
    assert ["web"] == [item.finding.name for item in resolved]
    assert resolved == list(store.read_scan("scan-29").resolved_findings())
    assert [] == problems_of(url)


def test_a_kept_scan_is_compared_as_before(store: SqlStore, url: str) -> None:
    """The problems of its pruned baseline are known; as a baseline that the user names, a pruned scan is refused."""
    other = finding("other")
    changed = WEB._replace(outcome=Violated("far too many"))
    for number, findings in zip(TWO_MONTHS, [(WEB,), (WEB,), (changed, other), (changed,), ()], strict=True):
        Round(findings).record(store, number)
    before = store.count_problems("scan-29")
    prune(url, RetentionRule(1, 2), ended(40))

    assert (1, "scan-28") == (before.new, before.baseline and before.baseline.id)
    assert before == store.count_problems("scan-29")
    with pytest.raises(UsageError, match="Scan scan-28 is no baseline any more: it was pruned"):
        store.count_problems("scan-29", baseline="scan-28")


def test_the_clock_of_a_problem_without_findings_stays(store: SqlStore, url: str) -> None:
    """A pod went over to another workload, and comes back after the scans of its time are pruned: it was open all the time."""
    pod = finding("web-1", kind="Pod")
    record_pods(store, 1, [pod])
    for number in (2, 3):
        Round((pod,)).record(store, number)
    prune(url, RetentionRule(1), ended(9))
    record_pods(store, 10, [pod])

    [problem] = [
        each for each in problems(store.read_scan("scan-10").findings_by_problem()) if each.status != "resolved"
    ]
    assert ("open", ended(1), ended(1)) == (problem.status, problem.first_seen, problem.opened_at)


def test_a_preview_is_no_beginning_of_a_problem(store: SqlStore) -> None:
    """A policy that was previewed and is bound then has new problems."""
    for number, assumed in enumerate((True, False), 1):
        started = Round((WEB,), bound=()).start(number)
        store.begin(replace(started, bindings=(binding("replicas", assumed=assumed),)))
        store.write_page(f"scan-{number}", Round((WEB,)).page())
        store.finish(f"scan-{number}", Round().end(number))

    [problem] = problems(store.read_scan("scan-2").findings_by_problem())
    assert ("new", ended(2)) == (problem.status, problem.first_seen)


@pytest.mark.long
def test_a_chain_that_ended_in_pruned_rows_is_no_damage(url: str, reference: str) -> None:
    """A binding was renamed and unbound by turns: the row in which another finding continued the first one is gone."""
    bound = [
        ("one", "one"),
        ("other", "other"),
        ("one", "one"),
        ("one", "one"),
        ("one", ""),
        ("one", "one"),
        ("one", ""),
    ]
    objects = [(0, 0), (0, 1)]
    steps = [
        LadderStep(names=names, objects=objects[place == 1], reworded=(False, place == 3))
        for place, names in enumerate(bound)
    ]
    partial = replace(steps[0], state=ScanState.INCOMPLETE)
    compare(url, reference, [partial, *steps[1:], LadderStep(), LadderStep(prune=RetentionRule(1))])
