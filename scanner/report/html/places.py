"""The one place of a finding: everything that a reader needs to believe it, on the page `f/<three digits>.html`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple, assert_never

from scanner.model.outcome import Check, Errored, Finding, Violated, WouldChange
from scanner.model.policy import PolicyKey
from scanner.model.reading import Auditability
from scanner.model.rule import RuleType
from scanner.model.scans.stored_finding import ProblemFinding, StoredFinding
from scanner.posture.problem_rows import choose_strictest
from scanner.report.document.by_policy import PolicySection
from scanner.report.document.policy_text import MarkedText, mark_checks, yaml_of
from scanner.report.document.waivers import waiver_text
from scanner.report.html.pieces import RowForm, shorten
from scanner.report.html.site import Site
from scanner.report.html.templates import NAME, NO_NAME
from scanner.report.lists.finding_columns import FINDINGS
from scanner.report.lists.problem_facts import chip_of, outcome_name
from scanner.report.text.evidence import evidence_lines
from scanner.report.text.names import object_name, param_name
from scanner.report.text.numbers import join_texts
from scanner.report.text.safe_text import cut, visible
from scanner.report.text.times import minute
from scanner.report.text.titles import RESOLUTIONS, auditability, cause_text, check_title, message_of, name_actions

# The texts of policies and params that pages of findings show once, below the findings.

_PROSE: Final = 600
_DESCRIBED: Final = 4_000
"""The characters of a text beside which a page has room for the description of its policy, too."""


class PlaceTexts:
    """The texts to which the findings of a report refer, by number. Each is rendered once, as HTML."""

    def __init__(self, site: Site, marked: dict[int, MarkedText] | None = None) -> None:
        """`marked` remembers texts of policies for later calls about the same report."""
        macros: Any = site.templates.get_template("places.html").module
        self._site: Final = site
        self._policy_macro, self._param_macro = macros.policy_text, macros.param_text
        self._sections: Final = site.document.policies
        self._numbers: Final = {section.key: number for number, section in enumerate(self._sections)}
        params = [rule for rule in site.document.rules if rule.type is RuleType.PARAM and rule.document is not None]
        self._params: Final = params
        self._param_numbers: Final = {kind_and_name(rule.name): number for number, rule in enumerate(params)}
        self._marked: Final[dict[int, MarkedText]] = {} if marked is None else marked
        self._policies: Final[dict[tuple[int, frozenset[int], int], str]] = {}
        self._rendered_params: Final[dict[int, str]] = {}

    def number(self, policy: PolicyKey) -> int:
        """The number of a policy. Raises ValueError for one whose findings were not counted."""
        if policy not in self._numbers:
            raise ValueError(f"findings of {policy[1]} were not counted")
        return self._numbers[policy]

    def section(self, number: int) -> PolicySection:
        """The policy with a number."""
        return self._sections[number]

    def check_number(self, number: int, check: Check) -> int:
        """The number of a check of a policy, or -1 for one without counts."""
        checks = (each.check for each in self._sections[number].checks)
        return next((place for place, each in enumerate(checks) if each == check), -1)

    def lines(self, number: int, check: Check) -> range | None:
        """The lines of a check in the text of its policy, or None if they are not known."""
        return self._text(number).places.get(check)

    def param_number(self, section: PolicySection, finding: Finding) -> int:
        """The number of a finding's param, or -1 if the report does not have its content."""
        kind = section.param_kind.partition(" ")[0]
        return self._param_numbers.get((kind, param_name(finding.param_namespace, finding.param_name)), -1)

    def policy_html(self, number: int, checks: Iterable[int], longest: int) -> str:
        """The text of a policy, with the lines of some of its checks marked; if it is longer, the lines around these."""
        key = number, frozenset(checks), longest
        if key not in self._policies:
            self._policies[key] = self._policy(*key)
        return self._policies[key]

    def param_html(self, number: int) -> str:
        """The content of a param."""
        if number not in self._rendered_params:
            rule = self._params[number]
            text = yaml_of(rule.document) if rule.document else ""
            self._rendered_params[number] = shorten(str(self._param_macro(number, rule.name, rule.masked, text)))
        return self._rendered_params[number]

    def _policy(self, number: int, checks: frozenset[int], longest: int) -> str:
        section = self._sections[number]
        checks_shown = [section.checks[place].check for place in sorted(checks) if place >= 0]
        return shorten(
            self._policy_macro(
                number,
                _cut(section.title),
                _cut(self._site.document.title(section.key)),
                self._site.policy_path(section.key),
                str(section.severity),
                _cut(section.description) if longest >= _DESCRIBED else "",
                _cut(section.remediation),
                self._text(number).mark_only(checks_shown),
                longest,
            )
        )

    def _text(self, number: int) -> MarkedText:
        if number not in self._marked:
            section = self._sections[number]
            self._marked[number] = mark_checks(section, [each.check for each in section.checks])
        return self._marked[number]


