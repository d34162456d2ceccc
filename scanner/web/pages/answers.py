"""Answers to requests: pages with entity tags, and errors as a page or as JSON."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Hashable, Mapping
from hashlib import sha256
from typing import Final, NamedTuple
from urllib.parse import quote

import orjson
from cachetools import LRUCache
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from scanner.web.pages.shell import Shell, render
from scanner.web.requests.parameters import has_accounts
from scanner.web.requests.refusals import NamedOtherwise, WebError
from scanner.web.views.kept import KeptValues

# Rendered pages in memory: a page about a finished scan never changes, so the pages that are read often are made
# once.
#
# They are kept compressed: ten times as many pages fit, and unpacking one takes a small part of the time of making
# it. Row 12: without kept pages a request takes 23 ms of processor time in place of 12, and 22 ms if they are not
# compressed.

MOST: Final = 16_000_000
"""The bytes of all kept pages, compressed."""
_LEVEL: Final = 1
"""The fastest level: pages repeat themselves so much that a better one saves little."""


class Rendered(NamedTuple):
    """A page as bytes, and its entity tag."""

    body: bytes
    etag: str


class RenderedPages:
    """The latest pages by key."""

    def __init__(self, most: int = MOST) -> None:
        self._packed: Final[KeptValues[Rendered]] = KeptValues(LRUCache(most, getsizeof=lambda page: len(page.body)))

    def page(self, key: Hashable, render: Callable[[], str | bytes]) -> Rendered:
        """The page with a key, rendered if it is not kept."""
        packed = self._packed.value(key, lambda: _pack(render_bytes(render())))
        return Rendered(zlib.decompress(packed.body), packed.etag)


def render_bytes(content: str | bytes) -> Rendered:
    """A page with its entity tag."""
    body = content.encode() if isinstance(content, str) else content
    return Rendered(body, f'"{sha256(body).hexdigest()[:32]}"')


def _pack(page: Rendered) -> Rendered:
    return Rendered(zlib.compress(page.body, _LEVEL), page.etag)


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


def _renamed(request: Request, error: NamedOtherwise) -> str:
    """The address with the name of a cluster that lasts; empty if the name is no part of the path."""
    path, query = str(request.scope["path"]), request.url.query
    begin, mark, end = path.partition(f"/clusters/{error.named}")
    if not mark or (end and not end.startswith("/")):
        return ""
    return quote(f"{begin}/clusters/{error.key}{end}") + (f"?{query}" if query else "")


def refusal(request: Request, error: WebError) -> Response:
    """The answer to a request that cannot be answered."""
    headers = {"Cache-Control": "no-store", **_FURTHER.get(error.status, {})}
    if request.url.path.startswith(f"{request.scope.get('root_path', '')}{API}"):
        body = orjson.dumps({"error": {"status": error.status, "message": str(error)}})
        return Response(body, error.status, headers, "application/json")
    if isinstance(error, NamedOtherwise) and (path := _renamed(request, error)):
        return RedirectResponse(path, 302, headers)
    shell = Shell(root=str(request.scope.get("root_path", "")), accounts=has_accounts(request))
    title = _TITLES.get(error.status, "Not possible")
    return Response(render("web/error.html", title, shell, message=str(error)), error.status, headers, "text/html")
