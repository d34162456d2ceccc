"""The report as JSON: one document, the same bytes for the same scan, written while the findings are read.

Shape: `docs/report.schema.json`, whose version is `schemaVersion`. A minor version only adds fields. Each
finding is one line, so that files can be compared line by line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any, BinaryIO, Final, cast

from scanner.model.scans.opinion import Opinion
from scanner.model.scans.problem_numbers import GroupedProblems, OpenProblems
from scanner.model.scans.scan import Coverage
from scanner.model.scans.stored_finding import StoredFinding
from scanner.posture.score import NO_SCORE, WEIGHTS, Score
from scanner.report.document.counts import NO_FINDINGS
from scanner.report.document.document import Document, FindingChanges
from scanner.report.document.sentences import gaps_of, verdict_line, verdict_of
from scanner.report.document.waivers import section_json
from scanner.report.lists.finding_columns import FINDINGS
from scanner.report.text.json_text import Plain, camel, dump
from scanner.report.text.times import iso

SCHEMA_VERSION = "1.3"

_SECTIONS = (
    "provenance",
    "method",
    "complete",
    "verdict",
    "totals",
    "requester",
    "check_kinds",
    "findings_total",
    "changes",
    "score",
    "coverage",
    "sources",
    "kinds_without_policy",
    "policies",
    "rules",
    "namespaces",
    "controls",
    "severities",
    "owners",
    "gaps",
    "health",
    "outside",
    "out_of_scope",
    "waivers",
    "second_opinion",
    "digests",
)


def render(document: Document, out: BinaryIO) -> None:
    """Write the report as UTF-8 JSON, ending with a line end."""
    out.write(b'{\n"schemaVersion": ' + dump(SCHEMA_VERSION))
    for name in _SECTIONS:
        out.write(b",\n" + dump(camel(name)) + b": ")
        out.writelines(_array(_owners(document)) if name == "owners" else [dump(section(document, name))])
    _stream(out, "findings", document.findings(), document)
    _stream(out, "resolved", document.resolved(), document)
    out.write(b"\n}\n")


def _array(items: Iterable[Plain]) -> Iterator[bytes]:
    """The bytes of an array, whose items can be many."""
    yield b"["
    separator = b""
    for item in items:
        yield separator + dump(item)
        separator = b","
    yield b"]"


def _stream(out: BinaryIO, name: str, findings: Iterator[StoredFinding], document: Document) -> None:
    out.write(b",\n" + dump(name) + b": [")
    separator = b"\n"
    for stored in findings:
        out.write(separator + dump(FINDINGS.json(stored, document)))
        separator = b",\n"
    out.write(b"\n]")


def section(document: Document, name: str) -> Plain:
    """A section of the report as a JSON value, by the name of its field."""
    match name:
        case "verdict":
            return _verdict(document)
        case "changes":
            changes = {name: plain(getattr(document.changes, field)) for field, name in _names_of(FindingChanges)}
            return {**changes, "baseline": _baseline(document)}
        case "score":
            with_waivers = document.score_with_waivers
            return {
                **_score(document.score),
                "weights": {str(name): weight for name, weight in WEIGHTS.items()},
                "withWaivers": _score(with_waivers) if with_waivers else None,
            }
        case "waivers":
            return section_json(document.waivers) if document.waivers else None
        case "owners":
            return list(_owners(document))
        case "second_opinion":
            return _opinion(document.second_opinion)
        case "digests":
            return _digests(document)
        case _:
            return plain(getattr(document, name))


def _digests(document: Document) -> Plain:
    """The digests of the scan by section, one over all of them, and that of the waivers on the day of the report."""
    digests, waivers = document.digests, document.waivers_digest
    return {
        "scan": digests.digest,
        "sections": [each._asdict() for each in digests.sections],
        "waivers": waivers and {"day": document.triage.day.isoformat(), "rows": waivers.rows, "digest": waivers.digest},
    }


def _verdict(document: Document) -> Plain:
    """The numbers with which every report begins, and their line: problems, and items that could not be scanned. Then the extent of the scan."""
    numbers = {camel(field.name): getattr(document.problems, field.name) for field in fields(document.problems)}
    return {
        "line": " · ".join(verdict_line(document)),
        "problems": numbers,
        "gaps": gaps_of(document),
        "sentence": verdict_of(document),
        "leftOut": list(document.left_out),
        "problemsBy": _problems_by(document),
    }


def _problems_by(document: Document) -> Plain:
    """The problems of the verdict in groups; sections about outcomes do not have them, because a waiver changes them."""
    policies: list[Plain] = [
        {"language": section.language, "policy": section.name, **_problems(document.open_problems(section.key))}
        for section in document.policies
    ]
    frameworks: list[Plain] = [
        {"framework": framework.name, **_write_groups("control", document.problems_by_control(framework))}
        for framework in document.controls
    ]
    return {
        "policies": policies,
        "namespaces": _write_groups("namespace", document.problems_by_namespace),
        "owners": _write_groups("owner", document.problems_by_owner),
        "controls": frameworks,
    }


def _write_groups(noun: str, problems: GroupedProblems) -> dict[str, Plain]:
    """The problems of each group, those in several groups, those that the sum of all groups counts too often, and those in none.

    The owner of unowned objects is null, as elsewhere.
    """
    groups: list[Plain] = [
        {noun: None if noun == "owner" and not name else name, **_problems(numbers)}
        for name, numbers in problems.groups.items()
    ]
    parts = (("several", problems.several), ("repeated", problems.repeated), ("outside", problems.outside))
    return {"groups": groups, **{name: _problems(numbers) for name, numbers in parts}}


def _problems(numbers: OpenProblems) -> dict[str, Plain]:
    return {"open": numbers.open, "refused": numbers.refused, "podsRefused": numbers.pods_refused, "new": numbers.new}


def _baseline(document: Document) -> Plain:
    """The baseline that the statuses follow; null for a report without one."""
    baseline = document.baseline
    if baseline is None or not baseline.title:
        return None
    return {"scan": baseline.scan or None, "file": baseline.file or None, "gone": baseline.gone}


def _opinion(opinion: Opinion | None) -> Plain:
    """The second opinion with its sums; null for a scan without one."""
    if opinion is None:
        return None
    sums = {"limited": opinion.limited, "disagreed": opinion.disagreed}
    return {**{camel(field.name): plain(getattr(opinion, field.name)) for field in fields(opinion)}, **sums}


def _owners(document: Document) -> Iterator[Plain]:
    """The owners with findings or with a score. The owner of unowned objects is null, and the last."""
    scores = document.owner_scores()
    sections = {section.owner: section for section in document.owners}
    names = sorted(sections.keys() | scores.keys(), key=lambda name: (not name, name))
    for name in names:
        yield {
            "owner": name or None,
            "findings": plain(sections[name].findings if name in sections else NO_FINDINGS),
            "severities": plain(sections[name].severities if name in sections else ()),
            "score": _score(scores.get(name, NO_SCORE)),
        }


def _score(score: Score) -> dict[str, Plain]:
    return {**_share(score), "weighted": _share(score.weighted) if score.weighted else None}


def _share(score: Score) -> dict[str, Plain]:
    return {
        "value": score.value,
        "low": score.low,
        "high": score.high,
        "passed": score.passed,
        "decided": score.decided,
        "undecided": score.undecided,
        "whyNot": score.why_not,
    }


def plain(value: object) -> Plain:
    """The records of a section, or one of them, as JSON values: fields in their order, names in camel case."""
    if type(value) in _VALUES:
        return cast("Plain", value)
    match value:
        case StrEnum():
            return str(value)
        case datetime():
            return iso(value)
        case None | bool() | int() | float() | str():
            return value
        case Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case Coverage():
            return _coverage(value)
        case Score():
            return _score(value)
        case _ if is_dataclass(value):
            return {name: plain(getattr(value, field)) for field, name in _names_of(cast("Any", type(value)))}
    raise TypeError(f"a report cannot hold {type(value).__name__}")


_VALUES: Final = frozenset({type(None), bool, int, float, str})
"""The types of most values, which are JSON values."""


@cache
def _names_of(record: type[Any]) -> tuple[tuple[str, str], ...]:
    """The names of the fields of a record in Python and in JSON, without those that pages alone show."""
    return tuple((field.name, camel(field.name)) for field in fields(record) if not field.metadata.get("pages"))


def _coverage(line: Coverage) -> Plain:
    """The coverage of a kind, with one digest over those of its pages: there can be thousands of these."""
    shown = (field.name for field in fields(line) if field.name != "page_digests")
    return {**{camel(name): plain(getattr(line, name)) for name in shown}, "digest": line.digest or None}
