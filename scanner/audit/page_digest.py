"""The digest of a page as the server sent it, by which a later reader can show which pages a scan read.

The digest of a page of Secrets covers the items without their data, and without their annotations, which may have copies of
it: otherwise a reader who knows the rest of a page could guess a short secret.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Final

import orjson

from scanner.audit.items import decoded, listed
from scanner.model.json import Json, as_object
from scanner.model.resource import Page

UNKNOWN: Final = bytes(32)
"""The digest of a page of Secrets that could not be decoded, and so not be redacted."""

_DATA: Final = frozenset({"data", "stringData"})


def page_digest(page: Page) -> bytes:
    """The SHA-256 of the bytes of a page, 32 bytes; of a page of Secrets, of its items without data and annotations."""
    if (page.kind.group, page.kind.kind) != ("", "Secret"):
        return hashlib.sha256(page.data).digest()
    digest = hashlib.sha256()
    try:
        for text in _without_data(page):
            digest.update(text)
    except (ValueError, TypeError):
        return UNKNOWN
    return digest.digest()


def _without_data(page: Page) -> Iterator[bytes]:
    """The items of a page as lines of JSON, without data. Raises ValueError and TypeError for what cannot be decoded or written."""
    for text in listed(page):
        yield orjson.dumps(_redacted(decoded(text)), option=orjson.OPT_APPEND_NEWLINE)


def _redacted(item: Json) -> Json:
    secret = {key: value for key, value in as_object(item).items() if key not in _DATA}
    metadata = {key: value for key, value in as_object(secret.get("metadata")).items() if key != "annotations"}
    return {**secret, "metadata": metadata}
