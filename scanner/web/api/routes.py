"""The routes of the API."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from scanner.report.text.json_text import dump
from scanner.web.answers import page_answer
from scanner.web.api.endpoints import ROOT, Endpoint
from scanner.web.api.openapi import document
from scanner.web.api.table import ENDPOINTS
from scanner.web.library import Library
from scanner.web.refusals import NotThere
from scanner.web.rendered import RenderedPages

OPENAPI: Final = f"{ROOT}/openapi.json"
_KEPT: Final = 8_000_000
"""The bytes of all kept answers."""


def api_routes(library: Library) -> list[Route]:
    """A route for each endpoint of the table, one for the OpenAPI document, and one that refuses every other path."""
    kept = RenderedPages(_KEPT)
    return [
        Route(OPENAPI, partial(_openapi, kept=kept)),
        *(_route(endpoint, library, kept) for endpoint in ENDPOINTS),
        Route("/api", _nothing),
        Route("/api/{path:path}", _nothing),
    ]


def _route(endpoint: Endpoint[Any], library: Library, kept: RenderedPages) -> Route:
    def answer(request: Request) -> Response:
        return endpoint.respond(request, library, kept)

    return Route(f"{ROOT}{endpoint.path}", answer, name=endpoint.name)


def _openapi(request: Request, kept: RenderedPages) -> Response:
    root = str(request.scope.get("root_path", ""))
    return page_answer(request, kept.page(root, lambda: dump(document(root))), "application/json")


def _nothing(request: Request) -> Response:
    """Refuse a path that no endpoint has. Raises NotThere."""
    root = request.scope.get("root_path", "")
    raise NotThere(f"The API has nothing at this path. {root}{OPENAPI} lists the endpoints.")
