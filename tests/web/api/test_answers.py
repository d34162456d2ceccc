"""Every endpoint answers as the OpenAPI document describes it, with the numbers of the report."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from scanner.model.json import as_list, as_object
from scanner.model.list_fields import ActionFilter, FindingStatus, SortOrder
from scanner.model.scans.run import RunDetails
from scanner.posture.problem_rows import problems
from scanner.report.formats import json as json_report
from scanner.report.formats.csv import POPULATION_TITLES, render_population
from scanner.report.lists.problem_columns import PROBLEMS
from scanner.web.api.queries import ProblemQuery, fields_of
from scanner.web.api.routes import ENDPOINTS
from scanner.web.pages.findings import FIELDS
from tests.web.api.asking import Api

_PATHS = [endpoint.path for endpoint in ENDPOINTS]
_CLUSTER = "/clusters/{cluster}"


@pytest.fixture(scope="session")
def report(api: Api) -> dict[str, Any]:
    """The JSON report of the newest scan."""
    out = io.BytesIO()
    json_report.render(api.report, out)
    read: dict[str, Any] = json.loads(out.getvalue())
    return read


@pytest.mark.parametrize("path", [path for path in _PATHS if "{problem}" not in path and "{run}" not in path])
def test_an_answer_is_valid_by_the_openapi_document(api: Api, path: str) -> None:
    """The schema of the answer of each path describes what the path answers, and names every field."""
    answer = api.answer(path)
    assert answer.keys() <= _fields(api, path)


def _fields(api: Api, path: str) -> set[str]:
    content = api.document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]
    name = content["schema"]["$ref"].rpartition("/")[2]
    return set(api.document["components"]["schemas"][name]["properties"])


def test_the_summary_has_the_sections_of_the_report(api: Api, report: dict[str, Any]) -> None:
    """The fields besides the head are those of the JSON report, with its values."""
    answer = api.answer(f"{_CLUSTER}/summary")
    assert {name: report[name] for name in answer if name in report} == {
        name: value for name, value in answer.items() if name not in ("scan", "cluster", "finishedAt")
    }


@pytest.mark.parametrize(
    ("path", "field"),
    [("policies", "policies"), ("namespaces", "namespaces"), ("gaps", "gaps")],
)
def test_a_list_has_the_items_of_the_section_of_the_report(
    api: Api, report: dict[str, Any], path: str, field: str
) -> None:
    """The items of all pages are those of the JSON report, in its order."""
    assert report[field] == api.items(f"{_CLUSTER}/{path}", limit=7)


def test_the_coverage_is_that_of_the_report(api: Api, report: dict[str, Any]) -> None:
    """What a scan did not examine is in the answer as in the report."""
    answer = api.answer(f"{_CLUSTER}/coverage")
    names = ("complete", "coverage", "kindsWithoutPolicy", "outside")
    assert {name: report[name] for name in names} == {name: answer[name] for name in names}
    assert answer["complete"] is False


def test_the_findings_are_those_of_the_report(api: Api, report: dict[str, Any]) -> None:
    """Without a filter, the open findings and the resolved ones, each as the report has it."""
    found = api.items(f"{_CLUSTER}/findings", limit=50)
    expected = {each["fingerprint"]: {**each, "checked": True} for each in report["findings"] + report["resolved"]}
    assert expected == {each["fingerprint"]: each for each in found if each["checked"]}
    assert report["changes"]["unchecked"] == sum(not each["checked"] for each in found)
    assert len(found) == api.answer(f"{_CLUSTER}/findings")["total"]


def test_the_problems_are_those_of_the_command(api: Api) -> None:
    """Each problem is as `assay findings --problems -o json` prints it; previews and unchecked problems are further ones."""
    document = api.report
    expected = [PROBLEMS.json(each, document) for each in problems(document.by_problem(), document.triage.waiver)]
    found = api.items(f"{_CLUSTER}/problems", limit=40)
    known = [each for each in found if each["status"] not in ("preview", "unchecked")]
    assert sorted(expected, key=lambda each: str(each["id"])) == sorted(known, key=lambda each: str(each["id"]))
    assert _fields_of(api, "Problem") == set(found[0])


def _fields_of(api: Api, component: str) -> set[str]:
    return set(api.document["components"]["schemas"][component]["properties"])


@pytest.mark.parametrize(
    ("query", "number"),
    [
        ({"status": "open"}, "open"),
        ({"status": "new"}, "new"),
        ({"status": "resolved"}, "resolved"),
        ({"action": "refused"}, "refused"),
    ],
)
def test_a_filter_chooses_as_many_problems_as_the_verdict_has(
    api: Api, report: dict[str, Any], query: dict[str, Any], number: str
) -> None:
    """The numbers at the beginning of every report are those of the list."""
    assert report["verdict"]["problems"][number] == api.answer(f"{_CLUSTER}/problems", **query)["total"]


def test_a_workload_chooses_its_problems(api: Api) -> None:
    """As the link of a component in a catalog does: kind, namespace and name together."""
    found = api.items(f"{_CLUSTER}/problems", status="unresolved")
    top = found[0]["workload"]
    chosen = api.items(
        f"{_CLUSTER}/problems", workload=f"{top['kind']} {top['namespace']}/{top['name']}", status="unresolved"
    )
    assert [each for each in found if each["workload"] == top] == chosen


def test_the_filters_are_those_of_the_page(api: Api) -> None:
    """Each value that a field of the page offers is a value of the parameter."""
    fields = fields_of(ProblemQuery)
    assert {
        name: {"", *offered}
        for name, offered in (("action", ActionFilter), ("status", FindingStatus), ("sort", SortOrder))
    } == {name: set(as_list(as_object(fields[name])["enum"])) for name in ("action", "status", "sort")}
    assert set(FIELDS) < fields.keys()


def test_a_problem_has_its_history(api: Api) -> None:
    """The problem is as in the list, and its events name what changed and why, the newest first."""
    [listed] = api.answer(f"{_CLUSTER}/problems", limit=1, status="resolved")["problems"]
    answer = api.answer(f"{_CLUSTER}/problems/{{problem}}", of={"problem": listed["id"]})
    assert listed == answer["problem"]
    assert ["resolved", "opened"] == [each["kind"] for each in answer["history"]]


def test_the_population_is_that_of_the_file(api: Api) -> None:
    """Objects, their checks and their findings are those of `csv-population`, in its order."""
    out = io.StringIO()
    render_population(api.report, out)
    rows = [line.split(",") for line in out.getvalue().splitlines()[1:]]
    found = api.items(f"{_CLUSTER}/population", limit=9)
    numbers = [POPULATION_TITLES.index(name) for name in ("kind", "namespace", "evaluated", "notEvaluated", "findings")]
    assert len(rows) == len(found)
    assert [tuple(row[number] for number in numbers) for row in rows if '"' not in "".join(row)] == [
        (each["kind"], each["namespace"], *(str(each[name]) for name in ("evaluated", "notEvaluated", "findings")))
        for each, row in zip(found, rows, strict=True)
        if '"' not in "".join(row)
    ]


def test_the_population_of_a_kind_is_a_part_of_it(api: Api) -> None:
    """`kind` chooses objects, and `total` counts them."""
    pods = api.answer(f"{_CLUSTER}/population", kind="Pod")
    assert [each for each in api.items(f"{_CLUSTER}/population") if each["kind"] == "Pod"] == pods["objects"]
    assert pods["total"] == len(pods["objects"]) > 0


def test_the_runs_are_those_of_the_command(api: Api) -> None:
    """Each run has its state and the id of its scan."""
    runs = api.items("/runs", limit=1, cluster=api.key)
    with api.site.library.use_reader() as reader:
        expected: tuple[RunDetails, ...] = reader.list_runs()
    assert [each.run.scan for each in expected] == [each["run"]["scanId"] for each in runs]
    assert {"incomplete"} == {each["state"] for each in runs}


def test_a_run_has_its_completeness_sheet(api: Api) -> None:
    """The sheet reconciles listed and examined objects of each kind."""
    sheet = api.answer("/runs/{run}", of={"run": "1"})
    assert (1, "incomplete") == (sheet["run"]["number"], sheet["state"])
    assert sheet["kinds"]
