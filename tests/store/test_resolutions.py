"""The reason of a resolution follows from the workload: what became of it, and which of its objects the scan evaluated."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scanner.model.scans.stored_scan import StoredScan
from scanner.posture.problem_rows import Problem, problems
from scanner.store import SqlStore
from scanner.store.upkeep.retention import prune
from scanner.store.upkeep.retention_plan import RetentionRule
from tests.documents import KINDS, Document, binding, policy, rule, thing
from tests.store.cluster_stories import (
    CRON_JOBS,
    JOBS,
    OPERATORS,
    RULES,
    SETS,
    deployment,
    owned,
    replica_set,
    running,
)
from tests.store.databases import rows
from tests.store.made import DAWN
from tests.store.scanned import Story

SERVED = (*KINDS, SETS, JOBS, CRON_JOBS, OPERATORS)
WEB = deployment()
OLD, NEW = replica_set(WEB), replica_set(WEB, "web-2b")


def story(store: SqlStore) -> Story:
    """The scans of a cluster with the kinds of workloads."""
    return Story(store, kinds=SERVED)


def ended(record: StoredScan) -> dict[str, str]:
    """The resolutions of the problems that a scan resolved, by the name of the workload."""
    return {
        each.workload.name: each.resolution
        for each in problems(record.findings_by_problem())
        if each.status == "resolved"
    }


def only(record: StoredScan) -> Problem:
    """The only problem of a scan."""
    [problem] = problems(record.findings_by_problem())
    return problem


def fixes(store: SqlStore) -> int:
    """The number of fixed problems."""
    return sum(each.problems for each in store.times_to_fix(store.cluster().id, DAWN.date()))


def test_a_fix_by_rollout_is_fixed(store: SqlStore) -> None:
    """The pods that failed are gone, and the pods that replaced them pass: that is remediation, and has a time to fix."""
    own = story(store)
    own.scan([*RULES, WEB, OLD, running("web-1a-x", OLD), running("web-1a-y", OLD)])
    after = own.scan([*RULES, WEB, OLD, NEW, running("web-2b-x", NEW, broken=False)])

    assert {"web": "fixed"} == ended(after)
    assert {"fixed": 2} == dict(after.resolutions())
    assert 1 == fixes(store)
    assert ("objectChanged",) == only(after).cause.kinds  # type: ignore[union-attr]


def test_a_rollout_that_has_not_ended_fixes_nothing(store: SqlStore) -> None:
    """An old pod fails beside a new one that passes: the problem is open, and one finding less."""
    own = story(store)
    own.scan([*RULES, WEB, OLD, running("web-1a-x", OLD), running("web-1a-y", OLD)])
    after = own.scan([*RULES, WEB, OLD, NEW, running("web-1a-y", OLD), running("web-2b-x", NEW, broken=False)])

    assert ("open", 1) == (only(after).status, only(after).findings)
    assert 0 == fixes(store)


def test_a_workload_that_is_gone_is_not_fixed(store: SqlStore) -> None:
    """The Deployment was deleted with its pods."""
    own = story(store)
    own.scan([*RULES, WEB, OLD, running("web-1a-x", OLD)])

    assert {"web": "objectGone"} == ended(own.scan(RULES))
    assert 0 == fixes(store)


def test_a_workload_without_objects_is_not_fixed(store: SqlStore) -> None:
    """The Deployment has no replicas; the next pod that fails reopens the problem."""
    own = story(store)
    own.scan([*RULES, WEB, OLD, running("web-1a-x", OLD)])

    assert {"web": "noObjects"} == ended(own.scan([*RULES, WEB, OLD]))
    assert 0 == fixes(store)
    again = only(own.scan([*RULES, WEB, OLD, running("web-1a-z", OLD)]))
    assert ("reopened", DAWN + timedelta(days=1)) == (again.status, again.first_seen)


def test_a_deployment_without_replica_sets_exists(store: SqlStore) -> None:
    """A scan lists the kinds of the workloads of open problems, also if no object names them any more."""
    own = story(store)
    own.scan([*RULES, WEB, OLD, running("web-1a-x", OLD)])

    assert {"web": "noObjects"} == ended(own.scan([*RULES, WEB]))


def test_a_cron_job_between_runs_has_no_objects(store: SqlStore) -> None:
    """Its Job and the Job's Pod are gone until the next run."""
    cron = owned(thing(CRON_JOBS, "backup", "shop"), "uid-of-backup")
    first, second = (owned(thing(JOBS, f"backup-{n}", "shop"), f"uid-of-job-{n}", owner=cron) for n in (1, 2))
    own = story(store)
    own.scan([*RULES, cron, first, running("backup-1-x", first)])

    assert {"backup": "noObjects"} == ended(own.scan([*RULES, cron]))
    assert "reopened" == only(own.scan([*RULES, cron, second, running("backup-2-x", second)])).status


