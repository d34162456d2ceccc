"""A scan that begins before another one and ends after it has an older list: what the later scan saw stays as that recorded it."""

from __future__ import annotations

from datetime import timedelta

from scanner.model.scans.scan import Scope
from scanner.model.scans.stored_scan import StoredScan
from scanner.posture.problem_rows import problems
from scanner.store import SqlStore
from scanner.store.upkeep.retention import prune
from scanner.store.upkeep.retention_plan import RetentionRule
from tests.documents import KINDS, Document, namespace, rule
from tests.documents import binding as bound
from tests.store.cluster_stories import RULES, SETS, deployment, replica_set, running
from tests.store.databases import rows
from tests.store.made import DAWN
from tests.store.scanned import Story
from tests.store.test_integrity import problems_of

WEB = deployment()
OLD = replica_set(WEB)
LEFT = replica_set(None)
POD = running("web-1a-x", OLD)


def story(store: SqlStore) -> Story:
    """The scans of a cluster with ReplicaSets."""
    return Story(store, kinds=(*KINDS, SETS))


def overlapping(
    own: Story, listed: tuple[Document, ...], later: tuple[Document, ...], **options: Scope
) -> tuple[StoredScan, StoredScan]:
    """A scan, and one that begins after its lists and ends first, maybe with other options."""
    found: list[StoredScan] = []
    first = own.scan(
        listed,
        resource_version="200",
        meanwhile=lambda: found.append(own.scan(later, resource_version="300", **options)),  # type: ignore[arg-type]
    )
    return first, found[0]


def orphaned(store: SqlStore) -> tuple[StoredScan, StoredScan]:
    """The Deployment is deleted without its Pods between the lists of two scans."""
    own = story(store)
    own.scan((*RULES, WEB, OLD, POD))
    return overlapping(own, (*RULES, WEB, OLD, POD), (*RULES, LEFT, POD))


def test_an_older_list_changes_no_workload_that_a_later_scan_saw(store: SqlStore, url: str) -> None:
    """The problem has moved to the ReplicaSet, and views name that also after the older list."""
    first, second = orphaned(store)
    [old, new] = rows(url, "SELECT problem, status, workload_kind FROM v_problems ORDER BY status DESC")

    assert ("resolved", "Deployment", "open", "ReplicaSet") == (
        *(old["status"], old["workload_kind"]),
        *(new["status"], new["workload_kind"]),
    )
    assert [new["problem"]] == [each.id for each in problems(first.findings_by_problem())]
    assert {new["problem"], old["problem"]} == {each.id for each in problems(second.findings_by_problem())}
    assert [] == problems_of(url)


def test_an_older_list_moves_nothing_back(store: SqlStore) -> None:
    """The older scan has the finding with its problem of now, as something that was open before: no gate fails."""
    first, second = orphaned(store)
    [now] = [each for each in problems(second.findings_by_problem()) if each.status == "open"]

    assert [("open", now.id)] == [(stored.status, stored.problem) for stored in first.findings()]
    assert (0, 0, 0) == (first.scan.new, first.scan.resolved, store.count_problems(first.scan.id).new)


def with_message(team: str, version: int) -> Document:
    """A Pod that breaks the rule, with a label that the message names."""
    pod = running("web-1a-x", OLD, version=version)
    labels = {**pod["metadata"]["labels"], "team": team}
    return {**pod, "metadata": {**pod["metadata"], "labels": labels}}


def test_an_older_list_changes_nothing_that_a_later_scan_saw_as_before(store: SqlStore) -> None:
    """The message was another one for a moment, which the older list alone shows."""
    validation = {
        "expression": "!has(object.spec.hostNetwork)",
        "messageExpression": "'of ' + object.metadata.labels.team",
    }
    rules = (namespace("shop"), _policy(validation), bound("b", "p", "Deny"))
    own = story(store)
    own.scan((*rules, WEB, OLD, with_message("a", 1)))
    first, second = overlapping(own, (*rules, WEB, OLD, with_message("b", 2)), (*rules, WEB, OLD, with_message("a", 3)))

    assert ["of a"] == [stored.finding.outcome.message for stored in second.findings()]
    assert [("of a", None)] == [(stored.finding.outcome.message, stored.cause) for stored in first.findings()]


def _policy(validation: Document) -> Document:
    """A policy with one validation."""
    constraints = {"resourceRules": [rule("pods")]}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"},
        "spec": {"matchConstraints": constraints, "validations": [validation]},
    }


