"""`assay explain`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Final

import typer

from scanner.cli.completion import subjects
from scanner.cli.database import ClusterNameOption, DbOption, reader_at
from scanner.cli.explain_description import description_of, expression
from scanner.cli.screen import later_flags
from scanner.cli.stored_scan import stored_scan
from scanner.errors import NotFound, UsageError

if TYPE_CHECKING:
    from scanner.cel import Program
    from scanner.model.policy import Binding, Policy, Validation
    from scanner.model.release import Minor
    from scanner.model.scan import PolicyRecord, ScanRecord
    from scanner.store import SqlReader

_ID: Final = re.compile(r"(?P<problem>p-)?[0-9a-f]{1,64}", re.IGNORECASE)
_SHOWN: Final = 20


def command(
    arguments: typer.Context,
    subject: Annotated[
        str,
        typer.Argument(
            metavar="POLICY|PROBLEM|FINDING",
            help="Name of a policy, id of a problem or id of a finding, or the beginning of one.",
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
        terminal.text(_lines(store, subject, cluster_name, python=python, flags=later_flags(arguments, db)))


def _lines(store: SqlReader, subject: str, cluster: str, *, python: bool, flags: str) -> Iterator[str]:
    """The explanation of a subject; `flags` are those that a command about the same scan needs."""
    from scanner.cli.explain_finding import problem

    if not python and (match := _ID.fullmatch(subject)) and match["problem"]:
        return problem(store.problem(subject, cluster or None), flags)
    record = stored_scan(store, "last", cluster)
    exact = tuple(used for used in record.policies if used.policy.name == subject)
    if exact:
        return _python_of(exact, record) if python else _policies(exact, record, flags)
    if _ID.fullmatch(subject) and not python:
        return _finding_or_policy(store, subject, record, flags)
    begun = _begun(subject, record)
    if begun:
        only = _only(subject, begun)
        return _python_of(only, record) if python else _policies(only, record, flags)
    if python:
        raise UsageError(f"{subject!r} is no policy of the last scan: --python needs the name of a policy")
    raise UsageError(_unknown(subject, record))


def _policies(used: Sequence[PolicyRecord], record: ScanRecord, flags: str) -> Iterator[str]:
    """The explanation of the policies of one name: policies of several languages can share it."""
    return (line for policy_record in used for line in _policy(policy_record, record, flags))


def _python_of(used: Sequence[PolicyRecord], record: ScanRecord) -> Iterator[str]:
    rules = record.scan.cluster.release.rules
    return (line for policy_record in used for line in _python(policy_record.policy, rules))


def _finding_or_policy(store: SqlReader, subject: str, record: ScanRecord, flags: str) -> Iterator[str]:
    """Digits that are the beginning of an id, of the name of a policy, or of both. Raises UsageError unless of one."""
    from scanner.cli.explain_finding import finding

    begun = _begun(subject, record)
    try:
        explained = store.finding(subject)
    except NotFound as error:
        if begun:
            return _policies(_only(subject, begun), record, flags)
        raise UsageError(f"{error}{_alike(subject, record)}") from error
    if begun:
        policies = _some(_names(begun))
        raise UsageError(
            f"{subject!r} is ambiguous: it begins finding {explained.stored.id} and {policies}. Type more of it."
        )
    return finding(explained)


def _begun(subject: str, record: ScanRecord) -> tuple[PolicyRecord, ...]:
    """The policies whose names begin with a text."""
    return tuple(used for used in record.policies if subject and used.policy.name.startswith(subject))


def _only(subject: str, begun: Sequence[PolicyRecord]) -> Sequence[PolicyRecord]:
    """The policies, if they have one name. Raises UsageError with the names if there are several."""
    names = _names(begun)
    if len(names) > 1:
        raise UsageError(f"Policy {subject!r} is ambiguous: {_some(names)}. Type more of the name.")
    return begun


def _names(used: Iterable[PolicyRecord]) -> list[str]:
    return sorted({each.policy.name for each in used})


def _alike(subject: str, record: ScanRecord) -> str:
    """The policy with the most similar name as a question, or an empty string."""
    from scanner.model.nearest import did_you_mean

    return did_you_mean(subject, _names(record.policies))


def _unknown(subject: str, record: ScanRecord) -> str:
    """The message for a subject that is neither a policy nor an id, with the most similar policy."""
    policies = _alike(subject, record) or f" The policies are: {_some(_names(record.policies))}."
    return f"{subject!r} is neither a policy of the last scan nor the id of a finding or problem.{policies}"


def _some(names: Sequence[str]) -> str:
    from scanner.report.words import listed

    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{listed(names[:_SHOWN])}{more}" if names else "none"


def _policy(policy_record: PolicyRecord, record: ScanRecord, flags: str) -> Iterator[str]:
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
    yield from _findings(policy, record, findings, flags)


def _findings(policy: Policy, record: ScanRecord, total: int, flags: str) -> Iterator[str]:
    """The first findings of a policy, in the order of the report."""
    from scanner.cli.explain_finding import line

    own = (stored for stored in record.findings() if stored.finding.policy_key == policy.key) if total else iter(())
    yield from (f"    {line(stored)}" for stored in islice(own, _SHOWN))
    if total > _SHOWN:
        command_line = f"assay findings --policy {quote(policy.name)} --limit 0 {flags}".rstrip()
        yield f"    and {total - _SHOWN:,} more: {command_line}"


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
