"""An endpoint: its path, its parameters, what it answers, and the function that makes the answer."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final, Generic, TypeAlias, TypeVar

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from scanner.report.text.json_text import dump
from scanner.web.answers import page_answer
from scanner.web.api.asked import Asked, of_scan
from scanner.web.api.pages import Answer
from scanner.web.api.parameters import path_of, query_of
from scanner.web.api.queries import Query
from scanner.web.library import Library
from scanner.web.rendered import RenderedPages, rendered

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
    answer: type[Answer] | Component
    make: Callable[[Asked[QueryT]], Answer | bytes]
    key: Callable[[Asked[QueryT]], Hashable] | None = None

    def respond(self, request: Request, library: Library, kept: RenderedPages) -> Response:
        """The answer to a request. Raises WebError."""
        query = query_of(request, self.query)
        asked = Asked(library, query, path_of(request), str(request.scope.get("root_path", "")))
        if self.key is None:
            return page_answer(request, rendered(self._body(asked)), "application/json")
        key = self.name, query, tuple(asked.path.items()), self.key(asked)
        page = kept.page(key, lambda: self._body(asked))
        return page_answer(request, page, "application/json", lasting=self.key is of_scan and asked.names_scan)

    def _body(self, asked: Asked[QueryT]) -> bytes:
        made = self.make(asked)
        return made if isinstance(made, bytes) else dump(plain(made))


def plain(value: object) -> object:
    """A record, or a list of records, as JSON values with the names of its fields in JSON."""
    if isinstance(value, Struct):
        names = zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True)
        return {name: plain(getattr(value, field)) for name, field in names}
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], Struct):
        return [plain(each) for each in value]
    return value
