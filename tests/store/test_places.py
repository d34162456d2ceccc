"""The places of objects: stored with their scan, once for equal scans."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.model.scans.place import Place, PlacedObject
from scanner.store import SqlStore
from scanner.store.catalog.places import decode_places, encode_places

from .made import Round, finding
from .test_integrity import problems_of

FOUND = (finding("web"),)
POD = PlacedObject("", "Pod", "shop", "web", Place("shop/web.yaml", 7))
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)
OBJECTS = st.lists(
    st.builds(PlacedObject, TEXT, TEXT, TEXT, TEXT, st.builds(Place, TEXT, st.integers(min_value=1, max_value=2**31))),
    unique_by=lambda each: each[:4],
)


@given(OBJECTS)
def test_every_place_is_read_as_it_was_written(objects: list[PlacedObject]) -> None:
    """Also those of names of any characters."""
    places = decode_places(encode_places(objects))

    assert [each.place for each in objects] == [places.find(*each[:4]) for each in objects]


@given(OBJECTS)
def test_an_order_is_not_stored(objects: list[PlacedObject]) -> None:
    """So two scans of the same files share their places."""
    assert encode_places(objects) == encode_places(objects[::-1])


def test_an_unknown_object_has_no_place() -> None:
    """None, not that of its neighbour."""
    assert decode_places(encode_places([POD])).find("", "Pod", "shop", "other") is None


@pytest.mark.parametrize("number", [1, 2])
def test_a_scan_has_its_places(store: SqlStore, url: str, number: int) -> None:
    """The second scan of the same files has them too, and the database is sound."""
    for each in range(1, number + 1):
        Round(FOUND).record(store, each)
        store.write_places(f"scan-{each}", [POD])
    places = store.read_scan(f"scan-{number}").places()

    assert places is not None
    assert Place("shop/web.yaml", 7) == places.find("", "Pod", "shop", "web")
    assert [] == problems_of(url)


def test_a_scan_of_a_cluster_has_none(store: SqlStore) -> None:
    """A report can tell it from a scan of files without objects."""
    Round(FOUND).record(store, 1)

    assert store.read_scan("scan-1").places() is None
