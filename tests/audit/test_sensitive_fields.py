"""The values of sensitive fields, by their names and their content."""

from __future__ import annotations

import base64
import json

import pytest

from scanner.audit.sensitive_fields import FIELDS, MASK, holds_secret, is_secret_named, mask_named_secrets
from scanner.model.json import Json


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("password", "hunter2"),
        ("password", 123),
        ("password", 0),
        ("PASSWORD_OLD", "hunter2"),
        ("token2", "hunter2"),
        ("db_passwords", "hunter2"),
        ("credentials", ["hunter2"]),
        ("credentials", [{"name": "admin", "value": "hunter2"}]),
        ("auth", {"bearer": "hunter2"}),
        ("auth", {"bearer": "hunter2", "secretRef": {"name": "shop"}}),
        ("auth", {"secretRef": "hunter2"}),
        ("secret", {"text": "hunter2"}),
        ("serviceAccountToken", {"path": "token", "text": "hunter2"}),
        ("signingKey", {"deep": [{"deeper": "hunter2"}]}),
    ],
)
def test_a_value_under_the_name_of_a_secret_is_one(name: str, value: Json) -> None:
    """Values of every type."""
    assert is_secret_named(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("automountServiceAccountToken", False),
        ("requireAuth", True),
        ("global-auth", "false"),
        ("tokens", []),
        ("auth", {}),
        ("password", None),
        ("auth", {"enabled": True, "secretRef": {"name": "shop", "key": "p"}}),
        ("password", {"valueFrom": {"secretKeyRef": {"name": "shop", "key": "p"}}}),
        ("imagePullSecrets", [{"name": "registry"}]),
        ("secret", {"secretName": "shop", "items": [{"key": "p", "path": "p", "mode": 256}], "defaultMode": 420}),
        ("serviceAccountToken", {"audience": "vault", "expirationSeconds": 600, "path": "token"}),
        ("secretName", "shop"),
        ("tokenReview", "hunter2"),
        ("author", "hunter2"),
    ],
)
def test_a_reference_to_a_secret_is_none(name: str, value: Json) -> None:
    """Neither are true, false, empty values and other names."""
    assert not is_secret_named(name, value)


def test_the_argument_behind_a_flag_is_sensitive() -> None:
    """Another flag is none."""
    arguments: list[Json] = ["--token", "hunter2", "--verbose", "high", "--password", "--quiet"]
    assert [1] == [index for index in range(len(arguments)) if FIELDS.hides(arguments, index, ())]


@pytest.mark.parametrize(
    "text",
    [
        "--anonymous-auth=false",
        "--token-auth=true --v=2",
        '{"automountServiceAccountToken": false}',
        "rules for kind: Secrets",
        '{"kind": "ConfigMap", "data": "none"}',
        "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSURCVENDQWUyZ0F3SUJBZ0lJ",
    ],
)
def test_a_text_without_a_secret_is_shown(text: str) -> None:
    """True and false are no secrets, and a certificate is public."""
    assert text == mask_named_secrets(text)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"kind": "Secret", "data": {"p": "eA=="}}),
        json.dumps(json.dumps({"kind": "Secret", "data": {"p": "eA=="}})),
        json.dumps({"spec": {"containers": [{"env": [{"name": "A", "value": "hunter2"}]}]}}),
        "apiVersion: v1\nkind: Secret\ndata:\n  p: eA==",
        "spec:\n  env:\n  - name: A\n    value: hunter2",
        base64.b64encode(json.dumps({"kind": "Secret", "data": {"p": "eA=="}}).encode()).decode(),
        base64.b64encode(b"apiVersion: v1\nkind: Secret\ndata: {p: eA==}").decode(),
        base64.b64encode(b"-----BEGIN RSA PRIVATE KEY-----\nMIIEow").decode(),
    ],
)
def test_of_a_copy_of_an_object_nothing_is_shown(text: str) -> None:
    """As JSON, JSON inside of JSON, YAML, and in base64."""
    assert holds_secret(text)
    assert MASK == mask_named_secrets(text)
