"""The report as data: every format renders this document and adds no facts of its own.

Silence is never success: `complete` is true only if nothing was missed, and the document names everything that was
excluded or missed. Findings stay a stream, which each format reads at most once; their numbers are those of the record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import cached_property
from typing import Final

from scanner.model.gate import Gate
from scanner.model.outcome import Check, CheckKind, Gap
from scanner.model.policy import PolicyKey
from scanner.model.release import Release, release_of
from scanner.model.scans.baseline import Baseline
from scanner.model.scans.cause import CauseKind
from scanner.model.scans.health import Health
from scanner.model.scans.method import Method
from scanner.model.scans.opinion import Opinion
from scanner.model.scans.out_of_scope import OutOfScope
from scanner.model.scans.problem_numbers import (
    NO_PROBLEMS,
    GroupedProblems,
    OpenProblems,
    ProblemGroup,
    ProblemsByCheck,
    ProblemTotals,
)
from scanner.model.scans.scan import ScanRecord, ScanState, Scope, UncoveredKind
from scanner.model.scans.stored_finding import ProblemFinding, StoredFinding, make_census, make_census_by_owner
from scanner.model.scans.stored_scan import ReportCounts, StoredScan
from scanner.posture.grouped_problems import (
    problem_groups,
    problems_by_check,
    problems_by_control,
    problems_by_namespace,
    problems_by_owner,
    problems_by_policy,
)
from scanner.posture.history.rule_digests import RulesPart, list_changed_parts, rules_version
from scanner.posture.history.scan_diff import ScanDiff
from scanner.posture.score import Score, Scores
from scanner.posture.settings import DEFAULT_SETTINGS, Settings
from scanner.posture.severity import Severity
from scanner.posture.since_baseline import findings_since, follows_baseline, problems_since
from scanner.posture.triage import Triage
from scanner.posture.worst_problems import WorstProblem, problems_of
from scanner.report.document.by_control import FrameworkSection, frameworks_of
from scanner.report.document.by_namespace import NamespaceSection, namespaces_of
from scanner.report.document.by_owner import OwnerSection, SeverityCounts, owners_of, scores_by_owner, severities_of
from scanner.report.document.by_policy import PolicySection, policies_of
from scanner.report.document.counts import (
    NOTHING,
    CheckCounts,
    FindingCounts,
    count_findings,
    count_outcomes,
    counts_by,
    previews_in_namespaces,
    previews_of,
)
from scanner.report.document.coverage import CoverageSection, UnneededItem, coverage_of, left_out_of, unneeded_of
from scanner.report.document.method import MethodSection, Requester, RuleSection, method_of, requester_of, rules_of
from scanner.report.document.section_digests import ScanDigests, SectionDigest, digest_scan, digest_waivers
from scanner.report.document.sources import Source, sources_of
from scanner.report.document.waivers import WaiversSection, waivers_of
from scanner.report.text.scope import exclusions_of, notes_of, scope_of
from scanner.report.text.titles import check_title


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """`gates` are those of the user: JUnit fails for the findings that they name, or for all if `fail_all`.

    Policies below the `minimum` severity are left out. `compare` returns the difference from the newest comparable scan that ended so
    many days earlier, or None without one.
    """

    gates: frozenset[Gate] = frozenset()
    fail_all: bool = False
    minimum: Severity | None = None
    compare: Callable[[int], ScanDiff | None] | None = None


DEFAULT_OPTIONS: Final = ReportOptions()


@dataclass(frozen=True, slots=True)
class ClusterSection:
    """The cluster of a scan, or the files that stand for it."""

    name: str
    uid: str
    server_version: str
    source: str

    @property
    def release(self) -> Release:
        """The release whose rules were applied."""
        return release_of(self.server_version)


@dataclass(frozen=True, slots=True)
class Provenance:
    """The origin of a report: scan, cluster, time and tool. `scope`, `exclusions` and `notes` are texts for readers.

    `policy_set_digest` is the SHA-256 of what decided: the specs of policies and bindings, and the objects in the report's
    `rules`; `description_digest` that of their annotations. Both are None if they are not known. `rules` is the Kubernetes
    release whose rules were applied. `operation` is the simulated write, as `--operation` names it, `requester` its user.
    """

    scan_id: str
    cluster: ClusterSection
    started_at: datetime
    finished_at: datetime | None
    state: ScanState
    tool_version: str
    rules: str
    policy_set_digest: str | None
    description_digest: str | None
    scope: tuple[str, ...]
    exclusions: tuple[str, ...]
    notes: tuple[str, ...]
    operation: str = "auto"
    requester: Requester = field(default_factory=Requester)
    previous_scan_id: str = ""
    previous_finished_at: datetime | None = None

    @property
    def ended_at(self) -> datetime:
        """The end of the scan, or its beginning if it did not end."""
        return self.finished_at or self.started_at


@dataclass(frozen=True, slots=True)
class FindingChanges:
    """The differences from the previous scan, as numbers of findings.

    `unchecked` findings are open, but this scan did not check them; `preview` findings have no history. `rules_changed` has the
    parts of the rules that differ from those of the newest earlier comparable scan, `comparable_scan_id`; None if there is no
    such scan, or if the rules of one of both scans are not known. `changed_rules` are the kinds of rules behind `rules`; None if
    an older version recorded the scan.
    """

    new: int
    open: int
    reopened: int
    resolved: int
    unchecked: int
    preview: int
    comparable_scan_id: str | None = None
    rules_changed: tuple[RulesPart, ...] | None = None
    changed_rules: tuple[CauseKind, ...] | None = None


@dataclass(frozen=True, slots=True)
class CheckKindCounts:
    """The outcomes of one kind of check."""

    kind: CheckKind
    counts: CheckCounts


@dataclass(frozen=True)
class Document:
    """A report as data, and `stored`, the scan itself, for what only some formats show. `counts` answers questions about numbers for it.

    `requester` counts those of `totals` that may differ for another user; `requester_checks` are their (policy, check)
    pairs. `sources` is everything that can refuse a request. `outside` lists objects that also decide about requests, but that a scan
    does not evaluate, `out_of_scope` items that no bound policy can match, and files of other tools; `notes` are sentences about this
    scan alone. `method` is None if an older version recorded the scan.
    `left_out` is what the user left out of what bound policies can match; `narrowed` is true if the user set any limit of
    the scope, `limited` if that leaves a chosen part alone. `waivers` is None in a document that is no report of a scan, and
    `score_with_waivers`, which leaves out waived checks, if no finding is waived. `triage` answers how bad a finding is, and whose.
    `worst` are the worst problems. `previews` and `namespace_previews` are the checks of assumed bindings, which `policies` and
    `namespaces` count, too. `baseline` is that with which the scan was compared, and `options` are those of formats for pipelines.
    """

    stored: StoredScan
    counts: ReportCounts
    provenance: Provenance
    complete: bool
    totals: CheckCounts
    requester: CheckCounts
    check_kinds: tuple[CheckKindCounts, ...]
    findings_total: FindingCounts
    changes: FindingChanges
    score: Score
    scores: Scores
    coverage: CoverageSection
    sources: tuple[Source, ...]
    policies: tuple[PolicySection, ...]
    namespaces: tuple[NamespaceSection, ...]
    severities: tuple[SeverityCounts, ...]
    gaps: tuple[Gap, ...]
    health: tuple[Health, ...]
    outside: tuple[OutOfScope, ...]
    out_of_scope: tuple[UnneededItem, ...]
    notes: tuple[str, ...]
    requester_checks: frozenset[tuple[PolicyKey, Check]]
    check_ids: Mapping[tuple[PolicyKey, Check], str]
    triage: Triage
    problems: ProblemTotals
    worst: tuple[WorstProblem, ...]
    titles: Mapping[PolicyKey, str]
    second_opinion: Opinion | None
    method: MethodSection | None
    rules: tuple[RuleSection, ...]
    kinds_without_policy: tuple[UncoveredKind, ...]
    narrowed: bool
    limited: bool
    left_out: tuple[str, ...]
    controls: tuple[FrameworkSection, ...]
    waivers: WaiversSection | None
    score_with_waivers: Score | None
    previews: Mapping[PolicyKey, CheckCounts]
    namespace_previews: Mapping[str, CheckCounts]
    baseline: Baseline | None
    options: ReportOptions = DEFAULT_OPTIONS

    def findings(self) -> Iterator[StoredFinding]:
        """The findings of the scan, in the store's order, with their statuses since the baseline."""
        return findings_since(self.stored)

    def resolved(self) -> Iterator[StoredFinding]:
        """The findings that the scan resolved."""
        return self.stored.resolved_findings()

    def by_problem(self, policies: frozenset[PolicyKey] | None = None) -> Iterator[ProblemFinding]:
        """All findings of some policies, or of all, the resolved ones included, of which those of a problem follow each other."""
        return problems_since(self.stored, policies)

    @cached_property
    def owners(self) -> tuple[OwnerSection, ...]:
        """The owners with findings. The first read counts them: not every format shows owners."""
        if follows_baseline(self.stored):
            return owners_of(make_census_by_owner(self.findings(), self.triage.owner_of), self.triage)
        return owners_of(self.counts.census_by_owner(self.triage.owner_of), self.triage)

    @cached_property
    def digests(self) -> ScanDigests:
        """The digests of what the scan recorded. The first read reads every finding and object: not every format shows them."""
        notes = frozenset(self.triage.notes())
        recorded = tuple(each for each in self.stored.health if each not in notes)
        return digest_scan(replace(self.stored, health=recorded))

    @property
    def waivers_digest(self) -> SectionDigest | None:
        """The digest of the waivers of the report; None for a report without waivers, which is not the same as one with none."""
        waivers = self.triage.waiving.waivers
        return digest_waivers(waivers) if waivers else None

    def owner_scores(self) -> Mapping[str, Score]:
        """The scores of owners. Each call reads the population of the scan."""
        return scores_by_owner(self.counts, self.triage, self.scores)

    @cached_property
    def groups(self) -> tuple[ProblemGroup, ...]:
        """The open problems by policy, action and outcome."""
        return problem_groups(self.stored, self.triage, self.counts)

    @cached_property
    def problems_by_policy(self) -> Mapping[PolicyKey, OpenProblems]:
        """The open problems by policy."""
        return problems_by_policy(self.groups)

    @cached_property
    def problems_by_check(self) -> ProblemsByCheck:
        """The open problems by policy and expression of their check."""
        return problems_by_check(self.stored, self.triage)

    @cached_property
    def problems_by_namespace(self) -> GroupedProblems:
        """The open problems by namespace; the empty name stands for cluster-scoped objects."""
        return problems_by_namespace(self.stored, self.triage, self.counts)

    @cached_property
    def problems_by_owner(self) -> GroupedProblems:
        """The open problems by owner; the empty name stands for unowned objects."""
        return problems_by_owner(self.stored, self.triage, self.counts)

    def title(self, policy: PolicyKey) -> str:
        """The name of a policy, with its language if policies of several languages have that name."""
        return self.titles.get(policy, policy[1])

    def name_check(self, policy: PolicyKey, check: Check) -> str:
        """The name of a check beside that of its policy, as `PolicySection.name_check` has it."""
        section = next((each for each in self.policies if each.key == policy), None)
        return section.name_check(check) if section else check_title(check)

    def open_problems(self, policy: PolicyKey) -> OpenProblems:
        """The open problems of a policy. The first call counts those of all policies."""
        return self.problems_by_policy.get(policy, NO_PROBLEMS)

    def problems_by_control(self, framework: FrameworkSection) -> GroupedProblems:
        """The open problems of the checks of each control of a framework, by the ids of controls."""
        return problems_by_control(
            self.problems_by_check, {control.id: control.checks for control in framework.controls}
        )

    def count_in_force(self, section: PolicySection) -> CheckCounts:
        """The checks of a policy without previews."""
        return section.counts.subtract(self.previews.get(section.key, NOTHING))

    def count_in_namespace(self, section: NamespaceSection) -> CheckCounts:
        """The checks in a namespace without previews."""
        return section.counts.subtract(self.namespace_previews.get(section.namespace, NOTHING))


