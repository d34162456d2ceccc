"""`assay explain`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, assert_never

import typer

from scanner.cli.database import ClusterNameOption, DbOption, existing
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
    what: Annotated[
        str, typer.Argument(metavar="POLICY|FINDING", help="A policy's name, or a finding's id or its beginning.")
    ],
    db: DbOption = "",
    cluster_name: ClusterNameOption = "",
    python: Annotated[
        bool,
        typer.Option(
            "--python", help="Show what the policy's expressions become: trees with types, what they read, Python."
        ),
    ] = False,
) -> None:
    """Say in plain words what a policy asks and what it found, or what a finding means."""
    from scanner.cli import terminal

    with existing(db) as store:
        terminal.text(_lines(store, what, cluster_name or None, python=python))


def _lines(store: SqlReader, what: str, cluster: str | None, *, python: bool) -> Iterator[str]:
    record = store.record(store.find_scan("last", cluster).id)
    entries = [found for found in record.policies if found.policy.name == what]
    if entries and python:
        rules = record.scan.cluster.release.rules
        return (line for entry in entries for line in _python(entry.policy, rules))
    if entries:
        return (line for entry in entries for line in _policy(entry, record))
    if python:
        raise UsageError(f"{what} is no policy of the last scan: --python shows what a policy's expressions become")
    if _FINDING.fullmatch(what):
        return _finding(store.finding(what))
    names = ", ".join(found.policy.name for found in record.policies) or "none"
    raise UsageError(f"{what} is no policy of the last scan (there are: {names}) and no id of a finding")


def _policy(entry: PolicyRecord, record: ScanRecord) -> Iterator[str]:
    policy = entry.policy
    yield f"{policy.language} {policy.name}  (from {policy.source}, failurePolicy {policy.failure_policy})"
    yield ""
    yield from _matching(policy)
    for condition in policy.match_conditions:
        yield from _expression(f"only if ({condition.name})", condition.expression)
    for variable in policy.variables:
        yield from _expression(f"variables.{variable.name} =", variable.expression)
    for index, validation in enumerate(policy.validations):
        yield from _validation(index, validation)
    for annotation in policy.audit_annotations:
        yield from _expression(f"audit annotation {annotation.key} =", annotation.value_expression)
    for index, mutation in enumerate(policy.mutations):
        yield from _expression(f"mutation {index} ({mutation.patch_type}):", mutation.expression)
    yield ""
    yield from _auditability(entry)
    yield from _bindings(entry)
    yield from (f"Health: {health.detail}" for health in record.health if health.policy_key == policy.key)
    found = sum(stored.finding.policy_key == policy.key for stored in record.findings())
    yield from _requester(entry, record)
    yield f"In scan {record.scan.id} it matched {entry.matched} objects and has {found} findings."


def _python(policy: Policy, rules: Minor) -> Iterator[str]:
    """What is evaluated for most objects; where it raises, the exact evaluator decides."""
    from scanner.policies.language import compiled

    for place, expression in compiled(policy, rules).expressions():
        yield f"# {place}"
        yield from (f"#     {line}" for line in expression.text.strip().splitlines())
        if expression.program:
            yield from _inspected(expression.program)
        else:
            yield from (f"# {line}" for line in f"it does not compile: {expression.fault}".splitlines())
        yield ""


def _inspected(program: Program) -> Iterator[str]:
    from scanner.cel import outline
    from scanner.report.words import cut

    reads = ", ".join(".".join(path) for path in sorted(program.reads))
    yield f"# reads {reads or 'nothing'}"
    for part in outline(program):
        constant = ", constant" if part.constant else ""
        yield f"# {'  ' * part.depth}{cut(part.text)}: {part.type}{constant}"
    yield from program.python().splitlines() or ["# only the exact evaluator evaluates this"]


def _requester(entry: PolicyRecord, record: ScanRecord) -> Iterator[str]:
    """How many of its outcomes hold for the supposed requester alone."""
    depend = sum(n for key, n in record.tallies.items() if key.requester and key.policy_key == entry.policy.key)
    if depend:
        who = record.scan.requester.username or "the identity that scanned"
        yield f"{depend} of its outcomes hold for requests by {who} and can be different for others."


def _matching(policy: Policy) -> Iterator[str]:
    for rule in policy.match.rules if policy.match else ():
        groups = ", ".join(group or "core" for group in rule.api_groups)
        yield f"looks at {', '.join(rule.resources)} of {groups}/{', '.join(rule.api_versions)} on {', '.join(rule.operations)}"
    if policy.param_kind:
        yield f"params are {policy.param_kind.kind} objects of {policy.param_kind.api_version}"


def _expression(title: str, text: str) -> Iterator[str]:
    yield title
    yield from (f"    {line}" for line in text.strip().splitlines())


def _validation(index: int, validation: Validation) -> Iterator[str]:
    yield from _expression(f"validation {index} requires", validation.expression)
    if validation.message:
        yield f"  else: {validation.message.strip()}"
    if validation.message_expression:
        yield from _expression("  else the message that this yields:", validation.message_expression)


def _auditability(entry: PolicyRecord) -> Iterator[str]:
    """How far an audit can stand for admission, and what each of its classes means."""
    from scanner.report import words

    reading = entry.reading
    yield f"Auditability: {words.auditability(reading.classes)}{f': {reading.reason}' if reading.reason else ''}"
    for known in reading.classes:
        asked = [words.check_title(it.check) for it in reading.checks if known in it.classes]
        where = f"{words.listed(asked)}: " if asked else ""
        yield f"  {where}{words.AUDITABILITY_MEANINGS[known]}"


def _bindings(entry: PolicyRecord) -> Iterator[str]:
    if not entry.bindings:
        yield f"No binding puts it into force. Preview it: assay scan --assume-bound {entry.policy.name}"
    yield from (_binding(binding) for binding in entry.bindings)


def _binding(binding: Binding) -> str:
    from scanner.report.words import param_ref

    made_up = " (made up by --assume-bound)" if binding.assumed else ""
    params = f", params: {param_ref(binding.param_ref)}" if binding.param_ref else ""
    actions = f": {', '.join(binding.actions)}" if binding.actions else ""
    return f"binding {binding.name}{actions}{made_up}{params}"


def _finding(explained: ExplainedFinding) -> Iterator[str]:
    from scanner.report.evidence import evidence_lines
    from scanner.report.words import object_name, param_name

    stored = explained.stored
    finding = stored.finding
    yield f"Finding {stored.id}: {finding.api_version} {finding.kind} {object_name(finding)}"
    yield f"Policy {finding.policy}, binding {finding.binding}, {_check(stored)}"
    if finding.param_name:
        yield f"Param {param_name(finding.param_namespace, finding.param_name)}"
    yield ""
    match finding.outcome:
        case Violated(message=message, reason=reason, code=code):
            yield f"Violated: {message}  ({reason}, {code})"
        case WouldChange(message=message):
            yield "Drift: the policy would change the object:"
            yield message
        case Errored(message=message):
            yield f"Error: {message}"
        case _ as never:
            assert_never(never)
    yield from _expression("The check:", finding.check.expression or "(the configuration of the policy or binding)")
    if finding.evidence:
        yield "Because:"
        yield from (f"    {line}" for line in evidence_lines(finding.evidence))
    yield ""
    effect = "would refuse" if finding.denies else "would admit"
    yield f"At a {finding.operation}, admission {effect} this object (actions: {', '.join(finding.actions)})."
    yield from _limits(explained)
    if stored.status == "preview":
        yield f"It is a preview of {_stamp(stored.last_seen)}: nothing binds the policy, and the finding has no history."
        return
    yield f"First seen {_stamp(stored.first_seen)}, last seen {_stamp(stored.last_seen)}, now {stored.status}."


def _limits(explained: ExplainedFinding) -> Iterator[str]:
    """How far the finding can stand for admission, where its check is not fully auditable."""
    from scanner.report import words

    who = explained.scan.requester.username or "the identity that scanned"
    for known in explained.reading.of(explained.stored.finding.check):
        supposed = f" (here: {who})" if known is Auditability.REQUESTER else ""
        yield f"The check {words.AUDITABILITY[known]}{supposed}: {words.AUDITABILITY_MEANINGS[known]}"


def _stamp(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}Z"


def _check(stored: StoredFinding) -> str:
    check = stored.finding.check
    indexed = check.kind in (CheckKind.VALIDATION, CheckKind.AUDIT_ANNOTATION, CheckKind.MUTATION)
    return f"{check.kind.value} {check.index}" if indexed else check.kind.value
