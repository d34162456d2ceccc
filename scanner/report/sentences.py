"""Sentences about a whole document that several formats say in the same words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import assert_never

from scanner.model.opinion import Opinion
from scanner.model.scan import HealthKind, ScanState
from scanner.report.by_namespace import NamespaceSection
from scanner.report.by_policy import PolicySection
from scanner.report.document import Document
from scanner.report.words import EVERYTHING, HEALTH_TITLES, duration, percent_ceil, percent_floor, plural, stamp

CLUSTER_SCOPED = "cluster-scoped objects"


def headline_of(document: Document) -> str:
    """The state of the scan in a word or two; it is `Complete` only when nothing was missed."""
    match document.provenance.state:
        case ScanState.COMPLETE | ScanState.PARTIAL:
            return "Complete" if document.complete else "Incomplete"
        case ScanState.FAILED:
            return "Failed"
        case ScanState.RUNNING:
            return "Not finished"
        case unknown:
            assert_never(unknown)


def verdict_of(document: Document) -> str:
    """What the state means to a reader."""
    if document.complete:
        return "Everything that a bound policy can match was looked at."
    missed = len(document.coverage.unseen)
    return (
        f"This report does not show everything: {plural(missed, 'thing was', 'things were')} not looked at."
        if missed
        else _UNNAMED
    )


_UNNAMED = "This report does not show everything: the scan was recorded as incomplete."


def when_of(document: Document) -> str:
    """When the scan ran, and for how long."""
    it = document.provenance
    if it.finished_at is None:
        return f"started {stamp(it.started_at)}, not finished"
    return f"{stamp(it.started_at)}, took {duration(it.started_at, it.finished_at)}"


def score_line(document: Document) -> str:
    """The score, its bounds and the population behind it; or why there is none."""
    score = document.score
    if score.value is None:
        return f"not available: {score.why_not}"
    return f"{percent_floor(score.value)} of {population_line(document)}"


def population_line(document: Document) -> str:
    """What the score is a share of, and its bounds."""
    score = document.score
    if not score.undecided or score.low is None or score.high is None:
        return f"{plural(score.decided, 'decided check')} passed, nothing is undecided"
    bounds = f"between {percent_floor(score.low)} and {percent_ceil(score.high)}"
    return f"{plural(score.decided, 'decided check')} passed; {bounds} with what is undecided"


def coverage_line(document: Document) -> str:
    """How many kinds and objects were looked at."""
    coverage = document.coverage
    skipped = coverage.states["skipped"]
    kinds = f"{coverage.states['listed']:,} of {plural(len(coverage.kinds) - skipped, 'kind')} listed to the end"
    left_out = f", {skipped:,} left out on request" if skipped else ""
    return (
        f"{kinds}{left_out}; {coverage.evaluated:,} of {plural(coverage.objects, 'listed object')} matched by a policy"
    )


def findings_line(document: Document) -> str:
    """How many findings there are, and which are new."""
    total, changes = document.findings_total, document.changes
    preview = f", {changes.preview:,} previewed" if changes.preview else ""
    parts = f"{changes.new:,} new, {changes.open:,} open before, {changes.reopened:,} reopened{preview}"
    drift = f"; {total.drift:,} of them are drift" if total.drift else ""
    return f"{plural(total.total, 'finding')} ({parts}); admission would refuse {total.would_deny:,} of them{drift}"


def drift_line(document: Document) -> str:
    """What mutating policies would change, or an empty string where there are none or nothing drifts."""
    number = document.totals.would_change
    return f"{plural(number, 'mutation')} would change an object that is written today" if number else ""


def excepted_line(document: Document) -> str:
    """What would not pass without policy exceptions and Kyverno's filters, or an empty string."""
    number = document.totals.excepted
    return (
        f"{plural(number, 'check')} would not pass without a policy exception or a filter of Kyverno's configuration: "
        "nothing is refused for them"
        if number
        else ""
    )


def changes_line(document: Document) -> str:
    """What was fixed, and what this scan cannot tell."""
    changes = document.changes
    if not document.provenance.previous_scan_id:
        return "this is the first recorded scan of this cluster"
    unchecked = f"; {changes.unchecked:,} still open but not checked by this scan" if changes.unchecked else ""
    return f"{changes.resolved:,} resolved since the scan before{unchecked}"


