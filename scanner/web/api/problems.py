"""`/clusters/{cluster}/problems`: the problems that a filter chooses, and one problem with its history."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Annotated, Final, Literal

from msgspec import Meta

from scanner.posture.problem_rows import join_findings
from scanner.report.lists.problem_columns import PROBLEMS
from scanner.report.text.times import iso
from scanner.web.api.api_request import NOT_HERE, ApiRequest, Cursor, key_of_scan, key_of_scan_and_newest
from scanner.web.api.endpoints import ApiAnswer, Endpoint, ScanAnswer, ScanListPage, head_of
from scanner.web.api.queries import ProblemQuery, ScanQuery
from scanner.web.api.schemas import Item, ProblemJson
from scanner.web.requests.refusals import BadRequest
from scanner.web.views.finding_choice import FindingChoice, choose_problems
from scanner.web.views.problem_list import ListedProblem, ListedProblems
from scanner.web.views.scan_view import ScanView
from scanner.web.views.timeline import ProblemMoment, timeline_of

_ROWS: Final = 5_000
"""The findings of the problems of one page: a page of larger problems is shorter than its limit."""


class Problems(ScanListPage, frozen=True, kw_only=True):
    """Problems in the order of the list. A page of problems with very many findings may be shorter than its limit."""

    problems: list[ProblemJson]


class ProblemEvent(ApiAnswer, frozen=True, kw_only=True):
    """The changes of the findings of a problem by one scan."""

    at: Annotated[str, Meta(description="End of the scan. RFC 3339, UTC.")]
    kind: Literal["opened", "changed", "resolved"]
    what: Annotated[str, Meta(description="The change, in words.")]
    why: Annotated[str, Meta(description="The cause, in words; empty if it is not known.")]
    objects: Annotated[list[str], Meta(description="Some of the objects, as `Kind namespace/name`.")]
    more: Annotated[int, Meta(ge=0, description="The number of further objects.")]


class ProblemWithHistory(ScanAnswer, frozen=True, kw_only=True):
    """A problem in a scan, and its whole history. Events of pruned scans may be missing."""

    problem: Annotated[ProblemJson | None, Meta(description="The problem; null if the scan does not have it.")]
    open: Annotated[int, Meta(ge=0, description="Number of its findings that are open now.")]
    resolved: Annotated[int, Meta(ge=0, description="Number of its findings that are resolved now.")]
    history: Annotated[list[ProblemEvent], Meta(description="The newest event first.")]


def problems(request: ApiRequest[ProblemQuery]) -> Problems:
    """A page of problems."""
    view, query = request.view, request.query
    chosen = choose_problems(request.library, request.cluster, view, query.filter)
    chosen_problems = FindingChoice(view, query.filter, query.id).problems(chosen.problems)
    first = 0 if request.cursor is None else place_of(chosen_problems, *request.cursor.numbers(2)) + 1
    shown = _portion(chosen_problems[first : first + query.limit])
    more = first + len(shown) < len(chosen_problems)
    return Problems(
        **head_of(request.scan),
        total=len(chosen_problems),
        next=Cursor(request.scan.id, (shown[-1].number, int(shown[-1].is_preview))).text() if more else None,
        problems=_read_texts(view, shown),
    )


def problem(request: ApiRequest[ScanQuery]) -> ProblemWithHistory:
    """One problem."""
    name = request.path["problem"]
    listed = request.view.problems.problem(int(name.removeprefix("p-"), 16))
    with request.library.use_reader() as reader:
        explained = reader.find_problem(name, request.cluster.id)
    return ProblemWithHistory(
        **head_of(request.scan),
        problem=_read_texts(request.view, [listed])[0] if listed else None,
        open=explained.open,
        resolved=explained.resolved,
        history=list(map(_event, timeline_of(explained))),
    )


def place_of(problems: ListedProblems, number: int, preview: int) -> int:
    """The place of a problem in a list. Raises BadRequest if it is not there."""
    place = problems.find_place(number, is_preview=preview == 1) if preview in (0, 1) else None
    if place is None:
        raise BadRequest(NOT_HERE)
    return place


def _portion(problems: Sequence[ListedProblem]) -> Sequence[ListedProblem]:
    """The first problems whose findings can be read for one page; one at least."""
    sums = accumulate(len(each.rows) for each in problems)
    return problems[: max(1, sum(rows <= _ROWS for rows in sums))]


def _read_texts(view: ScanView, problems: Sequence[ListedProblem]) -> list[Item]:
    document = view.document
    by_row = dict(view.record.findings_of_rows([row for each in problems for row in each.rows]))
    # The report joins the findings of a problem in the order of their rows.
    read = ([by_row[row] for row in sorted(each.rows) if row in by_row] for each in problems)
    shown = (join_findings(findings, document.triage.waiver) for findings in read if findings)
    return [PROBLEMS.json(each, document) for each in shown]


def _event(moment: ProblemMoment) -> ProblemEvent:
    return ProblemEvent(
        at=iso(moment.at),
        kind=moment.kind,
        what=moment.what,
        why=moment.why,
        objects=list(moment.objects),
        more=moment.more,
    )


ENDPOINTS: Final = (
    Endpoint(
        "listProblems",
        "/clusters/{cluster}/problems",
        "List the problems that a filter chooses.",
        ProblemQuery,
        Problems,
        problems,
        key_of_scan,
    ),
    Endpoint(
        "getProblem",
        "/clusters/{cluster}/problems/{problem}",
        "Get one problem with its history.",
        ScanQuery,
        ProblemWithHistory,
        problem,
        key_of_scan_and_newest,
    ),
)
