"""Values of flags, as people write them."""

from __future__ import annotations

import pytest

from scanner.cli.values import assumption, seconds
from scanner.errors import UsageError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30", 30.0),
        ("1.5", 1.5),
        ("30s", 30.0),
        ("2m", 120.0),
        ("1h", 3600.0),
        ("1m30s", 90.0),
        ("500ms", 0.5),
        ("0", None),
        ("0s", None),
    ],
)
def test_durations(text: str, expected: float | None) -> None:
    """Durations read as kubectl reads them; nothing at all is no limit."""
    assert expected == seconds(text)


@pytest.mark.parametrize("text", ["", "soon", "-1", "1d", "1s2", "nan", "inf", "1e3", "s", " 1"])
def test_what_is_no_duration(text: str) -> None:
    """Anything else is refused with an example."""
    with pytest.raises(UsageError, match="write a duration such as 30, 30s"):
        seconds(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("strict", ("strict", "Deny")),
        ("strict=", ("strict", "Deny")),
        ("strict=Warn", ("strict", "Warn")),
        ("strict=AUDIT", ("strict", "Audit")),
        ("strict=ask", ("strict", "Ask")),
    ],
)
def test_assumptions(text: str, expected: tuple[str, str]) -> None:
    """A policy is previewed with Deny unless something else is said, in any spelling."""
    assert expected == assumption(text)