def document_of(
    stored: StoredScan,
    settings: Settings = DEFAULT_SETTINGS,
    day: date | None = None,
    options: ReportOptions = DEFAULT_OPTIONS,
) -> Document:
    """The report of a stored scan, as of a day in UTC; by default, of the day on which the scan ended."""
    return make_document(stored, Triage(settings, stored, day), options)


def make_document(
    stored: StoredScan, triage: Triage, options: ReportOptions = DEFAULT_OPTIONS, counts: ReportCounts | None = None
) -> Document:
    """The report of a stored scan with a triage. `counts` answers questions about numbers in place of the scan, if it is given."""
    record = replace(stored, health=(*stored.health, *triage.notes()))
    of_scan = counts or stored
    census = make_census(findings_since(stored)) if follows_baseline(stored) else of_scan.census()
    outcomes = count_outcomes(record.tallies)
    totals = counts_by(outcomes.everywhere, lambda _: "")
    kinds = counts_by(outcomes.everywhere, lambda key: key.check.kind)
    coverage = coverage_of(record)
    findings_total = count_findings(census.items())
    scores = Scores(record, triage.severity)
    policies = policies_of(record, outcomes, census, triage, scores)
    problems, worst = problems_of(stored, triage, of_scan)
    return Document(
        stored=record,
        counts=of_scan,
        provenance=_provenance(record),
        complete=is_complete(record, coverage),
        totals=totals.get("", CheckCounts()),
        requester=counts_by(outcomes.everywhere, lambda key: "" if key.requester else None).get("", CheckCounts()),
        check_kinds=tuple(CheckKindCounts(kind, kinds[kind]) for kind in CheckKind if kind in kinds),
        findings_total=findings_total,
        changes=_changes(record, findings_total),
        score=scores.score_scan(),
        scores=scores,
        coverage=coverage,
        sources=sources_of(record),
        policies=policies,
        namespaces=namespaces_of(record, outcomes, census, scores),
        severities=severities_of(census, triage),
        gaps=tuple(sorted(record.gaps)),
        health=tuple(sorted(record.health)),
        outside=tuple(sorted(item for item in record.outside if not item.unneeded and item.number != 0)),
        out_of_scope=unneeded_of(record.outside),
        notes=record.scan.notes,
        check_ids=record.check_ids,
        requester_checks=frozenset((key.policy_key, key.check) for key in outcomes.everywhere if key.requester),
        triage=triage,
        problems=problems,
        worst=worst,
        titles=titles_of(policy.key for policy in policies),
        second_opinion=record.opinion,
        method=method_of(record),
        rules=rules_of(record),
        kinds_without_policy=record.uncovered,
        narrowed=record.scan.scope != Scope(),
        limited=record.scan.scope.is_limited,
        left_out=left_out_of(record.scan.scope, record.coverage, record.method),
        controls=frameworks_of(record, census, triage),
        waivers=waivers_of(triage),
        score_with_waivers=_score_with_waivers(record, triage),
        previews=previews_of(record),
        namespace_previews=previews_in_namespaces(record),
        baseline=record.baseline,
        options=options,
    )


