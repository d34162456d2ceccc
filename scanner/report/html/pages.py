"""The pages of the HTML report besides those of findings: each is rendered when a caller needs it.

The static report writes all of them; the web application renders the page that a user opens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final, NamedTuple, TypeVar

from scanner.model.rule import RuleType
from scanner.model.scans.health import Health
from scanner.model.scans.register import MOST_RESOLVED, PolicyDays, Register
from scanner.posture.score import NO_SCORE, Score
from scanner.posture.worst_problems import WorstProblem
from scanner.report.charts.history_charts import draw_days, draw_history, write_time
from scanner.report.document.by_control import ControlSection, FrameworkSection
from scanner.report.document.by_namespace import NamespaceSection
from scanner.report.document.by_owner import OwnerSection
from scanner.report.document.by_policy import PolicySection
from scanner.report.document.counts import NO_FINDINGS
from scanner.report.document.document import Document
from scanner.report.document.method import RuleSection
from scanner.report.document.notes import Missed, list_missed
from scanner.report.document.policy_text import definition_of, yaml_of
from scanner.report.document.rules_in_force import RuleInForce, list_rules
from scanner.report.document.sentences import namespace_title, worst_namespaces, worst_owners, worst_policies
from scanner.report.document.waivers import STATE_WORDS, WaiverLine
from scanner.report.html.change_counts import ChangeLines
from scanner.report.html.comparisons import WORDS, list_comparisons
from scanner.report.html.finding_rows import Subject
from scanner.report.html.place_pages import place_path
from scanner.report.html.places import kind_and_name
from scanner.report.html.resolved import ResolvedProblems
from scanner.report.html.site import Batch, Pager, Site, add_number, split_pages, weight
from scanner.report.html.templates import NAME
from scanner.report.lists.problem_facts import chip_of, outcome_name
from scanner.report.text.names import owner_title, param_name
from scanner.report.text.numbers import plural
from scanner.report.text.times import age_text
from scanner.report.text.titles import sentence_of

ItemT = TypeVar("ItemT")
_TOP: Final = 10
_UNCOVERED: Final = 300
"""The controls without a policy for which the page of controls by namespace has room."""


class HtmlPage(NamedTuple):
    """A page: its path from the top folder, and what renders its HTML."""

    path: str
    render: Callable[[], str]


@dataclass(frozen=True)
class HtmlPages:
    """All pages of a report but those of findings.

    `owners` are the lines of the page of owners. `worst` returns the rows of the worst problems of some policies, namespaces,
    owners or controls as HTML, `changes` the numbers of changed findings, `days` the last days of some policy and perhaps of others,
    `resolved` what earlier scans resolved.
    """

    site: Site
    owners: Sequence[OwnerRow]
    worst: Callable[[Subject, Sequence[str]], str]
    changes: Callable[[], ChangeLines]
    days: Callable[[], PolicyDays]
    resolved: Callable[[], ResolvedProblems]

    def __iter__(self) -> Iterator[HtmlPage]:
        # The lists come last, because making them weighs their rows: `find` ends before.
        yield from self._list_single_pages()
        yield from map(self._policy, self.site.document.policies)
        yield from map(self._namespace, self.site.document.namespaces)
        yield from map(self._owner, self.owners)
        for framework in self.site.document.controls:
            yield from (self._control(framework, control) for control in framework.controls)
        yield from self._make_lists()

    def find(self, path: str) -> HtmlPage | None:
        """The page at a path; None if the report does not have it."""
        return next((page for page in self if page.path == path), None)

    @cached_property
    def _register(self) -> Register:
        return self.site.document.stored.register()

    @cached_property
    def _rules(self) -> tuple[RuleInForce, ...]:
        return list_rules(self.site.document.stored)

    def _list_single_pages(self) -> Iterator[HtmlPage]:
        page = self._page
        yield HtmlPage("index.html", self._summary)
        yield page("changes.html", "Changes", self._changes)
        yield page("resolved.html", "Resolved", self._resolved)
        yield page("charts.html", "Charts", self._charts)
        yield page("method.html", "Method and provenance")
        yield page(
            "runs.html",
            "Runs",
            lambda: {"register": self._register, "trend": draw_days(self._register.days, "Open findings")},
        )

    def _changes(self) -> dict[str, object]:
        comparisons = list(list_comparisons(self.site.document))
        return {**self.changes()._asdict(), "comparisons": comparisons, "words": WORDS}

    def _resolved(self) -> dict[str, object]:
        resolved = self.resolved()
        return {"lines": resolved.lines(self.site), "findings": len(resolved.findings), "most": MOST_RESOLVED}

    def _charts(self) -> dict[str, object]:
        document = self.site.document
        triage = document.triage
        history = document.stored.problem_history(triage.ranks, triage.waived.rows)
        return {"charts": draw_history(history, document.provenance.ended_at), "write_time": write_time}

    def _page(self, path: str, title: str, context: Callable[[], dict[str, object]] = dict) -> HtmlPage:
        return HtmlPage(path, lambda: self.site.page(path, path, title, **context()))

    def _summary(self) -> str:
        document = self.site.document
        return self.site.page(
            "index.html",
            "index.html",
            "Summary",
            trend=draw_days(self._register.days, "Open findings"),
            owners=self.owners,
            top_owners=self.owners[:_TOP],
            top_policies=worst_policies(document.policies)[:_TOP],
            top_namespaces=worst_namespaces(document.namespaces)[:_TOP],
            worst=[worst_line(document, each) for each in document.worst],
        )

    def _policy(self, section: PolicySection) -> HtmlPage:
        site = self.site
        path = site.policy_path(section.key)

        def render() -> str:
            return site.page(
                path,
                "policy.html",
                section.name,
                policy=section,
                definition=definition_of(section),
                texts=texts_of(section, site.document.rules),
                worst=self.worst("policy", [site.policies[section.key]]),
                history=draw_days(self.days().get(section.key, ()), "Failing checks", changes=False),
            )

        return HtmlPage(path, render)

    def _namespace(self, section: NamespaceSection) -> HtmlPage:
        path, title = self.site.namespace_path(section.namespace), namespace_title(section.namespace)

        def render() -> str:
            worst = self.worst("namespace", [section.namespace])
            return self.site.page(path, "namespace.html", title, namespace=section, worst=worst)

        return HtmlPage(path, render)

    def _owner(self, row: OwnerRow) -> HtmlPage:
        path = self.site.owner_path(row.owner)

        def render() -> str:
            return self.site.page(path, "owner.html", row.title, row=row, worst=self.worst("owner", [row.owner]))

        return HtmlPage(path, render)

    def _control(self, framework: FrameworkSection, control: ControlSection) -> HtmlPage:
        site = self.site
        path = site.control_path(f"{framework.name}/{control.id}")

        def render() -> str:
            worst = self.worst("control", [f"{framework.name}/{control.id}"])
            shown = {"framework": framework, "control": control, "worst": worst}
            return site.page(path, "control.html", f"{control.id} {control.title}", **shown)

        return HtmlPage(path, render)

    def _make_lists(self) -> Iterator[HtmlPage]:
        document = self.site.document
        policies, namespaces = worst_policies(document.policies), worst_namespaces(document.namespaces)
        controls = [(framework, control) for framework in document.controls for control in framework.controls]
        section = document.waivers
        lines = section.lines if section else ()
        yield from self._list("policies.html", "Policies", policies, lambda policy: weight(policy.name[:NAME]))
        yield from self._list("namespaces.html", "Namespaces", namespaces, lambda each: weight(each.namespace[:NAME]))
        yield from self._list("owners.html", "Owners", self.owners, lambda row: weight(row.owner[:NAME]))
        yield from self._list("coverage.html", "Coverage", list_missed(document), _weigh_gap)
        yield from self._list("health.html", "Policy health", document.health, _weigh_health)
        yield from self._list("waivers.html", "Waivers", lines, _weigh_waiver, waivers=section, state_words=STATE_WORDS)
        if controls:
            covered = [row for row in controls if row[1].covered]
            rest = {"uncovered": [row for row in controls if not row[1].covered], "uncovered_shown": _UNCOVERED}
            yield from self._list("controls.html", "Controls", covered, _weigh_control, **rest)
            yield from self._list(
                "controls_by_namespace.html", "Controls by namespace", covered, _weigh_control, **rest
            )
        yield from self._list("rules.html", "Rules in force", self._rules, _weigh_rule, yaml_of=yaml_of)

    def _list(
        self, path: str, title: str, items: Sequence[ItemT], weigh: Callable[[ItemT], int], **context: object
    ) -> Iterator[HtmlPage]:
        """The pages of a list; the template has the name of the first page."""
        for batch in split_pages(items, weigh):
            yield HtmlPage(
                add_number(path, batch.number), partial(self._list_page, path, title, batch, len(items), context)
            )

    def _list_page(self, path: str, title: str, batch: Batch[ItemT], total: int, context: dict[str, object]) -> str:
        shown = {"rows": batch.rows, "pager": Pager.of(path, batch, total), **context}
        return self.site.page(add_number(path, batch.number), path, title, **shown)


def _weigh_waiver(line: WaiverLine) -> int:
    return weight(line.name[:NAME], line.scope, line.reason, line.why, line.source, line.control)


def _weigh_gap(gap: Missed) -> int:
    return weight(gap.where, gap.why)


def _weigh_health(health: Health) -> int:
    return weight(health.policy[:NAME], health.binding[:NAME], health.detail)


def _weigh_rule(rule: RuleInForce) -> int:
    return weight(rule.name[:NAME], rule.policy[:NAME], yaml_of(rule.document))


def _weigh_control(row: tuple[FrameworkSection, ControlSection]) -> int:
    framework, control = row
    names = (policy.name[:NAME] for policy in control.policies)
    return weight(framework.heading, control.id, control.title, *(note[:NAME] for note in control.why), *names)


# The lines of the page of owners: the teams that own a checked object, with findings and score.


class OwnerRow(NamedTuple):
    """A line of the page of owners."""

    owner: str
    title: str
    findings: OwnerSection
    score: Score


def owners_with_scores(document: Document) -> list[OwnerRow]:
    """The owners of objects that were checked, with their scores, worst first; unowned objects last."""
    scores = document.owner_scores()
    there = {section.owner: section for section in document.owners}
    clean = (OwnerSection(owner, NO_FINDINGS, ()) for owner in scores.keys() - there.keys())
    sections = worst_owners((*there.values(), *clean))
    return [OwnerRow(each.owner, owner_title(each.owner), each, scores.get(each.owner, NO_SCORE)) for each in sections]


# A worst problem as a line of the summary page.


class WorstLine(NamedTuple):
    """The texts of a problem. `place` leads to one of its findings; `status` is that of the problem; `findings` are its objects."""

    chip: str
    severity: str
    status: str
    kind: str
    name: str
    policy: tuple[str, str]
    title: str
    message: str
    check: str
    owner: str
    age: str
    id: str
    place: str
    findings: str


def worst_line(document: Document, worst: WorstProblem) -> WorstLine:
    """The line of a problem."""
    problem, finding = worst.problem, worst.example.finding
    workload, key = problem.workload, finding.policy_key
    return WorstLine(
        chip=chip_of(outcome_name(finding.outcome), refused=problem.denies, action=problem.action),
        severity=str(document.triage.severity(*finding.severity_key)),
        status=problem.status,
        kind=workload.kind,
        name="/".join(filter(None, (workload.namespace, workload.name))),
        policy=key,
        title=document.triage.description(key).title,
        message=sentence_of(finding, document.triage.description(key).title),
        check=document.name_check(key, finding.check),
        owner=document.triage.owner(worst.example),
        age=age_text(problem.opened_at, document.provenance.ended_at),
        id=problem.id,
        place=f"{place_path(worst.example.id)}#f-{worst.example.id}",
        findings=plural(problem.findings, "object"),
    )


# The texts of the bindings of a policy and of its params, for the page of the policy.

_FRAME: Final = re.compile(r"(?:apiVersion: .*\n)?kind: .*\nmetadata:\n  name: .*\n(?=spec:\n)")
_HEAVIEST_TEXTS: Final = 60_000
"""Bytes of HTML: the page has room for the text of the policy, too."""


class RuleText(NamedTuple):
    """The text of a binding or of a param; `masked` if a part of it is withheld.

    `frame` is its beginning, if that has kind and name alone, which stand above it, and the rest of the text is its `spec`.
    """

    what: str
    name: str
    text: str
    masked: bool = False
    frame: str = ""


class RuleTexts(NamedTuple):
    """The texts for which a page has room, of `total`."""

    shown: tuple[RuleText, ...]
    total: int


def texts_of(policy: PolicySection, rules: Iterable[RuleSection]) -> RuleTexts:
    """The texts of the bindings of a policy, and of those params among `rules` that the bindings used."""
    texts = (*_bindings(policy), *_params(policy, rules))
    return RuleTexts(tuple(_select_fitting(texts)), len(texts))


def _bindings(policy: PolicySection) -> Iterator[RuleText]:
    for binding in policy.bindings:
        if binding.manifest:
            text = yaml_of(binding.written or binding.manifest)
            frame = _FRAME.match(text)
            yield RuleText("Binding", binding.name, text, frame=frame[0] if frame else "")


def _params(policy: PolicySection, rules: Iterable[RuleSection]) -> Iterator[RuleText]:
    kind = policy.param_kind.partition(" ")[0]
    used = {param_name(param.namespace, param.name) for binding in policy.bindings for param in binding.params}
    for rule in rules:
        if rule.type is not RuleType.PARAM or not rule.document:
            continue
        rule_kind, name = kind_and_name(rule.name)
        if rule_kind == kind and name in used:
            yield RuleText("Param", name, yaml_of(rule.document), rule.masked)


def _select_fitting(texts: Sequence[RuleText]) -> Iterator[RuleText]:
    room = _HEAVIEST_TEXTS
    for text in texts:
        room -= weight(text.name, text.text)
        if room < 0:
            return
        yield text
