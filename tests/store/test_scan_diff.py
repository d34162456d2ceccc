"""The difference of two stored scans, problem by problem."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pytest

from scanner.errors import UsageError
from scanner.model.json import JsonObject
from scanner.model.outcome import Errored, Finding, Violated
from scanner.model.policy import VALIDATING
from scanner.model.resource import UserInfo
from scanner.model.rule import RuleObject, RuleType
from scanner.model.scans.cause import Cause, CauseKind
from scanner.model.scans.method import Method
from scanner.model.scans.scan import ClusterIdentity, ScanStart, ScanState, Scope
from scanner.posture.history.scan_diff import (
    DifferingProblem,
    FindingChange,
    ProblemChange,
    ProblemPart,
    RuleKind,
    ScanDiff,
)
from scanner.store import SqlStore
from scanner.store.upkeep.retention import prune
from scanner.store.upkeep.retention_plan import RetentionRule
from tests.store.databases import execute
from tests.store.made import Round, binding, ended, finding, listed, policy
from tests.store.test_endings import UNBOUND, Known
from tests.store.test_problems import Rules, passing, record_pods, with_checks

A, B, C = finding("a"), finding("b"), finding("c")
NEW, REOPENED, CHANGED, RESOLVED, NOT_CHECKED = ProblemChange
SHOP = Scope(namespaces=("shop",))


def diff(store: SqlStore, before: int, now: int) -> ScanDiff:
    """The difference of two scans by number."""
    return store.compare_scans(f"scan-{before}", f"scan-{now}")


def problems(difference: ScanDiff) -> list[DifferingProblem]:
    """All problems that differ, in their order."""
    return [problem for kind in difference.causes for problem in difference.list_problems(kind, None)]


def only(difference: ScanDiff) -> DifferingProblem:
    """The only problem that differs."""
    [problem] = problems(difference)
    return problem


def changes(difference: ScanDiff) -> dict[str, tuple[str, str]]:
    """The change and the first cause of each problem by the name of its workload."""
    return {each.workload.name: (each.change.value, each.cause.kind.value) for each in problems(difference)}


def test_problems_are_new_or_resolved_by_what_is_open(store: SqlStore) -> None:
    """Scans between both do not matter."""
    Round((A, B)).record(store, 1)
    Round((B, finding("between"))).record(store, 2)
    Round((B, C)).record(store, 3)

    found = diff(store, 1, 3)
    assert {"a": ("resolved", "objectDeleted"), "c": ("new", "objectCreated")} == changes(found)
    assert {(CauseKind.OBJECT_DELETED, RESOLVED): 1, (CauseKind.OBJECT_CREATED, NEW): 1} == found.problems


def test_a_problem_that_was_open_earlier_is_reopened(store: SqlStore) -> None:
    """One that begins after the earlier scan is new, however often it comes and goes."""
    Round((A,)).record(store, 1)
    Round(()).record(store, 2)
    Round((A, B)).record(store, 3)
    Round(()).record(store, 4)
    Round((A, B)).record(store, 5)

    assert {"a": REOPENED, "b": NEW} == {each.workload.name: each.change for each in problems(diff(store, 2, 5))}
    assert ended(1) == next(each.first_seen for each in problems(diff(store, 2, 5)) if each.change is REOPENED)


def test_a_problem_that_is_open_in_both_does_not_differ(store: SqlStore) -> None:
    """Though it was resolved between them."""
    Round((A,)).record(store, 1)
    Round(()).record(store, 2)
    Round((A,)).record(store, 3)

    found = diff(store, 1, 3)
    assert ({}, {}, []) == (found.problems, found.findings, problems(found))


def test_a_rollout_is_no_change(store: SqlStore) -> None:
    """The findings are counted as new and resolved; their problem goes on."""
    pods = [finding(name, kind="Pod") for name in ("web-1", "web-2", "web-3")]
    record_pods(store, 1, pods[:2])
    record_pods(store, 2, pods[1:])

    found = diff(store, 1, 2)
    assert [] == problems(found)
    assert Counter(change for _, change in found.findings) == {FindingChange.NEW: 1, FindingChange.RESOLVED: 1}


def test_a_rollout_with_another_message_changes_the_problem(store: SqlStore) -> None:
    """The image of the new pods is another one."""
    first = finding("web-1", kind="Pod", outcome=Violated("image a"))
    record_pods(store, 1, [first])
    record_pods(store, 2, [finding("web-2", kind="Pod", outcome=Violated("image b"))])

    problem = only(diff(store, 1, 2))
    assert (CHANGED, (ProblemPart.MESSAGE,), "web-5d4f") == (problem.change, problem.parts, problem.workload.name)
    assert problem.before is not None
    assert problem.now is not None
    assert ("image a", "image b") == (problem.before.message, problem.now.message)
    assert Cause(CauseKind.OBJECT_CREATED, (CauseKind.OBJECT_DELETED,)) == problem.cause


@pytest.mark.parametrize(
    ("later", "parts"),
    [
        (A._replace(outcome=Violated("another text")), (ProblemPart.MESSAGE,)),
        (A._replace(outcome=Errored("too many replicas", would_deny=True)), (ProblemPart.OUTCOME,)),
        (A._replace(actions=("Warn",), denies=False), (ProblemPart.ACTION,)),
        (A._replace(excepted_by="team/let-be", denies=False), (ProblemPart.EXCEPTION,)),
    ],
)
def test_an_open_problem_changes_in_its_parts(store: SqlStore, later: Finding, parts: tuple[ProblemPart, ...]) -> None:
    """Its outcome, its message, its action, or an exception."""
    Round((A,)).record(store, 1)
    Round((later._replace(resource_version="2"),)).record(store, 2)

    problem = only(diff(store, 1, 2))
    assert (CHANGED, parts) == (problem.change, problem.parts)
    assert CauseKind.OBJECT_CHANGED in problem.cause.kinds


def test_an_exception_is_the_cause_when_it_begins_and_when_it_ends(store: SqlStore) -> None:
    """The finding stays open."""
    excepted = A._replace(excepted_by="team/let-be", denies=False)
    for number, each in enumerate((A, excepted, A), 1):
        Round((each,)).record(store, number)

    begun, over = only(diff(store, 1, 2)), only(diff(store, 2, 3))
    assert (CauseKind.EXCEPTION, CauseKind.EXCEPTION) == (begun.cause.kind, over.cause.kind)
    assert [(False, True), (True, False)] == [
        (each.before and each.before.excepted, each.now and each.now.excepted) for each in (begun, over)
    ]
    assert [] == problems(diff(store, 1, 3))


def test_resolutions_are_those_of_history(store: SqlStore) -> None:
    """The object passes; later it is deleted."""
    Rules((A,)).record(store, 1)
    passing(Rules(), store, 2)
    Rules(()).record(store, 3)

    fixed, gone = only(diff(store, 1, 2)), only(diff(store, 1, 3))
    assert ("fixed", Cause(CauseKind.OBJECT_CHANGED), ended(2)) == (fixed.resolution, fixed.cause, fixed.resolved_at)
    assert ("fixed", CauseKind.OBJECT_DELETED) == (gone.resolution, gone.cause.kind)


def test_causes_compare_the_two_scans(store: SqlStore) -> None:
    """The rule was loosened in a scan between them, and the object corrected later."""
    Rules((A, B), own_policies=(with_checks("a"),)).record(store, 1)
    Rules((A, B), own_policies=(with_checks("b"),)).record(store, 2)
    Rules((B,), own_policies=(with_checks("b"),)).record(store, 3)

    assert CauseKind.POLICY == only(diff(store, 1, 3)).cause.kind
    assert CauseKind.OBJECT_DELETED == only(diff(store, 2, 3)).cause.kind
    assert (CauseKind.POLICY,) == diff(store, 1, 3).rules_changed


def test_a_deleted_binding_unbinds(store: SqlStore) -> None:
    """Its text is gone."""
    Known((A,)).record(store, 1)
    UNBOUND.record(store, 2)

    found = diff(store, 1, 2)
    assert ("unbound", CauseKind.BINDING) == (only(found).resolution, only(found).cause.kind)
    [rule] = found.rules
    assert (RuleKind.BINDING, "replicas/replicas-binding", None) == (rule.kind, rule.name, rule.now)


def test_a_renamed_binding_continues_findings(store: SqlStore) -> None:
    """It is no change of the problem."""
    Known((A,)).record(store, 1)
    renamed = replace(binding("replicas"), name="renamed")
    Known((finding("a", binding="renamed"),), own_bindings=(renamed,)).record(store, 2)

    found = diff(store, 1, 2)
    assert [] == problems(found)
    assert {(CauseKind.BINDING, FindingChange.CONTINUED): 1} == found.findings


def test_unchecked_findings_are_not_resolved(store: SqlStore) -> None:
    """They are counted apart."""
    elsewhere = finding("d", namespace="other")
    Round((A, elsewhere)).record(store, 1)
    Round((), scope=SHOP).record(store, 2)

    found = diff(store, 1, 2)
    assert ({"a": ("resolved", "objectDeleted")}, 1) == (changes(found), found.unchecked)
    assert ("scope",) == found.incomparable


def test_a_finding_that_only_a_scan_between_saw_is_not_new(store: SqlStore) -> None:
    """The later scan did not check it."""
    elsewhere = finding("d", namespace="other")
    Round((A,)).record(store, 1)
    Round((A, elsewhere)).record(store, 2)
    Round((A,), scope=SHOP).record(store, 3)

    assert ([], 1) == (problems(diff(store, 1, 3)), diff(store, 1, 3).unchecked)


def test_what_the_earlier_scan_did_not_evaluate_is_coverage(store: SqlStore) -> None:
    """Its kind was not listed."""
    Round((A,)).record(store, 1)
    pod = finding("p", kind="Pod")
    Round((A,), coverage=(listed("Deployment"),)).record(store, 2)
    Round((A, pod)).record(store, 3)

    assert {"p": ("new", "coverage")} == changes(diff(store, 2, 3))


@dataclass(frozen=True)
class WithParam(Rules):
    """A scan with a param."""

    most: str = "1"

    def start(self, number: int) -> ScanStart:
        """The start of the scan."""
        document: JsonObject = {"metadata": {"name": "limits"}, "data": {"most": self.most}}
        param = RuleObject(RuleType.PARAM, "ConfigMap shop/limits", f"digest of {self.most}", document)
        return replace(super().start(number), rules=(param,))


def test_the_text_of_params_is_read_from_both_scans(store: SqlStore) -> None:
    """Equal rules are left out."""
    WithParam((A._replace(param_namespace="shop", param_name="limits"),)).record(store, 1)
    WithParam((), most="9").record(store, 2)

    found = diff(store, 1, 2)
    [rule] = found.rules
    assert (RuleKind.PARAM, "ConfigMap shop/limits") == (rule.kind, rule.name)
    assert [{"most": "1"}, {"most": "9"}] == [each and each["data"] for each in (rule.before, rule.now)]
    assert CauseKind.PARAM == only(found).cause.kind


def test_the_text_of_policies_is_their_spec(store: SqlStore) -> None:
    """A policy that one scan does not have is None there."""
    Rules((A,)).record(store, 1)
    Rules((A,), own_policies=(policy("replicas"), policy("labels"))).record(store, 2)

    [rule] = diff(store, 1, 2).rules
    assert (RuleKind.POLICY, VALIDATING, "labels", None) == (rule.kind, rule.language, rule.name, rule.before)
    assert policy("labels").manifest["spec"] == rule.now


def test_rows_of_an_older_version_are_problems_of_their_own(store: SqlStore, url: str) -> None:
    """Their problems are not known, but their findings are; a later row may have the problem."""
    other = A._replace(outcome=Violated("another text"))
    Round((A,)).record(store, 1)
    Round((other, B)).record(store, 2)
    execute(url, "UPDATE findings SET problem = NULL")
    execute(url, "DELETE FROM closing_sums")
    Round((A,)).record(store, 3)

    assert {"a": CHANGED, "b": NEW} == {each.workload.name: each.change for each in problems(diff(store, 1, 2))}
    assert {"a": CHANGED, "b": RESOLVED} == {each.workload.name: each.change for each in problems(diff(store, 2, 3))}


class TestChoice:
    """Which scans are compared."""

    def test_the_two_newest_comparable_scans(self, store: SqlStore) -> None:
        """Also incomplete ones, which were the newest that could see a change; scans of another scope are left out."""
        Round((A,)).record(store, 1)
        Round((A,)).record(store, 2)
        Round((A,), state=ScanState.INCOMPLETE).record(store, 3)
        Round((A,)).record(store, 4)
        Round((A,), scope=SHOP).record(store, 5)

        assert ("scan-3", "scan-4") == store.find_newest_scans_to_compare(store.cluster())
        assert "scan-3" == store.find_earlier_scan_to_compare("scan-4")

    def test_no_comparable_scan_is_an_error(self, store: SqlStore) -> None:
        """The message explains the word comparable."""
        Round((A,)).record(store, 1)
        Round((A,), scope=SHOP).record(store, 2)

        with pytest.raises(UsageError, match="No two scans of prod are comparable"):
            store.find_newest_scans_to_compare(store.cluster())
        with pytest.raises(UsageError, match="No scan before scan-2 is comparable"):
            store.find_earlier_scan_to_compare("scan-2")

    def test_pruned_scans_are_left_out_and_cannot_be_named(self, store: SqlStore, url: str) -> None:
        """They have no report."""
        for number in (1, 2, 3, 4):
            Round((A,)).record(store, number)
        prune(url, RetentionRule(1), ended(5))

        with pytest.raises(UsageError, match=r"was pruned on .* and has no report any more"):
            diff(store, 1, 4)
        with pytest.raises(UsageError, match="No scan before scan-4"):
            store.find_earlier_scan_to_compare("scan-4")

    @pytest.mark.parametrize(
        ("pair", "message"),
        [
            ((1, 3), "different clusters"),
            ((2, 1), "is newer than scan-1: .* assay diff scan-1 scan-2"),
            ((1, 1), "named twice"),
            ((1, 4), "Scan scan-4 failed"),
        ],
    )
    def test_other_pairs_are_rejected(self, store: SqlStore, pair: tuple[int, int], message: str) -> None:
        """The message names the reason."""
        Round((A,)).record(store, 1)
        Round((A,)).record(store, 2)
        Round((A,), cluster=ClusterIdentity("other")).record(store, 3)
        Round((), state=ScanState.FAILED).record(store, 4)

        with pytest.raises(UsageError, match=message):
            diff(store, *pair)

    def test_the_difference_of_incomparable_scans_is_named(self, store: SqlStore) -> None:
        """Scope, operation, requester and mode."""
        Round((A,)).record(store, 1)
        other = Known(
            (A,), scope=Scope(kinds=("Deployment",), operation="update"), method=Method(kyverno_compat="admission")
        )
        started = replace(other.start(2), requester=UserInfo("jane"))
        store.begin(started)
        store.write_page("scan-2", other.page())
        store.finish("scan-2", other.end(2))

        assert ("scope", "operation", "requester", "mode") == diff(store, 1, 2).incomparable


def naive(findings: Iterable[Finding]) -> set[str]:
    """The names of the objects, each of which is a problem."""
    return {each.name for each in findings}


def rounds(seed: int) -> Iterator[tuple[Finding, ...]]:
    """Random findings of some scans."""
    chosen = random.Random(seed)
    names = [f"w-{number}" for number in range(6)]
    for _ in range(7):
        yield tuple(
            finding(name, outcome=Violated(chosen.choice(("one", "two")))) for name in names if chosen.random() < 0.5
        )


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_every_pair_equals_a_replay_that_keeps_everything(store: SqlStore, seed: int) -> None:
    """For any sequence of scans."""
    scans = list(rounds(seed))
    for number, findings in enumerate(scans, 1):
        Round(findings).record(store, number)

    for before in range(1, len(scans) + 1):
        for now in range(before + 1, len(scans) + 1):
            first, last = scans[before - 1], scans[now - 1]
            earlier = set().union(*map(naive, scans[:before]))
            messages = {each.name: each.outcome.message for each in first}
            expected = {
                **{name: NEW if name not in earlier else REOPENED for name in naive(last) - naive(first)},
                **dict.fromkeys(naive(first) - naive(last), RESOLVED),
                **{
                    each.name: CHANGED
                    for each in last
                    if messages.get(each.name, each.outcome.message) != each.outcome.message
                },
            }
            found = diff(store, before, now)
            assert expected == {each.workload.name: each.change for each in problems(found)}
            assert Counter(expected.values()) == sum_by_change(found)


def sum_by_change(difference: ScanDiff) -> Counter[ProblemChange]:
    """The numbers of problems by change."""
    counts: Counter[ProblemChange] = Counter()
    for (_, change), number in difference.problems.items():
        counts[change] += number
    return counts


def test_the_limit_counts_for_each_cause(store: SqlStore) -> None:
    """New problems come first, then those that changed, then resolved ones."""
    Round(tuple(finding(f"old-{number}") for number in range(3))).record(store, 1)
    Round(tuple(finding(f"new-{number}") for number in range(3))).record(store, 2)

    found = diff(store, 1, 2)
    assert ["new-0", "new-1"] == [each.workload.name for each in found.list_problems(CauseKind.OBJECT_CREATED, 2)]
    assert 3 == found.problems_of(CauseKind.OBJECT_DELETED)
