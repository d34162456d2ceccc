"""Sentences about a whole document that several formats share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, assert_never

from scanner.model.policy import ACTIONS, Action
from scanner.model.scans.health import HealthKind
from scanner.model.scans.opinion import Opinion
from scanner.model.scans.problem_numbers import GroupedProblems
from scanner.model.scans.scan import ScanState
from scanner.posture.control_namespaces import ControlInNamespace, NamespaceState
from scanner.posture.controls import ControlState
from scanner.posture.history.rule_digests import RulesPart
from scanner.posture.score import WEIGHTS
from scanner.posture.severity import Severity
from scanner.posture.waivers.waivers import WaiverState
from scanner.report.document.by_control import ControlSection, FrameworkSection
from scanner.report.document.by_namespace import NamespaceSection
from scanner.report.document.by_owner import OwnerSection
from scanner.report.document.by_policy import PolicySection
from scanner.report.document.coverage import CoverageSection, legacy_line, unneeded_line
from scanner.report.document.document import Document
from scanner.report.document.notes import list_missed, rights_line
from scanner.report.document.sources import is_everything_judged, not_judged_line
from scanner.report.document.waivers import STATE_WORDS
from scanner.report.text.numbers import join_texts, percent_ceil, percent_floor, plural
from scanner.report.text.scope import EVERYTHING, clocks_note
from scanner.report.text.times import duration, stamp
from scanner.report.text.titles import CONTROL_STATES, HEALTH_TITLES, RULES_KINDS, RULES_PARTS

CLUSTER_SCOPED = "cluster-scoped objects"


def headline_of(document: Document) -> str:
    """The state of the scan in a word or two; `Complete` only when nothing was missed."""
    match document.provenance.state:
        case ScanState.COMPLETE | ScanState.INCOMPLETE:
            return "Complete" if document.complete else "Incomplete"
        case ScanState.FAILED:
            return "Failed"
        case ScanState.RUNNING:
            return "Not finished"
        case unknown:
            assert_never(unknown)


def verdict_of(document: Document) -> str:
    """The state of the scan as a sentence, in every format: what could not be scanned, and what the user left out."""
    left_out = document.left_out
    if not left_out:
        return f"{_extent(document)}."
    extent = "Complete within its scope" if document.complete else _extent(document)
    return f"{extent}; left out on request: {join_texts(left_out)}."


def _extent(document: Document) -> str:
    """The extent of the scan, as a clause."""
    if document.complete:
        is_bound = any(policy.bindings for policy in document.policies)
        return "Everything that a bound policy can match was scanned" if is_bound else "Nothing was evaluated"
    if gaps := gaps_of(document):
        return f"{plural(gaps, 'item')} could not be scanned"
    return "Nothing was evaluated" if nothing_line(document) else "The scan was recorded as incomplete"


class VerdictPart(NamedTuple):
    """A part of the verdict: `kind` is refused, pods, open, new, reopened, resolved or gaps."""

    kind: str
    number: int
    text: str


def verdict_line(document: Document) -> tuple[str, ...]:
    """The texts of the parts of the verdict."""
    return tuple(part.text for part in verdict_parts(document))


def verdict_parts(document: Document) -> tuple[VerdictPart, ...]:
    """The numbers with which every report begins: refused problems, those of which pods would be refused, then new, reopened, resolved ones, and gaps.

    Only the first part is there if its number is 0. The number of open problems is there if none of them would be refused.
    Nothing is new in the first scan of a cluster, unless a baseline is given.
    """
    problems = document.problems
    gaps = gaps_of(document)
    fixed = f" ({problems.fixed:,} fixed)" if problems.fixed else ""
    admitted = 0 if problems.refused or problems.pods_refused else problems.open
    more = " more" if problems.refused else ""
    parts = (
        VerdictPart("pods", problems.pods_refused, f"the pods of {problems.pods_refused:,}{more} would be refused"),
        VerdictPart("open", admitted, plural(admitted, "open problem")),
        VerdictPart("new", problems.new if is_compared(document) else 0, f"{problems.new:,} new"),
        VerdictPart("reopened", problems.reopened, f"{problems.reopened:,} reopened"),
        VerdictPart("resolved", problems.resolved, f"{problems.resolved:,} resolved{fixed}"),
        VerdictPart("gaps", gaps, plural(gaps, "gap")),
    )
    by_judged = "" if is_everything_judged(document.sources) else " by a judged policy"
    none = (
        f"no problem would be refused{by_judged}"
        if document.complete or document.coverage.evaluated
        else "nothing was evaluated"
    )
    refused = f"{plural(problems.refused, 'problem')} would be refused" if problems.refused else none
    return VerdictPart("refused", problems.refused, refused), *(part for part in parts if part.number)


def is_compared(document: Document) -> bool:
    """Return whether there is something before this scan with which its problems are compared."""
    baseline = document.baseline
    return bool(document.provenance.previous_scan_id or (baseline and baseline.title))


def gaps_of(document: Document) -> int:
    """The number of items that could not be scanned."""
    return len(list_missed(document))


def kyverno_of(document: Document) -> str:
    """The release of Kyverno whose rules were applied, or an empty string."""
    return f"Kyverno {document.method.kyverno_release}" if document.method and document.method.kyverno_release else ""


def clocks_line(document: Document) -> str:
    """The note about clocks that differed when the scan began, or an empty text."""
    return clocks_note(document.method.clocks, document.provenance.started_at) if document.method else ""


def when_of(document: Document) -> str:
    """The start and the duration of the scan."""
    provenance = document.provenance
    if provenance.finished_at is None:
        return f"started {stamp(provenance.started_at)}, not finished"
    return f"{stamp(provenance.started_at)}, took {duration(provenance.started_at, provenance.finished_at)}"


def score_line(document: Document) -> str:
    """The score, its bounds and the population behind it; or the reason for its absence."""
    score = document.score
    if score.value is None:
        return f"not available: {score.why_not}"
    return f"{percent_floor(score.value)} of {population_line(document)}"


def score_with_waivers_line(document: Document) -> str:
    """The score without the waived checks, or an empty string if no check is waived."""
    score = document.score_with_waivers
    if score is None or score.value is None:
        return ""
    return f"{percent_floor(score.value)} of {plural(score.decided, 'decided check')} passed, without the waived ones"


def waived_line(document: Document) -> str:
    """The numbers of waived findings, and of waivers by state; empty for a report without waivers."""
    section = document.waivers
    if section is None or not section.lines:
        return ""
    numbers = section.states
    states = ", ".join(f"{numbers[state]:,} {STATE_WORDS[state]}" for state in WaiverState if numbers[state])
    lapsed = f"; {plural(section.lapsed, 'finding')} no longer waived" if section.lapsed else ""
    problems = f" of {plural(section.problems, 'problem')}" if section.problems else ""
    return f"{plural(section.findings, 'finding')}{problems} waived as of {section.day}{lapsed}; waivers: {states}"


def population_line(document: Document) -> str:
    """The checks that the score counts, and its bounds."""
    score = document.score
    if not score.undecided or score.low is None or score.high is None:
        return f"{plural(score.decided, 'decided check')} passed, no check is undecided"
    bounds = f"between {percent_floor(score.low)} and {percent_ceil(score.high)}"
    return f"{plural(score.decided, 'decided check')} passed; {bounds} with the undecided checks"


def coverage_line(document: Document) -> str:
    """The numbers of kinds and objects that were listed and matched."""
    return coverage_words(document.coverage)


def coverage_words(coverage: CoverageSection) -> str:
    """The numbers of kinds and objects that were listed and matched."""
    skipped = coverage.states["skipped"]
    kinds = f"{coverage.states['listed']:,} of {plural(len(coverage.kinds) - skipped, 'kind')} listed completely"
    left_out = f", {skipped:,} excluded on request" if skipped else ""
    return (
        f"{kinds}{left_out}; {coverage.evaluated:,} of {plural(coverage.objects, 'listed object')} matched by a policy"
    )


def findings_line(document: Document) -> str:
    """The number of findings, by status."""
    total, changes = document.findings_total, document.changes
    preview = f", {changes.preview:,} previewed" if changes.preview else ""
    parts = f"{changes.new:,} new, {changes.open:,} open before, {changes.reopened:,} reopened{preview}"
    drift = f"; {total.drift:,} of them drift" if total.drift else ""
    return f"{plural(total.total, 'finding')} ({parts}){drift}"


def counted_line(document: Document) -> str:
    """The numbers of findings and of new ones; with a baseline those of problems: `9 problems, 3 new since main.json`."""
    baseline, total = document.baseline, document.findings_total
    if baseline is None or not baseline.title:
        return f"{total.total} findings, {total.new} new"
    problems = document.problems
    return f"{plural(problems.open, 'problem')}, {problems.new + problems.reopened:,} new since {baseline.title}"


def preview_line(document: Document) -> str:
    """The number of previewed findings, or an empty string."""
    number = document.changes.preview
    return f"{plural(number, 'finding')} of policies that are not bound: not in force." if number else ""


def drift_line(document: Document) -> str:
    """The number of changes that mutating policies in force would make, or an empty string."""
    previewed = sum(counts.would_change for counts in document.previews.values())
    number = document.totals.would_change - previewed
    return f"{plural(number, 'mutation')} would change an object" if number else ""


def excepted_line(document: Document) -> str:
    """The number of checks that pass only because of policy exceptions or Kyverno's filters, or an empty string."""
    number = document.totals.excepted
    return (
        f"{plural(number, 'check')} would not pass without a policy exception or a filter in Kyverno's configuration"
        if number
        else ""
    )