def test_a_controller_below_proves_a_workload_that_may_not_be_listed(store: SqlStore) -> None:
    """The kind of the workload may not be listed: it exists as long as a ReplicaSet of it does."""
    own, refused = story(store), ["metadata/deployments.apps"]
    own.scan([*RULES, WEB, OLD, running("web-1a-x", OLD)])
    own.scan([*RULES, WEB, OLD, running("web-1a-x", OLD)], refused=refused)

    assert {"web": "noObjects"} == ended(own.scan([*RULES, WEB, OLD], refused=refused))


def test_nothing_left_of_a_workload_that_may_not_be_listed_means_that_it_is_gone(store: SqlStore) -> None:
    """Its kind may not be listed, and no object and no controller below it is left."""
    own, refused = story(store), ["metadata/deployments.apps"]
    own.scan([*RULES, WEB, OLD, running("web-1a-x", OLD)])

    assert {"web": "objectGone"} == ended(own.scan([*RULES, WEB], refused=refused))


def test_a_rollout_to_pods_that_the_policy_leaves_out_is_no_fix(store: SqlStore) -> None:
    """The new pods are not matched any more: the problem is not fixed."""
    selector = {"matchLabels": {"pod-template-hash": "1a"}}
    left_out = policy(
        "p",
        "!has(object.spec.hostNetwork)",
        matchConstraints={"resourceRules": [rule("pods")], "objectSelector": selector},
    )
    rules = (RULES[0], left_out, RULES[2])
    own = story(store)
    own.scan([*rules, WEB, OLD, running("web-1a-x", OLD)])

    assert {"web": "notMatched"} == ended(own.scan([*rules, WEB, NEW, running("web-2b-x", NEW)]))


def test_a_known_workload_is_not_replaced_by_a_derived_one(store: SqlStore) -> None:
    """One scan may not list ReplicaSets: the problem keeps its workload, its age and its status, before and after."""
    operator = owned(thing(OPERATORS, "orders", "shop"), "uid-of-orders")
    web = deployment(owner=operator)
    sets = replica_set(web)
    objects = [*RULES, operator, web, sets, running("web-1a-x", sets)]
    own = story(store)
    before = only(own.scan(objects))
    without = own.scan([*objects, running("web-1a-new", sets)], refused=["metadata/replicasets.apps"])
    after = own.scan([*objects, running("web-1a-new", sets)])

    assert "orders" == before.workload.name
    for record in (without, after):
        problem = only(record)
        assert (before.id, "open", before.opened_at) == (problem.id, problem.status, problem.opened_at)
        assert 0 == store.count_problems(record.scan.id).new
    assert [False] * 2 == [each.workload.derived for each in (only(without), only(after))]


def test_a_workload_that_a_scan_sees_replaces_the_known_one(store: SqlStore) -> None:
    """A derived workload, which was never seen, gives way to the one that a scan sees."""
    operator = owned(thing(OPERATORS, "orders", "shop"), "uid-of-orders")
    web = deployment(owner=operator)
    sets = replica_set(web)
    objects = [*RULES, operator, web, sets, running("web-1a-x", sets)]
    own = story(store)
    derived = only(own.scan(objects, refused=["metadata/replicasets.apps"]))
    seen = own.scan(objects)

    assert ("web", True) == (derived.workload.name, derived.workload.derived)
    assert {"web": "moved"} == ended(seen)
    assert ["orders"] == [each.workload.name for each in problems(seen.findings_by_problem()) if each.status == "open"]


