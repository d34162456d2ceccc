"""A value of the configuration is withheld unless its key is known to hold no secret."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scanner.cli.commands.catalog import list_settings
from scanner.config.masking import SHOWING, Visibility, mask_document
from scanner.config.unflagged import UNFLAGGED_KEYS
from scanner.model.json import Json, as_object, dig

CANARY = "hunter2-canary"


def keys() -> Iterator[str]:
    """Every key of the file, and every field of the objects in it."""
    yield from (setting.key for setting in list_settings())
    for each in UNFLAGGED_KEYS:
        fields = as_object(dig(each.schema, "items", "properties"))
        yield from (f"{each.key}.{field}" for field in fields) if fields else (each.key,)


def test_every_key_has_a_class() -> None:
    """A new flag, key or field is withheld until its author decides what of it may be shown."""
    assert set(keys()) == set(SHOWING)


def test_a_key_without_a_class_is_withheld() -> None:
    """Text, number and truth alike, and in objects as well."""
    value: Json = {"new": [CANARY, 7, True], "db": {"name": CANARY}}
    assert {"new": ["[redacted]"] * 3, "db": {"name": "[redacted]"}} == mask_document(value)


@pytest.mark.parametrize(
    ("key", "written", "shown"),
    [
        ("db", f"postgresql://bob:{CANARY}@db/assay", "postgresql://bob:[redacted]@db/assay"),
        ("db", f"postgresql://db/assay?password={CANARY}&sslmode=require", "postgresql://db/assay?sslmode=require"),
        ("db", f"postgresql://db/assay?options=-c%20a.b%3D{CANARY}", "postgresql://db/assay"),
        ("db", f"postgresql://db/assay?sslpassword={CANARY}", "postgresql://db/assay"),
        ("db", f"postgresql://bob:{CANARY}@x@db/assay", "[redacted]"),
        ("db", f"host=db password={CANARY}", "[redacted]"),
        ("db", "audit.db", "audit.db"),
        ("publicUrl", f"https://bob:{CANARY}@assay.example.com", "https://assay.example.com"),
        ("publicUrl", f"https://assay.example.com/{CANARY}?x={CANARY}", "https://assay.example.com"),
        ("publicUrl", CANARY, "[redacted]"),
        ("pushMetrics", f"https://bob:{CANARY}@gateway:9091/{CANARY}", "https://gateway:9091"),
        ("oidcIssuer", f"https://{CANARY}@id.example.com/realms/x?k={CANARY}", "https://id.example.com/realms/x"),
        ("assertionKeys", f"https://id.example.com/keys?token={CANARY}", "https://id.example.com/keys"),
        ("asUserExtra", f"scopes={CANARY}", "scopes=[redacted]"),
        ("asUserExtra", CANARY, "[redacted]"),
        ("asUserUid", CANARY, "[redacted]"),
        ("context", f"https://bob:{CANARY}@host", "https://bob:[redacted]@host"),
        ("tokens.sha256", CANARY, "[redacted]"),
        ("notifications.url", f"https://hooks.example.com/services/{CANARY}", "https://hooks.example.com"),
        ("descriptions.docs", f"https://bob:{CANARY}@docs.example.com/a", "https://docs.example.com/a"),
        ("namespace", "shop", "shop"),
        ("chunkSize", 500, 500),
        ("quiet", True, True),
    ],
)
def test_a_value_is_shown_by_its_class(key: str, written: Json, shown: Json) -> None:
    """What stays helps to find a mistake."""
    assert shown == mask_document(written, key)


def test_objects_of_the_file_are_shown_by_the_classes_of_their_fields() -> None:
    """The URL of a receiver has a secret path; its name and its owners are no secrets."""
    document: Json = {
        "notifications": [{"name": "a", "url": f"https://h/{CANARY}", "keyFile": "/k", "note": CANARY}],
        "tokens": [{"name": "grafana", "sha256": CANARY, "expires": "2027-01-01"}],
    }
    assert {
        "notifications": [{"name": "a", "url": "https://h", "keyFile": "/k", "note": "[redacted]"}],
        "tokens": [{"name": "grafana", "sha256": "[redacted]", "expires": "2027-01-01"}],
    } == mask_document(document)


def test_each_class_has_a_key() -> None:
    """A class that nothing has is no class."""
    assert set(Visibility) == set(SHOWING.values())