def test_an_object_that_a_later_scan_found_gone_stays_gone(store: SqlStore, url: str) -> None:
    """An older list has it for its own report alone."""
    own = story(store)
    own.scan((*RULES, WEB, OLD, POD))
    first, _ = overlapping(own, (*RULES, WEB, OLD, POD), (*RULES, WEB, OLD))
    there = "SELECT name FROM objects JOIN population ON object = id WHERE until > 100 ORDER BY name"

    assert ["shop"] == [row["name"] for row in rows(url, there)]
    assert ["web"] == [stored.workload.name for stored in first.findings() if stored.workload]
    assert [] == problems_of(url)


def test_an_object_that_an_older_list_alone_has_is_gone(store: SqlStore, url: str) -> None:
    """It was created after the scan before, and deleted before the later list."""
    own = story(store)
    own.scan((*RULES, WEB, OLD))
    first, _ = overlapping(own, (*RULES, WEB, OLD, POD), (*RULES, WEB, OLD))
    there = "SELECT name FROM objects JOIN population ON object = id WHERE until > 100 ORDER BY name"

    assert ["shop"] == [row["name"] for row in rows(url, there)]
    assert ["outdated"] == [stored.status for stored in first.findings()]
    assert [] == problems_of(url)
    own.scan((*RULES, WEB, OLD), resource_version="400")
    assert [] == problems_of(url)
    assert 1 <= prune(url, RetentionRule(1), DAWN + timedelta(days=9)).scans
    assert [] == problems_of(url)


def test_a_finding_that_a_later_scan_could_not_decide_is_open_in_an_older_list(store: SqlStore) -> None:
    """The later scan simulates another operation, so the finding stays open, though its object is gone: the older scan still has both."""
    own = story(store)
    own.scan((*RULES, WEB, OLD, POD))
    first, second = overlapping(own, (*RULES, WEB, OLD, POD), (*RULES, WEB, OLD), scope=Scope(operation="update"))

    assert 1 == second.unchecked
    assert [("open", None)] == [(stored.status, stored.cause) for stored in first.findings()]


def test_an_outdated_finding_is_not_counted_as_resolved(store: SqlStore) -> None:
    """The explanation of a problem has the finding once, as it ended."""
    own = story(store)
    before = own.scan((*RULES, WEB, OLD, POD))
    [problem] = problems(before.findings_by_problem())
    overlapping(own, (*RULES, WEB, OLD, POD), (*RULES, WEB, OLD))
    explained = store.find_problem(problem.id)

    assert (0, 1, 0) == (explained.open, explained.resolved, explained.alone)
    assert ["resolved"] == [each.stored.status for each in explained.findings]


def test_an_outdated_finding_is_explained_as_it_ended(store: SqlStore) -> None:
    """Its id stands for the finding that a scan resolved, also after the older list."""
    own = story(store)
    own.scan((*RULES, WEB, OLD, POD))
    first, _ = overlapping(own, (*RULES, WEB, OLD, POD), (*RULES, WEB, OLD))
    [stored] = first.findings()

    assert ("resolved", "noObjects") == (
        store.find_finding(stored.id).stored.status,
        store.find_finding(stored.id).stored.resolution,
    )


def test_an_outdated_finding_that_goes_on_is_explained_as_the_next_one(store: SqlStore) -> None:
    """The later scan has a pod of the same name in place of the one in the older list."""
    again = {**POD, "metadata": {**POD["metadata"], "uid": "uid-of-another"}}
    own = story(store)
    own.scan((*RULES, WEB, OLD, POD))
    first, second = overlapping(own, (*RULES, WEB, OLD, POD), (*RULES, WEB, OLD, again))
    [outdated], [following] = first.findings(), second.findings()

    assert ("outdated", following.id) == (outdated.status, store.find_finding(outdated.id).stored.id)


def test_a_problem_of_outdated_findings_alone_was_never_open(store: SqlStore) -> None:
    """Its explanation has the finding of the one report."""
    own = story(store)
    own.scan((*RULES, WEB, OLD))
    first, _ = overlapping(own, (*RULES, WEB, OLD, POD), (*RULES, WEB, OLD))
    [stored] = first.findings()
    explained = store.find_problem(stored.problem)

    assert (0, 0, 1) == (explained.open, explained.resolved, explained.alone)
    assert ["outdated"] == [each.stored.status for each in explained.findings]