def changes_line(document: Document) -> str:
    """The findings that were resolved, and those that this scan did not check; with a baseline, the differences from it."""
    changes, baseline = document.changes, document.baseline
    if baseline and baseline.title:
        new = document.problems.new + document.problems.reopened
        gone = (
            f"{plural(baseline.gone, 'problem')} of {baseline.title} {'is' if baseline.gone == 1 else 'are'} not open"
        )
        return f"{plural(new, 'problem')} new since {baseline.title}; {gone}"
    if not document.provenance.previous_scan_id:
        return "this is the first stored scan of this cluster"
    unchecked = f"; {changes.unchecked:,} still open but not checked by this scan" if changes.unchecked else ""
    return f"{changes.resolved:,} resolved since the previous scan{unchecked}"


def rules_line(document: Document) -> str:
    """The statement that the rules differ from those of the last comparable scan, or an empty string."""
    changes = document.changes
    if not changes.rules_changed:
        return ""
    kinds = ", ".join(RULES_KINDS[kind] for kind in changes.changed_rules or ())
    parts = "; ".join((kinds if part is RulesPart.RULES else "") or RULES_PARTS[part] for part in changes.rules_changed)
    return f"The rules changed since the last comparable scan, {changes.comparable_scan_id}: {parts}."


def requester_line(document: Document) -> str:
    """The number of outcomes that may differ for another user, or an empty string."""
    counts = document.requester
    if not counts.total:
        return ""
    user = document.provenance.requester.username or "the user that scanned"
    return (
        f"{counts.total:,} of {plural(document.totals.total, 'outcome')} ({counts.passed:,} passed, {counts.violated:,} violated) "
        f"depend on the user: they hold for {user} and may differ for other users"
    )


