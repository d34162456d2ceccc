"""`assay findings`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cached_property
from heapq import nsmallest
from itertools import chain, count, islice, repeat
from typing import TYPE_CHECKING, Annotated, Final, Generic, TypeAlias, TypeVar, assert_never

import typer

from scanner.cli.completion import ids as finding_ids
from scanner.cli.completion import policies as policy_names
from scanner.cli.database import ClusterNameOption, DbOption, reader_at
from scanner.cli.known_names import reject_unknown_names
from scanner.cli.moments import AtOption
from scanner.cli.output import standard_output
from scanner.cli.settings import ControlsOption, settings
from scanner.cli.stored_scan import LAST, ScanOption, stored_scan
from scanner.cli.terminal import table
from scanner.cli.waivers import Posture, WaiversOption
from scanner.errors import UsageError
from scanner.posture.severity import Severity

if TYPE_CHECKING:
    from datetime import datetime

    from scanner.model.outcome import Check
    from scanner.model.policy import PolicyKey
    from scanner.model.scan import ScanRecord, StoredFinding
    from scanner.posture.problem_rows import Problem
    from scanner.posture.triage import Triage
    from scanner.report.columns import Columns

_Row = TypeVar("_Row")
_SortKey: TypeAlias = tuple[int, str, float]
EPILOG: Final = (
    "Examples: `assay findings --namespace 'team-*' --status new` · `assay findings --problems --action Deny` · "
    "`assay findings --at 2026-03-31 -o csv --limit 0`. "
    "Exit codes: 0 · 2 usage · 4 the database cannot be read."
)


class Status(StrEnum):
    """The statuses of findings and problems. `open` are those of earlier scans."""

    NEW = "new"
    OPEN = "open"
    REOPENED = "reopened"
    RESOLVED = "resolved"
    PREVIEW = "preview"
    OUTDATED = "outdated"


class Action(StrEnum):
    """The actions of bindings."""

    DENY = "Deny"
    WARN = "Warn"
    AUDIT = "Audit"


class Sort(StrEnum):
    """The orders of the list: the worst severity, the owner or the oldest first."""

    SEVERITY = "severity"
    OWNER = "owner"
    AGE = "age"


class Output(StrEnum):
    """The forms of the list."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


@dataclass(frozen=True, slots=True)
class Filter:
    """The findings that a user wants; an empty tuple chooses all. Names are globs."""

    ids: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    minimum: Severity | None = None

    def selects(self, stored: StoredFinding, triage: Triage) -> bool:
        """Return whether a finding is wanted. A resolved finding is wanted only by its status or its id."""
        finding = stored.finding
        if stored.status == "resolved" and not self.ids and "resolved" not in self.statuses:
            return False
        return (
            (not self.ids or any(finding.fingerprint.startswith(each) or stored.problem == each for each in self.ids))
            and _matches(self.policies, finding.policy)
            and _matches(self.namespaces, finding.namespace)
            and _matches(self.kinds, finding.kind)
            and (not self.workloads or any(_is_workload(each, stored) for each in self.workloads))
            and (not self.statuses or stored.status in self.statuses)
            and (not self.actions or bool(set(self.actions) & set(finding.actions)))
            and (not self.owners or any(_is_owner(each, triage.owner(stored)) for each in self.owners))
            and (self.minimum is None or triage.severity(finding.policy_key).at_least(self.minimum))
        )


