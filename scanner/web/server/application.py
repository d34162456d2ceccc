"""The application: its addresses, and what answers them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

from anyio.to_thread import current_default_thread_limiter
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from scanner.errors import AssayError, StoreError
from scanner.web.api.routes import api_routes
from scanner.web.pages.answers import RenderedPages, refusal
from scanner.web.pages.compare_clusters import CompareClusters
from scanner.web.pages.compare_scans import ComparePages
from scanner.web.pages.fleet import FleetPages
from scanner.web.pages.policies import PolicyPages
from scanner.web.pages.runs import RunPages
from scanner.web.pages.scan import ScanPages
from scanner.web.pages.search import SearchPages
from scanner.web.pages.workloads import WorkloadPages
from scanner.web.requests.refusals import DatabaseUnavailable, NotThere, WebError, reason_of
from scanner.web.views.fleet_counts import FleetCounts
from scanner.web.views.library import ScanLibrary
from scanner.web.views.turns import take_turns

THREADS: Final = 16
"""The requests that have a thread. Most of them wait for their turn (see `turns`)."""
_MOMENTS: Final = ("latest", "at/{at}", "scans/{scan}")


def application(library: ScanLibrary, further: Sequence[BaseRoute] = ()) -> Starlette:
    """The application over a library, with `further` routes, such as those of metrics. `log.AccessLog` answers unexpected errors."""
    rendered, counts = RenderedPages(), FleetCounts(library)
    pages = ScanPages(library, rendered)
    routes: list[Route] = [
        *_routes_of_fleet(library, counts, rendered),
        *api_routes(library),
        Route("/clusters/{cluster}", pages.redirect),
        *(Route(f"/clusters/{{cluster}}/{moment}", pages.redirect_to_first) for moment in _MOMENTS),
        *(Route(f"/clusters/{{cluster}}/{moment}/{{page:path}}", pages.page) for moment in _MOMENTS),
    ]
    in_turns = [Route(route.path, take_turns(route.endpoint), name=route.name) for route in routes]

    @asynccontextmanager
    async def begin(_: Starlette) -> AsyncIterator[None]:
        """Limit the threads. Begin to count all clusters when the server starts; a database that is away now is counted at the first request."""
        current_default_thread_limiter().total_tokens = THREADS
        with suppress(WebError):
            await run_in_threadpool(counts.warm)
        yield

    return Starlette(
        routes=[*in_turns, *further],
        lifespan=begin,
        exception_handlers={
            WebError: _answer(lambda error: error),
            AssayError: _answer(_convert_error),
            HTTPException: _answer(_convert_http),
        },
    )


def _routes_of_fleet(library: ScanLibrary, counts: FleetCounts, rendered: RenderedPages) -> Iterator[Route]:
    """The pages about all clusters, and those about a cluster that are no pages of a report."""
    fleet = FleetPages(library, counts, rendered)
    policies, runs = PolicyPages(fleet), RunPages(library, rendered)
    yield Route("/", fleet.clusters)
    yield Route("/policies", policies.policies)
    yield Route("/policies/{language}/{name:path}", policies.policy)
    yield Route("/workloads", WorkloadPages(fleet).workloads)
    yield Route("/search", SearchPages(library).search)
    yield Route("/compare", CompareClusters(library, counts, rendered).compare)
    yield Route("/clusters/{cluster}/compare", ComparePages(library, rendered).compare)
    yield Route("/clusters/{cluster}/runs", runs.runs)
    yield Route("/clusters/{cluster}/runs/{number}", runs.sheet)


def _convert_error(error: Exception) -> DatabaseUnavailable:
    return DatabaseUnavailable(reason_of(error) if isinstance(error, StoreError) else str(error))


def _answer(error_of: Callable[[Exception], WebError | Exception]) -> Callable[[Request, Exception], Response]:
    def answer(request: Request, error: Exception) -> Response:
        known = error_of(error)
        return refusal(request, known if isinstance(known, WebError) else WebError(str(known)))

    return answer


def _convert_http(error: Exception) -> WebError:
    status = error.status_code if isinstance(error, HTTPException) else WebError.status
    if status == NotThere.status:
        return NotThere("There is no page at this address.")
    known = WebError("This application answers GET and HEAD alone." if status == 405 else "The request is not valid.")  # noqa: PLR2004
    known.status = status
    return known
