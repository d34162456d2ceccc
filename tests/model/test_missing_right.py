"""The sentence about a missing right, and the rights in the reasons of gaps."""

from __future__ import annotations

import pytest

from scanner.model.missing_right import MissingRight, parse_missing_right

RIGHT = MissingRight("list", "configmaps", "settings", "system:serviceaccount:audit:reader")


def test_the_sentence_names_the_right_twice() -> None:
    """The remedy is the right that was refused, in the namespace in which it was refused."""
    assert (
        "cannot list configmaps in namespace settings: forbidden for jane@shop.example. "
        "Grant `list` on configmaps in namespace settings"
    ) == str(RIGHT._replace(user="jane@shop.example"))


@pytest.mark.parametrize(
    "right", [RIGHT, RIGHT._replace(namespace=""), MissingRight("get", "namespaces/red", "", "j. d")]
)
@pytest.mark.parametrize("before", ["", "policies and bindings may be missing from this scan: "])
@pytest.mark.parametrize("after", ["", ", or pass --skip-kind configmaps to record the gap on purpose."])
def test_a_right_is_read_back_from_the_reason_of_a_gap(right: MissingRight, before: str, after: str) -> None:
    """The reason may have a clause before the sentence, and a second remedy after it."""
    assert right == parse_missing_right(f"{before}{right}{after}")


@pytest.mark.parametrize(
    "why",
    [
        "",
        "cannot list secrets: the server no longer serves this kind. Scan again",
        f"cannot list secrets: the server answered 500: {RIGHT}. Scan again when this is fixed",
    ],
)
def test_another_reason_names_no_right(why: str) -> None:
    """A sentence that a server writes into its message is no right of the scan."""
    assert None is parse_missing_right(why)
