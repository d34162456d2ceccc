"""`assay findings`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Final, Generic, TypeVar, assert_never

import typer

from scanner.cli.flags.completion import complete_ids as finding_ids
from scanner.cli.flags.completion import complete_policies as policy_names
from scanner.cli.flags.database import ClusterNameOption, DbOption, open_reader_at
from scanner.cli.flags.flag_group import with_flag_groups
from scanner.cli.flags.stored_scan import LAST, ScanOption, find_stored_scan, reject_unknown_names
from scanner.cli.flags.waivers import PostureFlags
from scanner.cli.terminal.stdout import standard_output, table
from scanner.errors import UsageError
from scanner.model.list_fields import ActionFilter, FindingStatus, SortOrder
from scanner.posture.severity import Severity

if TYPE_CHECKING:
    from scanner.model.outcome import Check
    from scanner.model.policy import PolicyKey
    from scanner.model.scans.stored_finding import StoredFinding
    from scanner.model.scans.stored_scan import StoredScan
    from scanner.posture.problem_rows import Problem
    from scanner.posture.triage import Triage
    from scanner.report.lists.chosen_rows import ChosenRows
    from scanner.report.lists.columns import Columns

_Row = TypeVar("_Row")
EPILOG: Final = (
    "Examples: `assay findings --namespace 'team-*' --status new` · `assay findings --problems --action Deny` · "
    "`assay findings --at 2026-03-31 -o csv --limit 0`. "
    "Exit codes: 0 · 2 usage · 4 the database cannot be read."
)


class Output(StrEnum):
    """The forms of the list."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


@with_flag_groups
def command(
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID]...",
            help="Ids of findings, or the beginnings of them, or ids of problems.",
            autocompletion=finding_ids,
        ),
    ] = None,
    text: Annotated[
        str,
        typer.Option(
            "--text",
            metavar="WORDS",
            help="Only findings that have all of these words in a message, a name, a workload, a policy, an owner or an id.",
            show_default=False,
        ),
    ] = "",
    policies: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            metavar="NAME",
            help="Only the policy with this name or title; accepts globs (repeatable).",
            autocompletion=policy_names,
        ),
    ] = None,
    namespaces: Annotated[
        list[str] | None,
        typer.Option(
            "-n",
            "--namespace",
            metavar="NAME",
            help="Only this namespace; accepts globs. `_cluster` chooses cluster-scoped objects (repeatable).",
        ),
    ] = None,
    kinds: Annotated[
        list[str] | None,
        typer.Option("--kind", metavar="KIND", help="Only objects of this kind; accepts globs (repeatable)."),
    ] = None,
    workloads: Annotated[
        list[str] | None,
        typer.Option(
            "--workload",
            metavar="KIND/NAME",
            help="Only objects of this workload, such as Deployment/web or 'Deployment shop/web'; accepts globs (repeatable).",
        ),
    ] = None,
    statuses: Annotated[
        list[FindingStatus] | None,
        typer.Option(
            "--status",
            metavar="STATUS",
            help=(
                "Only findings with this status: unresolved; open, new or reopened, neither waived nor excepted; waived, "
                "excepted, unchecked, preview, outdated or resolved (repeatable). Default: unresolved."
            ),
            show_default=False,
        ),
    ] = None,
    actions: Annotated[
        list[ActionFilter] | None,
        typer.Option(
            "--action",
            help=(
                "Only findings with this strictest action of their bindings; refused: what admission would refuse, "
                "Errored: errors, change: drift (repeatable)."
            ),
            show_default=False,
        ),
    ] = None,
    owners: Annotated[
        list[str] | None,
        typer.Option(
            "--owner",
            metavar="TEAM",
            help="Only objects of this owner; accepts globs. `unowned` or an empty name chooses objects without an owner (repeatable).",
        ),
    ] = None,
    severities: Annotated[
        list[Severity] | None,
        typer.Option("--severity", help="Only checks of this severity (repeatable).", show_default=False),
    ] = None,
    min_severity: Annotated[
        Severity | None,
        typer.Option("--min-severity", help="Only checks of this severity or a worse one.", show_default=False),
    ] = None,
    sort: Annotated[
        SortOrder | None,
        typer.Option("--sort", help="Order of the list. Default: by policy, namespace and name.", show_default=False),
    ] = None,
    problems: Annotated[
        bool, typer.Option("--problems", help="Print problems instead: one line for a check and a workload.")
    ] = False,
    scan: ScanOption = LAST,
    *,
    posture_flags: PostureFlags,
    limit: Annotated[int, typer.Option("--limit", min=0, metavar="N", help="Lines to print; 0 prints all.")] = 100,
    output: Annotated[Output, typer.Option("-o", "--output", help="Output format.")] = Output.TABLE,
    db: DbOption = "",
    cluster_name: ClusterNameOption = "",
) -> None:
    """List the findings of a stored scan, or its problems."""
    from scanner.report.lists.chosen_rows import ChosenRows
    from scanner.report.lists.filters import ListFilter

    begins = tuple(each.lower() for each in ids or ())
    wanted = ListFilter(
        text=text,
        policy=tuple(policies or ()),
        namespace=tuple(namespaces or ()),
        owner=tuple(owners or ()),
        severity=tuple(severities or ()),
        action=tuple(action.value for action in actions or ()),
        status=tuple(status.value for status in statuses or ())
        or (() if begins else (FindingStatus.UNRESOLVED.value,)),
        workload=tuple(map(_check_workload, workloads or ())),
        kind=tuple(kinds or ()),
        min_severity=min_severity,
        sort=sort.value if sort else "",
    )
    posture = posture_flags.posture()
    with open_reader_at(db) as store:
        record = find_stored_scan(store, scan, cluster_name, posture.at)
        triage = posture.triage(store, record)
        titles = [triage.description(used.policy.key).title for used in record.policies]
        reject_unknown_names(record, policies=wanted.policy, namespaces=wanted.namespace, titles=titles)
        chosen = ChosenRows(wanted, begins, record, triage)
        if problems:
            _print_problems(record, chosen, output, limit)
        else:
            _print_findings(record, chosen, output, limit)


