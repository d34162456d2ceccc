"""The explanations of problems and findings, and of workloads and objects with their problems.

A workload or an object is named by `KIND/NAME`, by `NAMESPACE/NAME`, or by name with `-n`. A kind may be written as kubectl takes it:
`Deployment`, `deployments`, `deployment.apps`; there are no short names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, assert_never

from scanner.config.current import get_settings
from scanner.errors import UsageError
from scanner.model.outcome import CheckKind, Errored, Finding, Violated, WouldChange
from scanner.model.reading import Auditability

if TYPE_CHECKING:
    from datetime import datetime

    from scanner.cli.terminal.explanation import Part
    from scanner.model.policy import Policy
    from scanner.model.population import ExaminedObject, GroupKind, RecordedObject, Workload
    from scanner.model.scans.stored_finding import ProblemFinding, StoredFinding
    from scanner.model.scans.stored_scan import StoredScan
    from scanner.posture.problem_rows import Problem
    from scanner.posture.triage import Triage
    from scanner.posture.worst_problems import WorstProblem
    from scanner.report.text.screen import Screen
    from scanner.store.read.lookup import ExplainedFinding, ExplainedProblem

_HEAD: Final = ("PROBLEM", "WOULD BE", "STATUS", "SEVERITY", "RULE AND MESSAGE")


class NamedSubject(NamedTuple):
    """A workload or an object; `kind` with its group. The namespace is empty for a cluster-scoped one."""

    group: str
    kind: str
    namespace: str
    name: str

    @property
    def title(self) -> str:
        """Such as `Deployment shop/web`."""
        return f"{self.kind} {f'{self.namespace}/' if self.namespace else ''}{self.name}"


@dataclass(frozen=True)
class WantedSubject:
    """The subject that a user named: a name, and a kind, a namespace or both. `kinds` is None for any kind, `namespace` for any namespace."""

    text: str
    name: str
    kinds: frozenset[GroupKind] | None = None
    namespace: str | None = None

    def is_about(self, named: NamedSubject) -> bool:
        """Return whether this is the workload or object that the user named."""
        return (
            named.name == self.name
            and (self.kinds is None or (named.group, named.kind) in self.kinds)
            and (self.namespace is None or named.namespace == self.namespace)
        )


class ObjectsOf(Protocol):
    """Reads the objects of a scan with a name, and those of the workload with that name."""

    def __call__(self, scan_id: str, /, *, kind: str, namespace: str, name: str) -> tuple[ExaminedObject, ...]:
        """The objects."""
        ...


class WorkloadExplanation:
    """Explains a workload or an object of a scan."""

    def __init__(
        self, record: StoredScan, triage: Triage, screen: Screen, cluster: str, read_objects: ObjectsOf
    ) -> None:
        """Read nothing yet. `cluster` is what the user named to choose a cluster, or empty."""
        self._record, self._triage, self._screen, self._cluster = record, triage, screen, cluster
        self._read_objects = read_objects

    def parts(self, subject: str, namespace: str) -> Iterator[Part]:
        """The problems of what `subject` names. Raises UsageError for a name that the scan does not know."""
        wanted = self._wanted(subject, namespace)
        found = self._problems(wanted)
        if not found:
            found = {named: [] for named in self._evaluated(wanted)}
        if not found:
            raise UsageError(self._unknown(wanted, subject))
        yield from self._listed(found)

    def _wanted(self, subject: str, namespace: str) -> WantedSubject:
        """Return the subject that the user named: a kind that the cluster serves comes before a namespace of that name. Raises UsageError."""
        first, slash, name = subject.rpartition("/")
        if not name or (slash and not first) or "/" in first:
            raise UsageError(f"{subject!r} names no object: write KIND/NAME, NAMESPACE/NAME, or NAME with -n NAMESPACE")
        if not slash:
            return WantedSubject(subject, name, namespace=namespace)
        if kinds := self._kinds.get(first.lower()):
            return WantedSubject(subject, name, frozenset(kinds), namespace or None)
        if namespace:
            from scanner.model.nearest import did_you_mean

            raise UsageError(
                f"{subject!r}: the cluster serves no kind {first!r}.{did_you_mean(first, sorted(self._kind_names))} "
                f"For an object of any kind, run: {self._explain(name, namespace)}"
            )
        return WantedSubject(subject, name, namespace=first)

    @cached_property
    def _kinds(self) -> Mapping[str, set[GroupKind]]:
        """The kinds that the cluster serves, by what a user may write, in lower case."""
        from scanner.cluster.definitions import builtin_kinds

        kinds: defaultdict[str, set[GroupKind]] = defaultdict(set)
        for kind in builtin_kinds():
            for name in (kind.kind, kind.plural):
                kinds[name.lower()].add((kind.group, kind.kind))
                kinds[f"{name}.{kind.group}".lower()].add((kind.group, kind.kind))
        listed = ((coverage.api_version, coverage.kind) for coverage in self._record.coverage)
        others = ((uncovered.api_version, uncovered.kind) for uncovered in self._record.uncovered)
        for api_version, name in (*listed, *others):
            group = _get_group(api_version)
            kinds[name.lower()].add((group, name))
            kinds[f"{name}.{group}".lower()].add((group, name))
        return kinds

    def _problems(self, wanted: WantedSubject) -> dict[NamedSubject, list[ProblemFinding]]:
        """The findings of each workload or object that the user named, those of a problem together; previews come last."""
        from scanner.model.scans.stored_finding import ProblemFinding

        found: defaultdict[NamedSubject, list[ProblemFinding]] = defaultdict(list)
        for each in self._record.findings_by_problem():
            if named := _find_named(wanted, each.stored):
                found[named].append(each)
        for stored in self._record.findings():
            if stored.status == "preview" and (named := _find_named(wanted, stored)):
                found[named].append(ProblemFinding(stored, checked=True, episode="new"))
        return dict(found)

    def _evaluated(self, wanted: WantedSubject) -> list[NamedSubject]:
        """The objects and workloads that the user named, of those that the scan evaluated."""
        named = {place for each in self._record.population() for place in _find_places(each) if wanted.is_about(place)}
        return sorted(named)

    def _listed(self, found: Mapping[NamedSubject, Sequence[ProblemFinding]]) -> Iterator[Part]:
        from scanner.cli.terminal.explanation import Table
        from scanner.report.text.numbers import plural
        from scanner.report.text.printing import Command

        scan = self._record.scan.id
        worst: list[WorstProblem] = []
        for number, (named, findings) in enumerate(sorted(found.items())):
            problems = self._sorted(findings)
            still_open = [each for each in problems if each.example.status not in ("resolved", "preview")]
            refused = sum(each.problem.denies for each in still_open)
            pods = sum(each.problem.refuses_pods for each in still_open)
            if number:
                yield ""
            effect = f", {refused:,} would be refused" if refused else ""
            effect += f", the pods of {pods:,}{' more' * bool(refused)} would be refused" if pods else ""
            yield f"{named.title}: {plural(len(still_open), 'open problem')} in scan {scan}{effect}"
            if problems:
                yield Table(_HEAD, [self._cells(each) for each in problems])
            yield from self._checks(named, findings)
            worst += problems[:1]
        if worst:
            first = min(worst, key=self._order).problem.id
            yield Command(self._explain(first), "why this problem breaks its rule")

    def _checks(self, named: NamedSubject, findings: Sequence[ProblemFinding]) -> Iterator[Part]:
        """Every check that matched the objects of a subject, passes included."""
        from scanner.cli.terminal.explanation import Table
        from scanner.report.lists.object_checks import NOT_STORED, check_lines, count_outcomes
        from scanner.report.text.names import owner_title
        from scanner.report.text.numbers import plural

        objects = self._read_objects(self._record.scan.id, kind=named.kind, namespace=named.namespace, name=named.name)
        stored = [each.stored for each in findings if each.stored.status not in ("resolved", "preview")]
        lines = check_lines(objects, stored, self._triage)
        if not lines:
            return
        owners = ", ".join(sorted({owner_title(self._triage.owner_of(each.kept)) for each in objects}))
        recorded = [each.since for each in objects if each.since]
        since = f", recorded since {_format_time(min(recorded))}" if recorded else ""
        yield ""
        yield f"{plural(len(lines), 'check')} of {plural(len(objects), 'object')}: {count_outcomes(lines)}"
        yield f"Owner {owners}{since}"
        rows = [
            (line.words, _format_time(line.since) if line.since else "", f"{line.policy[1]} {line.check}", line.binding)
            for line in lines
        ]
        yield Table(("OUTCOME", "OPEN SINCE", "CHECK", "BINDING"), rows)
        yield NOT_STORED

    def _sorted(self, findings: Iterable[ProblemFinding]) -> list[WorstProblem]:
        """The problems of some findings, those that would be refused first, resolved ones last."""
        from itertools import groupby

        from scanner.posture.problem_rows import order_effect, problem_of
        from scanner.posture.worst_problems import WorstProblem

        worst = []
        for key, group in groupby(findings, key=lambda each: each.stored.problem or each.stored.id):
            own = list(group)
            examples = sorted(
                (each.stored for each in own), key=lambda each: (each.status == "resolved", order_effect(each.finding))
            )
            worst.append(WorstProblem(problem_of(key, own, self._triage.waiver), examples[0]))
        return sorted(worst, key=self._order)

    def _order(self, worst: WorstProblem) -> tuple[object, ...]:
        problem = worst.problem
        severity = self._triage.severity(*problem.severity_key)
        return (
            problem.status == "resolved",
            not problem.denies,
            not problem.refuses_pods,
            severity.rank,
            problem.opened_at,
            problem.id,
        )

    def _cells(self, worst: WorstProblem) -> tuple[str, ...]:
        from scanner.report.formats.worst_table import effect, problem_sentence
        from scanner.report.text.titles import check_title

        problem, finding = worst.problem, worst.example.finding
        severity = self._triage.severity(*problem.severity_key)
        status = _describe_status(worst)
        would_be = "" if problem.status == "resolved" else effect(worst)
        return (
            problem.id,
            would_be,
            status,
            str(severity),
            f"{finding.policy} {check_title(finding.check)}: {problem_sentence(self._triage, worst)}",
        )

    def _unknown(self, wanted: WantedSubject, subject: str) -> str:
        """The message for a name that no object of the scan has, with what the user may have meant."""
        from scanner.model.nearest import did_you_mean

        objects = [place for each in self._record.population() for place in _find_places(each)]
        namespaces = {place.namespace for place in objects}
        if wanted.namespace is not None and wanted.namespace not in namespaces:
            return (
                f"{subject!r} is unknown: {self._unknown_namespace(wanted.namespace, subject, namespaces)} {self._list}"
            )
        alike = [place for place in objects if wanted.kinds is None or (place.group, place.kind) in wanted.kinds]
        names = sorted({place.name for place in alike if wanted.namespace in (None, place.namespace)})
        what = " or ".join(sorted({kind for _, kind in wanted.kinds})) if wanted.kinds else "object"
        where = f" in namespace {wanted.namespace}" if wanted.namespace else ""
        first, _, name = subject.rpartition("/")
        is_in_namespace = any((place.namespace, place.name) == (first, name) for place in objects)
        other = f" For the object in namespace {first}, run: {self._explain(name, first)}." if is_in_namespace else ""
        return (
            f"{subject!r} is unknown: scan {self._record.scan.id} evaluated no {what} {name!r}{where}."
            f"{did_you_mean(name, names)}{other} {self._list}"
        )

    def _unknown_namespace(self, namespace: str, subject: str, namespaces: Collection[str]) -> str:
        """The sentences for a namespace without an object, which the user may have meant as a kind."""
        from scanner.model.nearest import did_you_mean

        scan = self._record.scan.id
        if "/" in subject and subject.startswith(f"{namespace}/"):
            known = did_you_mean(namespace, sorted({*namespaces, *self._kind_names}))
            return f"{namespace!r} is no kind, and no namespace with an object that scan {scan} evaluated.{known}"
        known = did_you_mean(namespace, sorted(namespaces))
        return f"namespace {namespace!r} has no object that scan {scan} evaluated.{known}"

    @property
    def _kind_names(self) -> set[str]:
        return {kind for kinds in self._kinds.values() for _, kind in kinds}

    @property
    def _list(self) -> str:
        """The sentence with the command that lists all problems."""
        from scanner.report.text.printing import command_line

        command = command_line(self._screen, f"findings --problems --scan {self._record.scan.id}")
        return f"List all problems with: {command}"

    def _explain(self, subject: str, namespace: str = "") -> str:
        """The command that explains something else."""
        from shlex import join

        from scanner.report.text.printing import command_line

        of_namespace = ["-n", namespace] if namespace else []
        of_cluster = ["--cluster-name", self._cluster] if self._cluster else []
        return command_line(self._screen, join(["explain", subject, *of_namespace, *of_cluster]))


def _describe_status(worst: WorstProblem) -> str:
    problem: Problem = worst.problem
    if worst.example.status == "preview":
        return "preview"
    if worst.example.finding.excepted_by:
        return f"{problem.status}, excepted"
    return f"{problem.status}, waived" if problem.waiver else problem.status


def _find_named(wanted: WantedSubject, stored: StoredFinding) -> NamedSubject | None:
    """The workload of a finding, or its object, as the user named one of them."""
    finding = stored.finding
    itself = NamedSubject(_get_group(finding.api_version), finding.kind, finding.namespace, finding.name)
    candidates = (_name_workload(stored.workload), itself) if stored.workload else (itself,)
    return next(filter(wanted.is_about, candidates), None)


def _find_places(recorded: RecordedObject) -> tuple[NamedSubject, NamedSubject]:
    itself = NamedSubject(_get_group(recorded.api_version), recorded.kind, recorded.namespace, recorded.name)
    return _name_workload(recorded.workload), itself


def _name_workload(workload: Workload) -> NamedSubject:
    return NamedSubject(_get_group(workload.api_version), workload.kind, workload.namespace, workload.name)


def _get_group(api_version: str) -> str:
    return api_version.rpartition("/")[0]


# The explanation of a finding or of a problem: what is wrong, where, whose it is, and what became of it.

_LONGEST: Final = 120


def explain_problem(explained: ExplainedProblem, screen: Screen) -> Iterator[Part]:
    """A problem: one of its findings, and the list of all of them."""
    from scanner.report.text.numbers import plural
    from scanner.report.text.printing import Command, command_line

    example = explained.findings[0]
    numbers = [f"{plural(explained.open, 'open finding')}"] if explained.open else []
    numbers += [f"{explained.resolved:,} resolved"] if explained.resolved else []
    numbers += [plural(explained.alone, "preview or outdated finding")] if explained.alone else []
    yield f"Problem {explained.id}: {', '.join(numbers)} of one check and one workload"
    yield from explain_finding(example, of_problem=True)
    others = explained.findings[1:]
    if others:
        yield ""
        yield "Other findings of this problem:"
        yield from (f"    {summarize_finding(each.stored)}" for each in others)
    if hidden := explained.open + explained.resolved + explained.alone - len(explained.findings):
        yield f"    and {hidden:,} more"
        command = f"findings {explained.id} --limit 0 --scan {example.scan.id}"
        yield Command(command_line(screen, command), "all findings of the problem")


def summarize_finding(stored: StoredFinding) -> str:
    """A finding on one line."""
    from scanner.report.text.names import object_name
    from scanner.report.text.titles import check_title, sentence_of

    reason = sentence_of(stored.finding, check_title(stored.finding.check))
    shown = reason if len(reason) <= _LONGEST else f"{reason[: _LONGEST - 1]}…"
    return f"{stored.id}  {_describe_state(stored)}  {stored.finding.kind} {object_name(stored.finding)}: {shown}"


def explain_finding(explained: ExplainedFinding, *, of_problem: bool = False) -> Iterator[str]:
    """A finding with its evidence, the effect on a request, and its history."""
    from scanner.report.text.evidence import lines_with_excerpt

    found = explained.stored.finding
    yield from _name_finding(explained)
    yield ""
    yield from _explain_outcome(found)
    title = _find_title(explained.policy, found.check.expression) if explained.policy else ""
    named = f"{found.check.expression}{f': {title}' if title else ''}"
    yield from indent_expression("Check:", named or "(configuration of the policy or binding)")
    if found.evidence:
        yield "Evidence:"
        yield from (f"    {line}" for line in lines_with_excerpt(found.evidence))
    yield ""
    yield _describe_effect(explained.stored)
    yield from _explain_limits(explained)
    yield from _explain_history(explained, of_problem=of_problem)


def _name_finding(explained: ExplainedFinding) -> Iterator[str]:
    from scanner.posture.owners import Owners
    from scanner.report.text.names import object_name, owner_title, param_name, workload_name

    stored, found = explained.stored, explained.stored.finding
    yield f"Finding {stored.id}: {found.api_version} {found.kind} {object_name(found)}"
    if workload := workload_name(stored):
        yield f"Workload {workload}"
    unknown = "" if stored.kept else " (an older version stored no labels of the object)"
    yield f"Owner {owner_title(Owners(get_settings().owners)(stored.kept))}{unknown}"
    yield f"Policy {found.policy}, binding {found.binding}, {_describe_check(stored)}"
    if found.param_name:
        yield f"Param {param_name(found.param_namespace, found.param_name)}"
    if explained.policy is not None:
        yield from describe_policy(explained.policy, found.check.expression)


def _explain_outcome(finding: Finding) -> Iterator[str]:
    match finding.outcome:
        case Violated(message=message, reason=reason, code=code):
            yield f"Violated: {message}  ({reason}, {code})"
        case WouldChange(message=message):
            yield "Drift: the policy would change the object."
            yield message
        case Errored(message=message):
            yield f"Errored: {message}"
        case _ as never:
            assert_never(never)


def _describe_effect(stored: StoredFinding) -> str:
    from scanner.report.text.titles import name_actions

    found = stored.finding
    effect = "refused" if found.denies else "admitted"
    actions = ", ".join(name_actions(found.actions))
    pods = ", and its pods refused" if "RefusePods" in found.actions and not found.excepted_by else ""
    would = "would have been" if stored.status == "resolved" else "would be"
    return f"This object {would} {effect} on {found.operation}{pods} (actions: {actions})."


def _explain_history(explained: ExplainedFinding, *, of_problem: bool) -> Iterator[str]:
    """The times of the finding and the changes by scans; findings that belong to one scan alone have none."""
    stored = explained.stored
    if stored.status == "preview":
        yield f"Preview of {_format_time(stored.last_seen)}: the policy is not bound, and the finding has no history."
        return
    if stored.status == "outdated":
        yield f"Outdated in the scan of {_format_time(stored.last_seen)}: a scan that began later shows that it is not open."
        return
    yield f"First seen {_format_time(stored.first_seen)}, last seen {_format_time(stored.last_seen)}, now {_describe_state(stored)}."
    yield from _list_events(explained)
    if stored.problem and not of_problem:
        yield f"It belongs to the problem {stored.problem}: this check and the workload of the object."


def _list_events(explained: ExplainedFinding) -> Iterator[str]:
    """The changes of the finding by scans, with their causes."""
    from scanner.report.text import titles

    for event in explained.events:
        name = (
            f"continues finding {event.continues}" if event.continues else titles.EVENTS.get(event.event, event.event)
        )
        why = f": {titles.cause_text(event.cause)}" if event.cause else ""
        yield f"    {_format_time(event.at)}  {name}{why}"


def _describe_state(stored: StoredFinding) -> str:
    """The status, with the time and the reason of a resolution."""
    from scanner.report.text import titles

    reason = titles.RESOLUTIONS.get(stored.resolution, "")
    when = f" {_format_time(stored.resolved_at)}" if stored.resolved_at else ""
    moved = f", see {stored.moved_to}" if stored.moved_to else ""
    return f"{stored.status}{when}{f': {reason}' if reason else ''}{moved}"


def _explain_limits(explained: ExplainedFinding) -> Iterator[str]:
    """The extent to which the finding predicts admission, for a check that is not fully auditable."""
    from scanner.report.text import titles

    user = explained.scan.requester.username or "the user that scanned"
    for auditability in explained.reading.classes_of(explained.stored.finding.check):
        simulated = f" (here: {user})" if auditability is Auditability.REQUESTER else ""
        yield f"The check {titles.AUDITABILITY[auditability]}{simulated}: {titles.AUDITABILITY_MEANINGS[auditability]}"


def _format_time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}Z"


def _describe_check(stored: StoredFinding) -> str:
    check = stored.finding.check
    indexed = check.kind in (CheckKind.VALIDATION, CheckKind.AUDIT_ANNOTATION, CheckKind.MUTATION)
    return f"{check.kind.value} {check.index}" if indexed else check.kind.value


def describe_policy(policy: Policy, expression: str = "") -> Iterator[str]:
    """The severity of a policy or of one of its checks, and the texts that its author or the configuration gave."""
    from scanner.posture.severity import describe

    description = describe(policy, get_settings().descriptions)
    category = f", category {description.category}" if description.category else ""
    yield f"Severity {description.severity_of(expression)}{category}"
    if description.unknown_severity:
        yield f"(the annotation of its severity is {description.unknown_severity!r}, which is no severity)"
    if description.title != policy.name:
        yield f"Title: {description.title}"
    texts = {
        "Description": description.description,
        "Remediation": description.remediation_of(expression),
        "Docs": description.docs,
    }
    yield from (f"{title}: {' '.join(text.split())}" for title, text in texts.items() if text)


def _find_title(policy: Policy, expression: str) -> str:
    """The title of a check whose expression is a name; empty for another check."""
    from scanner.posture.severity import describe

    if expression not in describe(policy).checks:
        return ""
    return next((each.message for each in policy.validations if each.expression == expression), "")


def indent_expression(title: str, text: str) -> Iterator[str]:
    """A title, and an expression with its lines indented."""
    yield title
    yield from (f"    {line}" for line in text.strip().splitlines())