def orphaned(store: SqlStore) -> tuple[StoredScan, StoredScan]:
    """The scans before and after `kubectl delete deployment --cascade=orphan`."""
    own = story(store)
    before = own.scan([*RULES, WEB, OLD, running("web-1a-x", OLD)])
    left = replica_set(None)
    return before, own.scan([*RULES, left, running("web-1a-x", left)])


def test_a_problem_that_moves_ends_with_a_link_and_the_new_one_goes_on(store: SqlStore) -> None:
    """The report has both: the old problem ended as *moved*, the new one is open since the old one was."""
    before, after = orphaned(store)
    [old, new] = sorted(problems(after.findings_by_problem()), key=lambda each: each.status, reverse=True)

    assert ("resolved", "moved", (new.id,), only(before).id) == (old.status, old.resolution, old.moved_to, old.id)
    assert ("open", "web-1a", only(before).opened_at, only(before).first_seen) == (
        *(new.status, new.workload.name),
        *(new.opened_at, new.first_seen),
    )
    assert [] == list(after.resolved_findings())
    assert ["open"] == [stored.status for stored in after.findings()]


def test_a_move_is_no_remediation_and_nothing_new(store: SqlStore) -> None:
    """No time to fix, and the gate `new` does not count the problem; with a baseline file it knows the ids of before, too."""
    before, after = orphaned(store)

    assert 0 == fixes(store)
    assert 0 == store.count_problems(after.scan.id).new
    assert 0 == store.count_problems(after.scan.id, ids={only(before).id}).new
    assert 1 == store.count_problems(after.scan.id, ids=set()).new


def test_views_and_explanations_have_a_problem_that_moved(store: SqlStore, url: str) -> None:
    """`v_problems` names the new problem, and `explain` the reason."""
    before, after = orphaned(store)
    [old, new] = rows(url, "SELECT problem, status, resolution, moved_to FROM v_problems ORDER BY status DESC")
    explained = store.find_problem(only(before).id)

    assert ("resolved", "moved", new["problem"], only(before).id) == (
        *(old["status"], old["resolution"]),
        *(old["moved_to"], old["problem"]),
    )
    assert ("open", None, None) == (new["status"], new["resolution"], new["moved_to"])
    assert (0, 1, "moved", new["problem"]) == (
        *(explained.open, explained.resolved),
        *(explained.findings[0].stored.resolution, explained.findings[0].stored.moved_to),
    )
    assert 1 == after.scan.findings


def test_a_difference_lists_a_problem_that_moved_once(store: SqlStore) -> None:
    """The old problem is resolved as *moved*; its finding is open in both scans, and no other problem is new or reopened."""
    before, after = orphaned(store)
    difference = store.compare_scans(before.scan.id, after.scan.id)
    [problem] = [each for cause in difference.causes for each in difference.list_problems(cause, None)]

    assert ("resolved", "moved", 1) == (problem.change, problem.resolution, len(problem.moved_to))
    assert {} == dict(difference.findings)


def test_a_problem_may_come_back_from_another_workload(store: SqlStore) -> None:
    """The ReplicaSet is adopted again: both problems have one row each, and the first is open with its age."""
    before, _ = orphaned(store)
    own = Story(store, kinds=SERVED, days=iter(range(3, 9)))  # type: ignore[arg-type]
    after = own.scan([*RULES, WEB, OLD, running("web-1a-x", OLD)])
    explained = store.find_problem(only(before).id)

    assert {"web-1a": "moved"} == ended(after)
    assert (1, 0) == (explained.open, explained.resolved)
    [again] = [each for each in problems(after.findings_by_problem()) if each.status != "resolved"]
    assert (only(before).id, "open", only(before).opened_at) == (again.id, again.status, again.opened_at)


def test_a_prune_changes_no_problem(store: SqlStore, url: str) -> None:
    """Workloads, reasons and owners of resolved and of moved problems are the same after the scans that saw them are pruned."""
    own = story(store)
    other = deployment("api")
    api = replica_set(other, "api-1a")
    own.scan([*RULES, WEB, OLD, running("web-1a-x", OLD), other, api, running("api-1a-x", api)])
    left = replica_set(None)
    own.scan([*RULES, left, running("web-1a-x", left), other, api])
    for _ in range(3):
        own.scan([*RULES, left, running("web-1a-x", left), other, api])
    wanted = "SELECT * FROM v_problems ORDER BY problem"
    before = rows(url, wanted)
    explained = {row["problem"]: facts_of(store, row["problem"]) for row in before}
    assert 3 <= prune(url, RetentionRule(1), DAWN + timedelta(days=6)).scans

    assert before == rows(url, wanted)
    assert explained == {row["problem"]: facts_of(store, row["problem"]) for row in before}
    assert {"Deployment", "ReplicaSet"} == {row["workload_kind"] for row in before}