def _cut(text: str) -> str:
    return text if len(text) <= _PROSE else f"{text[:_PROSE]}…"


def kind_and_name(name: str) -> tuple[str, str]:
    """Kind and name of a param, as `ConfigMap shop/limits` or `example.com/Limits shop/limits` names it."""
    kind, _, rest = name.partition(" ")
    return kind.rpartition("/")[2], rest


_EXPRESSION: Final = 2_000
_CONTROLS: Final = 300
_OPERATIONS: Final = {"CREATE": "A CREATE", "UPDATE": "An UPDATE", "DELETE": "A DELETE", "CONNECT": "A CONNECT"}
_STATUSES: Final = {
    "new": "New in this scan",
    "open": "Open before this scan",
    "reopened": "Reopened by this scan",
    "preview": "Preview: its binding is assumed",
    "outdated": "Outdated: a scan that began later shows that it is not open",
    "resolved": "Resolved",
}


@dataclass(frozen=True, slots=True, eq=False)
class _Rule:
    """The texts that the findings of one check under one binding and param share, and the numbers of its texts on the page."""

    number: int
    check_number: int
    param_number: int
    severity: str
    remediation: str
    title: str
    path: str
    policy: str
    check: str
    expression: str
    line: int
    lines: str
    binding: str
    actions: str
    action: str
    param: str
    controls: str
    limits: str
    depends: bool


class _Has(NamedTuple):
    """The parts that a place has; the others are left out of its HTML. `facts` are titles of columns with a text."""

    excerpt: bool
    uid: bool
    owner: bool
    waiver: bool
    facts: tuple[str, ...]


class PlacedFinding(NamedTuple):
    """A finding as HTML on one line, with the numbers of the texts that its page has to show."""

    id: str
    policy: int
    check: int
    param: int
    html: str


class PlaceRenderer:
    """Renders the places of the findings of a report."""

    def __init__(self, site: Site, texts: PlaceTexts) -> None:
        self._site = site
        self._texts = texts
        self._form = RowForm(site.templates, "places.html", "place")
        self._requester = site.document.provenance.requester.username or "the user that scanned"
        self._rules: dict[tuple[object, ...], _Rule] = {}
        waivers = site.document.waivers
        self._waivers = {line.name: line for line in waivers.lines} if waivers else {}

    def render_place(self, each: ProblemFinding) -> PlacedFinding:
        """The place of a finding. Raises ValueError if findings of its policy were not counted."""
        stored, triage = each.stored, self._site.document.triage
        finding, evidence = stored.finding, stored.finding.evidence
        rule = self._rule(finding)
        owner = triage.owner(stored)
        facts = [
            pair
            for pair in zip(FINDINGS.facts, FINDINGS.fact_texts(stored, self._site.document), strict=True)
            if pair[1]
        ]
        waiver = self._waiver(stored)
        has = _Has(
            bool(evidence.excerpt), bool(finding.uid), bool(owner), bool(waiver), tuple(title for title, _ in facts)
        )
        cause = cause_text(stored.cause) if stored.cause else ""
        status = stored.status if each.checked else "unchecked"
        chip = chip_of(
            outcome_name(finding.outcome),
            refused=finding.denies,
            action=rule.action,
            status=status,
            excepted=bool(finding.excepted_by),
        )
        words = chip, status, has, rule, cause, _status(each)
        # A finding that moved to another problem is open there, at its own address.
        address = f"{stored.id}-moved" if stored.moved_to else stored.id
        texts = (
            address,
            _name(finding.kind),
            _name(object_name(finding)) or NO_NAME,
            self._admission(stored, rule),
            message_of(finding),
            _name(finding.api_version),
            _name(finding.uid),
            _name(finding.resource_version) or "not known",
            _name(owner),
            _clocks(stored),
            _name(waiver),
            evidence.excerpt,
            *(_name(text) for _, text in facts),
            *evidence_lines(evidence),
        )
        # Places wait in files with a place on each line (`group_files`).
        html = self._form.row(words, texts).replace("\n", "&#10;")
        return PlacedFinding(address, rule.number, rule.check_number, rule.param_number, html)

    def _waiver(self, stored: StoredFinding) -> str:
        """The waiver of a finding with its end, and who accepted the finding, and why; empty without one."""
        applied = self._site.document.triage.waiver(stored)
        line = self._waivers.get(applied.name) if applied else None
        why = f", approved by {line.approved_by}: {line.reason}" if line else ""
        return f"{waiver_text(applied)}{why}"

    def _rule(self, finding: Finding) -> _Rule:
        param = finding.param_namespace, finding.param_name
        key = finding.policy_key, finding.binding, param, finding.check, finding.actions
        if key not in self._rules:
            self._rules[key] = self._make_rule(finding)
        return self._rules[key]

    def _make_rule(self, finding: Finding) -> _Rule:
        texts, document, policy = self._texts, self._site.document, finding.policy_key
        number = texts.number(policy)
        section = texts.section(number)
        remediation = document.triage.remediation(*finding.severity_key)
        lines = texts.lines(number, finding.check)
        return _Rule(
            number=number,
            check_number=texts.check_number(number, finding.check),
            param_number=texts.param_number(section, finding) if finding.param_name else -1,
            severity=str(document.triage.severity(*finding.severity_key)),
            remediation=_cut(remediation)
            if finding.check.expression in document.triage.description(policy).checks
            else "",
            title=_name(section.title) or NO_NAME,
            path=self._site.policy_path(policy),
            policy=_name(document.title(policy)),
            check=check_title(finding.check),
            expression=cut(finding.check.expression, _EXPRESSION),
            line=lines[0] if lines else 0,
            lines=_lines(lines),
            binding=_name(finding.binding),
            actions=join_texts(name_actions(finding.actions)) or "no action",
            action=choose_strictest(finding.actions),
            param=_name(param_name(finding.param_namespace, finding.param_name)),
            controls=cut(join_texts(document.triage.controls(*finding.severity_key)), _CONTROLS),
            limits=_limits(section, finding),
            depends=(policy, finding.check) in document.requester_checks,
        )

    def _admission(self, stored: StoredFinding, rule: _Rule) -> str:
        """The decision of admission about a write of the object, and the user of the write."""
        request = f"{_OPERATIONS[stored.finding.operation]} of this object"
        if stored.status == "resolved":
            return f"{request} was last evaluated before the finding was resolved"
        whose, others = (f" by {self._requester}", "; it may differ for other users") if rule.depends else ("", "")
        return f"{request}{whose} {_decision(stored.finding, rule)}{others}"


