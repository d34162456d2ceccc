"""Answers to requests: pages with entity tags, and what is wrong as a page or as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import orjson
from starlette.requests import Request
from starlette.responses import Response

from scanner.web.parameters import has_accounts
from scanner.web.refusals import WebError
from scanner.web.rendered import Rendered
from scanner.web.shell import Shell, render

_TITLES: Final = {
    400: "This address is not valid",
    404: "Not found",
    405: "This application only reads",
    413: "Too large",
    414: "Too long",
    500: "Something went wrong",
    503: "Not available now",
}
_FURTHER: Final[Mapping[int, Mapping[str, str]]] = {405: {"Allow": "GET, HEAD"}, 503: {"Retry-After": "5"}}
"""The headers of refusals by status."""
API: Final = "/api/"


def page_answer(request: Request, page: Rendered, media_type: str = "text/html", *, lasting: bool = False) -> Response:
    """A page, or 304 if the browser has it. A `lasting` page is about one scan, which never changes."""
    headers = {"ETag": page.etag, "Cache-Control": "private, max-age=60" if lasting else "private, no-cache"}
    if page.etag in {tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")}:
        return Response(status_code=304, headers=headers)
    return Response(page.body, media_type=media_type, headers=headers)


def refusal(request: Request, error: WebError) -> Response:
    """The answer to a request that cannot be answered."""
    headers = {"Cache-Control": "no-store", **_FURTHER.get(error.status, {})}
    if request.url.path.startswith(f"{request.scope.get('root_path', '')}{API}"):
        body = orjson.dumps({"error": {"status": error.status, "message": str(error)}})
        return Response(body, error.status, headers, "application/json")
    shell = Shell(root=str(request.scope.get("root_path", "")), accounts=has_accounts(request))
    title = _TITLES.get(error.status, "Not possible")
    return Response(render("web/error.html", title, shell, message=str(error)), error.status, headers, "text/html")
