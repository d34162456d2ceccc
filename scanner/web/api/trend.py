"""`/clusters/{cluster}/trend`: the outcomes of each day, and the times to fix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from fnmatch import fnmatchcase
from functools import partial
from itertools import islice
from typing import Annotated, Final

from msgspec import Meta

from scanner.model.scans.tally import OutcomeName
from scanner.posture.history.daily import Day
from scanner.report.runs.trend import day_json, fix_json, key_json
from scanner.store import SqlReader
from scanner.web.api.api_request import NOT_HERE, ApiRequest, Cursor, key_of_newest
from scanner.web.api.endpoints import Endpoint, ListPage
from scanner.web.api.queries import ListQuery, PolicyPattern
from scanner.web.api.schemas import FixJson, Item, TrendDayJson
from scanner.web.requests.refusals import BadRequest

_TALLIES: Final = 10_000
"""The tallies after which a page ends."""


class TrendQuery(ListQuery, frozen=True, kw_only=True):
    """The parameters of a trend."""

    days: Annotated[int, Meta(ge=1, le=400, description="Number of days, today included.")] = 90
    policy: PolicyPattern = ""
    tallies: Annotated[
        bool,
        Meta(description="Whether each day has its outcomes by policy and namespace. Pages may be shorter then."),
    ] = False


class Trend(ListPage, frozen=True, kw_only=True):
    """Days with a complete scan of the whole cluster, the oldest first."""

    cluster: Annotated[str, Meta(description="The name of the cluster.")]
    since: Annotated[str, Meta(description="First day, in UTC.", extra_json_schema={"format": "date"})]
    until: Annotated[str, Meta(description="Last day, in UTC.", extra_json_schema={"format": "date"})]
    fixes: Annotated[list[FixJson], Meta(description="Times to fix of these days, by policy.")]
    days: list[TrendDayJson]


def trend(request: ApiRequest[TrendQuery]) -> Trend:
    """A page of a trend."""
    query, cluster = request.query, request.cluster.id
    since = request.today - timedelta(days=query.days - 1)
    begin, chosen = _begin(request.cursor, since), partial(_is_chosen, query.policy)
    with request.library.use_reader() as reader:
        recorded = reader.trend_of_days(cluster, begin, chosen, until=request.today)
        tallies = _tallies(reader, request, begin) if query.tallies else None
        total = len(reader.days(cluster, since, request.today))
        fixes = reader.times_to_fix(cluster, since, request.today)
    days = recorded.days[: query.limit if tallies is None else len(tallies)]
    return Trend(
        total=total,
        next=Cursor("", (days[-1].day.toordinal(),)).text() if len(days) < len(recorded.days) else None,
        cluster=request.cluster.name,
        since=since.isoformat(),
        until=request.today.isoformat(),
        fixes=[fix_json(each) for each in fixes if chosen(each.policy)],
        days=[
            _day(day, recorded.outcomes.get(day.day, {}), None if tallies is None else tallies[place])
            for place, day in enumerate(days)
        ],
    )


def _is_chosen(pattern: str, policy: str) -> bool:
    return not pattern or fnmatchcase(policy, pattern)


def _begin(cursor: Cursor | None, since: date) -> date:
    """The first day that a page can have. Raises BadRequest."""
    if cursor is None:
        return since
    [number] = cursor.numbers(1)
    if cursor.scan or not since.toordinal() <= number < date.max.toordinal():
        raise BadRequest(NOT_HERE)
    return date.fromordinal(number + 1)


def _day(day: Day, outcomes: Mapping[tuple[str, bool], int], tallies: Sequence[Item] | None) -> Item:
    """A day with the sums of its outcomes: of all, and of those that may differ for another user."""
    sums = {
        "totals": {
            name.value: sum(outcomes.get((name.value, each), 0) for each in (False, True)) for name in OutcomeName
        },
        "requester": {name.value: outcomes.get((name.value, True), 0) for name in OutcomeName},
    }
    return {**day_json(day), **sums, **({} if tallies is None else {"tallies": tallies})}


def _tallies(reader: SqlReader, request: ApiRequest[TrendQuery], begin: date) -> list[list[Item]]:
    """The tallies of the first days of a page."""
    query, cluster = request.query, request.cluster.id
    tallies_of_days: list[list[Item]] = []
    number = 0
    chosen = partial(_is_chosen, query.policy) if query.policy else None
    with reader.trend(cluster, begin, chosen, until=request.today) as recorded:
        keys = list(map(key_json, recorded.keys))
        for tallies in islice(recorded.tallies, query.limit):
            tallies_of_days.append([{**keys[place], "count": count} for place, count in tallies])
            number += len(tallies)
            if number >= _TALLIES:
                break
    return tallies_of_days


ENDPOINTS: Final = (
    Endpoint(
        "getTrend",
        "/clusters/{cluster}/trend",
        "Get the outcomes of each day, and the times to fix.",
        TrendQuery,
        Trend,
        trend,
        key_of_newest,
    ),
)
