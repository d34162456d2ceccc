"""The population a page at a time is the whole population, with the numbers of its checks."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.errors import UsageError
from scanner.model.population import CountedObject, PlaceOfPage
from scanner.model.scans.scan import ClusterIdentity
from scanner.store import SqlStore
from tests.store.test_population import ALL, NUMBERS, SETTINGS, Listing, listings


def pages_of(store: SqlStore, number: int, limit: int) -> list[tuple[CountedObject, ...]]:
    """The pages of the population of a scan."""
    page = store.read_population_page(f"scan-{number}", limit=limit)
    pages = [page.objects]
    while page.next is not None:
        page = store.read_population_page(f"scan-{number}", after=page.next, limit=limit)
        pages.append(page.objects)
    return pages


def whole(store: SqlStore, number: int) -> list[CountedObject]:
    """The objects of a scan with the numbers of the sets that have them."""
    record = store.read_scan(f"scan-{number}")
    checks = list(record.evaluated_objects())
    return [
        CountedObject(
            item,
            sum(item.id in each.evaluated for each in checks),
            sum(item.id in ids for each in checks for ids in each.not_evaluated.values()),
        )
        for item in record.population()
    ]


@pytest.mark.long
@given(history=st.lists(listings, min_size=1, max_size=4), limit=st.integers(1, 4))
@SETTINGS
def test_pages_are_the_population_of_the_day(store: SqlStore, history: list[Listing], limit: int) -> None:
    """Objects change, disappear, return, and share their names: each page begins where the one before ended."""
    first = next(NUMBERS)
    scans = list(zip(chain([first], NUMBERS), history, strict=False))
    for number, listing in scans:
        replace(listing, cluster=ClusterIdentity(f"paged-{first}")).record(store, number)
    for number, _ in scans:
        pages, expected = pages_of(store, number, limit), whole(store, number)
        assert expected == [each for page in pages for each in page]
        assert len(expected) == store.read_population_page(f"scan-{number}", limit=limit).total
        assert all(len(page) == limit for page in pages[:-1])


def test_a_kind_is_a_part_of_the_population(store: SqlStore) -> None:
    """A kind that the scan did not list has no objects."""
    ALL.record(store, 1)
    assert 2 == store.read_population_page("scan-1", kind="Pod", limit=9).total
    assert ((), 0, None) == store.read_population_page("scan-1", kind="Node", limit=9)


@pytest.mark.parametrize("number", [-1, 99, 2**31, 2**53])
def test_a_place_that_no_object_has_is_refused(store: SqlStore, number: int) -> None:
    """Also a number that no database stores."""
    ALL.record(store, 1)
    with pytest.raises(UsageError, match="Begin with its first page"):
        store.read_population_page("scan-1", after=PlaceOfPage(0, number), limit=9)
