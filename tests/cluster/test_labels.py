"""Label selectors on the command line. The tables were compared with apimachinery's parser."""

from __future__ import annotations

import pytest

from scanner.cluster.labels import parse_selector
from scanner.errors import UsageError

WEB = {"app": "web", "tier": "front", "empty": "", "n": "5", "example.com/x": "1"}


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ("", True), ("  ", True), ("app=web", True), ("app==web", True), ("app = web", True), ("app=api", False),
        ("app!=web", False), ("app!=api", True), ("missing!=x", True), ("missing=x", False),
        ("app", True), ("missing", False), ("!app", False), ("!missing", True), ("! missing", True),
        ("app in (web,api)", True), ("app in (api)", False), ("missing in (x)", False), ("app in ( web , api )", True),
        ("app notin (api)", True), ("app notin (web)", False), ("missing notin (x)", True), ("app\tin\n(web)", True),
        ("empty=", True), ("empty", True), ("empty in ()", True), ("empty in (,x)", True), ("empty in (x,)", True),
        ("app=", False), ("app in ()", False), ("missing=", False), ("empty=,app=web", True),
        ("app=web,tier=front", True), ("app=web,tier=back", False), ("app,!missing,tier in (front)", True),
        ("n>4", True), ("n > 5", False), ("n<6", True), ("n<5", False), ("n<9223372036854775807", True), ("app>1", False), ("missing<1", False),
        ("example.com/x=1", True), ("in", False), ("notin", False), ("app in (in)", False), ("in=notin", False),
    ],
)  # fmt: skip
def test_a_selector_selects_as_on_a_server(selector: str, selected: bool) -> None:  # noqa: FBT001
    """Equality, sets, presence and comparison have the API server's meaning."""
    assert selected == parse_selector(selector).matches(WEB)


@pytest.mark.parametrize(
    "selector",
    [
        "=web", "app web", "app=web,", ",app", "app=web,,b", "app in", "app in web", "app in (web", "app in (web api)",
        "app notin web", "app=(web)", "app=a b", "!app=web", "!!app", "!", "app<", "n>x", "n>", "n>-1", "n>9223372036854775808", "app===b", "app=!b",
        "-app", "app-", "a/b/c", "/app", "UPPER.com/x", "app=-web", "app=w%b", f"{'a' * 64}", f"app={'a' * 64}", "ä=1",
    ],
)  # fmt: skip
def test_a_malformed_selector_is_a_usage_error(selector: str) -> None:
    """The message quotes the selector and shows a valid one."""
    with pytest.raises(UsageError, match=r"is invalid: .* Write it as for kubectl"):
        parse_selector(selector)
