"""`assay waiver`: check waivers against a stored scan, explain which of them applies to a finding, and propose new ones."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import typer

from scanner.cli.flags.completion import complete_ids as finding_ids
from scanner.cli.flags.completion import complete_policies as policy_names
from scanner.cli.flags.database import ClusterNameOption, DbOption, open_reader_at
from scanner.cli.flags.screen import is_typed
from scanner.cli.flags.stored_scan import LAST, AtOption, ScanOption, find_stored_scan, reject_unknown_names
from scanner.cli.flags.waivers import Posture, WaiversOption
from scanner.cli.terminal.stdout import FormOption, OutputForm, standard_output
from scanner.config.current import get_settings
from scanner.errors import NoScans, UsageError

if TYPE_CHECKING:
    from scanner.model.json import Json
    from scanner.model.policy import Policy
    from scanner.model.scans.scan import Scan
    from scanner.model.scans.stored_scan import StoredScan
    from scanner.posture.problem_rows import Problem
    from scanner.posture.triage import Triage
    from scanner.posture.waivers.near_waivers import NearWaiver
    from scanner.posture.waivers.waived_checks import CheckPlace, NamedChecks
    from scanner.report.document.waivers import WaiversSection
    from scanner.store import SqlReader
    from scanner.store.read.lookup import ExplainedFinding

_FAILED: Final = 1
_MOST_NEAR: Final = 5
_UNOWNED: Final = "unowned"

application = typer.Typer(
    help="Check, explain and propose waivers: accepted findings, in files.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@application.callback()
def _root() -> None:
    """Check, explain and propose waivers: accepted findings, in files."""


@application.command(
    epilog="Exit codes: 0 · 1 a waiver is expired, unused, too broad, too long, self-approved, or for an unknown policy or check · "
    "2 usage, or a file with an error · 4 the database cannot be read."
)
def check(
    arguments: typer.Context,
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="[PATH]", help="File or folder of waivers. Default: those that scans stored.", show_default=False
        ),
    ] = None,
    scan: ScanOption = LAST,
    at: AtOption = "",
    output: FormOption = OutputForm.TABLE,
    db: DbOption = "",
    cluster_name: ClusterNameOption = "",
) -> None:
    """Print the state of every waiver today (in UTC), or on the day of --at, with the findings of a scan.

    Without a database, the files of PATH are checked alone: last days, approvers, width and duration.
    """
    needs_scan = any(is_typed(arguments, parameter) for parameter in ("db", "scan", "cluster_name"))
    checked = _check_waivers(Posture(get_settings(), path, at=at), db, scan, cluster_name, needs_scan=needs_scan)
    _reject_none(checked.section)
    if output is OutputForm.JSON:
        _print_json(checked)
    else:
        _print_table(checked)
    raise typer.Exit(_FAILED if _fails(checked.section) else 0)


@application.command(epilog="Exit codes: 0 · 2 usage · 4 the database cannot be read.")
def explain(
    finding: Annotated[
        str,
        typer.Argument(metavar="FINDING", help="Id of a finding, or the beginning of one.", autocompletion=finding_ids),
    ],
    waivers: WaiversOption = None,
    at: AtOption = "",
    db: DbOption = "",
) -> None:
    """Print which waiver applies to a finding, and which nearly does and on which field it fails."""
    from scanner.cli.terminal.stdout import sentences

    with open_reader_at(db) as store:
        sentences(_explain_waivers(store, store.find_finding(finding), Posture(get_settings(), waivers, at=at)))


@application.command(epilog="Exit codes: 0 · 2 usage · 4 the database cannot be read.")
def propose(
    scan: ScanOption = LAST,
    owners: Annotated[
        list[str] | None,
        typer.Option(
            "--owner", metavar="NAME", help="Only problems of this owner, or `unowned`; accepts globs (repeatable)."
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
    until: Annotated[
        str,
        typer.Option(
            "--until", metavar="DATE", help="Last day of the waivers, such as 2026-12-31.", show_default=False
        ),
    ] = "",
    waivers: WaiversOption = None,
    db: DbOption = "",
    cluster_name: ClusterNameOption = "",
) -> None:
    """Print a file of waivers to edit: one for each open problem that no waiver covers, such as the baseline of a cluster."""
    last = _read_day(until)
    with open_reader_at(db) as store:
        record = find_stored_scan(store, scan, cluster_name)
        reject_unknown_names(record, policies=policies or (), namespaces=namespaces or ())
        triage = Posture(get_settings(), waivers).triage(store, record)
        number = 0
        with standard_output() as out:
            out.write(_HEAD)
            for problem in _list_open_problems(record, triage):
                top = problem.workload
                if (
                    _is_owner(owners, triage.owner(problem))
                    and _matches(policies, problem.policy)
                    and _matches(namespaces, top.namespace)
                ):
                    out.write(_propose_waiver(problem, record, triage.waiving.checks, last))
                    number += 1
    sys.stderr.write(f"assay: {number:,} {'waiver' if number == 1 else 'waivers'} to edit\n")


_HEAD: Final = (
    "# Waivers to edit. Delete those that you do not want, and replace every text in <angle brackets>:\n"
    "# `assay waiver check PATH` and `assay scan --waivers PATH` refuse the file until then.\n"
)


class _CheckedWaivers(NamedTuple):
    """The waivers with the scan whose findings they were compared with, or without one and the reason."""

    section: WaiversSection
    scan: Scan | None = None
    why: str = ""


def _check_waivers(posture: Posture, db: str, scan: str, cluster_name: str, *, needs_scan: bool) -> _CheckedWaivers:
    """The waivers on a day with the findings of a scan; without a scan, those of the files. Raises NoScans."""
    try:
        return _check_with_scan(posture, db, scan, cluster_name)
    except NoScans as error:
        if posture.path is None:
            raise NoScans(f"{error} Or name a file or folder of waivers, which needs no database.") from error
        if needs_scan:
            raise
        return _check_files(posture, posture.path, str(error))


def _check_with_scan(posture: Posture, db: str, scan: str, cluster_name: str) -> _CheckedWaivers:
    """The waivers on a day with the findings of a scan. Raises NoScans."""
    from dataclasses import replace

    from scanner.posture.triage import Triage
    from scanner.report.document.waivers import waivers_of

    with open_reader_at(db) as store:
        record = find_stored_scan(store, scan, cluster_name, posture.at)
        if posture.path is None and not posture.at:
            posture = replace(posture, given=store.find_waivers_at(record.scan.id, datetime.now(UTC)))
        return _CheckedWaivers(waivers_of(Triage(posture.of(store, record), record, _find_day(posture))), record.scan)


def _check_files(posture: Posture, path: Path, why: str) -> _CheckedWaivers:
    """The waivers of files on a day."""
    from scanner.documents.waivers import read_waivers
    from scanner.report.document.waivers import waivers_of_files

    waivers = read_waivers(path, None)
    return _CheckedWaivers(waivers_of_files(waivers, _find_day(posture), posture.settings.waiver_rules), why=why)


def _find_day(posture: Posture) -> date:
    return posture.day or datetime.now(UTC).date()


def _reject_none(section: WaiversSection) -> None:
    """Raise UsageError if there are no waivers to check."""
    if not section.given:
        raise UsageError("no scan of this cluster read waivers: name a file or folder, or scan with --waivers")


def _fails(section: WaiversSection) -> bool:
    from scanner.posture.waivers.waivers import WaiverState

    fine = {WaiverState.ACTIVE, WaiverState.EXPIRING, WaiverState.NOT_YET_ACTIVE}
    return bool(section.faults) or any(line.state not in fine for line in section.lines)


def _print_json(checked: _CheckedWaivers) -> None:
    from scanner.report.document.waivers import section_json
    from scanner.report.text.json_text import dump

    with standard_output() as out:
        scan: dict[str, Json] = {"scan": checked.scan.id if checked.scan else None}
        out.write(dump(scan | section_json(checked.section)).decode() + "\n")


def _print_table(checked: _CheckedWaivers) -> None:
    from scanner.cli.terminal.stdout import sentences, table
    from scanner.report.document.waivers import STATE_WORDS
    from scanner.report.text.numbers import plural

    section, scan = checked.section, checked.scan
    rows = [
        (
            STATE_WORDS[line.state],
            line.name,
            str(line.until),
            str(line.findings),
            line.policy,
            line.scope,
            line.why or line.reason,
        )
        for line in section.lines
    ]
    rows += [(line.state, line.name, "", str(line.findings), "", "", "PolicyException") for line in section.exceptions]
    if scan:
        table(("STATE", "WAIVER", "UNTIL", "FINDINGS", "POLICY", "FOR", "WHY"), rows)
    else:
        table(("STATE", "WAIVER", "UNTIL", "POLICY", "FOR", "WHY"), [(*row[:3], *row[4:]) for row in rows])
    states = ", ".join(f"{number} {STATE_WORDS[state]}" for state, number in sorted(section.states.items()))
    cluster = f" for cluster {scan.cluster.name}" if scan else ""
    sentences(
        [
            *(f"no waiver: {fault}" for fault in section.faults),
            *section.notes,
            f"{plural(len(section.lines), 'waiver')}{cluster} on {section.day}: {states or 'none'}",
            f"Checked with scan {scan.id}: last days, approvers, width and duration, findings, policies and checks."
            if scan
            else f"Checked the files alone: last days, approvers, width and duration. Not compared with findings, policies and checks: {checked.why}",
        ]
    )


def _explain_waivers(store: SqlReader, explained: ExplainedFinding, posture: Posture) -> Iterator[str]:
    from scanner.posture.waivers.near_waivers import Report, find_nearest_waivers, list_misses
    from scanner.posture.waivers.waivers import subject_of
    from scanner.report.text.names import object_name

    stored, scan = explained.stored, explained.scan
    record = store.read_scan(scan.id)
    triage = posture.triage(store, record)
    finding = stored.finding
    subject = subject_of(stored, record.check_ids.get((finding.policy_key, finding.check), ""))
    given = triage.waiving.waivers
    yield f"Finding {stored.id}: policy {finding.policy}, {finding.kind} {object_name(finding)}, {stored.status}"
    yield f"Check {subject.check_id or '(without an id)'}, workload {subject.workload_kind}/{subject.workload_name}"
    if given is None:
        yield "No scan of this cluster read waivers by then: scan with --waivers, or name a file or folder with --waivers."
        return
    report = Report(scan.cluster.names, triage.day, triage.settings.waiver_rules, triage.waiving.replaced)
    applied = triage.waiver(stored)
    if applied:
        yield f"Waived on {triage.day} by {applied.name}, which is {applied.state} until {applied.until}."
        others = [
            waiver.name
            for waiver in given.waivers
            if waiver.name != applied.name and not any(list_misses(waiver, subject, report))
        ]
        yield from (f"Waiver {name} applies, too." for name in others)
        return
    yield f"No waiver applies on {triage.day}."
    near = find_nearest_waivers(given.waivers, subject, report)
    yield from (_describe_near(each) for each in near[:_MOST_NEAR])
    if len(near) > _MOST_NEAR:
        yield f"{len(near) - _MOST_NEAR} more waivers fail on as few fields."


def _describe_near(near: NearWaiver) -> str:
    fields = "; ".join(f"{miss.field}: the waiver needs {miss.wanted}, not {miss.given}" for miss in near.misses)
    return f"Waiver {near.waiver.name} nearly applies, but fails on {fields}."


def _list_open_problems(record: StoredScan, triage: Triage) -> Iterator[Problem]:
    """The problems without a waiver that gates would count."""
    from scanner.posture.problem_rows import problems

    failing = (each for each in record.findings_by_problem() if not each.stored.finding.excepted_by)
    for problem in problems(failing, triage.waiver):
        if problem.status != "resolved" and problem.waiver is None:
            yield problem


def _propose_waiver(problem: Problem, record: StoredScan, named: NamedChecks, until: str) -> str:
    """A waiver of one problem, as YAML with the values that a person must give in angle brackets."""
    import yaml

    from scanner.cli.terminal.stdout import visible
    from scanner.documents.waivers import API_VERSION, KIND
    from scanner.report.text.titles import check_title

    top = problem.workload
    policy = problem.language, problem.policy
    check = record.check_ids.get((policy, problem.check)) or problem.check.expression.strip()
    place = {"namespace": top.namespace} if top.namespace else {}
    document = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": f"baseline-{problem.id}"},
        "spec": {
            "policy": problem.policy,
            **({"check": check} if check else {}),
            **_find_digests(named.find(problem.policy, check)),
            **place,
            "workload": f"{top.kind}/{top.name}",
            "reason": "<why the problem is acceptable until then>",
            "requestedBy": "<name>",
            "approvedBy": "<name of another person>",
            "until": until,
        },
    }
    findings = f"{problem.findings} {'finding' if problem.findings == 1 else 'findings'}"
    comment = f"# {check_title(problem.check)}: {findings}, since {problem.opened_at:%Y-%m-%d}"
    written = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=10_000)
    return f"---\n{visible(comment)}\n{written}"


def _find_digests(checks: Sequence[tuple[Policy, CheckPlace]]) -> dict[str, str]:
    """The digest of the question that checks ask, unless they ask several."""
    from scanner.posture.waivers.waived_checks import question_of

    questions = {question_of(*check) for check in checks}
    return {"checkDigest": questions.pop()} if len(questions) == 1 else {}


def _read_day(text: str) -> str:
    """The last day of proposed waivers, or a placeholder. Raises UsageError."""
    if not text:
        return "<YYYY-MM-DD>"
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError as error:
        raise UsageError(f"--until {text}: write a date such as 2026-12-31") from error


def _is_owner(patterns: list[str] | None, owner: str) -> bool:
    return not patterns or any(
        not owner if pattern in ("", _UNOWNED) else bool(owner) and fnmatchcase(owner, pattern) for pattern in patterns
    )


def _matches(patterns: list[str] | None, name: str) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)