def is_complete(record: ScanRecord, coverage: CoverageSection) -> bool:
    """Return whether a scan missed nothing."""
    return record.scan.state is ScanState.COMPLETE and not coverage.unseen


def _score_with_waivers(record: ScanRecord, triage: Triage) -> Score | None:
    """The score without the checks that waivers waive, or None if no finding is waived."""
    if not triage.waived.tallies:
        return None
    return Scores(record, triage.severity, triage.waived.tallies).score_scan()


def titles_of(policies: Iterable[PolicyKey]) -> dict[PolicyKey, str]:
    """The names of those policies that share their name with one of another language: with the language."""
    keys = list(policies)
    shared = Counter(name for _, name in keys)
    return {(language, name): f"{name} ({language})" for language, name in keys if shared[name] > 1}


def _provenance(record: ScanRecord) -> Provenance:
    scan = record.scan
    return Provenance(
        scan_id=scan.id,
        cluster=ClusterSection(scan.cluster.name, scan.cluster.uid, scan.cluster.server_version, scan.cluster.source),
        started_at=scan.started_at,
        finished_at=scan.finished_at,
        state=scan.state,
        tool_version=scan.tool_version,
        rules=scan.cluster.release.name,
        policy_set_digest=scan.policy_set_digest or None,
        description_digest=scan.description_digest or None,
        scope=scope_of(scan),
        exclusions=exclusions_of(scan.scope),
        notes=notes_of(scan, record.method or Method()),
        operation=scan.scope.operation,
        requester=requester_of(scan.requester),
        previous_scan_id=record.previous.id if record.previous else "",
        previous_finished_at=record.previous.finished_at if record.previous else None,
    )


def _changes(record: StoredScan, findings: FindingCounts) -> FindingChanges:
    before = record.comparable
    earlier = rules_version(before, record.comparable_method) if before else None
    parts = list_changed_parts(earlier, rules_version(record.scan, record.method))
    return FindingChanges(
        new=findings.new,
        open=findings.open,
        reopened=findings.reopened,
        resolved=sum(record.resolutions().values()),
        unchecked=record.unchecked,
        preview=findings.preview,
        comparable_scan_id=before.id if before else None,
        rules_changed=parts,
        changed_rules=_list_changed_rules(record, parts),
    )


def _list_changed_rules(record: ScanRecord, parts: Collection[RulesPart] | None) -> tuple[CauseKind, ...] | None:
    if parts is None or RulesPart.RULES not in parts:
        return None if parts is None else ()
    # Rules that differ have a kind, unless an older version recorded the scan.
    return record.changed_rules or None
