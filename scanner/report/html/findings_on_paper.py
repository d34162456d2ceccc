"""The findings of a report as its one file prints them: by rule and by message, so that what many findings share stands once.

Every finding has its id, its object and what is special about it; its page has the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from scanner.model.outcome import Check
from scanner.model.policy import PolicyKey
from scanner.report.document.document import Document
from scanner.report.html.templates import environment
from scanner.report.lists.problem_facts import FindingOrder, group_of, groups_of
from scanner.report.text.names import object_name
from scanner.report.text.times import age_text
from scanner.report.text.titles import message_of


class PrintedFinding(NamedTuple):
    """A finding without the fields of its rule and message. `owner` is empty for an unowned object, `status` as in `problem_facts.STATUSES`."""

    id: str
    kind: str
    name: str
    status: str
    waived: bool
    owner: str
    age: str


class PrintedRule(NamedTuple):
    """The findings of a check with one result, by message. `title` is that of the policy's description, `check` its name in the policy."""

    chip: str
    severity: str
    policy: PolicyKey
    title: str
    check: str
    messages: dict[str, list[PrintedFinding]]

    @property
    def total(self) -> int:
        """The number of findings."""
        return sum(map(len, self.messages.values()))


def render_findings(document: Document) -> str:
    """The HTML of all findings of a document, the resolved ones last. Raises ValueError if findings were not counted."""
    template = environment().get_template("findings_on_paper.html")
    return template.render(document=document, rules=list(list_rules(document)))


def list_rules(document: Document) -> Iterator[PrintedRule]:
    """The rules that have findings, in the order of the list of findings: the rule with the worst finding first."""
    rules: dict[tuple[FindingOrder, PolicyKey, Check, str], PrintedRule] = {}
    triage, end = document.triage, document.provenance.ended_at
    for problem in groups_of(document, frozenset(section.key for section in document.policies)):
        for each in problem.findings:
            stored, finding = each.stored, each.stored.finding
            alone, policy = group_of([each], triage), finding.policy_key
            rule = rules.setdefault(
                (alone.order, policy, finding.check, alone.facts.chip),
                PrintedRule(
                    alone.facts.chip,
                    str(triage.severity(*finding.severity_key)),
                    policy,
                    triage.description(policy).title,
                    document.name_check(policy, finding.check),
                    {},
                ),
            )
            rule.messages.setdefault(message_of(finding), []).append(
                PrintedFinding(
                    id=stored.id,
                    kind=finding.kind,
                    name=object_name(finding),
                    status=alone.facts.status,
                    waived=alone.facts.waived,
                    owner=triage.owner(stored),
                    age=age_text(problem.opened_at, end),
                )
            )
    for _, rule in sorted(rules.items(), key=lambda pair: (pair[0][0], pair[0][1], pair[0][2].index, pair[0][3])):
        yield rule
