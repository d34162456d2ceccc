"""`/clusters/{cluster}/population`: the objects that a scan examined."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

from msgspec import Meta

from scanner.model.population import CountedObject, PlaceOfPage
from scanner.report.text.json_text import workload_json
from scanner.web.api.api_request import ApiRequest, Cursor, key_of_scan
from scanner.web.api.endpoints import ApiAnswer, Endpoint, ScanListPage, head_of
from scanner.web.api.queries import ScanListQuery, Text
from scanner.web.api.schemas import WorkloadJson


class PopulationQuery(ScanListQuery, frozen=True, kw_only=True):
    """The parameters of the population."""

    kind: Annotated[Text, Meta(description="A kind, such as Pod.")] = ""


class ExaminedObject(ApiAnswer, frozen=True, kw_only=True):
    """An object that the scan examined. One without findings whose `evaluated` is not 0 passed all these checks."""

    api_version: Annotated[str, Meta(description="Such as apps/v1.")]
    kind: str
    namespace: Annotated[str, Meta(description="Empty for a cluster-scoped object.")]
    name: str
    uid: Annotated[str, Meta(description="Empty for an object from a file that has none.")]
    workload: WorkloadJson
    labels: Annotated[Mapping[str, str], Meta(description="The labels that are kept.")]
    evaluated: Annotated[int, Meta(ge=0, description="Number of checks that evaluated the object.")]
    not_evaluated: Annotated[
        int, Meta(ge=0, description="Number of checks that matched the object and did not evaluate it.")
    ]
    findings: Annotated[int, Meta(ge=0, description="Number of its open findings.")]


class Population(ScanListPage, frozen=True, kw_only=True):
    """Objects by kind, namespace and name. A scan of an older version has none."""

    objects: list[ExaminedObject]


def population(request: ApiRequest[PopulationQuery]) -> Population:
    """A page of the population."""
    view, query = request.view, request.query
    after = None if request.cursor is None else PlaceOfPage(*request.cursor.numbers(len(PlaceOfPage._fields)))
    with request.library.use_reader() as reader:
        page = reader.read_population_page(request.scan.id, kind=query.kind, after=after, limit=query.limit)
    findings = view.problems.count_by_object({each.object.id for each in page.objects})
    return Population(
        **head_of(request.scan),
        total=page.total,
        next=Cursor(request.scan.id, page.next).text() if page.next else None,
        objects=[_object(each, findings[each.object.id]) for each in page.objects],
    )


def _object(counted: CountedObject, findings: int) -> ExaminedObject:
    item = counted.object
    return ExaminedObject(
        api_version=item.api_version,
        kind=item.kind,
        namespace=item.namespace,
        name=item.name,
        uid=item.uid,
        workload=workload_json(item.workload),
        labels=dict(item.labels),
        evaluated=counted.evaluated,
        not_evaluated=counted.not_evaluated,
        findings=findings,
    )


ENDPOINTS: Final = (
    Endpoint(
        "listPopulation",
        "/clusters/{cluster}/population",
        "List the objects that a scan examined.",
        PopulationQuery,
        Population,
        population,
        key_of_scan,
    ),
)
