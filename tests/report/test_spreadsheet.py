"""CSV for spreadsheets."""

from __future__ import annotations

import io

import pytest

from scanner.report.formats.csv import guard_formula, write


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@x", "\t=1", "\r=1", " =1", "\ufeff=1", "|x", "%x"])
def test_a_formula_becomes_text(text: str) -> None:
    """A quote before it makes it text."""
    assert f"'{text}" == guard_formula(text)


@pytest.mark.parametrize("text", ["", "a=1", "1", "a", "p-0123"])
def test_other_texts_stay(text: str) -> None:
    """They are what they were."""
    assert text == guard_formula(text)


def test_cells_are_quoted_where_needed() -> None:
    """Commas, quotes and line ends stay in their cell."""
    out = io.StringIO()
    write(out, ("a", "b"), [('x,"y"', "1\n2")])
    assert 'a,b\n"x,""y""","1\n2"\n' == out.getvalue()