def facts_of(store: SqlStore, problem: str) -> list[object]:
    """The facts that `explain` prints of a problem's findings."""
    found = store.find_problem(problem)
    return [
        (found.open, found.resolved, stored.status, stored.resolution, stored.workload, stored.kept, stored.moved_to)
        for stored in (each.stored for each in found.findings)
    ]


def test_a_kind_that_is_no_longer_served_is_gone(store: SqlStore, url: str) -> None:
    """Discovery is complete and has no such kind: its problems are resolved, and its objects are no part of the population."""
    rules = (
        RULES[0],
        policy("p", "false", matchConstraints={"resourceRules": [rule("databases", group="example.com")]}),
        binding("b", "p", "Deny"),
    )
    own = story(store)
    own.scan([*rules, owned(thing(OPERATORS, "orders", "shop"), "uid-of-orders")])
    after = own.scan(rules, without=[OPERATORS])

    assert {"orders": "objectGone"} == ended(after)
    assert [] == rows(
        url,
        "SELECT object FROM population JOIN kinds ON kinds.id = population.kind WHERE kinds.kind = 'Database' AND until > 2",
    )


def test_a_kind_that_discovery_may_have_missed_stays(store: SqlStore) -> None:
    """A group did not answer: nothing is known of its kinds."""
    rules = (
        RULES[0],
        policy("p", "false", matchConstraints={"resourceRules": [rule("databases", group="example.com")]}),
        binding("b", "p", "Deny"),
    )
    own = story(store)
    own.scan([*rules, owned(thing(OPERATORS, "orders", "shop"), "uid-of-orders")])
    after = own.scan(rules, without=[OPERATORS], gaps=[("discovery", "/apis/example.com/v1")])

    assert {} == ended(after)
    assert 1 == after.unchecked


EMPTY_OF_OBJECTS = RULES[1:]


@pytest.mark.parametrize("left", [EMPTY_OF_OBJECTS, RULES[:1]], ids=["no object", "no bound policy"])
def test_a_scan_that_had_nothing_to_evaluate_resolves_nothing(store: SqlStore, left: tuple[Document, ...]) -> None:
    """Unless the next scan finds the same."""
    own = story(store)
    own.scan([*RULES, WEB, OLD, running("web-1a-x", OLD)], allow_empty=False)
    first, second = (own.scan(left, allow_empty=False) for _ in range(2))

    assert ("incomplete", {}, 1) == (first.scan.state, ended(first), first.unchecked)
    assert ["web"] == list(ended(second))


@pytest.mark.parametrize("left", [EMPTY_OF_OBJECTS, RULES[:1]], ids=["no object", "no bound policy"])
def test_an_accepted_empty_scan_resolves(store: SqlStore, left: tuple[Document, ...]) -> None:
    """The user accepts with `--allow-empty` that there is nothing."""
    own = story(store)
    own.scan([*RULES, WEB, OLD, running("web-1a-x", OLD)])

    assert ["web"] == list(ended(own.scan(left)))


def test_an_older_list_resolves_nothing(store: SqlStore) -> None:
    """The API server answers from an earlier state: that is a gap with a remedy, and the findings stay open."""
    own = story(store)
    own.scan([*RULES, WEB, OLD, running("web-1a-x", OLD)], resource_version="100")
    older = own.scan([*RULES, WEB, OLD], resource_version="50")

    assert ("incomplete", {}, 1) == (older.scan.state, ended(older), older.unchecked)
    [gap] = [gap for gap in older.gaps if gap.where == "v1/Pod"]
    assert "resource version 50, then 100" in gap.why
    assert "--restored-cluster" in gap.why
    again = own.scan([*RULES, WEB, OLD], resource_version="60")
    assert "incomplete" == again.scan.state


