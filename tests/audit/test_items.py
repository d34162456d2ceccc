"""The items of a page are decoded as an API server decodes them."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from scanner.audit.items import may_have_long_numbers

_PIECES = st.one_of(
    st.text("0123456789", max_size=24), st.text('ab:,"- ٣', max_size=9), st.just("0000-0000-4000-8000-0000 " * 90)
)


@given(st.lists(_PIECES, max_size=12).map("".join))
@example("".join(f"{'1' * 18}{'x' * 982}" for _ in range(3)) + "1" * 19)
@example("1" * 19)
@example("x" * 1003 + "1" * 19)
@example("x" * 1003 + "1" * 18 + "x")
def test_a_long_number_is_found_wherever_it_stands(text: str) -> None:
    """Only parts of the text are read where no long number can be."""
    if re.search(rb"(?:^|[\s:,\[-])[0-9]{19}", text.encode()):
        assert may_have_long_numbers(text.encode())


@pytest.mark.parametrize("before", ['"', "a", "F", '{"a":"sha256:0f'])
def test_digits_of_a_checksum_are_no_long_number(before: str) -> None:
    """A page of objects with checksums needs no search of each object."""
    assert not may_have_long_numbers(f'{"x" * 9000}{before}{"1" * 24}"'.encode())