def sources_line(document: Document) -> str:
    """The sources of refusals that were not judged, or an empty string if every one was."""
    return not_judged_line(document.sources)


def vendors_line(document: Document) -> str:
    """The number of bound policies that a vendor installed, as their marks state, by vendor; an empty string without any."""
    numbers = Counter(policy.vendor.name for policy in document.policies if policy.vendor and policy.bindings)
    if not numbers:
        return ""
    total = numbers.total()
    vendors = join_texts(f"{vendor} {numbers[vendor]:,}" for vendor in sorted(numbers))
    were, their = ("was", "its") if total == 1 else ("were", "their")
    bound = plural(total, "bound policy", "bound policies")
    return f"{bound} {were} installed by a vendor, as {their} owners, managers, labels or names state: {vendors}"


def out_of_scope_line(document: Document) -> str:
    """The numbers of items that no bound policy can match, of files of other tools, and of older policies, or an empty string."""
    return ". ".join(filter(None, list_out_of_scope(document)))


def list_out_of_scope(document: Document) -> tuple[str, str]:
    """The items that the scan does not need, and the older policies of Kyverno; each may be empty."""
    return unneeded_line(document.out_of_scope), legacy_line(document.out_of_scope)


def controls_line(framework: FrameworkSection) -> str:
    """The number of controls in each state, and with waivers if these differ: `5 met · 3 violated · 20 not covered`."""
    line = _states(framework.states)
    with_waivers = _states(framework.states_with_waivers)
    return line if line == with_waivers else f"{line}; with waivers and exceptions {with_waivers}"