def test_a_restored_cluster_is_accepted(store: SqlStore) -> None:
    """Once: later scans are compared with the state after the restoration."""
    own = story(store)
    own.scan([*RULES, WEB, OLD, running("web-1a-x", OLD)], resource_version="100")
    accepted = own.scan([*RULES, WEB, OLD], resource_version="50", restored=True)
    later = own.scan([*RULES, WEB, OLD], resource_version="60")

    assert ("complete", {"web": "noObjects"}) == (accepted.scan.state, ended(accepted))
    assert "complete" == later.scan.state


def overlapping(store: SqlStore, *, earlier: str, later: str) -> tuple[StoredScan, StoredScan]:
    """A scan that lists the pod as it was, and one that begins later, sees it corrected and ends first."""
    own, found = story(store), list[StoredScan]()
    broken, correct = (
        running("web-1a-x", OLD, broken=each, version=number) for number, each in ((1, True), (2, False))
    )
    own.scan([*RULES, WEB, OLD, broken], resource_version="10")
    first = own.scan(
        [*RULES, WEB, OLD, broken],
        resource_version=earlier,
        meanwhile=lambda: found.append(own.scan([*RULES, WEB, OLD, correct], resource_version=later)),
    )
    return first, found[0]


@pytest.mark.parametrize(("earlier", "later"), [("20", "30"), ("", "")])
def test_an_older_list_reopens_nothing_that_a_later_scan_resolved(
    store: SqlStore, url: str, earlier: str, later: str
) -> None:
    """The scan that began earlier ends later: its finding is outdated, and the problem stays fixed."""
    first, second = overlapping(store, earlier=earlier, later=later)

    assert {"web": "fixed"} == ended(second)
    assert ["outdated"] == [stored.status for stored in first.findings()]
    assert [] == list(problems(first.findings_by_problem()))
    assert 0 == store.count_problems(first.scan.id).total
    assert [("resolved", "fixed")] == [
        (row["status"], row["resolution"]) for row in rows(url, "SELECT status, resolution FROM v_problems")
    ]
    assert (0, 0) == (first.scan.new, first.scan.resolved)


def test_an_overtaken_row_does_not_explain_a_finding(store: SqlStore) -> None:
    """The finding is fixed; the scan that ended last had an older list."""
    first, _ = overlapping(store, earlier="20", later="30")
    [finding] = first.findings()

    explained = store.find_finding(finding.id)
    assert ("resolved", "fixed") == (explained.stored.status, explained.stored.resolution)


def test_a_newer_list_of_an_earlier_scan_reopens(store: SqlStore) -> None:
    """The resource versions decide, if the scan that began earlier listed the kind later."""
    first, _ = overlapping(store, earlier="40", later="30")

    assert ["reopened"] == [each.status for each in problems(first.findings_by_problem())]


def test_the_scan_after_overlapping_ones_finds_what_is_there(store: SqlStore, url: str) -> None:
    """An outdated finding hides nothing: the next scan that finds it reopens the problem."""
    overlapping(store, earlier="20", later="30")
    own = Story(store, kinds=SERVED, days=iter(range(5, 9)))  # type: ignore[arg-type]
    again = own.scan([*RULES, WEB, OLD, running("web-1a-x", OLD, version=3)], resource_version="40")

    assert ["reopened"] == [each.status for each in problems(again.findings_by_problem())]
    assert ["reopened"] == [row["status"] for row in rows(url, "SELECT status FROM v_problems")]


def test_a_finding_that_a_later_scan_does_not_have_is_not_opened(store: SqlStore) -> None:
    """It was never open: the pod was created broken and corrected between two scans."""
    own, found = story(store), list[StoredScan]()
    own.scan([*RULES, WEB, OLD], resource_version="10")
    broken, correct = (running("web-1a-x", OLD, broken=each) for each in (True, False))
    first = own.scan(
        [*RULES, WEB, OLD, broken],
        resource_version="20",
        meanwhile=lambda: found.append(own.scan([*RULES, WEB, OLD, correct], resource_version="30")),
    )

    assert (["outdated"], 0) == ([stored.status for stored in first.findings()], first.scan.new)