def _decision(finding: Finding, rule: _Rule) -> str:
    if finding.excepted_by:
        return "would be admitted, because the object is excepted"
    if finding.denies and isinstance(finding.outcome, Errored):
        return "would be refused, because the evaluation fails"
    if finding.denies:
        return "would be refused" if rule.depends else "would be refused, for every user"
    match finding.outcome:
        case WouldChange():
            return "would be changed by the policy"
        case Errored():
            return "would be admitted unchecked, because the evaluation fails"
        case Violated():
            return f"would be admitted, with {_describe_effect(finding)}"
        case _ as never:
            assert_never(never)


def _describe_effect(finding: Finding) -> str:
    if "RefusePods" in finding.actions:
        return "its pods refused"
    if "Warn" in finding.actions:
        return "a warning"
    return "an entry in the audit log" if "Audit" in finding.actions else "no message"


def _status(each: ProblemFinding) -> str:
    stored = each.stored
    if stored.status != "resolved":
        return _STATUSES[stored.status] if each.checked else "Open, but not checked by this scan"
    when = f" at {minute(stored.resolved_at)} UTC" if stored.resolved_at else ""
    why = RESOLUTIONS.get(stored.resolution, "")
    follows = f", see problem {stored.moved_to}" if stored.moved_to else ""
    return f"Resolved{when}{': ' if why else ''}{why}{follows}"


def _clocks(stored: StoredFinding) -> str:
    first, last = _minute(stored.first_seen), _minute(stored.last_seen)
    opened = _minute(stored.opened_at) if stored.opened_at else first
    since = f", open since {opened} UTC" if opened != first else ""
    problem = f", problem {stored.problem}" if stored.problem else ""
    began = _minute(stored.problem_opened_at) if problem and stored.problem_opened_at else opened
    older = f" since {began} UTC" if began != opened else ""
    continued = f", continues finding {stored.continues}" if stored.continues else ""
    seen = (
        f"first and last seen {first} UTC{since}"
        if first == last
        else f"first seen {first} UTC{since}, last seen {last} UTC"
    )
    return f"{seen}{problem}{older}{continued}"


@lru_cache(maxsize=1_000)  # thousands of findings have the same few moments
def _minute(moment: datetime) -> str:
    return minute(moment)


def _limits(section: PolicySection, finding: Finding) -> str:
    """The difference between the check and admission, if there is one; empty also for a scan of an older version."""
    classes = next((each.auditability for each in section.checks if each.check == finding.check), ())
    return auditability(classes) if classes and classes != (Auditability.FULL,) else ""


def _lines(lines: range | None) -> str:
    if not lines:
        return ""
    return f"line {lines[0]}" if len(lines) == 1 else f"lines {lines[0]} to {lines[-1]}"


def _name(text: str) -> str:
    return visible(cut(text, NAME))
