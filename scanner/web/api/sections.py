"""The parts of the report of a scan besides findings: its summary, coverage, gaps, policies and namespaces."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from scanner.report.formats.json import section
from scanner.report.text.json_text import camel, dump, head_json
from scanner.web.api.api_request import ApiRequest, key_of_scan
from scanner.web.api.endpoints import Endpoint, ScanAnswer, ScanListPage, head_of, page_of
from scanner.web.api.queries import ScanListQuery, ScanQuery, Text
from scanner.web.api.schemas import (
    SUMMARY,
    CoverageJson,
    GapJson,
    KindJson,
    NamespaceJson,
    OutsideJson,
    PolicyJson,
    SourceJson,
    UnneededJson,
    item,
)


class PolicyQuery(ScanListQuery, frozen=True, kw_only=True):
    """The parameters of the list of policies."""

    policy: Annotated[Text, Meta(description="The name of a policy.")] = ""


class ScanCoverage(ScanAnswer, frozen=True, kw_only=True):
    """The parts that a scan examined, and those that it did not examine. `/gaps` lists the gaps one by one."""

    complete: Annotated[bool, Meta(description="Whether everything in scope was scanned.")]
    coverage: CoverageJson
    sources: Annotated[list[SourceJson], Meta(description="Everything that can refuse a request, judged or not.")]
    kinds_without_policy: Annotated[list[KindJson], Meta(description="The kinds that no bound policy covers.")]
    outside: Annotated[
        list[OutsideJson], Meta(description="Objects that also decide about requests, but are not evaluated.")
    ]
    out_of_scope: Annotated[
        list[UnneededJson],
        Meta(
            description="Items that no bound policy can match, files of other tools, and the numbers of older policies of Kyverno."
        ),
    ]


class Gaps(ScanListPage, frozen=True, kw_only=True):
    """The items that could not be scanned."""

    gaps: list[GapJson]


class Policies(ScanListPage, frozen=True, kw_only=True):
    """The policies of a scan and their results, by name."""

    policies: list[PolicyJson]


class Namespaces(ScanListPage, frozen=True, kw_only=True):
    """The namespaces of a scan and their results, by name; cluster-scoped objects under the empty name."""

    namespaces: list[NamespaceJson]


def summary(request: ApiRequest[ScanQuery]) -> bytes:
    """The sections of the report about a whole scan."""
    document = request.view.document
    return dump({**head_json(request.scan), **{camel(name): section(document, name) for name in SUMMARY}})


def coverage(request: ApiRequest[ScanQuery]) -> ScanCoverage:
    """The coverage of a scan."""
    document = request.view.document
    return ScanCoverage(
        **head_of(request.scan),
        complete=document.complete,
        coverage=item(document.coverage),
        sources=[item(each) for each in document.sources],
        kinds_without_policy=[item(each) for each in document.kinds_without_policy],
        outside=[item(each) for each in document.outside],
        out_of_scope=[item(each) for each in document.out_of_scope],
    )


def gaps(request: ApiRequest[ScanListQuery]) -> Gaps:
    """A page of the gaps."""
    every = request.view.document.gaps
    shown, following = page_of(request, every)
    return Gaps(**head_of(request.scan), total=len(every), next=following, gaps=[item(each) for each in shown])


def policies(request: ApiRequest[PolicyQuery]) -> Policies:
    """A page of the policies."""
    name = request.query.policy
    chosen = [each for each in request.view.document.policies if not name or each.name == name]
    shown, following = page_of(request, chosen)
    return Policies(**head_of(request.scan), total=len(chosen), next=following, policies=[item(each) for each in shown])


def namespaces(request: ApiRequest[ScanListQuery]) -> Namespaces:
    """A page of the namespaces."""
    every = request.view.document.namespaces
    shown, following = page_of(request, every)
    return Namespaces(
        **head_of(request.scan), total=len(every), next=following, namespaces=[item(each) for each in shown]
    )


_OF_CLUSTER: Final = "/clusters/{cluster}"
ENDPOINTS: Final = (
    Endpoint(
        "getSummary",
        f"{_OF_CLUSTER}/summary",
        "Get the sections of the report about a whole scan: verdict, totals, score, changes, method.",
        ScanQuery,
        "Summary",
        summary,
        key_of_scan,
    ),
    Endpoint(
        "getCoverage",
        f"{_OF_CLUSTER}/coverage",
        "Get what a scan examined, and what not.",
        ScanQuery,
        ScanCoverage,
        coverage,
        key_of_scan,
    ),
    Endpoint(
        "listGaps",
        f"{_OF_CLUSTER}/gaps",
        "List the items that could not be scanned.",
        ScanListQuery,
        Gaps,
        gaps,
        key_of_scan,
    ),
    Endpoint(
        "listPolicies",
        f"{_OF_CLUSTER}/policies",
        "List the policies of a scan with their results.",
        PolicyQuery,
        Policies,
        policies,
        key_of_scan,
    ),
    Endpoint(
        "listNamespaces",
        f"{_OF_CLUSTER}/namespaces",
        "List the namespaces of a scan with their results.",
        ScanListQuery,
        Namespaces,
        namespaces,
        key_of_scan,
    ),
)
