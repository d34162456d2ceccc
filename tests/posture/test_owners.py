"""The owner of an object."""

from __future__ import annotations

import pytest

from scanner.model.population import KeptMetadata, KeptOfObject
from scanner.posture.owners import DEFAULT_OWNER_KEYS, UNOWNED, OwnerKey, Owners

BLUE, RED, GREEN = (KeptMetadata((("team", name),)) for name in ("blue", "red", "green"))


@pytest.mark.parametrize(
    ("kept", "owner"),
    [
        (KeptOfObject(BLUE, RED, GREEN), "blue"),
        (KeptOfObject(KeptMetadata(), RED, GREEN), "red"),
        (KeptOfObject(KeptMetadata(), KeptMetadata(), GREEN), "green"),
        (KeptOfObject(), UNOWNED),
        (None, UNOWNED),
        (KeptOfObject(KeptMetadata((("owner", "ann"), ("team", "blue")))), "blue"),
        (KeptOfObject(KeptMetadata((("owner", "ann"),)), RED), "ann"),
        (KeptOfObject(KeptMetadata((("team", " "),)), RED), "red"),
        (KeptOfObject(KeptMetadata((), (("team", "blue"),))), UNOWNED),
    ],
)
def test_the_first_key_with_a_value_counts(kept: KeptOfObject | None, owner: str) -> None:
    """By default the labels `team` and `owner` of the object, then of its workload, then of its namespace."""
    assert owner == Owners(DEFAULT_OWNER_KEYS)(kept)


def test_keys_have_an_order() -> None:
    """The namespace comes first if the configuration names it first."""
    keys = (OwnerKey("namespace", "annotation", "contact"), OwnerKey("object", "label", "team"))
    named = KeptOfObject(BLUE, namespace=KeptMetadata((), (("contact", "ops"),)))

    assert ("ops", "blue") == (Owners(keys)(named), Owners(keys)(KeptOfObject(BLUE)))
