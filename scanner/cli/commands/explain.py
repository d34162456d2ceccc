"""`assay explain`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import islice
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Final

import typer

from scanner.cli.flags.completion import complete_subjects
from scanner.cli.flags.database import ClusterNameOption, DbOption, open_reader_at
from scanner.cli.flags.screen import make_screen
from scanner.cli.flags.stored_scan import LAST, ScanOption, find_stored_scan
from scanner.cli.flags.waivers import Posture
from scanner.cli.terminal.stdout import Code
from scanner.config.current import get_settings
from scanner.errors import NotFound, UsageError

if TYPE_CHECKING:
    from scanner.cel import Program
    from scanner.cli.terminal.explanation import Part
    from scanner.model.policy import Binding, Policy, Validation
    from scanner.model.scans.scan import PolicyRecord
    from scanner.model.scans.stored_scan import StoredScan
    from scanner.posture.severity import Description
    from scanner.report.text.screen import Screen
    from scanner.store import SqlReader

_ID: Final = re.compile(r"(?P<problem>p-)?[0-9a-f]{1,64}", re.IGNORECASE)
_SHOWN: Final = 20


def command(
    arguments: typer.Context,
    subject: Annotated[
        str,
        typer.Argument(
            metavar="POLICY|PROBLEM|FINDING|KIND/NAME|NAMESPACE/NAME",
            help="Name of a policy, id of a problem or id of a finding, or the beginning of one; or a workload or object, such as Deployment/web or shop/web.",
            autocompletion=complete_subjects,
        ),
    ],
    namespace: Annotated[
        str,
        typer.Option(
            "-n",
            "--namespace",
            metavar="NAME",
            help="Namespace of the workload or object, which is then KIND/NAME or NAME.",
            show_default=False,
        ),
    ] = "",
    scan: ScanOption = LAST,
    db: DbOption = "",
    cluster_name: ClusterNameOption = "",
    python: Annotated[
        bool,
        typer.Option(
            "--python", help="Print how the policy's expressions compile: typed trees, the fields they read, Python."
        ),
    ] = False,
) -> None:
    """Explain a policy and its findings, a problem or a finding, or list the problems and every check of a workload or object."""
    from scanner.cli.terminal import explanation

    with open_reader_at(db) as store:
        screen = make_screen(arguments, db)
        explaining = _Explaining(store, screen, scan, cluster_name, python=python)
        explanation.show(explaining.parts(subject, namespace), screen)


@dataclass(frozen=True)
class _Explaining:
    """A command: the store, how later commands are printed, and the scan that the user named."""

    store: SqlReader
    screen: Screen
    scan: str
    cluster: str
    _: KW_ONLY
    python: bool

    def parts(self, subject: str, namespace: str) -> Iterable[Part]:
        """The explanation of a subject. Raises UsageError."""
        from scanner.cli.commands.explain_problems import explain_problem

        match = _ID.fullmatch(subject)
        if match and match["problem"] and not (self.python or namespace):
            self._reject_scan()
            return explain_problem(self.store.find_problem(subject, self.cluster or None), self.screen)
        record = find_stored_scan(self.store, self.scan, self.cluster)
        if namespace:
            return self._workload(subject, namespace, record)
        exact = tuple(used for used in record.policies if used.policy.name == subject)
        if exact:
            return self._policies(exact, record)
        if match and not self.python:
            return self._finding_or_policy(subject, record)
        begun = _find_by_beginning(subject, record)
        if "/" in subject and not begun and not self.python:
            return self._workload(subject, namespace, record)
        if begun:
            return self._policies(_choose_only(subject, begun), record)
        if self.python:
            raise UsageError(f"{subject!r} is no policy of the scan: --python needs the name of a policy")
        raise UsageError(_describe_unknown(subject, record))

    def _reject_scan(self) -> None:
        if self.scan != LAST:
            raise UsageError("the explanation of a problem or finding covers all scans: leave --scan out")

    def _workload(self, subject: str, namespace: str, record: StoredScan) -> Iterable[Part]:
        from scanner.cli.commands.explain_problems import WorkloadExplanation

        if self.python:
            raise UsageError("--python needs the name of a policy, which has no namespace: leave -n out")
        triage = Posture(get_settings()).triage(self.store, record)
        explanation = WorkloadExplanation(record, triage, self.screen, self.cluster, self.store.read_objects_named)
        return explanation.parts(subject, namespace)

    def _policies(self, used: Sequence[PolicyRecord], record: StoredScan) -> Iterator[Part]:
        """The explanation of the policies of one name: policies of several languages can share it."""
        if self.python:
            return (Code(line) for policy_record in used for line in _print_python(policy_record.policy, record))
        return (part for policy_record in used for part in _explain_policy(policy_record, record, self.screen))

    def _finding_or_policy(self, subject: str, record: StoredScan) -> Iterable[Part]:
        """Digits that are the beginning of an id, of the name of a policy, or of both. Raises UsageError unless of one."""
        from scanner.cli.commands.explain_problems import explain_finding

        begun = _find_by_beginning(subject, record)
        try:
            explained = self.store.find_finding(subject)
        except NotFound as error:
            if begun:
                return self._policies(_choose_only(subject, begun), record)
            raise UsageError(f"{error}{_suggest_alike(subject, record)}") from error
        if begun:
            policies = _join_names(_list_names(begun))
            raise UsageError(
                f"{subject!r} is ambiguous: it begins finding {explained.stored.id} and {policies}. Type more of it."
            )
        self._reject_scan()
        return explain_finding(explained)


def _find_by_beginning(subject: str, record: StoredScan) -> tuple[PolicyRecord, ...]:
    """The policies whose names begin with a text."""
    return tuple(used for used in record.policies if subject and used.policy.name.startswith(subject))


def _choose_only(subject: str, begun: Sequence[PolicyRecord]) -> Sequence[PolicyRecord]:
    """The policies, if they have one name. Raises UsageError with the names if there are several."""
    names = _list_names(begun)
    if len(names) > 1:
        raise UsageError(f"Policy {subject!r} is ambiguous: {_join_names(names)}. Type more of the name.")
    return begun


def _list_names(used: Iterable[PolicyRecord]) -> list[str]:
    return sorted({each.policy.name for each in used})


def _suggest_alike(subject: str, record: StoredScan) -> str:
    """The policy with the most similar name as a question, or an empty string."""
    from scanner.model.nearest import did_you_mean

    return did_you_mean(subject, _list_names(record.policies))


def _describe_unknown(subject: str, record: StoredScan) -> str:
    """The message for a subject that is neither a policy nor an id, with the most similar policy."""
    policies = _suggest_alike(subject, record) or f" The policies are: {_join_names(_list_names(record.policies))}."
    return (
        f"{subject!r} is neither a policy of the scan nor the id of a finding or problem.{policies} "
        "For a workload or object, write KIND/NAME or NAMESPACE/NAME."
    )


def _join_names(names: Sequence[str]) -> str:
    from scanner.report.text.numbers import join_texts

    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{join_texts(names[:_SHOWN])}{more}" if names else "none"


def _explain_policy(policy_record: PolicyRecord, record: StoredScan, screen: Screen) -> Iterator[Part]:
    from scanner.cli.commands.explain_problems import describe_policy, indent_expression
    from scanner.config.current import get_settings
    from scanner.posture.severity import describe
    from scanner.report.text.numbers import plural

    policy = policy_record.policy
    yield f"{policy.language} {policy.name}  (from {policy.source}, failurePolicy {policy.failure_policy})"
    yield from describe_policy(policy)
    yield ""
    yield from _explain_matching(policy)
    for condition in policy.match_conditions:
        yield from indent_expression(f"match condition {condition.name}:", condition.expression)
    for variable in policy.variables:
        yield from indent_expression(f"variables.{variable.name} =", variable.expression)
    description = describe(policy, get_settings().descriptions)
    for index, validation in enumerate(policy.validations):
        yield from _explain_validation(index, validation, description)
    for annotation in policy.audit_annotations:
        yield from indent_expression(f"audit annotation {annotation.key} =", annotation.value_expression)
    for index, mutation in enumerate(policy.mutations):
        yield from indent_expression(f"mutation {index} ({mutation.patch_type}):", mutation.expression)
    yield ""
    yield from _explain_auditability(policy_record)
    yield from _list_bindings(policy_record)
    yield from (f"Health: {health.detail}" for health in record.health if health.policy_key == policy.key)
    findings = sum(number for bucket, number in record.census().items() if bucket.policy == policy.key)
    yield from _explain_requester(policy_record, record)
    yield f"In scan {record.scan.id} it matched {plural(policy_record.matched, 'object')} and has {plural(findings, 'finding')}{':' if findings else '.'}"
    yield from _list_findings(policy, record, findings, screen)


def _list_findings(policy: Policy, record: StoredScan, total: int, screen: Screen) -> Iterator[Part]:
    """The first findings of a policy, in the order of the report."""
    from scanner.cli.commands.explain_problems import summarize_finding
    from scanner.report.text.printing import Command, command_line

    own = (stored for stored in record.findings() if stored.finding.policy_key == policy.key) if total else iter(())
    yield from (f"    {summarize_finding(stored)}" for stored in islice(own, _SHOWN))
    if total > _SHOWN:
        yield f"    and {total - _SHOWN:,} more"
        command = f"findings --policy {quote(policy.name)} --limit 0 --scan {record.scan.id}"
        yield Command(command_line(screen, command), "all findings of the policy")


def _print_python(policy: Policy, record: StoredScan) -> Iterator[str]:
    """The Python that evaluates most objects; where it raises, the exact evaluator decides."""
    from scanner.policies.kyverno.family import KyvernoOptions
    from scanner.policies.language import compile_policy, with_options

    rules = record.scan.cluster.release.rules
    languages = with_options(KyvernoOptions(version=record.method.kyverno_release if record.method else ""))
    for place, compiled_expression in compile_policy(policy, rules, languages).expressions():
        yield f"# {place}"
        yield from (f"#     {line}" for line in compiled_expression.text.strip().splitlines())
        if compiled_expression.program:
            yield from _outline(compiled_expression.program)
        else:
            yield from (f"# {line}" for line in f"does not compile: {compiled_expression.fault}".splitlines())
        yield ""


def _outline(program: Program) -> Iterator[str]:
    from scanner.cel import outline
    from scanner.report.text.safe_text import cut

    reads = ", ".join(".".join(path) for path in sorted(program.reads))
    yield f"# reads {reads or 'nothing'}"
    for part in outline(program):
        constant = ", constant" if part.constant else ""
        yield f"# {'  ' * part.depth}{cut(part.text)}: {part.type}{constant}"
    yield from program.python().splitlines() or ["# only the exact evaluator evaluates this"]


def _explain_requester(policy_record: PolicyRecord, record: StoredScan) -> Iterator[str]:
    """The number of outcomes that depend on the user of the simulated requests."""
    depend = sum(n for key, n in record.tallies.items() if key.requester and key.policy_key == policy_record.policy.key)
    if depend:
        user = record.scan.requester.username or "the user that scanned"
        yield f"{depend} of its outcomes depend on the user: they hold for {user} and may differ for other users."


def _explain_matching(policy: Policy) -> Iterator[str]:
    for rule in policy.match.rules if policy.match else ():
        groups = ", ".join(group or "core" for group in rule.api_groups)
        yield f"matches {', '.join(rule.resources)} of {groups}/{', '.join(rule.api_versions)} for {', '.join(rule.operations)}"
    if policy.param_kind:
        yield f"params are {policy.param_kind.kind} objects of {policy.param_kind.api_version}"


def _explain_validation(index: int, validation: Validation, description: Description) -> Iterator[str]:
    from scanner.cli.commands.explain_problems import indent_expression

    if validation.expression in description.checks:  # its expression is a name
        yield f"check {validation.expression}, {description.severity_of(validation.expression)}: {validation.message}"
        yield f"    {description.remediation_of(validation.expression)}"
        return
    yield from indent_expression(f"validation {index} requires", validation.expression)
    if validation.message:
        yield f"  message: {validation.message.strip()}"
    if validation.message_expression:
        yield from indent_expression("  message expression:", validation.message_expression)


def _explain_auditability(policy_record: PolicyRecord) -> Iterator[str]:
    """The extent to which an audit can predict admission, and the meaning of each auditability class."""
    from scanner.report.text import numbers, titles

    reading = policy_record.reading
    yield f"Auditability: {titles.auditability(reading.classes)}{f': {reading.reason}' if reading.reason else ''}"
    for auditability in reading.classes:
        checks = [titles.check_title(reads.check) for reads in reading.checks if auditability in reads.classes]
        where = f"{numbers.join_texts(checks)}: " if checks else ""
        yield f"  {where}{titles.AUDITABILITY_MEANINGS[auditability]}"


def _list_bindings(policy_record: PolicyRecord) -> Iterator[str]:
    if not policy_record.bindings:
        yield f"Not bound. Preview the policy with: assay preview --bind {policy_record.policy.name}"
    yield from (_describe_binding(binding) for binding in policy_record.bindings)


def _describe_binding(binding: Binding) -> str:
    from scanner.report.text.names import param_ref
    from scanner.report.text.titles import name_actions

    assumed = " (added by --assume-bound)" if binding.assumed else ""
    params = f", params: {param_ref(binding.param_ref)}" if binding.param_ref else ""
    actions = f": {', '.join(name_actions(binding.actions))}" if binding.actions else ""
    return f"binding {binding.name}{actions}{assumed}{params}"
