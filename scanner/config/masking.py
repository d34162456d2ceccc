"""Texts without the secrets that a command line, a variable or a file can have: passwords, tokens, users of HTTP."""

from __future__ import annotations

import re
from typing import Final

from scanner.audit.sensitive_fields import MASK, names_secret, without_named_secrets
from scanner.model.json import Json

_USER_OF_HTTP: Final = re.compile(r"(?P<kept>\bhttps?://)[^/\s:@]+(?=@)")
"""A user without a password in a URL of HTTP, often a token."""


def masked(text: str) -> str:
    """A text without secrets; users of databases, paths and addresses stay."""
    return without_named_secrets(_USER_OF_HTTP.sub(lambda match: f"{match['kept']}{MASK}", text))


def masked_document(value: Json, key: str = "") -> Json:
    """A document without secrets: in its texts, and under keys with the name of a secret."""
    if isinstance(value, str):
        return MASK if names_secret(key) else masked(value)
    if isinstance(value, dict):
        return {name: masked_document(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [masked_document(item, key) for item in value]
    return value
