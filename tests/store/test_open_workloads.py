"""Open problems by workload: the database counts the problems that it counts by policy."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scanner.model.outcome import Finding
from scanner.model.scans.scan import ClusterIdentity
from scanner.posture.grouped_problems import problem_groups
from scanner.posture.settings import DEFAULT_SETTINGS
from scanner.posture.triage import Triage
from scanner.posture.waivers.waivers import WaiverSet
from scanner.store import SqlStore
from tests.posture.waivers import waiver
from tests.store.made import Round, finding
from tests.store.test_problem_groups import ALIKE, RANKED, found
from tests.store.test_problems import record_pods
from tests.store.test_waivers import record
from tests.thorough import examples

NUMBERS = count(1)


@pytest.mark.long
@given(scans=st.lists(found, min_size=1, max_size=3))
@settings(max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_sums_by_policy_are_those_of_the_problems(store: SqlStore, scans: list[tuple[Finding, ...]]) -> None:
    """Problems, refused ones and new ones, after any scans of a cluster."""
    cluster = ClusterIdentity(f"cluster-{next(NUMBERS)}")
    stored = [Round(each, cluster=cluster).record(store, next(NUMBERS)) for each in scans]
    read = store.read_scan(stored[-1].id)
    by_policy, by_workload = Counter[object](), Counter[object]()
    for group in problem_groups(read, Triage(DEFAULT_SETTINGS, read)):
        by_policy.update(_named((group.language, group.policy), group.number, group.refused, group.new))
    for each in store.read_scan(stored[-1].id).open_workloads(RANKED, frozenset()):
        by_workload.update(_named(each.policy, each.problems, each.refused, each.new))

    assert +by_policy == +by_workload


def _named(policy: tuple[str, str], *numbers: int) -> dict[object, int]:
    return {(policy, name): number for name, number in zip(("problems", "refused", "new"), numbers, strict=True)}


def test_the_objects_of_a_workload_are_one_problem_of_it(store: SqlStore) -> None:
    """Two pods of a rollout count once, under the name of the top of their controllers; an object alone has its own."""
    record_pods(store, 1, [finding(name, kind="Pod") for name in ("web-5d4f-1", "web-5d4f-2")])
    Round((finding("alone"),), cluster=ClusterIdentity("other")).record(store, 2)
    [rollout] = store.read_scan("scan-1").open_workloads(ALIKE, frozenset())
    [alone] = store.read_scan("scan-2").open_workloads(ALIKE, frozenset())

    assert ("ReplicaSet", "shop", "web-5d4f", 1) == (rollout.kind, rollout.namespace, rollout.name, rollout.problems)
    assert ("Deployment", "shop", "alone", 1) == (alone.kind, alone.namespace, alone.name, alone.problems)


def test_waived_rows_count_nowhere(store: SqlStore) -> None:
    """A workload of which every finding is waived is not in the list."""
    waivers = WaiverSet((waiver("w", object="a"),))
    record(store, 1, waivers, Round((finding("a"), finding("b"))))
    read = store.read_scan("scan-1")
    waived = Triage(replace(DEFAULT_SETTINGS, waivers=waivers), read).waived.rows

    assert ["b"] == [each.name for each in store.read_scan("scan-1").open_workloads(ALIKE, waived)]