def command(
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID]...",
            help="Ids of findings, or the beginnings of them, or ids of problems.",
            autocompletion=finding_ids,
        ),
    ] = None,
    policies: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            metavar="NAME",
            help="Only this policy; accepts globs (repeatable).",
            autocompletion=policy_names,
        ),
    ] = None,
    namespaces: Annotated[
        list[str] | None,
        typer.Option("-n", "--namespace", metavar="NAME", help="Only this namespace; accepts globs (repeatable)."),
    ] = None,
    kinds: Annotated[
        list[str] | None, typer.Option("--kind", metavar="KIND", help="Only objects of this kind (repeatable).")
    ] = None,
    workloads: Annotated[
        list[str] | None,
        typer.Option(
            "--workload",
            metavar="KIND/NAME",
            help="Only objects of this workload, such as Deployment/web; accepts globs (repeatable).",
        ),
    ] = None,
    statuses: Annotated[
        list[Status] | None,
        typer.Option(
            "--status",
            help="Only findings with this status (repeatable). Default: all but resolved.",
            show_default=False,
        ),
    ] = None,
    actions: Annotated[
        list[Action] | None,
        typer.Option("--action", help="Only findings of bindings with this action (repeatable).", show_default=False),
    ] = None,
    owners: Annotated[
        list[str] | None,
        typer.Option(
            "--owner",
            metavar="TEAM",
            help="Only objects of this owner; accepts globs. `unowned` or an empty name chooses objects without an owner (repeatable).",
        ),
    ] = None,
    min_severity: Annotated[
        Severity | None,
        typer.Option("--min-severity", help="Only policies of this severity or a worse one.", show_default=False),
    ] = None,
    sort: Annotated[
        Sort | None,
        typer.Option(
            "--sort",
            help="Order of the list. Default: by policy, namespace and name.",
            show_default=False,
        ),
    ] = None,
    problems: Annotated[
        bool, typer.Option("--problems", help="Print problems instead: one line for a check and a workload.")
    ] = False,
    scan: ScanOption = LAST,
    at: AtOption = "",
    controls: ControlsOption = None,
    waivers: WaiversOption = None,
    limit: Annotated[int, typer.Option("--limit", min=0, metavar="N", help="Lines to print; 0 prints all.")] = 100,
    output: Annotated[Output, typer.Option("-o", "--output", help="Output format.")] = Output.TABLE,
    db: DbOption = "",
    cluster_name: ClusterNameOption = "",
) -> None:
    """List the findings of a stored scan, or its problems."""
    wanted = Filter(
        ids=tuple(each.lower() for each in ids or ()),
        policies=tuple(policies or ()),
        namespaces=tuple(namespaces or ()),
        kinds=tuple(kinds or ()),
        workloads=tuple(map(_workload, workloads or ())),
        statuses=tuple(status.value for status in statuses or ()),
        actions=tuple(action.value for action in actions or ()),
        owners=tuple(owners or ()),
        minimum=min_severity,
    )
    posture = Posture(settings(controls or ()), waivers, at=at)
    with reader_at(db) as store:
        record = stored_scan(store, scan, cluster_name, at)
        reject_unknown_names(record, policies=wanted.policies, namespaces=wanted.namespaces)
        triage = posture.triage(store, record)
        if problems:
            _print_problems(record, triage, wanted, output, limit, sort)
        else:
            _print_findings(record, triage, wanted, output, limit, sort)


def _workload(text: str) -> str:
    kind, slash, name = text.partition("/")
    if not (kind and slash and name):
        raise UsageError(f"--workload {text}: write KIND/NAME, such as Deployment/web")
    return text


def _matches(patterns: tuple[str, ...], name: str) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def _is_workload(pattern: str, stored: StoredFinding) -> bool:
    kind, _, name = pattern.partition("/")
    top = stored.workload
    own = (top.kind, top.name) if top else (stored.finding.kind, stored.finding.name)
    return own[0].lower() == kind.lower() and fnmatchcase(own[1], name)


def _is_owner(pattern: str, owner: str) -> bool:
    return not owner if pattern in ("", "unowned") else bool(owner) and fnmatchcase(owner, pattern)


def _print_findings(
    record: ScanRecord, triage: Triage, wanted: Filter, output: Output, limit: int, sort: Sort | None
) -> None:
    from scanner.report.finding_columns import FINDINGS
    from scanner.report.words import object_name, owner_title

    def cells(stored: StoredFinding) -> tuple[str, ...]:
        finding = stored.finding
        place = f"{finding.kind} {object_name(finding)}"
        severity, owner = str(triage.severity(finding.policy_key)), owner_title(triage.owner(stored))
        status = f"{stored.status}, waived" if triage.waiver(stored) else stored.status
        return stored.id, status, f"{stored.first_seen:%Y-%m-%d}", severity, owner, finding.policy, place

    def key(stored: StoredFinding) -> _SortKey:
        return _key(sort, triage, stored.finding.policy_key, triage.owner(stored), stored.first_seen)

    selected = (each for each in chain(record.findings(), record.resolved()) if wanted.selects(each, triage))
    chosen = _sorted(selected, sort, key, limit)
    form = _Form("findings", _FINDING, cells, FINDINGS, _Context(triage, record))
    _print(record, chosen, form, output, limit)


