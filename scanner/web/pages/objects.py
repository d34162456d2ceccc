"""The page of an object or a workload with every check, passes included, and the list of the objects that passed a policy."""

from __future__ import annotations

from typing import Final

from markupsafe import Markup

from scanner.model.population import ExaminedObject
from scanner.report.html.finding_rows import move_into_folder
from scanner.report.html.row_files import mark_workloads
from scanner.report.lists.filters import CLUSTER_SCOPED
from scanner.report.lists.object_checks import NOT_STORED, check_lines, count_outcomes
from scanner.report.text.names import owner_title
from scanner.web.pages.page_request import PageRequest
from scanner.web.pages.shell import query_link
from scanner.web.requests.refusals import BadRequest, NotThere
from scanner.web.views.finding_choice import findings_of

OBJECT: Final = "objects/object.html"
PASSED: Final = "objects/passed.html"
ROWS: Final = 100
_OBJECTS: Final = 200
"""The objects of a workload that the page names."""
_PROBLEMS: Final = 50
_LONGEST: Final = 256
_HIGHEST: Final = 12
"""The digits of the number of an object."""


def object_page(page: PageRequest) -> str:
    """The object and the workload that `kind`, `namespace` and `name` name. Raises NotThere."""
    kind, namespace, name = (_parameter(page, each) for each in ("kind", "namespace", "name"))
    if not (kind and name):
        raise BadRequest("kind and name: the address of an object has both, and its namespace.")
    with page.library.use_reader() as reader:
        objects = reader.read_objects_named(page.scan.id, kind=kind, namespace=namespace, name=name)
    path = "/".join(filter(None, (namespace, name)))
    view, triage = page.view, page.view.document.triage
    problems = view.problems.of_workload_or_objects(kind, path, frozenset(each.object.id for each in objects))
    if not objects and not problems:
        raise NotThere(
            f"Scan {page.scan.id} examined no {kind[:80]} {path[:200]}. It may not match any policy, or be gone."
        )
    read = findings_of(view, [row for problem in problems for row in problem.rows])
    lines = check_lines(objects, [each.stored for each in read if each.stored.status != "resolved"], triage)
    rows = mark_workloads(view.rows(page.site, problems[:_PROBLEMS]))
    return page.site.page(
        OBJECT,
        "web/object.html",
        f"{kind} {path}",
        kind=kind,
        name=path,
        objects=objects[:_OBJECTS],
        total=len(objects),
        owners=sorted({owner_title(triage.owner_of(each.kept)) for each in objects}),
        waivers=sorted({applied.name for each in read if (applied := triage.waiver(each.stored))}),
        lines=lines,
        outcomes=count_outcomes(lines),
        not_stored=NOT_STORED,
        problems=len(problems),
        rows=Markup(move_into_folder(rows)),  # noqa: S704 - made by templates
        object_link=object_link,
    )


def passed_page(page: PageRequest) -> str:
    """The objects that passed every check of a policy that evaluated them. Raises NotThere."""
    key = _parameter(page, "language"), _parameter(page, "policy")
    if key not in page.view.names:
        raise NotThere(f"Scan {page.scan.id} used no policy {key[1][:200]!r}.")
    with page.library.use_reader() as reader:
        total, objects = reader.read_objects_that_passed(page.scan.id, key, after=_after(page), most=ROWS + 1)
    shown = objects[:ROWS]
    more = {"language": key[0], "policy": key[1], "after": str(shown[-1].object.id)} if len(objects) > ROWS else {}
    return page.site.page(
        PASSED,
        "web/passed.html",
        f"Passed: {page.view.document.title(key)}",
        policy=key,
        objects=shown,
        total=total,
        more=query_link("passed.html", more) if more else "",
        not_stored=NOT_STORED,
        object_link=object_link,
    )


def object_link(each: ExaminedObject) -> Markup:
    """The page of an object, from a page beside it."""
    item = each.object
    return query_link("object.html", {"kind": item.kind, "namespace": item.namespace, "name": item.name})


def _parameter(page: PageRequest, name: str) -> str:
    text = page.request.query_params.get(name, "").strip()
    if len(text) > _LONGEST:
        raise BadRequest(f"{name}: at most {_LONGEST} characters.")
    return "" if name == "namespace" and text == CLUSTER_SCOPED else text


def _after(page: PageRequest) -> int:
    text = page.request.query_params.get("after", "0")
    if not (text.isascii() and text.isdecimal() and len(text) <= _HIGHEST):
        raise BadRequest("after: the list has no such object. Begin with its first page.")
    return int(text)
