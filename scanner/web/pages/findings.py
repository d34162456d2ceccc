"""The list of the findings of a scan with filters, a hundred rows a page, and the page of one problem."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from io import TextIOWrapper
from typing import BinaryIO, Final
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.responses import Response

from scanner.model.scans.stored_finding import StoredFinding
from scanner.posture.severity import Severity
from scanner.report.document.sentences import namespace_title
from scanner.report.formats import csv
from scanner.report.html.finding_list import summary_of
from scanner.report.html.finding_rows import move_into_folder
from scanner.report.html.row_files import mark_workloads
from scanner.report.lists.filters import CLUSTER_SCOPED, UNOWNED, ListFilter
from scanner.report.lists.finding_columns import FINDINGS
from scanner.report.text.json_text import write_rows
from scanner.report.text.titles import RESOLUTIONS, sentence_of
from scanner.web.pages.exports import send_download
from scanner.web.pages.page_request import PageRequest
from scanner.web.requests.refusals import BadRequest, NotThere
from scanner.web.views.finding_choice import FindingChoice, choose_problems, stream
from scanner.web.views.problem_list import ListedProblems
from scanner.web.views.timeline import timeline_of

ROWS: Final = 100
OBJECTS: Final = 1_000
"""The objects that the page of a problem lists."""
LONGEST: Final = 256
_ID: Final = re.compile("p-[0-9a-f]{12}")
_KEY: Final = re.compile(r"(?P<preview>preview-)?(?P<number>-?[0-9]{1,18})")
"""`ListedProblem.key`."""
FIELDS: Final = ("text", "policy", "namespace", "owner", "severity", "action", "status", "sort", "workload", "kind")
_SINGLE: Final = ("text", "sort")
_LONGEST_OF: Final = {"workload": 3 * LONGEST}
"""A workload has a kind, a namespace and a name."""


def filter_of(parameters: Mapping[str, str]) -> ListFilter:
    """The filter in the parameters of a request. Raises BadRequest for one that is too long."""
    return list_filter(_values(parameters))


def list_filter(values: Mapping[str, str], min_severity: str = "") -> ListFilter:
    """The filter of values by field, empty ones for everything."""
    several = {name: (value,) for name, value in values.items() if value and name not in _SINGLE}
    least = Severity(min_severity) if min_severity else None
    return ListFilter(text=values["text"], sort=values["sort"], min_severity=least, **several)


def _values(parameters: Mapping[str, str]) -> dict[str, str]:
    for name in FIELDS:
        longest = _LONGEST_OF.get(name, LONGEST)
        if len(parameters.get(name, "")) > longest:
            raise BadRequest(f"{name}: at most {longest} characters.")
    return {name: parameters.get(name, "").strip() for name in FIELDS}


def findings_page(page: PageRequest) -> str:
    """The list. Its pages follow each other by the number of the last problem: they do not depend on how many rows came before."""
    parameters = page.request.query_params
    chosen_filter = filter_of(parameters)
    problems = choose_problems(page.library, page.cluster, page.view, chosen_filter).problems
    first = _find_first(problems, parameters.get("after", ""))
    shown = problems[first : first + ROWS]
    filters = {name: parameters[name] for name in FIELDS if parameters.get(name)}
    view = page.view
    return page.site.page(
        "findings.html",
        "web/findings.html",
        "Findings",
        summary=summary_of(page.site),
        wanted=_values(parameters),
        options=_options(page, _values(parameters)),
        rows=Markup("\n".join(mark_workloads(view.rows(page.site, shown)))),  # noqa: S704 - made by templates
        shown=_describe_rows(first, len(shown), len(problems), filtered=bool(filters)),
        before=_link(filters, problems[first - ROWS - 1].key if first > ROWS else None) if first else None,
        after=_link(filters, shown[-1].key) if first + ROWS < len(problems) else None,
        downloads=(
            ("CSV", f"download/findings.csv?{urlencode(filters)}"),
            ("JSON", f"download/findings.json?{urlencode(filters)}"),
        ),
    )


def _find_first(problems: ListedProblems, after: str) -> int:
    """The place behind the problem with a key. Raises BadRequest for a key that is none of the list's."""
    if not after:
        return 0
    key = _KEY.fullmatch(after)
    place = problems.find_place(int(key["number"]), is_preview=bool(key["preview"])) if key else None
    if place is None:
        raise BadRequest("after: the list has no such problem. Begin with its first page.")
    return place + 1


