"""The digest of a page shows which bytes a scan has read, and no secret."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson
import pytest

from scanner.audit.items import UNKNOWN, digest_page
from scanner.model.resource import LAST_APPLIED, Kind, Page

CONFIG_MAPS = Kind("", "v1", "ConfigMap", "configmaps", namespaced=True)
SECRETS = Kind("", "v1", "Secret", "secrets", namespaced=True)
OTHER_SECRETS = Kind("example.com", "v1", "Secret", "secrets", namespaced=True)


def page(kind: Kind, *items: dict[str, Any]) -> Page:
    """A page of a list."""
    return Page(kind, 1, orjson.dumps({"metadata": {"resourceVersion": "7"}, "items": items}))


def secret(**fields: Any) -> dict[str, Any]:
    """A Secret with a password."""
    return {"metadata": {"name": "login"}, "data": {"password": "aHVudGVyMg=="}, "type": "Opaque", **fields}


@pytest.mark.parametrize("kind", [CONFIG_MAPS, OTHER_SECRETS])
def test_it_is_that_of_the_bytes(kind: Kind) -> None:
    """The digest is the SHA-256 of the page as the server sent it."""
    sent = page(kind, {"metadata": {"name": "a"}})

    assert hashlib.sha256(sent.data).digest() == digest_page(sent)


@pytest.mark.parametrize(
    "change",
    [
        {"data": {"password": "aHVudGVyMw=="}},
        {"stringData": {"password": "hunter2"}},
        {"metadata": {"name": "login", "annotations": {LAST_APPLIED: "hunter2"}}},
    ],
)
def test_it_does_not_depend_on_the_data_of_secrets(change: dict[str, Any]) -> None:
    """A reader who knows the rest of a page cannot guess its passwords."""
    assert digest_page(page(SECRETS, secret())) == digest_page(page(SECRETS, secret(**change)))


@pytest.mark.parametrize(
    "change",
    [{"type": "kubernetes.io/tls"}, {"metadata": {"name": "other"}}, {"metadata": {"name": "login", "uid": "u"}}],
)
def test_it_depends_on_the_rest_of_secrets(change: dict[str, Any]) -> None:
    """Name, version and type of a Secret are in the digest."""
    assert digest_page(page(SECRETS, secret())) != digest_page(page(SECRETS, secret(**change)))


def test_a_page_of_secrets_that_cannot_be_read_has_no_digest() -> None:
    """What cannot be decoded cannot be redacted."""
    assert UNKNOWN == digest_page(Page(SECRETS, 1, b'{"items": [{"data"'))
