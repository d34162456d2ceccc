"""Answers about a scan, and pages of its lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypedDict, TypeVar

from msgspec import Meta, Struct

from scanner.model.scan import Scan
from scanner.report.text.json_text import head_json
from scanner.web.api.asked import Asked
from scanner.web.api.cursors import NOT_HERE, Cursor
from scanner.web.api.queries import ScanListQuery
from scanner.web.refusals import BadRequest

ItemT = TypeVar("ItemT")


class Answer(Struct, frozen=True, kw_only=True, rename="camel"):
    """An answer."""


class Page(Answer, frozen=True, kw_only=True):
    """A page of a list."""

    total: Annotated[int, Meta(ge=0, description="The number of items on all pages.")]
    next: Annotated[str | None, Meta(description="The value of `after` for the next page; null on the last page.")]


class ScanAnswer(Answer, frozen=True, kw_only=True):
    """An answer about a scan."""

    scan: Annotated[str, Meta(description="The id of the scan.")]
    cluster: Annotated[str, Meta(description="The name of the cluster.")]
    finished_at: Annotated[str | None, Meta(description="End of the scan. RFC 3339, UTC.")]


class ScanPage(ScanAnswer, frozen=True, kw_only=True):
    """A page of a list of a scan."""

    total: Annotated[int, Meta(ge=0, description="The number of items on all pages.")]
    next: Annotated[str | None, Meta(description="The value of `after` for the next page; null on the last page.")]


class Head(TypedDict):
    """The fields of `ScanAnswer`."""

    scan: str
    cluster: str
    finished_at: str | None


def head_of(scan: Scan) -> Head:
    """The fields that every answer about a scan begins with."""
    head = head_json(scan)
    return {"scan": scan.id, "cluster": scan.cluster.name, "finished_at": head["finishedAt"]}


def page_of(asked: Asked[ScanListQuery], items: Sequence[ItemT]) -> tuple[Sequence[ItemT], str | None]:
    """The items of a page of a list that never changes, by their places, and `next`. Raises BadRequest."""
    first = 0 if asked.cursor is None else asked.cursor.numbers(1)[0] + 1
    if not 0 <= first <= len(items):
        raise BadRequest(NOT_HERE)
    end = first + asked.query.limit
    return items[first:end], Cursor(asked.scan.id, (end - 1,)).text() if end < len(items) else None
