"""The table of the endpoints, the OpenAPI document and the routes, which are made from it.

The form of the document: https://spec.openapis.org/oas/v3.1.0.html.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from scanner.model.json import Json, JsonObject, as_object
from scanner.report.text.json_text import dump
from scanner.web.api import clusters, findings, population, problems, runs, sections, trend
from scanner.web.api.endpoints import ROOT, ApiAnswer, Endpoint
from scanner.web.api.queries import PATH_PARTS, Query, fields_of
from scanner.web.api.schemas import REF, components
from scanner.web.pages.answers import RenderedPages, page_answer
from scanner.web.requests.refusals import NotThere
from scanner.web.views.library import ScanLibrary

ENDPOINTS: Final[tuple[Endpoint[Any], ...]] = (
    *clusters.ENDPOINTS,
    *sections.ENDPOINTS,
    *problems.ENDPOINTS,
    *findings.ENDPOINTS,
    *population.ENDPOINTS,
    *trend.ENDPOINTS,
    *runs.ENDPOINTS,
)


VERSION: Final = "1.0"
_DESCRIPTION: Final = (
    "Reads the scans of one database. Fields are those of the JSON report, of `assay runs -o json` and of `assay trend -o json`; "
    "a minor version only adds fields. Lists have pages: repeat a request with `after` set to `next` of its answer. "
    "Pages that follow each other are about one scan, and have every item once."
)
_ERRORS: Final[Mapping[str, str]] = {
    "400": "A parameter is unknown, or its value is invalid.",
    "401": "The request has no valid token.",
    "404": "The database does not have the cluster, scan, problem or run.",
    "414": "The address is too long.",
    "503": "The database cannot be read now.",
}


class ErrorFacts(ApiAnswer, frozen=True, kw_only=True):
    """The fault of a request."""

    status: int
    message: str


class Error(ApiAnswer, frozen=True, kw_only=True):
    """The answer to a request that cannot be answered."""

    error: ErrorFacts


def document(root: str = "") -> JsonObject:
    """The document; `root` is the path of the application."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Assay", "version": VERSION, "description": _DESCRIPTION},
        "servers": [{"url": root + ROOT}],
        "security": [{}, {"token": []}],
        "paths": {endpoint.path: {"get": _operation(endpoint)} for endpoint in ENDPOINTS},
        "components": {
            "schemas": _schemas(),
            "parameters": {name: _path_part(name) for name in PATH_PARTS},
            "responses": {f"Error{status}": _error(text) for status, text in _ERRORS.items()},
            "headers": {
                "ETag": {
                    "description": "Changes with the answer: send it as If-None-Match, and an equal answer is 304.",
                    "schema": {"type": "string"},
                }
            },
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(endpoint: Endpoint[Any]) -> JsonObject:
    name = endpoint.answer if isinstance(endpoint.answer, str) else endpoint.answer.__name__
    known: JsonObject = {"ETag": {"$ref": "#/components/headers/ETag"}}
    answers: JsonObject = {
        "200": {
            "description": "The answer.",
            "headers": known,
            "content": {"application/json": {"schema": {"$ref": REF + name}}},
        },
        "304": {"description": "The client has this answer.", "headers": known},
    }
    return {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "parameters": [
            *({"$ref": f"#/components/parameters/{part}"} for part in PATH_PARTS if f"{{{part}}}" in endpoint.path),
            *_parameters(endpoint.query),
        ],
        "responses": {**answers, **{status: {"$ref": f"#/components/responses/Error{status}"} for status in _ERRORS}},
    }


def _parameters(query: type[Query]) -> list[JsonObject]:
    """The parameters of the query of an address, from the fields of a record."""
    return [
        {
            "name": name,
            "in": "query",
            "required": False,
            **({"description": field["description"]} if "description" in field else {}),
            "schema": {key: value for key, value in field.items() if key != "description"},
        }
        for name, field in ((name, as_object(each)) for name, each in fields_of(query).items())
    ]


def _path_part(name: str) -> JsonObject:
    pattern, text = PATH_PARTS[name]
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": text,
        "schema": {"type": "string", "pattern": pattern},
    }


def _error(text: str) -> JsonObject:
    return {"description": text, "content": {"application/json": {"schema": {"$ref": f"{REF}Error"}}}}


def _schemas() -> JsonObject:
    """The records of answers, and the parts of other documents that they refer to."""
    records = [endpoint.answer for endpoint in ENDPOINTS if not isinstance(endpoint.answer, str)]
    _, records_by_name = msgspec.json.schema_components([*records, Error], ref_template=REF + "{name}")
    every = {**components(), **records_by_name}
    used: set[str] = set()
    names = {*records_by_name, *(endpoint.answer for endpoint in ENDPOINTS if isinstance(endpoint.answer, str))}
    while names:
        used |= names
        names = {name for each in names for name in _references(every[each])} - used
    return {name: every[name] for name in sorted(used)}


def _references(schema: Json) -> Iterator[str]:
    """The names of the components that a schema refers to."""
    if isinstance(schema, list):
        yield from (name for each in schema for name in _references(each))
    if isinstance(schema, dict):
        if isinstance(reference := schema.get("$ref"), str):
            yield reference.removeprefix(REF)
        yield from (name for each in schema.values() for name in _references(each))


OPENAPI: Final = f"{ROOT}/openapi.json"
_KEPT: Final = 8_000_000
"""The bytes of all kept answers."""


def api_routes(library: ScanLibrary) -> list[Route]:
    """A route for each endpoint of the table, one for the OpenAPI document, and one that refuses every other path."""
    pages = RenderedPages(_KEPT)
    return [
        Route(OPENAPI, partial(_openapi, pages=pages)),
        *(_route(endpoint, library, pages) for endpoint in ENDPOINTS),
        Route("/api", _refuse_unknown),
        Route("/api/{path:path}", _refuse_unknown),
    ]


def _route(endpoint: Endpoint[Any], library: ScanLibrary, pages: RenderedPages) -> Route:
    def answer(request: Request) -> Response:
        return endpoint.respond(request, library, pages)

    return Route(f"{ROOT}{endpoint.path}", answer, name=endpoint.name)


def _openapi(request: Request, pages: RenderedPages) -> Response:
    root = str(request.scope.get("root_path", ""))
    return page_answer(request, pages.page(root, lambda: dump(document(root))), "application/json")


def _refuse_unknown(request: Request) -> Response:
    """Refuse a path that no endpoint has. Raises NotThere."""
    root = request.scope.get("root_path", "")
    raise NotThere(f"The API has nothing at this path. {root}{OPENAPI} lists the endpoints.")
