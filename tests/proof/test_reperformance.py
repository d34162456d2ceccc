"""The comparison of recorded verdicts with those that are made again."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scanner.proof.reperformance import ExpectedItem, ItemState, compare
from scanner.proof.verdicts import CheckName, EvaluatedItem, ObjectName, Replay, Verdict

CHECK = CheckName("ValidatingAdmissionPolicy", "p", "b", "", "", "validation", 0, "false")
OBJECT = ObjectName("v1", "Pod", "shop", "web", "1")


def state(recorded: Verdict, made: Verdict) -> ItemState:
    """The state of an item with one verdict."""
    item = EvaluatedItem(OBJECT, (made,), ())
    [result] = compare([ExpectedItem("1", OBJECT, (recorded,))], Replay({OBJECT: item}, (), {}), None)
    return result.state


@pytest.mark.parametrize(
    ("recorded", "made", "expected"),
    [
        ("Deployment/[redacted] is bad", "Deployment/operator is bad", "reproduced"),
        ("[redacted] and [redacted]", "a and b", "reproduced"),
        ("[redacted: the message reads the data of a Secret]", "name cart-cache", "reproduced"),
        ("Deployment/[redacted] is bad", "Deployment/operator is good", "differs"),
        ("a[redacted]a", "a", "differs"),
        ("a [redacted] b [redacted] c", "a c b c", "differs"),
        ("is bad", "is good", "differs"),
        ("Deployment/operator", "Deployment/[redacted]", "differs"),
        ("[redactedly]", "x", "differs"),
    ],
)
def test_a_masked_part_of_a_message_may_be_any_text(recorded: str, made: str, expected: str) -> None:
    """The replay does not know which texts are equal to a secret, because the snapshot does not have it."""
    verdicts = (Verdict(CHECK, "violated", text, denies=True) for text in (recorded, made))
    assert expected == state(*verdicts)


MASKED = Verdict(CHECK, "violated", "[redacted] is bad", denies=True)


@pytest.mark.parametrize(
    "recorded", [MASKED._replace(outcome="errored"), MASKED._replace(denies=False), MASKED._replace(excepted_by="x")]
)
def test_a_mask_covers_nothing_but_the_message(recorded: Verdict) -> None:
    """Another outcome, denial or exception is a difference."""
    assert ItemState.DIFFERS is state(recorded, MASKED._replace(detail="web is bad"))


@given(st.lists(st.text("ab ", max_size=3), min_size=1, max_size=6), st.text("ab", min_size=1, max_size=2))
def test_every_text_fits_the_message_in_which_it_is_masked(parts: list[str], secret: str) -> None:
    """Wherever and however often it stands."""
    recorded, made = ("".join(parts[:1] + [f"{mask}{part}" for part in parts[1:]]) for mask in ("[redacted]", secret))
    assert ItemState.REPRODUCED is state(Verdict(CHECK, "violated", recorded), Verdict(CHECK, "violated", made))


def test_a_message_of_many_masks_takes_no_time() -> None:
    """A hostile packet cannot make the comparison slow."""
    begin = time.process_time()
    recorded, made = "[redacted]a" * 20_000 + "b", "a" * 40_000
    assert ItemState.DIFFERS is state(Verdict(CHECK, "violated", recorded), Verdict(CHECK, "violated", made))
    assert 1 > time.process_time() - begin
