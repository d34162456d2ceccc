"""A scan adds as many rows as the cluster changed: lists of tallies, of daily tallies and of gaps are shared."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.model.outcome import Finding, Gap, GapKind
from scanner.model.scans.health import Health, HealthKind
from scanner.model.scans.scan import ScanState, Scope
from scanner.store import SqlStore
from scanner.store.rows.tables import METADATA
from scanner.store.rows.tally_lists import TallyRow, decode_tallies, encode_tallies
from tests.store.databases import count
from tests.store.made import Round, finding
from tests.store.test_integrity import problems_of

GAPS = (Gap(GapKind.LIST, "v1/Secret", "forbidden"), Gap(GapKind.DOCUMENT, "policy.yaml", "not YAML"))
LISTS = ("tally_lists", "tally_sets", "daily_lists", "daily_sets", "gap_lists")
HEALTH = (Health(HealthKind.UNBOUND, "labels", "", "no binding"),)


def of_namespaces(number: int) -> tuple[Finding, ...]:
    """Findings of two policies in many namespaces."""
    return tuple(
        finding(f"{policy}-web", namespace=f"team-{place}", policy=policy)
        for place in range(number)
        for policy in ("replicas", "labels")
    )


def all_rows(url: str) -> int:
    """The rows of all tables."""
    return sum(count(url, table) for table in METADATA.tables)


def lists(url: str) -> tuple[int, ...]:
    """The numbers of the lists of each table."""
    return tuple(count(url, table) for table in LISTS)


@pytest.mark.parametrize("namespaces", [5, 25])
def test_a_scan_with_one_change_adds_few_rows(store: SqlStore, url: str, namespaces: int) -> None:
    """The number does not depend on the size of the cluster: most are the row of the scan, its day and its sums."""
    everything = of_namespaces(namespaces)
    Round(everything, gaps=GAPS).record(store, 1)
    Round(everything[1:], gaps=GAPS).record(store, 2)
    before, lists_before = all_rows(url), lists(url)
    Round(everything[:1] + everything[2:], gaps=GAPS).record(store, 3)

    assert 40 >= all_rows(url) - before
    assert (1, 1, 1, 1, 0) == tuple(now - then for now, then in zip(lists(url), lists_before, strict=True))


def test_an_unchanged_scan_adds_no_list(store: SqlStore, url: str) -> None:
    """Nor does one with the tallies of an earlier scan than the last one."""
    everything = of_namespaces(3)
    for number, findings in enumerate((everything, everything[1:], everything, everything[1:]), start=1):
        Round(findings, gaps=GAPS).record(store, number)

    assert (4, 2, 4, 2, 1) == lists(url)


def test_scans_of_other_scopes_in_turn_share_what_each_had(store: SqlStore, url: str) -> None:
    """Policies, health and tallies of a scope are those of its earlier scan, although a scan of another scope came between."""
    tables = (*LISTS[:2], "scan_policies", "health")
    counts = []
    for number in range(1, 7):
        namespace, policies = ("bank", ("replicas",)) if number % 2 else ("shop", ("replicas", "labels"))
        each = Round(
            (finding("web", namespace=namespace),), scope=Scope((namespace,)), policies=policies, bound=policies
        )
        store.begin(each.start(number))
        for page in each.pages():
            store.write_page(f"scan-{number}", page)
        store.finish(f"scan-{number}", replace(each.end(number), health=HEALTH * len(policies)))
        counts.append(tuple(count(url, table) for table in tables))

    assert {counts[1]} == set(counts[1:])
    assert (2, 2, 3, 3) == counts[-1]
    assert [(HEALTH * 2), HEALTH] == [store.read_scan(f"scan-{number}").health for number in (6, 5)]
    assert [] == problems_of(url)


def test_failed_scans_share_gaps(store: SqlStore, url: str) -> None:
    """A cluster that cannot be read each night has the same gaps."""
    for number in (1, 2, 3):
        Round(gaps=GAPS, state=ScanState.FAILED).record(store, number)

    assert 1 == count(url, "gap_lists")


ROWS = st.builds(
    TallyRow,
    st.integers(1, 10**6),
    st.integers(1, 99),
    st.just("shop"),
    st.sampled_from(["passed", "violated"]),
    st.integers(1, 10**9),
    st.booleans(),
)


@given(st.lists(ROWS, min_size=1))
def test_a_list_reads_as_it_was_written(written: list[TallyRow]) -> None:
    """In the order of its rows."""
    assert written == list(decode_tallies(encode_tallies(written)))
