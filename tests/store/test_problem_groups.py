"""Open problems by policy, action and outcome, and the register of a cluster: the database counts what the scans found."""

from __future__ import annotations

from itertools import count
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scanner.model.outcome import Errored, Finding
from scanner.model.scans.problem_numbers import SeverityRanks
from scanner.model.scans.register import PolicyDays
from scanner.model.scans.scan import ClusterIdentity, ScanState
from scanner.posture.grouped_problems import count_by_check, count_groups
from scanner.store import SqlStore
from tests.store.made import Round, ended, finding
from tests.thorough import examples

pytestmark = pytest.mark.long

NUMBERS = count(1)
ITEMS = tuple(
    finding(name, kind=kind, policy=policy, binding=binding, actions=actions, denies="Deny" in actions)
    for name in ("a", "b")
    for kind in ("Deployment", "Pod")
    for policy in ("replicas", "labels")
    for binding, actions in (("denies", ("Deny",)), ("warns", ("Warn", "Audit")))
)
errored = Errored("no such key: x", would_deny=False)
versions = st.sampled_from(ITEMS).flatmap(
    lambda item: st.sampled_from([item, item._replace(outcome=errored, denies=False), item._replace(excepted_by="x")])
)
found = st.lists(versions, unique_by=lambda item: item.fingerprint, max_size=8).map(tuple)


NO_ROWS: Final[frozenset[int]] = frozenset()
ALIKE: Final = SeverityRanks({}, {}, 2)
REPLICAS, LABELS = ITEMS[0].severity_key, ITEMS[2].severity_key
RANKED: Final = SeverityRanks({REPLICAS[0]: 0, LABELS[0]: 1}, {LABELS: 3}, 2)
"""A policy of its own severity, and another with a check whose severity differs from it."""


@given(scans=st.lists(found, min_size=1, max_size=3))
@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_database_counts_what_the_stream_has(store: SqlStore, scans: list[tuple[Finding, ...]]) -> None:
    """After any scans of a cluster."""
    cluster = ClusterIdentity(f"cluster-{next(NUMBERS)}")
    stored = [Round(each, cluster=cluster).record(store, next(NUMBERS)) for each in scans]

    scan = store.read_scan(stored[-1].id)
    assert count_groups(scan.findings_by_problem(), RANKED, lambda _: False) == scan.problem_groups(RANKED, NO_ROWS)
    assert count_by_check(scan.findings_by_problem(), lambda _: False) == scan.problems_by_check(NO_ROWS)


def test_a_problem_has_the_strictest_action_and_the_worst_outcome(store: SqlStore) -> None:
    """Its two bindings disagree about both."""
    denied, warned = ITEMS[0], ITEMS[1]._replace(outcome=errored)
    Round((denied, warned)).record(store, 1)

    [group] = store.read_scan("scan-1").problem_groups(ALIKE, NO_ROWS)
    assert (2, "Deny", "violated", 1, 1, 1) == group[2:]


def test_the_register_counts_the_scans_of_the_cluster(store: SqlStore) -> None:
    """An incomplete scan does not renew the end of the last complete one."""
    Round().record(store, 1)
    Round(state=ScanState.INCOMPLETE).record(store, 2)
    Round(cluster=ClusterIdentity("another")).record(store, 3)
    register = store.read_scan("scan-2").register()

    assert {"complete": 1, "incomplete": 1} == register.scans
    assert ended(1) == register.last_complete
    assert 0 < register.database_bytes


def test_the_register_has_the_failing_checks_of_each_policy_by_day(store: SqlStore) -> None:
    """Days after the scan of the report are left out."""
    for number, items in ((1, ITEMS[:3]), (2, ITEMS[:1])):
        Round(items).record(store, number)
    [first, second] = [store.read_scan(f"scan-{number}").policy_days() for number in (1, 2)]

    assert {"labels": [1], "replicas": [2]} == _failing(first)
    assert {"labels": [1], "replicas": [2, 1]} == _failing(second)


def test_the_register_lists_the_scans_up_to_that_of_the_report(store: SqlStore) -> None:
    """The newest first; those of other clusters and later ones are not in it, so that the report of a scan stays the same."""
    for number in (1, 2, 4):
        Round().record(store, number)
    Round(cluster=ClusterIdentity("another")).record(store, 3)

    lines = store.read_scan("scan-2").register().lines
    assert [("scan-2", True), ("scan-1", True)] == [(line.id, line.alike) for line in lines]


def _failing(days: PolicyDays) -> dict[str, list[int]]:
    """The failing checks of each policy, by its name, on its days."""
    return {name: [line.findings for line in lines] for (_, name), lines in days.items()}
