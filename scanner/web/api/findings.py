"""`/clusters/{cluster}/findings`: the findings of the problems that a filter chooses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Final, NamedTuple

from scanner.report.lists.finding_columns import FINDINGS
from scanner.web.api.api_request import NOT_HERE, ApiRequest, Cursor, key_of_scan
from scanner.web.api.endpoints import Endpoint, ScanListPage, head_of
from scanner.web.api.problems import place_of
from scanner.web.api.queries import ProblemQuery
from scanner.web.api.schemas import FindingJson
from scanner.web.requests.refusals import BadRequest
from scanner.web.views.finding_choice import FindingChoice, choose_problems, findings_of
from scanner.web.views.problem_list import ListedProblem, ListedProblems


class Findings(ScanListPage, frozen=True, kw_only=True):
    """Findings in the order of their problems, those of a problem together."""

    findings: list[FindingJson]


class _FindingPlace(NamedTuple):
    """A finding in the list: the number of its problem, 1 for one of a preview, and its row."""

    problem: int
    preview: int
    row: int


def findings(request: ApiRequest[ProblemQuery]) -> Findings:
    """A page of findings."""
    view, query = request.view, request.query
    chosen = choose_problems(request.library, request.cluster, view, query.filter)
    choice = FindingChoice(view, query.filter, query.id)
    places = list(islice(_places(choice, chosen.problems, request.cursor), query.limit + 1))
    shown = places[: query.limit]
    rows = findings_of(view, [place.row for place in shown])
    return Findings(
        **head_of(request.scan),
        total=choice.number(chosen),
        next=Cursor(request.scan.id, shown[-1]).text() if len(places) > len(shown) else None,
        findings=[{**FINDINGS.json(each.stored, view.document), "checked": each.checked} for each in rows],
    )


def _places(choice: FindingChoice, problems: ListedProblems, after: Cursor | None) -> Iterator[_FindingPlace]:
    """The places of the list that follow a cursor. Raises BadRequest for a place that the list does not have."""
    if after is None:
        return _list_places(choice, problems)
    last = _FindingPlace(*after.numbers(len(_FindingPlace._fields)))
    first = place_of(problems, last.problem, last.preview)
    rows = list(_list_places(choice, problems[first : first + 1]))
    if last not in rows:
        raise BadRequest(NOT_HERE)
    return chain(rows[rows.index(last) + 1 :], _list_places(choice, problems[first + 1 :]))


def _list_places(choice: FindingChoice, problems: Iterable[ListedProblem]) -> Iterator[_FindingPlace]:
    return (_FindingPlace(each.number, int(each.is_preview), row) for each in problems for row in choice.rows(each))


ENDPOINTS: Final = (
    Endpoint(
        "listFindings",
        "/clusters/{cluster}/findings",
        "List the findings of the problems that a filter chooses.",
        ProblemQuery,
        Findings,
        findings,
        key_of_scan,
    ),
)
