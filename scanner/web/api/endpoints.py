"""An endpoint: its path, its parameters, the function that makes its answer, and the forms of answers, such as a page of a list."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Generic, TypeAlias, TypedDict, TypeVar

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from scanner.model.scans.scan import Scan
from scanner.report.text.json_text import dump, head_json
from scanner.web.api.api_request import NOT_HERE, ApiRequest, Cursor, key_of_scan
from scanner.web.api.queries import Query, ScanListQuery, path_of, query_of
from scanner.web.pages.answers import RenderedPages, page_answer, render_bytes
from scanner.web.requests.refusals import BadRequest
from scanner.web.views.library import ScanLibrary

# Answers about a scan, and pages of its lists.

ItemT = TypeVar("ItemT")


class ApiAnswer(Struct, frozen=True, kw_only=True, rename="camel"):
    """An answer."""


class ListPage(ApiAnswer, frozen=True, kw_only=True):
    """A page of a list."""

    total: Annotated[int, Meta(ge=0, description="The number of items on all pages.")]
    next: Annotated[str | None, Meta(description="The value of `after` for the next page; null on the last page.")]


class ScanAnswer(ApiAnswer, frozen=True, kw_only=True):
    """An answer about a scan."""

    scan: Annotated[str, Meta(description="The id of the scan.")]
    cluster: Annotated[str, Meta(description="The name of the cluster.")]
    finished_at: Annotated[str | None, Meta(description="End of the scan. RFC 3339, UTC.")]


class ScanListPage(ScanAnswer, frozen=True, kw_only=True):
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


def page_of(request: ApiRequest[ScanListQuery], items: Sequence[ItemT]) -> tuple[Sequence[ItemT], str | None]:
    """The items of a page of a list that never changes, by their places, and `next`. Raises BadRequest."""
    first = 0 if request.cursor is None else request.cursor.numbers(1)[0] + 1
    if not 0 <= first <= len(items):
        raise BadRequest(NOT_HERE)
    end = first + request.query.limit
    return items[first:end], Cursor(request.scan.id, (end - 1,)).text() if end < len(items) else None


QueryT = TypeVar("QueryT", bound=Query)
Component: TypeAlias = str
"""The name of a schema in `schemas.COMPONENTS`."""
ROOT: Final = "/api/v1"


@dataclass(frozen=True)
class Endpoint(Generic[QueryT]):
    """An endpoint. `make` makes the answer, `answer` describes it.

    Answers with equal parameters and an equal `key` are equal: they are made once while they are kept. Without a `key`, the answer
    is made at every request.
    """

    name: str
    path: str
    summary: str
    query: type[QueryT]
    answer: type[ApiAnswer] | Component
    make: Callable[[ApiRequest[QueryT]], ApiAnswer | bytes]
    key: Callable[[ApiRequest[QueryT]], Hashable] | None = None

    def respond(self, request: Request, library: ScanLibrary, pages: RenderedPages) -> Response:
        """The answer to a request. Raises WebError."""
        query = query_of(request, self.query)
        api_request = ApiRequest(library, query, path_of(request), str(request.scope.get("root_path", "")))
        if self.key is None:
            return page_answer(request, render_bytes(self._body(api_request)), "application/json")
        key = self.name, query, tuple(api_request.path.items()), self.key(api_request)
        page = pages.page(key, lambda: self._body(api_request))
        return page_answer(
            request, page, "application/json", lasting=self.key is key_of_scan and api_request.names_scan
        )

    def _body(self, request: ApiRequest[QueryT]) -> bytes:
        made = self.make(request)
        return made if isinstance(made, bytes) else dump(plain(made))


def plain(value: object) -> object:
    """A record, or a list of records, as JSON values with the names of its fields in JSON."""
    if isinstance(value, Struct):
        names = zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True)
        return {name: plain(getattr(value, field)) for name, field in names}
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], Struct):
        return [plain(each) for each in value]
    return value
