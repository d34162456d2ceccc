"""The schemas of the documents that Assay prints, as parts of the OpenAPI document: the API answers with parts of these documents."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias, cast

from msgspec import Meta

from scanner.model.json import Json, JsonObject, as_object, texts
from scanner.report.formats.json import plain
from scanner.report.lists.problem_columns import PROBLEMS
from scanner.report.text.json_text import camel

REF: Final = "#/components/schemas/"
_DEFINITIONS: Final = "#/$defs/"
SUMMARY: Final = (
    *("provenance", "method", "complete", "verdict", "totals", "requester", "check_kinds", "findings_total", "changes"),
    *("score", "severities", "health"),
)
"""The sections of the report about a whole scan."""
_PARTS: Final[Mapping[str, tuple[str, str]]] = {
    "KindWithoutPolicy": ("report", "properties/kindsWithoutPolicy/items"),
    "CoverageOfScan": ("report", "properties/coverage"),
    "RunEntry": ("runs", "properties/runs/items"),
    "RunSheet": ("run", ""),
    "TimeToFix": ("trend", "properties/fixes/items"),
    "Tally": ("trend", "properties/days/items/properties/tallies/items"),
    "ScanOfRun": ("run", "properties/scan"),
}
"""Parts of documents that have no name there."""


def ref(component: str) -> Meta:
    """The description of a JSON object that a component describes."""
    return Meta(extra_json_schema={"$ref": REF + component})


Item: TypeAlias = Mapping[str, Any]
NewestScanJson: TypeAlias = Annotated[Item, ref("NewestScan")]
ListedScanJson: TypeAlias = Annotated[Item, ref("ListedScan")]
FindingJson: TypeAlias = Annotated[Item, ref("ListedFinding")]
PolicyJson: TypeAlias = Annotated[Item, ref("Policy")]
GapJson: TypeAlias = Annotated[Item, ref("Gap")]
NamespaceJson: TypeAlias = Annotated[Item, ref("Namespace")]
RunJson: TypeAlias = Annotated[Item, ref("RunEntry")]
CoverageJson: TypeAlias = Annotated[Item, ref("CoverageOfScan")]
KindJson: TypeAlias = Annotated[Item, ref("KindWithoutPolicy")]
OutsideJson: TypeAlias = Annotated[Item, ref("Outside")]
SourceJson: TypeAlias = Annotated[Item, ref("Source")]
UnneededJson: TypeAlias = Annotated[Item, ref("Unneeded")]
WorkloadJson: TypeAlias = Annotated[Item, ref("Workload")]
FixJson: TypeAlias = Annotated[Item, ref("TimeToFix")]
TrendDayJson: TypeAlias = Annotated[Item, ref("TrendDay")]
ProblemJson: TypeAlias = Annotated[Item, ref("Problem")]


def item(value: object) -> Item:
    """A record of the report as a JSON object."""
    return cast("Item", plain(value))


@cache
def components() -> JsonObject:
    """The components that the schemas of Assay's documents describe, by name."""
    report = _document("report")
    named = {_title(name): schema for name, schema in as_object(report["$defs"]).items()}
    parts = {name: _part(_document(document), path) for name, (document, path) in _PARTS.items()}
    days = {"TrendDay": _trend_day()}
    scans = {"NewestScan": parts["ScanOfRun"], "ListedScan": _listed_scan(parts["ScanOfRun"])}
    further = {
        "ListedFinding": _listed_finding(),
        "Problem": PROBLEMS.schema(),
        "Summary": _summary(report),
        **parts,
        **scans,
        **days,
    }
    return {name: _refer(schema) for name, schema in sorted({**named, **further}.items())}


def _listed_finding() -> JsonObject:
    checked: JsonObject = {
        "type": "boolean",
        "description": "Whether the scan checked the finding; false for one that is still open because the scan could not check it.",
    }
    return {
        "description": "A finding of a scan.",
        "allOf": [{"$ref": f"{_DEFINITIONS}finding"}],
        "properties": {"checked": checked},
        "required": ["checked"],
    }


def _listed_scan(scan: JsonObject) -> JsonObject:
    number: JsonObject = {"type": "integer", "minimum": 0}
    further: JsonObject = {
        "new": {**number, "description": "Number of findings that the scan found first or again."},
        "resolved": {**number, "description": "Number of findings that the scan resolved."},
        "pruned": {"type": "boolean", "description": "Whether only the totals of the scan are left."},
    }
    known = as_object(scan["properties"])
    return {
        "type": "object",
        "description": "A scan in any state.",
        "properties": {**known, **further},
        "required": [*known, *further],
    }


def _trend_day() -> JsonObject:
    """A day of a trend: its tallies are there if the request asks for them, their sums always, and their digest never."""
    day = _part(_document("trend"), "properties/days/items")
    known = {name: schema for name, schema in as_object(day["properties"]).items() if name != "digest"}
    sums: JsonObject = {
        "totals": {"$ref": f"{_DEFINITIONS}counts", "description": "Number of outcomes of the chosen policies."},
        "requester": {"$ref": f"{_DEFINITIONS}counts", "description": "Those that may differ for another user."},
    }
    return {
        **day,
        "properties": {**known, "tallies": {"type": "array", "items": {"$ref": f"{_DEFINITIONS}tally"}}, **sums},
        "required": [*(name for name in texts(day["required"]) if name not in {"tallies", "digest"}), *sums],
    }


def _summary(report: JsonObject) -> JsonObject:
    """The sections of the report that an answer about a scan has besides its head."""
    known = as_object(report["properties"])
    names = [camel(name) for name in SUMMARY]
    head: JsonObject = {
        "scan": {"type": "string", "description": "The id of the scan."},
        "cluster": {"type": "string", "description": "The name of the cluster."},
        "finishedAt": {"type": ["string", "null"], "description": "End of the scan. RFC 3339, UTC."},
    }
    return {
        "description": "The sections of the report about a whole scan.",
        "type": "object",
        "properties": {**head, **{name: known[name] for name in names}},
        "required": [*head, *names],
    }


def _part(document: JsonObject, path: str) -> JsonObject:
    part: Json = document
    for step in filter(None, path.split("/")):
        part = as_object(part)[step]
    return {name: value for name, value in as_object(part).items() if not name.startswith("$") or name == "$ref"}


def _refer(schema: Json) -> Json:
    """A schema whose references are those of the OpenAPI document."""
    if isinstance(schema, list):
        return [_refer(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: REF + _title(value.removeprefix(_DEFINITIONS))
        if name == "$ref" and isinstance(value, str)
        else _refer(value)
        for name, value in schema.items()
    }


def _title(name: str) -> str:
    return name[0].upper() + name[1:]


@cache
def _document(name: str) -> JsonObject:
    """The schema of a document: installed with Assay, in a checkout that of the documentation."""
    package = Path(__file__).parents[2]
    file = f"{name}.schema.json"
    installed = package / "_data" / file
    path = installed if installed.exists() else package.parent / "docs" / file
    return as_object(json.loads(path.read_text(encoding="utf-8")))
