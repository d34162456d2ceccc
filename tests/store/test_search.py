"""A search over all clusters: what is found, in which order, and with which clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from scanner.audit import population
from scanner.model.outcome import Violated
from scanner.model.policy import VALIDATING
from scanner.model.population import Controller, Pairs, PopulationMember
from scanner.model.scans.scan import ClusterIdentity
from scanner.posture.owners import OwnerKey
from scanner.store import SqlStore, prune
from scanner.store.read.search_hits import Hits, SearchHits
from scanner.store.upkeep.retention_plan import RetentionRule
from tests.store.databases import rows
from tests.store.made import CHECK, PROD, Round, ended, finding, listed, page_of
from tests.store.test_endings import Known
from tests.store.test_kept_labels import PODS
from tests.store.test_problems import with_checks
from tests.store.test_search_words import TEST, record

EDGE = ClusterIdentity("edge", "e1", "v1.36.0")


def names(hits: Hits[Any], field: str = "name") -> list[str]:
    """A field of the hits, in their order."""
    return [getattr(hit, field) for hit in hits.first]


def clusters(hits: Hits[Any]) -> list[list[str]]:
    """The names of the clusters of each hit, in their order."""
    return [[cluster.name for cluster in hit.clusters] for hit in hits.first]


def record_pods(
    store: SqlStore,
    number: int,
    pods: Sequence[str],
    labels: Pairs = (),
    cluster: ClusterIdentity = PROD,
    workload: str = "web",
) -> None:
    """Store a scan of pods with labels, which a Deployment controls."""
    each = Round(tuple(finding(pod, kind="Pod") for pod in pods), coverage=(listed("Pod"),), cluster=cluster)
    controller = Controller("apps/v1", "Deployment", workload, "")
    examined = [PopulationMember(PODS, "shop", pod, f"uid-{pod}", controller, labels) for pod in pods]
    store.begin(each.start(number))
    if pods:
        page = replace(page_of(each.findings, "v1", "Pod"), examined=population.pack(examined))
        store.write_page(f"scan-{number}", page)
    store.finish(f"scan-{number}", replace(each.end(number), controllers={("apps", "Deployment"): True}))


def test_a_policy_is_found_by_its_title_with_its_clusters(store: SqlStore) -> None:
    """The clusters are those whose newest scan has the policy."""
    record(store, 1)
    record(store, 2, cluster=EDGE)
    Round(policies=("labels",), bound=("labels",), cluster=EDGE).record(store, 3)
    found = store.search("few cop").policies

    assert (["replicas"], ["Few copies"], [["test"]]) == (names(found), names(found, "title"), clusters(found))


def test_a_policy_that_no_newest_scan_has_comes_last(store: SqlStore) -> None:
    """Reports of older scans have it."""
    record(store, 1)
    Round(policies=("replicas-of-apps",), bound=("replicas-of-apps",), cluster=TEST).record(store, 2)
    found = store.search("replicas").policies

    assert (["replicas-of-apps", "replicas"], [["test"], []]) == (names(found), clusters(found))


def test_a_policy_is_found_by_the_expression_of_a_check(store: SqlStore) -> None:
    """After those that have the words in their names; every word must match."""
    Round((finding("web"), finding("api", policy="spec-labels")), policies=("replicas", "spec-labels")).record(store, 1)
    both, neither = store.search("spec").policies, store.search("spec zebra").policies

    assert (["spec-labels", "replicas"], []) == (names(both), names(neither))


def test_exact_names_come_first(store: SqlStore) -> None:
    """The name itself, then names that end so, then names that have such a beginning."""
    objects = ("web-frontend", "webhook", "my-web", "web")
    Round(tuple(map(finding, objects))).record(store, 1)

    assert ["web", "my-web", "web-frontend", "webhook"] == names(store.search("web").objects)


def test_exact_names_come_first_among_many(store: SqlStore) -> None:
    """More names than are compared begin so, all of them newer."""
    Round((finding("web"),)).record(store, 1)
    Round(tuple(finding(f"web{number}") for number in range(1_100))).record(store, 2)
    found = store.search("web", 2).objects

    assert ["web", "web0"] == [*names(found)[:1], "web0"]
    assert (2, True) == (len(found.first), found.more)


def test_a_list_is_cut(store: SqlStore) -> None:
    """`more` says that there are others."""
    Round((finding("web-1"), finding("web-2"))).record(store, 1)

    assert [(1, True), (2, False)] == [
        (len(hits.first), hits.more) for hits in (store.search("web", limit).objects for limit in (1, 2))
    ]


def test_a_word_may_name_the_kind_of_an_object(store: SqlStore) -> None:
    """But a kind alone is searched as a name: a list of all objects of a kind answers nothing."""
    Round((finding("web"), finding("web", kind="Pod"), finding("pod-reader"))).record(store, 1)

    assert ["Pod"] == names(store.search("pod web").objects, "kind")
    assert ["pod-reader"] == names(store.search("pod").objects)


def test_an_object_that_is_gone_is_marked(store: SqlStore) -> None:
    """It is found as long as a report shows it."""
    Round((finding("web-1"), finding("web-2"))).record(store, 1)
    Round((finding("web-2"),)).record(store, 2)
    found = store.search("web").objects

    assert {"web-1": False, "web-2": True} == {hit.name: hit.present for hit in found.first}


def test_a_workload_has_the_clusters_of_its_objects(store: SqlStore) -> None:
    """The workload need not be an examined object itself."""
    record_pods(store, 1, ["a", "b"])
    record_pods(store, 2, ["a"], cluster=EDGE)
    record_pods(store, 3, ["c"], cluster=EDGE, workload="webhook")
    found = store.search("deployment/web").workloads

    assert (["web", "webhook"], [["edge", "prod"], ["edge"]]) == (names(found), clusters(found))


def test_an_owner_has_its_clusters(store: SqlStore) -> None:
    """Owners are the values of the labels that name owners; other labels name none."""
    record_pods(store, 1, ["a"], (("app", "payments"), ("team", "payments")))
    record_pods(store, 2, ["a"], (("team", "payments-eu"),), EDGE)
    record_pods(store, 3, ["a"], (("app", "payroll"),), TEST)
    found = store.search("pay").owners

    assert (["payments", "payments-eu"], [["prod"], ["edge"]]) == (names(found, "owner"), clusters(found))


def test_owners_follow_from_the_given_keys(store: SqlStore) -> None:
    """A configuration may name other labels."""
    record_pods(store, 1, ["a"], (("app", "payroll"),))
    keys = (OwnerKey("object", "label", "app"),)

    assert ([], ["payroll"]) == (
        names(store.search("pay").owners, "owner"),
        names(store.search("pay", owners=keys).owners, "owner"),
    )


def test_a_message_has_its_policy_and_clusters(store: SqlStore) -> None:
    """The name of the object is a word that stands for the name."""
    for number, cluster in enumerate((PROD, EDGE)):
        web = finding(f"web-{number}", outcome=Violated(f"web-{number} in shop may run as root"))
        Round((web,), cluster=cluster).record(store, number)
    found = store.search("run root").messages

    assert ["NAME in NAMESPACE may run as root"] == names(found, "message")
    assert (["replicas"], [["edge", "prod"]]) == (names(found, "policy"), clusters(found))


def test_a_message_without_findings_is_gone_after_a_prune(store: SqlStore, url: str) -> None:
    """A prune forgets what it deletes."""
    for number, message in enumerate(("one reason", "another reason", "another reason")):
        Round((finding("web", outcome=Violated(message)),)).record(store, number)
    before = names(store.search("reason").messages, "message")
    prune(url, RetentionRule(1), ended(9))

    assert (["another reason", "one reason"], ["another reason"]) == (
        before,
        names(store.search("reason").messages, "message"),
    )


def test_ids_are_found_by_their_beginnings(store: SqlStore) -> None:
    """Findings, problems, checks and scans, with their cluster and policy."""
    Known((finding("web"),), own_policies=(with_checks(CHECK.expression),)).record(store, 1)
    [stored] = store.read_scan("scan-1").findings()
    check = store.read_scan("scan-1").check_ids[(VALIDATING, "replicas"), CHECK]
    found: list[Hits[Any]] = [
        store.search(stored.id[:6].upper()).findings,
        store.search(stored.problem[:8]).problems,
        store.search(check[:8]).checks,
        store.search("scan-").scans,
    ]

    assert [[stored.id], [stored.problem], [check], ["scan-1"]] == [names(hits, "id") for hits in found]
    assert ["replicas"] * 3 == [names(hits, "policy")[0] for hits in found[:3]]
    assert {"prod"} == {hit.cluster.name for hits in found for hit in hits.first}


@pytest.mark.parametrize("asked", ["", " ", "***", "p-zz", "c-", "abc", "x" * 9_000, "p-" + "0" * 13])
def test_other_texts_find_nothing(store: SqlStore, asked: str) -> None:
    """No hit, and no error."""
    Round((finding("web"),)).record(store, 1)

    assert SearchHits() == store.search(asked)


def test_an_empty_database_has_no_hits(store: SqlStore) -> None:
    """A search needs no scan."""
    assert SearchHits() == store.search("web")


def test_several_words_are_no_id(store: SqlStore) -> None:
    """Only a single word is looked up as an id."""
    Round((finding("web"),)).record(store, 1)

    assert ([], ["scan-1"]) == (
        names(store.search("scan-1 web").scans, "id"),
        names(store.search("scan-1").scans, "id"),
    )


def test_the_database_names_the_policies_of_findings(store: SqlStore, url: str) -> None:
    """The uses of verdicts are those of findings, written once."""
    Round((finding("web"), finding("api"))).record(store, 1)
    Round((finding("web"), finding("api", outcome=Violated("other")))).record(store, 2)

    assert [(1, 1, 1), (2, 1, 1)] == [
        tuple(row.values()) for row in rows(url, 'SELECT verdict, cluster, "check" FROM verdict_uses ORDER BY verdict')
    ]
