"""`assay explain`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, assert_never

import typer

from scanner.cli.database import ClusterNameOption, DbOption, reader_at
from scanner.cli.settings import settings
from scanner.cli.stored_scan import stored_scan
from scanner.errors import UsageError
from scanner.model.outcome import CheckKind, Errored, Violated, WouldChange
from scanner.model.reading import Auditability

if TYPE_CHECKING:
    from scanner.cel import Program
    from scanner.model.policy import Binding, Policy, Validation
    from scanner.model.release import Minor
    from scanner.model.scan import PolicyRecord, ScanRecord, StoredFinding
    from scanner.store import SqlReader
    from scanner.store.lookup import ExplainedFinding

_FINDING = re.compile(r"[0-9a-f]{6,64}")


def command(
    subject: Annotated[
        str,
        typer.Argument(metavar="POLICY|FINDING", help="Name of a policy, or id of a finding or the beginning of one."),
    ],
    db: DbOption = "",
    cluster_name: ClusterNameOption = "",
    python: Annotated[
        bool,
        typer.Option(
            "--python", help="Print how the policy's expressions compile: typed trees, the fields they read, Python."
        ),
    ] = False,
) -> None:
    """Explain what a policy checks and what it found, or what a finding means."""
    from scanner.cli import terminal

    with reader_at(db) as store:
        terminal.text(_lines(store, subject, cluster_name, python=python))


def _lines(store: SqlReader, subject: str, cluster: str, *, python: bool) -> Iterator[str]:
    record = stored_scan(store, "last", cluster)
    named = [candidate for candidate in record.policies if candidate.policy.name == subject]
    if named and python:
        rules = record.scan.cluster.release.rules
        return (line for policy_record in named for line in _python(policy_record.policy, rules))
    if named:
        return (line for policy_record in named for line in _policy(policy_record, record))
    if python:
        raise UsageError(f"{subject} is no policy of the last scan: --python needs the name of a policy")
    if _FINDING.fullmatch(subject):
        return _finding(store.finding(subject))
    names = ", ".join(policy_record.policy.name for policy_record in record.policies) or "none"
    raise UsageError(f"{subject} is neither a policy of the last scan (policies: {names}) nor the id of a finding")


def _policy(policy_record: PolicyRecord, record: ScanRecord) -> Iterator[str]:
    from scanner.report.words import plural

    policy = policy_record.policy
    yield f"{policy.language} {policy.name}  (from {policy.source}, failurePolicy {policy.failure_policy})"
    yield from _description(policy)
    yield ""
    yield from _matching(policy)
    for condition in policy.match_conditions:
        yield from _expression(f"match condition {condition.name}:", condition.expression)
    for variable in policy.variables:
        yield from _expression(f"variables.{variable.name} =", variable.expression)
    for index, validation in enumerate(policy.validations):
        yield from _validation(index, validation)
    for annotation in policy.audit_annotations:
        yield from _expression(f"audit annotation {annotation.key} =", annotation.value_expression)
    for index, mutation in enumerate(policy.mutations):
        yield from _expression(f"mutation {index} ({mutation.patch_type}):", mutation.expression)
    yield ""
    yield from _auditability(policy_record)
    yield from _bindings(policy_record)
    yield from (f"Health: {health.detail}" for health in record.health if health.policy_key == policy.key)
    findings = sum(number for bucket, number in record.counted().items() if bucket.policy == policy.key)
    yield from _requester(policy_record, record)
    yield f"In scan {record.scan.id} it matched {plural(policy_record.matched, 'object')} and has {plural(findings, 'finding')}."


def _description(policy: Policy) -> Iterator[str]:
    """The severity of a policy, and the texts that its author or the configuration gave."""
    from scanner.posture.severity import describe

    description = describe(policy, settings().descriptions)
    category = f", category {description.category}" if description.category else ""
    yield f"Severity {description.severity}{category}"
    if description.unknown_severity:
        yield f"(the annotation of its severity is {description.unknown_severity!r}, which is no severity)"
    if description.title != policy.name:
        yield f"Title: {description.title}"
    for title in ("description", "remediation", "docs"):
        if text := str(getattr(description, title)):
            yield f"{title.capitalize()}: {' '.join(text.split())}"


def _python(policy: Policy, rules: Minor) -> Iterator[str]:
    """The Python that evaluates most objects; where it raises, the exact evaluator decides."""
    from scanner.policies.language import compiled

    for place, expression in compiled(policy, rules).expressions():
        yield f"# {place}"
        yield from (f"#     {line}" for line in expression.text.strip().splitlines())
        if expression.program:
            yield from _outlined(expression.program)
        else:
            yield from (f"# {line}" for line in f"does not compile: {expression.fault}".splitlines())
        yield ""


def _outlined(program: Program) -> Iterator[str]:
    from scanner.cel import outline
    from scanner.report.words import cut

    reads = ", ".join(".".join(path) for path in sorted(program.reads))
    yield f"# reads {reads or 'nothing'}"
    for part in outline(program):
        constant = ", constant" if part.constant else ""
        yield f"# {'  ' * part.depth}{cut(part.text)}: {part.type}{constant}"
    yield from program.python().splitlines() or ["# only the exact evaluator evaluates this"]


def _requester(policy_record: PolicyRecord, record: ScanRecord) -> Iterator[str]:
    """The number of outcomes that depend on the user of the simulated requests."""
    depend = sum(n for key, n in record.tallies.items() if key.requester and key.policy_key == policy_record.policy.key)
    if depend:
        user = record.scan.requester.username or "the user that scanned"
        yield f"{depend} of its outcomes depend on the user: they hold for {user} and may differ for other users."


def _matching(policy: Policy) -> Iterator[str]:
    for rule in policy.match.rules if policy.match else ():
        groups = ", ".join(group or "core" for group in rule.api_groups)
        yield f"matches {', '.join(rule.resources)} of {groups}/{', '.join(rule.api_versions)} for {', '.join(rule.operations)}"
    if policy.param_kind:
        yield f"params are {policy.param_kind.kind} objects of {policy.param_kind.api_version}"


def _expression(title: str, text: str) -> Iterator[str]:
    yield title
    yield from (f"    {line}" for line in text.strip().splitlines())


def _validation(index: int, validation: Validation) -> Iterator[str]:
    yield from _expression(f"validation {index} requires", validation.expression)
    if validation.message:
        yield f"  message: {validation.message.strip()}"
    if validation.message_expression:
        yield from _expression("  message expression:", validation.message_expression)


def _auditability(policy_record: PolicyRecord) -> Iterator[str]:
    """The extent to which an audit can predict admission, and the meaning of each auditability class."""
    from scanner.report import words

    reading = policy_record.reading
    yield f"Auditability: {words.auditability(reading.classes)}{f': {reading.reason}' if reading.reason else ''}"
    for auditability in reading.classes:
        checks = [words.check_title(reads.check) for reads in reading.checks if auditability in reads.classes]
        where = f"{words.listed(checks)}: " if checks else ""
        yield f"  {where}{words.AUDITABILITY_MEANINGS[auditability]}"


def _bindings(policy_record: PolicyRecord) -> Iterator[str]:
    if not policy_record.bindings:
        yield f"Not bound. Preview the policy with: assay scan --assume-bound {policy_record.policy.name}"
    yield from (_binding(binding) for binding in policy_record.bindings)


def _binding(binding: Binding) -> str:
    from scanner.report.words import param_ref

    assumed = " (added by --assume-bound)" if binding.assumed else ""
    params = f", params: {param_ref(binding.param_ref)}" if binding.param_ref else ""
    actions = f": {', '.join(binding.actions)}" if binding.actions else ""
    return f"binding {binding.name}{actions}{assumed}{params}"


def _finding(explained: ExplainedFinding) -> Iterator[str]:
    from scanner.posture.owners import owner_of
    from scanner.report.evidence import lines_with_excerpt
    from scanner.report.words import object_name, owner_title, param_name, workload_name

    stored, posture = explained.stored, settings()
    finding = stored.finding
    yield f"Finding {stored.id}: {finding.api_version} {finding.kind} {object_name(finding)}"
    if workload := workload_name(stored):
        yield f"Workload {workload}"
    unknown = "" if stored.kept else " (an older version stored no labels of the object)"
    yield f"Owner {owner_title(owner_of(stored.kept, posture.owners))}{unknown}"
    yield f"Policy {finding.policy}, binding {finding.binding}, {_check(stored)}"
    if finding.param_name:
        yield f"Param {param_name(finding.param_namespace, finding.param_name)}"
    if explained.policy is not None:
        yield from _description(explained.policy)
    yield ""
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
    yield from _expression("Check:", finding.check.expression or "(configuration of the policy or binding)")
    if finding.evidence:
        yield "Evidence:"
        yield from (f"    {line}" for line in lines_with_excerpt(finding.evidence))
    yield ""
    effect = "would deny" if finding.denies else "would admit"
    yield f"For {finding.operation}, admission {effect} this object (actions: {', '.join(finding.actions)})."
    yield from _limits(explained)
    if stored.status == "preview":
        yield f"Preview of {_stamp(stored.last_seen)}: the policy is not bound, and the finding has no history."
        return
    yield f"First seen {_stamp(stored.first_seen)}, last seen {_stamp(stored.last_seen)}, now {_state(stored)}."
    yield from _events(explained)
    if stored.problem:
        yield f"It belongs to the problem {stored.problem}: this check and the workload of the object."


def _events(explained: ExplainedFinding) -> Iterator[str]:
    """What scans changed about the finding, and why."""
    from scanner.report import words

    for event in explained.events:
        name = f"continues finding {event.continues}" if event.continues else words.EVENTS.get(event.event, event.event)
        why = f": {words.cause_text(event.cause)}" if event.cause else ""
        yield f"    {_stamp(event.at)}  {name}{why}"


def _state(stored: StoredFinding) -> str:
    """The status, with the reason of a resolution if it is known."""
    from scanner.report import words

    reason = words.RESOLUTIONS.get(stored.resolution, "")
    return f"{stored.status}: {reason}" if reason else stored.status


def _limits(explained: ExplainedFinding) -> Iterator[str]:
    """The extent to which the finding predicts admission, for a check that is not fully auditable."""
    from scanner.report import words

    user = explained.scan.requester.username or "the user that scanned"
    for auditability in explained.reading.of(explained.stored.finding.check):
        simulated = f" (here: {user})" if auditability is Auditability.REQUESTER else ""
        yield f"The check {words.AUDITABILITY[auditability]}{simulated}: {words.AUDITABILITY_MEANINGS[auditability]}"


def _stamp(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}Z"


def _check(stored: StoredFinding) -> str:
    check = stored.finding.check
    indexed = check.kind in (CheckKind.VALIDATION, CheckKind.AUDIT_ANNOTATION, CheckKind.MUTATION)
    return f"{check.kind.value} {check.index}" if indexed else check.kind.value
