"""The parts of the report of a scan besides findings: its summary, coverage, gaps, policies and namespaces."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import Meta, convert

from scanner.report.document.rules_in_force import list_rules
from scanner.report.formats.json import section
from scanner.report.formats.rules import rule_json
from scanner.report.text.json_text import camel, dump, head_json
from scanner.web.api.api_request import ApiRequest, key_of_scan
from scanner.web.api.endpoints import ApiAnswer, Endpoint, ScanAnswer, ScanListPage, head_of, page_of
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


class RuleJson(ApiAnswer, frozen=True, kw_only=True):
    """A rule that decided in a scan."""

    type: Annotated[
        str, Meta(description="policy, binding, param, exception, globalContext, namespaceLabels or configuration.")
    ]
    language: Annotated[str, Meta(description="The language of a policy or binding, else empty.")]
    policy: Annotated[str, Meta(description="The policy of a binding, else empty.")]
    name: Annotated[str, Meta(description="The name of the rule.")]
    bound: Annotated[bool, Meta(description="Whether the rule decides: false for a policy without a binding.")]
    assumed: Annotated[bool, Meta(description="Whether the binding is assumed for this scan.")]
    digest: Annotated[str, Meta(description="SHA-256 of the content that decides, in hex.")]
    resource_version: Annotated[str | None, Meta(description="The resource version, if it is known.")]
    in_force_since: Annotated[
        str | None, Meta(description="End of the first scan with this content without a break. RFC 3339, UTC.")
    ]
    not_before: Annotated[
        str | None, Meta(description="End of the last scan before that; null if no such scan is kept. RFC 3339, UTC.")
    ]
    changed: Annotated[
        list[str], Meta(description="Ends of the scans that found another content than the scan before. RFC 3339, UTC.")
    ]
    masked: Annotated[bool, Meta(description="Whether a part of the content is withheld.")]
    document: Annotated[dict[str, Any], Meta(description="The content.")]


class Rules(ScanListPage, frozen=True, kw_only=True):
    """The rules in force, by type, policy and name."""

    rules: list[RuleJson]


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


def rules(request: ApiRequest[ScanListQuery]) -> Rules:
    """A page of the rules in force."""
    every = list_rules(request.view.document.stored)
    shown, following = page_of(request, every)
    listed = [convert(rule_json(each), RuleJson) for each in shown]
    return Rules(**head_of(request.scan), total=len(every), next=following, rules=listed)


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
        "listRules",
        f"{_OF_CLUSTER}/rules",
        "List the rules in force: policies, bindings, params, exceptions and labels, with their text and since when.",
        ScanListQuery,
        Rules,
        rules,
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
