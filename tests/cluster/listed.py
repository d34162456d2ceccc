"""The pages of a list, as tests compare them."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from scanner.errors import ListFailed
from scanner.model.resource import Page


def names(pages: Iterator[Page]) -> list[list[str]]:
    """The names on each page."""
    return [[item["metadata"]["name"] for item in orjson.loads(page.data)["items"]] for page in pages]


def until_failure(pages: Iterator[Page]) -> tuple[int, ListFailed]:
    """The number of pages before the list failed, and the failure."""
    count = 0
    try:
        for _ in pages:
            count += 1
    except ListFailed as failure:
        return count, failure
    raise AssertionError("no page of the list failed")
