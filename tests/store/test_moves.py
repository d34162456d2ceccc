"""Findings whose objects get another workload, in stories that random histories found: each problem keeps what it had."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scanner.model.scans.scan import Scope
from scanner.model.scans.stored_scan import StoredScan
from scanner.posture.problem_rows import Problem, problems
from scanner.report import FORMATS
from scanner.report.document.document import document_of
from scanner.store import SqlStore, prune
from scanner.store.upkeep.retention_plan import RetentionRule
from tests.documents import Document, binding, policy, rule
from tests.store.cluster_stories import RULES, deployment, owned, replica_set, running
from tests.store.databases import rows
from tests.store.made import DAWN
from tests.store.scanned import Story
from tests.store.test_resolutions import WEB, ended, only, story

OTHER = deployment("other")
ALONE = replica_set(None)
"""A ReplicaSet that lost its Deployment."""
ON_BOTH = policy(
    "p",
    "!has(object.spec.hostNetwork)",
    matchConstraints={"resourceRules": [rule("pods"), rule("deployments", group="apps")]},
)


def left_and_reopened(store: SqlStore) -> tuple[Problem, Problem]:
    """The problem of a pod that was corrected, lost its Deployment, and is broken again: as it ended, and the one that began."""
    own = story(store)
    own.scan([*RULES, WEB, running("web-x", WEB)])
    corrected = only(own.scan([*RULES, WEB, running("web-x", WEB, broken=False, version=2)]))
    return corrected, only(own.scan([*RULES, WEB, running("web-x", None, version=3)]))


def test_a_problem_stays_fixed_when_its_finding_comes_back_in_another_one(store: SqlStore, url: str) -> None:
    """The finding is reopened with another workload: the problem that it left is still there, in views and in `explain`."""
    fixed, begun = left_and_reopened(store)

    listed = {row["problem"]: row["status"] for row in statuses(url)}
    assert {fixed.id: "resolved", begun.id: "new"} == listed
    explained = store.find_problem(fixed.id)
    assert (0, 1, "fixed") == (explained.open, explained.resolved, explained.findings[0].stored.resolution)


def test_a_prune_keeps_the_end_of_a_problem_whose_finding_came_back_in_another_one(store: SqlStore, url: str) -> None:
    """Its other finding ended earlier: without the row of the one that came back, the problem would have ended then."""
    own = story(store)
    own.scan([*RULES, WEB, running("web-x", WEB), running("web-y", WEB)])
    own.scan([*RULES, WEB, running("web-x", WEB), running("web-y", WEB, broken=False, version=2)])
    own.scan([*RULES, WEB, running("web-x", WEB, broken=False, version=2)])
    own.scan([*RULES, WEB, running("web-x", None, version=3)])
    before = statuses(url)
    prune(url, RetentionRule(days=0), DAWN.replace(year=2030))

    assert ["new", "resolved"] == sorted(row["status"] for row in before)
    assert before == statuses(url)


def statuses(url: str) -> list[Mapping[str, Any]]:
    """The problems by the view."""
    names = "problem, status, resolution, first_seen, resolved_at, workload_kind, workload_name"
    return list(rows(url, f"SELECT {names} FROM v_problems ORDER BY problem"))


def test_an_open_problem_keeps_its_age_when_an_older_one_moves_to_it(store: SqlStore) -> None:
    """The date since when a problem is known never changes."""
    own = story(store)
    own.scan([*RULES, WEB, OTHER, running("web-x", WEB)])
    second = own.scan([*RULES, WEB, OTHER, running("web-x", WEB), running("other-x", OTHER)])
    younger = by_workload(second)["other"]
    after = by_workload(own.scan([*RULES, WEB, OTHER, running("web-x", OTHER), running("other-x", OTHER)]))

    assert "moved" == after["web"].resolution
    joined = after["other"]
    assert (younger.first_seen, younger.opened_at, 2) == (joined.first_seen, joined.opened_at, joined.findings)


def by_workload(record: StoredScan) -> dict[str, Problem]:
    """The problems of a scan by the name of their workload."""
    return {each.workload.name: each for each in problems(record.findings_by_problem())}


def test_a_workload_whose_kind_is_not_evaluated_any_more_is_gone_when_its_list_lacks_it(store: SqlStore) -> None:
    """An earlier scan evaluated Deployments, this one lists them for workloads alone, and there is none."""
    own = story(store)
    own.scan([RULES[0], ON_BOTH, RULES[2], {**WEB, "spec": {}}, running("web-x", WEB)])
    own.scan([*RULES, WEB, running("web-x", WEB)])
    after = own.scan(RULES)

    assert {"web": "objectGone"} == ended(after)


def test_a_problem_that_moved_is_not_new_after_its_object_was_created_again(store: SqlStore) -> None:
    """The gate agrees with the difference: the finding was open in the baseline, as one of another problem."""
    own = story(store)
    own.scan([*RULES, WEB, running("web-x", WEB)])
    own.scan([*RULES, WEB, running("web-x", None)], scope=Scope(namespaces=("shop",)))
    created = owned(running("web-x", None), "uid-of-another")
    after = own.scan([*RULES, WEB, created])

    counts = store.count_problems(after.scan.id)
    assert counts.baseline is not None
    assert (1, 0) == (counts.total, counts.new)
    diff = store.compare_scans(counts.baseline.id, after.scan.id)
    assert ["resolved"] == [change.value for _, change in diff.problems]


def test_a_problem_that_moved_is_not_reopened_by_a_new_finding_beside_an_unchecked_one(store: SqlStore) -> None:
    """The finding that moved is not checked by the last scan; the gate and the difference agree that the problem goes on."""
    own = story(store)
    own.scan([*RULES, WEB, running("web-x", WEB)])
    own.scan([*RULES, WEB, OTHER, running("web-x", OTHER)], scope=Scope(operation="update"))
    after = own.scan([*RULES, WEB, OTHER, running("other-x", OTHER)])

    counts = store.count_problems(after.scan.id)
    assert counts.baseline is not None
    assert (1, 0) == (counts.total, counts.new)
    diff = store.compare_scans(counts.baseline.id, after.scan.id)
    assert ["resolved"] == [change.value for _, change in diff.problems]


def test_a_page_leads_from_a_problem_that_moved_to_the_one_that_goes_on(store: SqlStore, tmp_path: Path) -> None:
    """The finding is open at its own address, and its end in the earlier problem stands beside it."""
    own = story(store)
    own.scan([*RULES, WEB, running("web-x", WEB)])
    record = own.scan([*RULES, WEB, running("web-x", None)])
    [finding] = [each.stored for each in record.findings_by_problem() if each.stored.moved_to]
    FORMATS["html"].render(document_of(record), tmp_path / "report")
    page = (tmp_path / "report" / "f" / f"{finding.id[:3]}.html").read_text()

    assert f"the object has another workload now, see problem {finding.moved_to}" in page
    articles = re.findall(r'<article class="place" id="([^"]+)"', page)
    assert [f"f-{finding.id}", f"f-{finding.id}-moved"] == articles


def test_a_move_has_its_cause_in_the_object_also_if_rules_changed(store: SqlStore) -> None:
    """Another action of the binding moves nothing."""
    own = story(store)
    own.scan([*RULES, WEB, replica_set(WEB), running("web-x", replica_set(WEB))])
    after = own.scan([*RULES[:2], binding("b", "p", "Audit"), WEB, ALONE, running("web-x", ALONE)])

    found = by_workload(after)
    assert ["binding", "objectChanged"] == kinds_of(found["web"])
    assert ["binding", "objectChanged"] == kinds_of(found["web-1a"])


def kinds_of(problem: Problem) -> list[str]:
    """The kinds of the cause of a problem."""
    return [kind.value for kind in problem.cause.kinds] if problem.cause else []


def replaced_unseen(own: Story) -> list[Document]:
    """Scan a pod for updates alone, so that a later scan does not check its finding; return the pod that replaces it."""
    own.scan([*RULES, WEB, running("web-x", WEB)], scope=Scope(operation="update"))
    return [*RULES, WEB, running("web-y", WEB)]


def test_a_report_names_the_workload_of_an_unchecked_finding_whose_object_is_gone(store: SqlStore) -> None:
    """The problem is that of the Deployment, not of its first pod."""
    own = story(store)
    after = own.scan(replaced_unseen(own))

    assert ("Deployment", "web", 2, 1) == place_of(only(after))


def test_a_report_names_the_workload_of_a_finding_that_it_resolves_late(store: SqlStore) -> None:
    """The pod was gone one scan before the one that resolves the finding."""
    own = story(store)
    own.scan(replaced_unseen(own))
    after = own.scan([*RULES, WEB], scope=Scope(operation="update"))

    assert ("Deployment", "web") == place_of(only(after))[:2]


def place_of(problem: Problem) -> tuple[str, str, int, int]:
    """The workload of a problem, and the numbers of its open and unchecked findings."""
    return problem.workload.kind, problem.workload.name, problem.findings, problem.unchecked
