"""The findings that Markdown, JUnit and SARIF leave out: those below the severity that a user asks for, which they count."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Final

from scanner.model.scans.problem_numbers import GroupedProblems
from scanner.model.scans.stored_finding import ProblemFinding, StoredFinding, make_census, make_census_by_owner
from scanner.posture.grouped_problems import group_problems
from scanner.posture.triage import BelowSeverity
from scanner.posture.worst_problems import MOST, NEW, WorstProblem, choose_worst, list_worst_problems
from scanner.report.document.by_owner import OwnerSection, owners_of
from scanner.report.document.by_policy import PolicySection
from scanner.report.document.counts import FindingCounts, findings_by
from scanner.report.document.document import Document
from scanner.report.text.numbers import plural

_MOST_NEW: Final = 200
"""The new problems that a summary names."""


@dataclass(frozen=True, slots=True)
class SummaryContent:
    """The content of a summary: the worst of `total` open problems, policies, and the findings and problems by namespace and by owner.

    `new` are the worst of the `total_new` problems that are new since a baseline, if there is one.
    """

    worst: tuple[WorstProblem, ...]
    total: int
    policies: tuple[PolicySection, ...]
    namespaces: Mapping[str, FindingCounts]
    owners: tuple[OwnerSection, ...]
    by_namespace: GroupedProblems
    by_owner: GroupedProblems
    new: tuple[WorstProblem, ...] = ()
    total_new: int = 0
    left_out: str = ""


def find_below(document: Document) -> BelowSeverity:
    """The policies and checks below the severity that the user asks for; none without one."""
    return document.triage.find_below(document.options.minimum)


def left_out_line(document: Document, number: int, noun: str) -> str:
    """The sentence about what is left out: `6 findings below high are left out (--min-severity high)`."""
    minimum = document.options.minimum
    if minimum is None:
        return ""
    verb = "is" if number == 1 else "are"
    return f"{plural(number, noun)} below {minimum} {verb} left out (--min-severity {minimum})"


def findings_left_out(document: Document) -> int:
    """The number of the findings that are left out."""
    minimum = document.options.minimum
    if minimum is None:
        return 0
    return sum(each.findings.total for each in document.severities if not each.severity.at_least(minimum))


def summarize(document: Document) -> SummaryContent:
    """Return the content of a summary of the report, without what is below the severity that the user asks for."""
    below = find_below(document)
    if document.options.minimum is None:
        shown = SummaryContent(
            worst=document.worst,
            total=document.problems.open,
            policies=document.policies,
            namespaces={section.namespace: section.findings for section in document.namespaces},
            owners=document.owners,
            by_namespace=document.problems_by_namespace,
            by_owner=document.problems_by_owner,
        )
    else:
        shown = _summarize_above(document, below)
    if document.baseline is None or not document.baseline.title:
        return shown
    new, total = _choose_worst(
        document, lambda worst: worst.problem.status in NEW and not below(*worst.severity_key), _MOST_NEW
    )
    return replace(shown, new=new, total_new=total)


def _summarize_above(document: Document, below: BelowSeverity) -> SummaryContent:
    def findings() -> Iterator[StoredFinding]:
        return (stored for stored in document.findings() if not below(*stored.finding.severity_key))

    worst, total = _choose_worst(document, lambda worst: not below(*worst.severity_key), MOST)
    return SummaryContent(
        worst=worst,
        total=total,
        policies=tuple(section for section in document.policies if not below.has_policy(section.key)),
        namespaces=findings_by(make_census(findings()), lambda bucket: bucket.namespace),
        owners=owners_of(make_census_by_owner(findings(), document.triage.owner_of), document.triage),
        by_namespace=group_problems(_problems(document, below), document.triage.waives, _namespace),
        by_owner=group_problems(_problems(document, below), document.triage.waives, document.triage.owner),
        left_out=left_out_line(document, document.problems.open - total, "problem"),
    )


def _problems(document: Document, below: BelowSeverity) -> Iterator[ProblemFinding]:
    return (each for each in document.by_problem() if not below(*each.stored.finding.severity_key))


def _namespace(stored: StoredFinding) -> str:
    return stored.finding.namespace


def _choose_worst(
    document: Document, wanted: Callable[[WorstProblem], bool], most: int
) -> tuple[tuple[WorstProblem, ...], int]:
    """The worst of the wanted open problems, and the number of all of these."""
    numbers = count()
    every = filter(wanted, list_worst_problems(document.by_problem(), document.triage))
    worst = choose_worst((each for each, _ in zip(every, numbers, strict=False)), document.triage, most)
    return worst, next(numbers)
