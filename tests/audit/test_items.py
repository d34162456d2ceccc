"""The items of a page are decoded as an API server decodes them."""

from __future__ import annotations

import re

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
    found = re.search(rb"[0-9]{19}", text.encode()) is not None
    assert found is may_have_long_numbers(text.encode())
