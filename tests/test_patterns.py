"""Patterns are those of `re`, compiled when they are first used."""

from __future__ import annotations

import re

import pytest

from scanner.patterns import pattern


@pytest.mark.parametrize("method", ["match", "fullmatch", "search", "findall", "split"])
@pytest.mark.parametrize(
    ("text", "flags"), [("([a-z]+)=", re.NOFLAG), ("([a-z]+)=", re.IGNORECASE), ("[^=]*", re.NOFLAG)]
)
def test_a_pattern_finds_what_the_expression_finds(method: str, text: str, flags: re.RegexFlag) -> None:
    """Flags count, and every method gives the same, the first time and later."""
    made, plain = pattern(text, flags), re.compile(text, flags)
    for subject in ("a=b=c", "A=1", "", "x"):
        expected, actual = (getattr(each, method)(subject) for each in (plain, made))
        assert str(expected) == str(actual)


def test_a_pattern_of_bytes_replaces_bytes() -> None:
    """Documents are searched before they are decoded."""
    assert b"a-b" == pattern(rb"\s+").sub(b"-", b"a  b")
    assert rb"\s+" == pattern(rb"\s+").pattern


def test_an_attribute_is_read_from_the_expression_once() -> None:
    """A loop calls the method of the compiled expression itself."""
    made = pattern("x*")
    assert made.search is made.search


def test_an_invalid_expression_raises_at_its_first_use() -> None:
    """The error is that of `re`."""
    made = pattern("(")
    with pytest.raises(re.error, match="missing"):
        made.match("")