def requester_line(document: Document) -> str:
    """How many outcomes can be different for another requester, or an empty string."""
    it = document.requester
    if not it.total:
        return ""
    who = document.provenance.requester.username or "whoever scanned"
    return (
        f"{plural(it.total, 'outcome')} of {document.totals.total:,} ({it.passed:,} passed, {it.violated:,} violated) "
        f"hold for requests by {who} and can be different for others"
    )


def outside_line(document: Document) -> str:
    """What decides about requests as well but was not evaluated, or an empty string."""
    numbers = Counter(entry.kind for entry in document.outside)
    return ", ".join(f"{kind} {numbers[kind]:,}" for kind in sorted(numbers))


def kinds_line(document: Document) -> str:
    """How many of the kinds in scope were listed to the end."""
    states = document.coverage.states
    return f"{states['listed']:,} of {len(document.coverage.kinds) - states['skipped']:,} listed to the end"


def scope_line(document: Document) -> str:
    """What was asked for, when that is not everything."""
    asked = [*document.provenance.scope, *(f"without {it}" for it in document.provenance.exclusions)]
    narrow = [it for it in asked if it not in EVERYTHING]
    return "; ".join(narrow) or "everything"


def health_line(document: Document) -> str:
    """How many entries of each kind policy health has."""
    numbers = Counter(entry.kind for entry in document.health)
    return ", ".join(f"{HEALTH_TITLES[kind].lower()} {numbers[kind]:,}" for kind in HealthKind if numbers[kind])


def nothing_line(document: Document) -> str:
    """What to do when the scan had nothing to do, or an empty string."""
    if not document.policies:
        return "No policy was found: add some with --policies PATH, or check that the scanner may list them."
    if not any(policy.bindings for policy in document.policies):
        return "No policy is bound: preview one with --assume-bound POLICY."
    if not document.coverage.evaluated:
        return "No object was matched by a bound policy: see policy health, and the scope of this scan."
    return ""


def namespace_title(namespace: str) -> str:
    """The name of a namespace, or what stands in its place."""
    return namespace or CLUSTER_SCOPED


def worst_policies(policies: Iterable[PolicySection]) -> list[PolicySection]:
    """Policies, those with most findings first."""
    return sorted(policies, key=lambda it: (-it.findings.total, it.name))


def worst_namespaces(namespaces: Iterable[NamespaceSection]) -> list[NamespaceSection]:
    """Namespaces, those with most findings first."""
    return sorted(namespaces, key=lambda it: (-it.findings.total, it.namespace))


@dataclass(frozen=True, slots=True)
class Spoken:
    """All sentences about a document, for formats that place them freely."""

    headline: str
    verdict: str
    when: str
    kinds: str
    scope: str
    score: str
    population: str
    coverage: str
    findings: str
    changes: str
    health: str
    nothing: str
    requester: str
    outside: str
    drift: str


def spoken(document: Document) -> Spoken:
    """Say everything there is to say about a document as a whole."""
    return Spoken(
        headline=headline_of(document),
        verdict=verdict_of(document),
        when=when_of(document),
        kinds=kinds_line(document),
        scope=scope_line(document),
        score=score_line(document),
        population=population_line(document),
        coverage=coverage_line(document),
        findings=findings_line(document),
        changes=changes_line(document),
        health=health_line(document),
        nothing=nothing_line(document),
        requester=requester_line(document),
        outside=outside_line(document),
        drift=drift_line(document),
    )


def opinion_line(opinion: Opinion) -> str:
    """How far another engine agrees."""
    share = f"{opinion.percent:g} % of the objects, {plural(opinion.objects, 'object')}"
    if not opinion.evaluations:
        return f"{opinion.engine} was asked nothing: {share}, is too small a sample. Verdicts are Assay's own"
    return (
        f"{opinion.engine} agrees in {opinion.agreed:,} of {plural(opinion.evaluations, 'evaluation')} "
        f"of {plural(opinion.expressions, 'expression')} ({share}), cannot do {opinion.limited:,}, "
        f"and differs in {opinion.disagreed:,}. Verdicts are Assay's own"
    )
