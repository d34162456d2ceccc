"""The one place of a finding: everything that a reader needs to believe it, on the page `f/<three digits>.html`."""

from __future__ import annotations

from typing import Final, NamedTuple, assert_never

from scanner.model.outcome import Errored, Finding, Violated, WouldChange
from scanner.model.scan import ProblemFinding, StoredFinding
from scanner.posture.problem_rows import strictest
from scanner.report.chips import chip_of_finding
from scanner.report.evidence import evidence_lines
from scanner.report.place_texts import PlaceTexts
from scanner.report.rows import RowForm
from scanner.report.site import Site
from scanner.report.templates import NAME
from scanner.report.waivers import waiver_text
from scanner.report.words import (
    RESOLUTIONS,
    cause_text,
    check_title,
    cut,
    listed,
    message_of,
    minute,
    object_name,
    param_name,
    visible,
    workload_name,
)

_EXPRESSION: Final = 2_000
_CONTROLS: Final = 300
_OPERATIONS: Final = {"CREATE": "A CREATE", "UPDATE": "An UPDATE", "DELETE": "A DELETE", "CONNECT": "A CONNECT"}
_STATUSES: Final = {
    "new": "New in this scan",
    "open": "Open before this scan",
    "reopened": "Reopened by this scan",
    "preview": "Preview: its binding is assumed",
    "resolved": "Resolved",
}


class Has(NamedTuple):
    """The parts that a place has; the others are left out of its HTML."""

    expression: bool
    line: bool
    excerpt: bool
    uid: bool
    workload: bool
    owner: bool
    param: bool
    param_text: bool
    controls: bool
    cause: bool
    waiver: bool


class PlacedFinding(NamedTuple):
    """A finding as HTML on one line, with the numbers of the texts that its page has to show."""

    id: str
    policy: int
    check: int
    param: int
    html: str


class Places:
    """Renders the places of the findings of a report."""

    def __init__(self, site: Site, texts: PlaceTexts) -> None:
        self._site = site
        self._texts = texts
        self._form = RowForm(site.templates, "place", template="places.html")
        self._requester = site.document.provenance.requester.username or "the user that scanned"
        self._checks: dict[tuple[int, object], int] = {}

    def placed(self, each: ProblemFinding) -> PlacedFinding:
        """The place of a finding. Raises ValueError if findings of its policy were not counted."""
        stored, document = each.stored, self._site.document
        finding, triage = stored.finding, document.triage
        number = self._texts.number(finding.policy_key)
        section = self._texts.section(number)
        lines = self._texts.lines(number, finding.check)
        param = self._texts.param_number(section, finding) if finding.param_name else -1
        workload, owner = workload_name(stored), triage.owner(stored)
        waiver = waiver_text(triage.waiver(stored))
        controls = listed(triage.controls(finding.policy_key))
        has = Has(
            expression=bool(finding.check.expression),
            line=lines is not None,
            excerpt=bool(finding.evidence.excerpt),
            uid=bool(finding.uid),
            workload=bool(workload),
            owner=bool(owner),
            param=bool(finding.param_name),
            param_text=param >= 0,
            controls=bool(controls),
            cause=stored.cause is not None,
            waiver=bool(waiver),
        )
        status = stored.status if each.checked else "unchecked"
        words = (
            chip_of_finding(finding, strictest(finding.actions)),
            str(section.severity),
            status,
            has,
            number,
        )
        texts = (
            stored.id,
            _name(finding.kind),
            _name(object_name(finding)),
            _name(section.title),
            self._site.policy_path(finding.policy_key),
            _name(document.title(finding.policy_key)),
            self._admission(stored),
            message_of(finding),
            check_title(finding.check),
            cut(finding.check.expression, _EXPRESSION),
            str(lines[0]) if lines else "",
            _lines(lines),
            _name(finding.binding),
            listed(finding.actions) or "no action",
            _name(finding.api_version),
            _name(finding.uid),
            _name(finding.resource_version) or "not known",
            _name(workload),
            _name(owner),
            _name(param_name(finding.param_namespace, finding.param_name)),
            str(param),
            _status(each),
            _clocks(stored),
            cause_text(stored.cause) if stored.cause else "",
            _name(waiver),
            cut(controls, _CONTROLS),
            finding.evidence.excerpt,
            *evidence_lines(finding.evidence),
        )
        html = self._form.row(words, texts).replace("\n", "&#10;")
        return PlacedFinding(stored.id, number, self._check(number, finding), param, html)

    def _check(self, number: int, finding: Finding) -> int:
        key = number, finding.check
        if key not in self._checks:
            self._checks[key] = self._texts.check_number(number, finding.check)
        return self._checks[key]

    def _admission(self, stored: StoredFinding) -> str:
        """What admission would decide about a write of the object, and for which user."""
        finding, document = stored.finding, self._site.document
        request = f"{_OPERATIONS[finding.operation]} of this object"
        asks = (finding.policy_key, finding.check) in document.requester_checks
        whose = f" by {self._requester}" if asks else ""
        others = "; it may differ for other users" if asks else ""
        if stored.status == "resolved":
            return f"{request} was last evaluated before this scan resolved the finding"
        return f"{request}{whose} {_decision(finding)}{others}"


def _decision(finding: Finding) -> str:
    if finding.excepted_by:
        return "would be admitted, because the object is excepted"
    if finding.denies:
        return (
            "would be refused, for every user"
            if not isinstance(finding.outcome, Errored)
            else "would be refused, because the evaluation fails"
        )
    match finding.outcome:
        case WouldChange():
            return "would be changed by the policy"
        case Errored():
            return "would be admitted unchecked, because the evaluation fails"
        case Violated():
            return f"would be admitted, with {_with(finding)}"
        case _ as never:
            assert_never(never)


def _with(finding: Finding) -> str:
    if "Warn" in finding.actions:
        return "a warning"
    return "an entry in the audit log" if "Audit" in finding.actions else "no message"


def _status(each: ProblemFinding) -> str:
    stored = each.stored
    if stored.status != "resolved":
        return _STATUSES[stored.status] if each.checked else "Open, but not checked by this scan"
    when = f" at {minute(stored.resolved_at)} UTC" if stored.resolved_at else ""
    why = RESOLUTIONS.get(stored.resolution, "")
    return f"Resolved{when}{': ' if why else ''}{why}"


def _clocks(stored: StoredFinding) -> str:
    parts = [f"first seen {minute(stored.first_seen)} UTC"]
    if stored.opened_at and stored.opened_at != stored.first_seen:
        parts.append(f"open since {minute(stored.opened_at)} UTC")
    parts.append(f"last seen {minute(stored.last_seen)} UTC")
    if stored.problem:
        opened = f" since {minute(stored.problem_opened_at)} UTC" if stored.problem_opened_at else ""
        parts.append(f"problem {stored.problem}{opened}")
    if stored.continues:
        parts.append(f"continues finding {stored.continues}")
    return ", ".join(parts)


def _lines(lines: range | None) -> str:
    if not lines:
        return ""
    return f"line {lines[0]}" if len(lines) == 1 else f"lines {lines[0]} to {lines[-1]}"


def _name(text: str) -> str:
    return visible(cut(text, NAME))
