"""`assay findings` and the API choose the same problems by the same names, in the same orders."""

from __future__ import annotations

from typing import Any

import pytest

from scanner.model.list_fields import ActionFilter, FindingStatus, SortOrder
from scanner.posture.severity import Severity
from scanner.report.lists.chosen_rows import ChosenRows
from scanner.report.lists.filters import ListFilter
from tests.web.api.asking import Api

_PROBLEMS = "/clusters/{cluster}/problems"
_WORST = {"sort": "worst"}


def of_command(api: Api, query: dict[str, str]) -> list[tuple[str, str]]:
    """The ids and statuses of the problems that the command chooses."""
    view = api.site.library.view(api.scan)
    several: dict[str, Any] = {name: (value,) for name, value in query.items() if name not in ("text", "sort")}
    least = several.pop("minSeverity", None)
    fields = {**several, "text": query.get("text", ""), "sort": query.get("sort", "")}
    wanted = ListFilter(min_severity=Severity(least[0]) if least else None, **fields)
    chosen = ChosenRows(wanted, (), view.record, view.document.triage).problems(0)
    return [(problem.id, problem.status) for problem in chosen]


def of_api(api: Api, query: dict[str, str]) -> list[tuple[str, str]]:
    """Those that the API chooses; the command shows unchecked problems only by their status."""
    found = [(str(each["id"]), str(each["status"])) for each in api.items(_PROBLEMS, limit=50, **query)]
    return [each for each in found if query.get("status") == "unchecked" or each[1] != "unchecked"]


@pytest.mark.parametrize("sort", SortOrder)
@pytest.mark.parametrize("status", ["unresolved", "resolved"])
def test_problems_have_the_same_order(api: Api, sort: SortOrder, status: str) -> None:
    """Of problems that are equal in an order, the worst comes first in both."""
    query = {"sort": sort.value, "status": status}
    assert of_api(api, query) == of_command(api, query)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("status", each.value) for each in FindingStatus),
        *(("action", each.value) for each in ActionFilter),
        *(("severity", each.value) for each in Severity),
        ("minSeverity", "high"),
        ("namespace", "_cluster"),
        ("namespace", "p*"),
        ("namespace", "shop"),
        ("owner", "unowned"),
        ("owner", "[a-s]*"),
        ("policy", "*limits"),
        ("policy", "image-sources"),
        ("kind", "*Set"),
        ("workload", "deployment/*"),
        ("workload", "Deployment shop/*"),
        ("workload", "Deployment/storefront"),
    ],
)
def test_a_field_chooses_the_same_problems(api: Api, field: str, value: str) -> None:
    """Values and globs mean the same to both."""
    query = {**_WORST, field: value}
    assert of_api(api, query) == of_command(api, query)


@pytest.mark.parametrize(
    ("field", "glob"),
    [("namespace", "sho?"), ("policy", "memory-*"), ("workload", "Deployment/s*")],
)
def test_a_glob_chooses_a_part_of_the_list(api: Api, field: str, glob: str) -> None:
    """It chooses some problems, and not all."""
    assert 0 < len(of_api(api, {field: glob})) < len(of_api(api, {}))