def _link(filters: Mapping[str, str], after: str | None) -> str:
    query = urlencode({**filters, **({"after": after} if after is not None else {})})
    return f"findings.html?{query}" if query else "findings.html"


def _describe_rows(first: int, shown: int, total: int, *, filtered: bool) -> str:
    if not shown:
        return "No row matches" if filtered else "No findings"
    return f"Rows {first + 1:,} to {first + shown:,} of {total:,}{' that match' if filtered else ''}"


def _options(page: PageRequest, wanted: Mapping[str, str]) -> Mapping[str, Sequence[tuple[str, str]]]:
    """The values of the fields, and their texts. A glob of the address is a value of its field, too."""
    places, document = list(page.view.problems.places), page.view.document
    namespaces = sorted({each.namespace for each in places})
    owners = sorted({each.owner for each in places})
    offered = {
        "policy": sorted((document.title(section.key), document.title(section.key)) for section in document.policies),
        "namespace": [(each or CLUSTER_SCOPED, namespace_title(each)) for each in namespaces],
        "owner": [(each or UNOWNED, each or UNOWNED) for each in owners],
    }
    return {name: _add_value(wanted[name], pairs) for name, pairs in offered.items()}


def _add_value(value: str, pairs: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    known = not value or any(value == each for each, _ in pairs)
    return pairs if known else [*pairs, (value, value)]


def problem_page(page: PageRequest, name: str) -> str:
    """A problem with its open objects in the scan, and its whole history. Raises NotThere."""
    if not _ID.fullmatch(name):
        raise NotThere(f"{name[:40]!r} is no id of a problem: p- and 12 hex digits.")
    listed = page.view.problems.problem(int(name.removeprefix("p-"), 16))
    with page.library.use_reader() as reader:
        explained = reader.find_problem(name, page.cluster.id)
    return page.site.page(
        f"problems/{name}.html",
        "web/problem.html",
        f"Problem {name}",
        problem=explained,
        example=explained.findings[0].stored,
        message=sentence_of(explained.findings[0].stored.finding, ""),
        why=RESOLUTIONS.get(explained.findings[0].stored.resolution, ""),
        listed=listed,
        rows=Markup(move_into_folder(mark_workloads(page.view.rows(page.site, [listed], OBJECTS)))) if listed else "",  # noqa: S704 - made by templates
        timeline=timeline_of(explained),
    )


# Downloads of the findings that the filter of the list chooses, in the forms of `assay findings`.

DOWNLOADS: Final = {"findings.csv": "text/csv", "findings.json": "application/json"}
"""The media types of the files."""


def download_findings(page: PageRequest, file: str) -> Response:
    """All findings that the filter in the request chooses, as the file of `DOWNLOADS`. Raises BadRequest and Busy."""
    media_type = DOWNLOADS[file]
    wanted = filter_of(page.request.query_params)
    view = page.view

    def write(out: BinaryIO) -> None:
        chosen = choose_problems(page.library, page.cluster, view, wanted)
        choice = FindingChoice(view, wanted)
        rows = [row for problem in chosen.problems for row in choice.rows(problem)]
        _write(page, media_type, stream(view, rows), out)

    return send_download(write, media_type, f"assay-{view.scan_id}.{file}", head=page.request.method == "HEAD")


def _write(page: PageRequest, media_type: str, findings: Iterator[StoredFinding], out: BinaryIO) -> None:
    document = page.view.document
    text = TextIOWrapper(out, "utf-8", errors="backslashreplace", newline="")
    if media_type == "text/csv":
        csv.write(text, FINDINGS.titles, (FINDINGS.cells(stored, document) for stored in findings))
    else:
        write_rows(text, page.scan, "findings", (FINDINGS.json(stored, document) for stored in findings))
    text.flush()
    text.detach()
