"""Facts about the detection of repeated objects."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scanner.audit.repeats import RepeatDetector

PAGES = st.lists(st.lists(st.text(max_size=3), max_size=6), max_size=12)


@given(PAGES, st.lists(st.text(max_size=3)))
def test_every_added_name_is_detected(pages: list[list[str]], names: list[str]) -> None:
    """All names that were added on any page are detected, and no other name."""
    seen = RepeatDetector()
    for page in pages:
        seen.add(page)
    assert frozenset(name for page in pages for name in page).intersection(names) == seen.find_repeats(names)