def _states(states: Mapping[ControlState, int]) -> str:
    shown = (f"{number:,} {CONTROL_STATES[state]}" for state, number in states.items() if number)
    return " · ".join(shown)


def worst_controls(framework: FrameworkSection) -> list[ControlSection]:
    """The controls that are violated or errored, the violated ones first."""
    bad = (ControlState.VIOLATED, ControlState.ERRORED)
    return [control for state in bad for control in framework.controls if control.state is state]


def whole_policies_note(framework: FrameworkSection) -> str:
    """A sentence about the controls that select policies with all of their several checks; empty if there are none."""
    whole = [control for control in framework.controls if control.whole]
    if not whole:
        return ""
    first = whole[0]
    controls = (
        f"{len(whole):,} control{' selects' if len(whole) == 1 else 's select'} all checks of a policy with several"
    )
    example = f"{first.id} those of {first.whole[0]}"
    return f"{controls}, such as {example}: a failure of any of them counts. Select single checks by `checks`"


def uncovered_line(control: ControlSection) -> str:
    """How to cover a control that nothing covers, or why admission cannot show it, as a clause."""
    if control.remedies:
        return f"would be covered by {' or by '.join(control.remedies)}"
    return "; ".join(control.why) or "the mapping selects no policy"


def group_namespaces(control: ControlSection) -> list[tuple[NamespaceState, list[ControlInNamespace]]]:
    """The namespaces of a control by the answer of admission there, in the order of the states."""
    states = {state: [each for each in control.namespaces if each.state is state] for state in NamespaceState}
    return [(state, namespaces) for state, namespaces in states.items() if namespaces]


def control_notes(control: ControlSection) -> list[str]:
    """The reasons why a control is not shown, or the selectors that select no policy, as clauses."""
    return list(control.why) or [f"no policy has the {selector}" for selector in control.unmatched]


def control_score(control: ControlSection) -> str:
    """The score of a control with its bounds, or an empty string if there is none."""
    score = control.score
    if score.value is None or score.low is None or score.high is None:
        return ""
    bounds = f" ({percent_floor(score.low)} to {percent_ceil(score.high)})" if score.undecided else ""
    return f"{percent_floor(score.value)}{bounds}"


def kinds_line(document: Document) -> str:
    """The number of kinds in scope that were listed completely."""
    states = document.coverage.states
    return f"{states['listed']:,} of {len(document.coverage.kinds) - states['skipped']:,} listed completely"


def scope_line(document: Document) -> str:
    """The scope of the scan, or `everything`."""
    excluded = (f"without {exclusion}" for exclusion in document.provenance.exclusions)
    limits = [limit for limit in (*document.provenance.scope, *excluded) if limit not in EVERYTHING]
    return "; ".join(limits) or "everything"


def health_line(document: Document) -> str:
    """The number of policy health entries of each kind."""
    numbers = Counter(health.kind for health in document.health)
    return ", ".join(f"{HEALTH_TITLES[kind].lower()} {numbers[kind]:,}" for kind in HealthKind if numbers[kind])


def nothing_line(document: Document) -> str:
    """Advice when no object was evaluated, or an empty string."""
    if not document.coverage.evaluated and (rights := rights_line(document)):
        return rights
    if not document.policies:
        return "No policies were found. Add some with --policies PATH, or check that the scanner may list them."
    if not any(policy.bindings for policy in document.policies):
        return "No policy is bound. Preview a policy with `assay preview --bind POLICY`."
    if not document.coverage.objects and not document.narrowed:
        return "No object of a kind that a bound policy can match was found. Check the cluster, the folder and the policies."
    if not document.coverage.evaluated:
        return "No bound policy matched an object. See policy health and the scope of this scan."
    return ""


