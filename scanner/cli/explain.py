"""`assay explain`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Final

import typer

from scanner.cli.completion import subjects
from scanner.cli.database import ClusterNameOption, DbOption, reader_at
from scanner.cli.explain_description import description_of, expression
from scanner.cli.explain_finding import finding, problem
from scanner.cli.explain_finding import line as of_finding
from scanner.cli.stored_scan import stored_scan
from scanner.errors import UsageError

if TYPE_CHECKING:
    from scanner.cel import Program
    from scanner.model.policy import Binding, Policy, Validation
    from scanner.model.release import Minor
    from scanner.model.scan import PolicyRecord, ScanRecord
    from scanner.store import SqlReader
    from scanner.store.lookup import ExplainedFinding

_ID: Final = re.compile(r"(?P<problem>p-)?[0-9a-f]{1,64}", re.IGNORECASE)
_SHOWN: Final = 20


def command(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="POLICY|PROBLEM|FINDING",
            help="Name of a policy, or id of a problem or finding, or the beginning of one.",
            autocompletion=subjects,
        ),
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
    """Explain what a policy checks and what it found, or what a problem or a finding means."""
    from scanner.cli import terminal

    with reader_at(db) as store:
        terminal.text(_lines(store, subject, cluster_name, python=python))


def _lines(store: SqlReader, subject: str, cluster: str, *, python: bool) -> Iterator[str]:
    if not python and (match := _ID.fullmatch(subject)) and match["problem"]:
        return problem(store.problem(subject, cluster or None))
    record = stored_scan(store, "last", cluster)
    named = [candidate for candidate in record.policies if candidate.policy.name == subject]
    if named and python:
        rules = record.scan.cluster.release.rules
        return (line for policy_record in named for line in _python(policy_record.policy, rules))
    if named:
        return (line for policy_record in named for line in _policy(policy_record, record))
    if python:
        raise UsageError(f"{subject} is no policy of the last scan: --python needs the name of a policy")
    if _ID.fullmatch(subject):
        return finding(_finding(store, subject, record))
    raise UsageError(_unknown(subject, record))


def _finding(store: SqlReader, subject: str, record: ScanRecord) -> ExplainedFinding:
    """The finding with the beginning of an id, which may also be the misspelled name of a policy. Raises UsageError."""
    from scanner.model.nearest import did_you_mean

    try:
        return store.finding(subject)
    except UsageError as error:
        policy = did_you_mean(subject, (used.policy.name for used in record.policies))
        raise UsageError(f"{error}{policy}") from error


def _unknown(subject: str, record: ScanRecord) -> str:
    """The message for a subject that is neither a policy nor an id, with the most similar policy."""
    from scanner.model.nearest import did_you_mean

    names = sorted({used.policy.name for used in record.policies})
    policies = did_you_mean(subject, names) or f" The policies are: {_some(names)}."
    return f"{subject} is neither a policy of the last scan nor the id of a finding or problem.{policies}"


def _some(names: Sequence[str]) -> str:
    from scanner.report.words import listed

    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{listed(names[:_SHOWN])}{more}" if names else "none"


def _policy(policy_record: PolicyRecord, record: ScanRecord) -> Iterator[str]:
    from scanner.report.words import plural

    policy = policy_record.policy
    yield f"{policy.language} {policy.name}  (from {policy.source}, failurePolicy {policy.failure_policy})"
    yield from description_of(policy)
    yield ""
    yield from _matching(policy)
    for condition in policy.match_conditions:
        yield from expression(f"match condition {condition.name}:", condition.expression)
    for variable in policy.variables:
        yield from expression(f"variables.{variable.name} =", variable.expression)
    for index, validation in enumerate(policy.validations):
        yield from _validation(index, validation)
    for annotation in policy.audit_annotations:
        yield from expression(f"audit annotation {annotation.key} =", annotation.value_expression)
    for index, mutation in enumerate(policy.mutations):
        yield from expression(f"mutation {index} ({mutation.patch_type}):", mutation.expression)
    yield ""
    yield from _auditability(policy_record)
    yield from _bindings(policy_record)
    yield from (f"Health: {health.detail}" for health in record.health if health.policy_key == policy.key)
    findings = sum(number for bucket, number in record.counted().items() if bucket.policy == policy.key)
    yield from _requester(policy_record, record)
    yield f"In scan {record.scan.id} it matched {plural(policy_record.matched, 'object')} and has {plural(findings, 'finding')}{':' if findings else '.'}"
    yield from _findings(policy, record, findings)


def _findings(policy: Policy, record: ScanRecord, total: int) -> Iterator[str]:
    """The first findings of a policy, in the order of the report."""
    own = (stored for stored in record.findings() if stored.finding.policy_key == policy.key) if total else iter(())
    yield from (f"    {of_finding(stored)}" for stored in islice(own, _SHOWN))
    if total > _SHOWN:
        yield f"    and {total - _SHOWN:,} more: assay findings --policy {quote(policy.name)} --limit 0"


def _python(policy: Policy, rules: Minor) -> Iterator[str]:
    """The Python that evaluates most objects; where it raises, the exact evaluator decides."""
    from scanner.policies.language import compiled

    for place, compiled_expression in compiled(policy, rules).expressions():
        yield f"# {place}"
        yield from (f"#     {line}" for line in compiled_expression.text.strip().splitlines())
        if compiled_expression.program:
            yield from _outlined(compiled_expression.program)
        else:
            yield from (f"# {line}" for line in f"does not compile: {compiled_expression.fault}".splitlines())
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


def _validation(index: int, validation: Validation) -> Iterator[str]:
    yield from expression(f"validation {index} requires", validation.expression)
    if validation.message:
        yield f"  message: {validation.message.strip()}"
    if validation.message_expression:
        yield from expression("  message expression:", validation.message_expression)


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
