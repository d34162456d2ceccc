"""Literals of integers with thousands of digits have the value that Go's parser gives them."""

from __future__ import annotations

import pytest

from scanner.cel.syntax.literals import BadLiteral, parse_integer, parse_unsigned

ZEROS = "0" * 5000


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        (-1, f"-0x{ZEROS}1"),
        (1, f"0x{ZEROS}1"),
        (-7, f"-{ZEROS}7"),
        (7, f"{ZEROS}7"),
        (-(2**63), f"-0x{ZEROS}8{'0' * 15}"),
    ],
)
def test_zeros_before_a_number_do_not_count(expected: int, text: str) -> None:
    """The sign stays, however many zeros follow."""
    assert expected == parse_integer(text)


@pytest.mark.parametrize("text", ["9" * 5000, f"-{'9' * 5000}", f"0x{'f' * 5000}", str(2**63)])
def test_a_number_that_does_not_fit_is_invalid(text: str) -> None:
    """Also one of more digits than Python reads."""
    with pytest.raises(BadLiteral, match="invalid int literal"):
        parse_integer(text)


def test_an_unsigned_number_has_no_zeros_to_count() -> None:
    """The suffix is no digit."""
    assert 2**64 - 1 == parse_unsigned(f"0x{ZEROS}ffffffffffffffffu")