def _print_problems(
    record: ScanRecord, triage: Triage, wanted: Filter, output: Output, limit: int, sort: Sort | None
) -> None:
    from dataclasses import replace

    from scanner.posture.problem_rows import alone, problems
    from scanner.report.problem_columns import PROBLEMS
    from scanner.report.words import owner_title

    def cells(problem: Problem) -> tuple[str, ...]:
        top = problem.workload
        place = f"{top.kind} {'/'.join(filter(None, (top.namespace, top.name)))}"
        return (
            problem.id,
            f"{problem.status}, waived" if problem.waiver else problem.status,
            f"{problem.first_seen:%Y-%m-%d}",
            str(problem.findings),
            str(triage.severity(problem.policy_key)),
            owner_title(triage.owner(problem)),
            problem.policy,
            place,
        )

    def key(problem: Problem) -> _SortKey:
        return _key(sort, triage, problem.policy_key, triage.owner(problem), problem.first_seen)

    # The status is that of the whole problem, so all its findings are joined first.
    of_findings = replace(wanted, statuses=tuple(status.value for status in Status))
    all_findings = (each for each in record.by_problem() if of_findings.selects(each.stored, triage))
    previewed = (stored for stored in record.findings() if of_findings.selects(stored, triage))
    joined = chain(problems(all_findings, triage.waiver), alone(previewed))
    statuses = wanted.statuses or tuple(status.value for status in Status if status is not Status.RESOLVED)
    selected = (problem for problem in joined if problem.status in statuses or wanted.ids)
    chosen = _sorted(selected, sort, key, limit)
    form = _Form("problems", _PROBLEM, cells, PROBLEMS, _Context(triage, record))
    _print(record, chosen, form, output, limit)


def _key(sort: Sort | None, triage: Triage, policy: PolicyKey, owner: str, first_seen: datetime) -> _SortKey:
    """The key of a row in an order; rows with equal keys keep the order of the report."""
    rank = triage.severity(policy).rank
    match sort:
        case Sort.SEVERITY | None:
            return rank, "", 0
        case Sort.OWNER:
            return int(not owner), owner, rank
        case Sort.AGE:
            return 0, "", first_seen.timestamp()
        case _ as never:
            assert_never(never)


def _sorted(rows: Iterator[_Row], sort: Sort | None, key: Callable[[_Row], _SortKey], limit: int) -> Iterator[_Row]:
    """The rows in an order. Memory holds the first `limit` of them, or all if it is 0; of the others only the number is right."""
    if sort is None:
        yield from rows
        return
    if not limit:
        yield from sorted(rows, key=key)
        return
    numbers = count()
    first = [
        row for row, _ in nsmallest(limit, zip(rows, numbers, strict=False), key=lambda pair: (key(pair[0]), pair[1]))
    ]
    yield from first
    yield from repeat(first[-1], next(numbers) - len(first)) if first else ()


_FINDING: Final = ("FINDING", "STATUS", "SINCE", "SEVERITY", "OWNER", "POLICY", "OBJECT")
_PROBLEM: Final = ("PROBLEM", "STATUS", "SINCE", "FINDINGS", "SEVERITY", "OWNER", "POLICY", "WORKLOAD")


@dataclass(frozen=True)
class _Context:
    """The parts of a scan that rows need."""

    triage: Triage
    record: ScanRecord

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


def _print(record: ScanRecord, rows: Iterator[_Row], form: _Form[_Row], output: Output, limit: int) -> None:
    """Print the first rows, and on stderr how many are left out."""
    shown = islice(rows, limit or None)
    match output:
        case Output.TABLE:
            table(form.head, map(form.cells, shown))
        case Output.CSV:
            from scanner.report import spreadsheet

            with standard_output() as out:
                spreadsheet.write(out, form.columns.titles, (form.columns.cells(row, form.context) for row in shown))
        case Output.JSON:
            from scanner.report.row_list import write_rows

            with standard_output() as out:
                write_rows(out, record.scan, form.name, (form.columns.json(row, form.context) for row in shown))
        case _ as never:
            assert_never(never)
    if more := sum(1 for _ in rows):
        sys.stderr.write(
            f"assay: {more:,} more {form.name} are left out: choose with filters, or print all with --limit 0\n"
        )
