"""`/runs`: the runs of `assay scan`, also those without a scan, and the completeness sheet of each."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Final

from msgspec import Meta

from scanner.posture.run_register import run_entry
from scanner.report.runs.document import sheet_of
from scanner.report.runs.json import entry_json, sheet_lines
from scanner.web.api.api_request import NOT_HERE, ApiRequest, Cursor
from scanner.web.api.endpoints import Endpoint, ListPage
from scanner.web.api.queries import Date, ListQuery, Query
from scanner.web.api.schemas import RunJson
from scanner.web.requests.refusals import BadRequest

_HIGHEST: Final = 2**31 - 1


class RunQuery(ListQuery, frozen=True, kw_only=True):
    """The parameters of the list of runs."""

    cluster: Annotated[
        str, Meta(pattern="^([A-Za-z0-9_-]{1,60}\\.[0-9a-f]{8})?$", description="The key of a cluster.")
    ] = ""
    since: Annotated[
        Date, Meta(description="Only runs that began on this date or later, in UTC, or since a time in UTC.")
    ] = ""


class Runs(ListPage, frozen=True, kw_only=True):
    """Runs as recorded, the newest first: `expected` is null, because no schedule is compared."""

    runs: list[RunJson]


def runs(request: ApiRequest[RunQuery]) -> Runs:
    """A page of runs."""
    query = request.query
    cluster = request.library.cluster(query.cluster).identity if query.cluster else None
    since, before = _parse_beginning(query.since), _before(request.cursor)
    with request.library.use_reader() as reader:
        newest = reader.list_runs(query.limit + 1, cluster=cluster, since=since, before=before)
        total = reader.count_runs(cluster=cluster, since=since)
    shown = newest[: query.limit]
    return Runs(
        total=total,
        next=Cursor("", (shown[-1].run.number,)).text() if len(newest) > len(shown) else None,
        runs=[entry_json(run_entry(each)) for each in shown],
    )


def run(request: ApiRequest[Query]) -> bytes:
    """The completeness sheet of a run."""
    with request.library.use_reader() as reader:
        details = reader.find_run(int(request.path["run"]))
        scan = details.run.scan
        record = reader.read_scan(scan) if scan and not details.still_runs else None
        counts = reader.object_counts(scan)
    return "\n".join((*sheet_lines(sheet_of(details, record, counts)), "")).encode()


def _before(cursor: Cursor | None) -> int | None:
    if cursor is None:
        return None
    [number] = cursor.numbers(1)
    if cursor.scan or not 0 <= number <= _HIGHEST:
        raise BadRequest(NOT_HERE)
    return number


def _parse_beginning(since: str) -> datetime | None:
    """The beginning of a date, or a time. Raises BadRequest for no date of the calendar."""
    if not since:
        return None
    try:
        return datetime.fromisoformat(since).replace(tzinfo=UTC)
    except ValueError as error:
        raise BadRequest(f"since: {since!r} is no date of the calendar.") from error


ENDPOINTS: Final = (
    Endpoint("listRuns", "/runs", "List the runs of all clusters, or of one.", RunQuery, Runs, runs),
    Endpoint("getRun", "/runs/{run}", "Get the completeness sheet of a run.", Query, "RunSheet", run),
)
