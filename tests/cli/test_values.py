"""The values of flags, as users write them."""

from __future__ import annotations

import pytest

from scanner.config.values import parse_assumption, parse_seconds
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
    """Durations are read as kubectl reads them; 0 is no limit."""
    assert expected == parse_seconds(text)


@pytest.mark.parametrize("text", ["", "soon", "-1", "1d", "1s2", "nan", "inf", "1e3", "s", " 1"])
def test_an_invalid_duration_is_a_usage_error(text: str) -> None:
    """The message has an example."""
    with pytest.raises(UsageError, match="write a duration such as 30, 30s"):
        parse_seconds(text)


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
    """The default action is Deny, and actions may be in any case."""
    assert expected == parse_assumption(text)