def sums_note(grouped: GroupedProblems, noun: str) -> str:
    """The reason why the refused problems of groups, such as namespaces, add up to another number than the verdict's; else empty."""
    several, outside = grouped.several.refused, grouped.outside.refused
    parts = (
        f"{plural(several, 'refused problem')} {_verb(several)} in several {noun}s and {_counts(several)} in each"
        if several
        else "",
        f"{plural(outside, 'refused problem')} {_verb(outside)} in no {noun}" if outside else "",
    )
    return "; ".join(filter(None, parts))


def _verb(number: int) -> str:
    return "is" if number == 1 else "are"


def _counts(number: int) -> str:
    return "counts" if number == 1 else "count"


def namespace_title(namespace: str) -> str:
    """The name of a namespace, or the title of the cluster-scoped objects."""
    return namespace or CLUSTER_SCOPED


def worst_policies(policies: Iterable[PolicySection]) -> list[PolicySection]:
    """Policies, the worst first: those with findings, by their strictest action, by severity, then by number of findings."""
    return sorted(policies, key=_badness)


def _badness(section: PolicySection) -> tuple[bool, int, int, int, str]:
    findings = section.findings.total
    return not findings, _strictness(section.actions), section.severity.rank, -findings, section.name


def _strictness(actions: Sequence[Action]) -> int:
    return min((ACTIONS.index(action) for action in actions), default=len(ACTIONS))


def worst_owners(owners: Iterable[OwnerSection]) -> list[OwnerSection]:
    """Owners, those with most findings first, of the worst severity first; unowned objects last."""
    return sorted(
        owners,
        key=lambda section: (not section.owner, [-section.of(severity) for severity in Severity], section.owner),
    )


def severities_line(document: Document) -> str:
    """The number of findings of each severity that has some, worst first; `none` without findings."""
    numbers = (f"{each.findings.total:,} {each.severity}" for each in document.severities if each.findings.total)
    return join_texts(numbers) or "none"


def weighted_line(document: Document) -> str:
    """The weighted score with its bounds and weights, or the reason for its absence."""
    score = document.score.weighted
    if score is None or score.value is None or score.low is None or score.high is None:
        return f"not available: {score.why_not if score else 'not computed'}"
    bounds = f", between {percent_floor(score.low)} and {percent_ceil(score.high)} with the undecided checks"
    weights = join_texts(f"{severity} {weight}" for severity, weight in WEIGHTS.items())
    return f"{percent_floor(score.value)}{bounds if score.undecided else ''}; a check counts by its severity: {weights}"


def worst_namespaces(namespaces: Iterable[NamespaceSection]) -> list[NamespaceSection]:
    """Namespaces, those with most findings first."""
    return sorted(namespaces, key=lambda section: (-section.findings.total, section.namespace))


@dataclass(frozen=True, slots=True)
class Sentences:
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
    sources: str
    vendors: str
    out_of_scope: str
    drift: str
    rules: str
    waived: str
    score_with_waivers: str
    severities: str
    weighted: str


def sentences_of(document: Document) -> Sentences:
    """All sentences about a document."""
    return Sentences(
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
        sources=sources_line(document),
        vendors=vendors_line(document),
        out_of_scope=out_of_scope_line(document),
        drift=drift_line(document),
        rules=rules_line(document),
        waived=waived_line(document),
        score_with_waivers=score_with_waivers_line(document),
        severities=severities_line(document),
        weighted=weighted_line(document),
    )


def opinion_line(opinion: Opinion) -> str:
    """The agreement of another engine, as a sentence without its full stop."""
    share = f"{opinion.percent:g} %, {plural(opinion.objects, 'object')}"
    if not opinion.evaluations:
        return f"{opinion.engine} evaluated nothing: the sample ({share}) is too small. Verdicts are Assay's own"
    return (
        f"{opinion.engine} agrees in {opinion.agreed:,} of {plural(opinion.evaluations, 'evaluation')} "
        f"of {plural(opinion.expressions, 'expression')} (sample: {share}), does not support {opinion.limited:,}, "
        f"and differs in {opinion.disagreed:,}. Verdicts are Assay's own"
    )