def _check_workload(text: str) -> str:
    kind, mark, name = text.partition(" " if " " in text else "/")
    if not (kind and mark and name):
        raise UsageError(f"--workload {text}: write KIND/NAME, such as Deployment/web, or 'KIND NAMESPACE/NAME'")
    return text


def _print_findings(record: StoredScan, chosen: ChosenRows, output: Output, limit: int) -> None:
    from scanner.report.lists.finding_columns import FINDINGS
    from scanner.report.lists.problem_facts import effect_of_finding
    from scanner.report.text.names import object_name, owner_title
    from scanner.report.text.titles import check_title, sentence_of

    triage = chosen.triage

    def cells(stored: StoredFinding) -> tuple[str, ...]:
        finding = stored.finding
        place = f"{finding.kind} {object_name(finding)}"
        severity, owner = str(triage.severity(*finding.severity_key)), owner_title(triage.owner(stored))
        status = f"{stored.status}, waived" if triage.waiver(stored) else stored.status
        would_be = "" if stored.status == "resolved" else effect_of_finding(finding)
        return (
            stored.id,
            status,
            f"{stored.first_seen:%Y-%m-%d}",
            would_be,
            severity,
            owner,
            f"{finding.policy} {check_title(finding.check)}",
            place,
            sentence_of(finding, triage.description(finding.policy_key).title),
        )

    form = _Form("findings", _FINDING, cells, FINDINGS, _Context(triage, record))
    _print(record, chosen.findings(limit), form, output, limit)


def _print_problems(record: StoredScan, chosen: ChosenRows, output: Output, limit: int) -> None:
    from scanner.report.lists.problem_columns import PROBLEMS
    from scanner.report.lists.problem_facts import effect_of
    from scanner.report.text.names import owner_title
    from scanner.report.text.titles import check_title, sentence_of

    triage = chosen.triage

    def cells(problem: Problem) -> tuple[str, ...]:
        top = problem.workload
        place = f"{top.kind} {'/'.join(filter(None, (top.namespace, top.name)))}"
        would_be = (
            ""
            if problem.status == "resolved"
            else effect_of(problem.example.outcome, denies=problem.denies, action=problem.action)
        )
        return (
            problem.id,
            f"{problem.status}, waived" if problem.waiver else problem.status,
            f"{problem.first_seen:%Y-%m-%d}",
            str(problem.findings),
            would_be,
            str(triage.severity(*problem.severity_key)),
            owner_title(triage.owner(problem)),
            f"{problem.policy} {check_title(problem.check)}",
            place,
            sentence_of(problem.example, triage.description(problem.policy_key).title),
        )

    form = _Form("problems", _PROBLEM, cells, PROBLEMS, _Context(triage, record))
    _print(record, chosen.problems(limit), form, output, limit)


_FINDING: Final = ("FINDING", "STATUS", "SINCE", "WOULD BE", "SEVERITY", "OWNER", "RULE", "OBJECT", "MESSAGE")
_PROBLEM: Final = (
    "PROBLEM",
    "STATUS",
    "SINCE",
    "FINDINGS",
    "WOULD BE",
    "SEVERITY",
    "OWNER",
    "RULE",
    "WORKLOAD",
    "MESSAGE",
)


@dataclass(frozen=True)
class _Context:
    """The parts of a scan that rows need."""

    triage: Triage
    record: StoredScan

    @property
    def check_ids(self) -> Mapping[tuple[PolicyKey, Check], str]:
        """The ids of the checks."""
        return self.record.check_ids

    @cached_property
    def requester_checks(self) -> frozenset[tuple[PolicyKey, Check]]:
        """The checks whose outcomes may differ for another user."""
        return frozenset((key.policy_key, key.check) for key in self.record.tallies if key.requester)


@dataclass(frozen=True, slots=True)
class _Form(Generic[_Row]):
    """The forms of a row: the cells of the table, and the columns of CSV and JSON."""

    name: str
    head: tuple[str, ...]
    cells: Callable[[_Row], tuple[str, ...]]
    columns: Columns[_Row]
    context: _Context


def _print(record: StoredScan, rows: Iterator[_Row], form: _Form[_Row], output: Output, limit: int) -> None:
    """Print the first rows, and on stderr how many are left out."""
    shown = islice(rows, limit or None)
    match output:
        case Output.TABLE:
            table(form.head, map(form.cells, shown))
        case Output.CSV:
            from scanner.report.formats import csv

            with standard_output() as out:
                csv.write(out, form.columns.titles, (form.columns.cells(row, form.context) for row in shown))
        case Output.JSON:
            from scanner.report.text.json_text import write_rows

            with standard_output() as out:
                write_rows(out, record.scan, form.name, (form.columns.json(row, form.context) for row in shown))
        case _ as never:
            assert_never(never)
    if more := sum(1 for _ in rows):
        sys.stderr.write(
            f"assay: {more:,} more {form.name} are left out: choose with filters, or print all with --limit 0\n"
        )
