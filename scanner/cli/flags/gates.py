"""Gates that a user opts into with `--fail-on`. An incomplete scan takes precedence over a failed gate.

Gates count problems. Like the score and the history, they concern bound policies alone: a preview fails no gate, and neither does
an excepted or a waived finding. A finding fails again on the day after its waiver ends, and the line of the gate says so.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, assert_never

import typer

from scanner.cli.flags.completion import complete_scans
from scanner.cli.flags.flag_group import FlagGroup
from scanner.errors import UsageError
from scanner.model.gate import Gate
from scanner.model.scans.baseline import NO_EARLIER_SCAN, Baseline
from scanner.posture.severity import Severity

if TYPE_CHECKING:
    from scanner.cli.flags.waivers import Posture
    from scanner.model.scans.problem_numbers import ProblemCounts
    from scanner.model.scans.stored_scan import StoredScan
    from scanner.posture.triage import BelowSeverity, Triage
    from scanner.posture.waivers.waiving import LapsedWaiver, Waived
    from scanner.report.document.document import ReportOptions
    from scanner.store import SqlReader

_FAILED: Final = 1
_NAMED: Final = 5
_PANEL: Final = "Gates"


@dataclass(frozen=True, slots=True)
class GateFlags(FlagGroup):
    """The gates, the scan or report to compare with, and the policies that count."""

    fail_on: Annotated[
        tuple[Gate, ...],
        typer.Option(
            "--fail-on",
            metavar="GATE",
            help=(
                "Exit with code 1 if there is a problem that is new (since the baseline), that admission would refuse (deny), "
                "with a violation (violated), an error (errored) or a change by a mutating policy (drift), or if a policy has an "
                "entry under Policy health (health). Previewed, excepted and waived findings fail no gate (repeatable)."
            ),
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ] = ()
    baseline: Annotated[
        str,
        typer.Option(
            "--baseline",
            metavar="SCAN|FILE",
            help=(
                "Compare with this scan, or with the problems in this JSON report: every report shows as new what is not open there. "
                "Default for --fail-on new: the newest earlier scan with the same scope, operation, requester and options that is "
                "no preview (--assume-bound)."
            ),
            rich_help_panel=_PANEL,
            show_default=False,
            autocompletion=complete_scans,
        ),
    ] = ""
    min_severity: Annotated[
        Severity | None,
        typer.Option(
            "--min-severity",
            help=(
                "Only checks of this severity or a worse one fail a gate, and Markdown, JUnit and SARIF leave out the others, "
                "with their number. JSON always has all."
            ),
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ] = None
    junit_fail_all: Annotated[
        bool,
        typer.Option(
            "--junit-fail-all",
            help="JUnit: fail for every violation and error, not only for those that a --fail-on gate names.",
            rich_help_panel=_PANEL,
        ),
    ] = False

    def named_baseline(self, store: SqlReader, cluster: str) -> NamedBaseline:
        """The baseline that the user names, before the scan that is compared with it begins: `last` is the one before.

        Raises UsageError for a text that is no scan of the cluster (by its key or name) and no report.
        """
        if not self.baseline:
            return DEFAULT_BASELINE
        path = Path(self.baseline)
        if path.is_file():
            return NamedBaseline(report=_read_problems(path))
        return NamedBaseline(_find_scan(store, self.baseline, cluster))

    def compare_and_evaluate(
        self, store: SqlReader, record: StoredScan, baseline: NamedBaseline, posture: Posture
    ) -> tuple[StoredScan, GateVerdict]:
        """The record of a stored scan as compared with its baseline, and the verdict of the gates. Raises UsageError."""
        compared = _compare(store, record, self.fail_on, baseline, posture)
        return compared, _evaluate(store, compared, self.fail_on, baseline, posture, self.min_severity)

    def report_options(self) -> ReportOptions:
        """The options of the formats for pipelines."""
        from scanner.report.document.document import ReportOptions

        return ReportOptions(frozenset(self.fail_on), self.junit_fail_all, self.min_severity)


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """The exit code of the gates, and the line that names those that failed; empty if none did."""

    code: int = 0
    line: str = ""


@dataclass(frozen=True, slots=True)
class ReportedProblems:
    """The ids of the problems in a JSON report, and of those that were waived then. `opened` has the beginnings of both."""

    path: str
    ids: frozenset[str]
    waived: frozenset[str]
    opened: Mapping[str, datetime]


@dataclass(frozen=True, slots=True)
class NamedBaseline:
    """The scan, by its id, or the report with which a scan is compared; by default a comparable scan."""

    scan_id: str = ""
    report: ReportedProblems | None = None

    @property
    def ids(self) -> frozenset[str] | None:
        """The ids of the problems in the report, or None without one."""
        return self.report.ids if self.report else None


DEFAULT_BASELINE: Final = NamedBaseline()


def _find_scan(store: SqlReader, text: str, cluster: str) -> str:
    """The id of a baseline scan. Raises UsageError, which names the file for a text that looks like one."""
    try:
        return store.find_scan(text, cluster if text.startswith("last") else None).id
    except UsageError as error:
        if Path(text).suffix or os.sep in text:
            raise UsageError(
                f"--baseline {text}: there is no such file. Make it with: assay scan … --export json={text}"
            ) from error
        raise


def _compare(
    store: SqlReader, record: StoredScan, gates: Collection[Gate], baseline: NamedBaseline, posture: Posture
) -> StoredScan:
    """The record with its baseline: that of the user, or that of the gate `new`. The statuses of its findings follow it.

    Raises UsageError for a baseline that is of another cluster, or the scan itself, and for waivers that cannot be read.
    """
    if Gate.NEW not in gates and baseline == DEFAULT_BASELINE:
        return record
    if baseline.scan_id == record.scan.id:
        raise UsageError(f"--baseline {record.scan.id} is the scan itself: name an earlier one, such as last~1")
    report = baseline.report
    new = store.find_new_problems(
        record.scan.id,
        baseline.scan_id,
        baseline.ids,
        waived=_find_waived_rows(store, record, baseline, posture),
        waived_ids=report.waived if report else (),
    )
    compared = Baseline(
        new=new.ids,
        scan=new.baseline.id if new.baseline else "",
        file=report.path if report else "",
        gone=new.gone,
        opened=report.opened if report else {},
        as_recorded=new.as_recorded and report is None,
    )
    return replace(record, baseline=compared)


def _evaluate(
    store: SqlReader,
    record: StoredScan,
    gates: Sequence[Gate],
    baseline: NamedBaseline,
    posture: Posture,
    minimum: Severity | None = None,
) -> GateVerdict:
    """Evaluate gates for a compared record; print on stderr which of them fail, and that there is no baseline.

    Checks and policies below the `minimum` severity fail no gate. Raises UsageError for waivers that cannot be read.
    """
    if not gates:
        return GateVerdict()
    triage = posture.triage(store, record)
    waived = triage.waived
    rows = _find_waived_rows(store, record, baseline, posture)
    below = triage.find_below(minimum)
    excluded = None if minimum is None else below
    counts = store.count_problems(record.scan.id, baseline.scan_id, baseline.ids, waived=rows, below=excluded)
    if Gate.NEW in gates and baseline == DEFAULT_BASELINE and counts.baseline is None:
        _print(NO_EARLIER_SCAN)
    if counts.baseline is not None and counts.baseline.preview:
        _print(f"the baseline {counts.baseline.id} is a preview (--assume-bound): its previews are no open problems")
    failed = [text for gate in dict.fromkeys(gates) if (text := _describe_failure(gate, counts, record, triage, below))]
    lapsed = _describe_lapsed(waived)
    if not failed:
        if lapsed:
            _print(lapsed)
        return GateVerdict()
    line = f"{'gates' if len(failed) > 1 else 'gate'} failed: {'; '.join(failed)}{f'. {lapsed}' if lapsed else ''}"
    _print(line)
    return GateVerdict(_FAILED, line)


def _find_waived_rows(
    store: SqlReader, record: StoredScan, baseline: NamedBaseline, posture: Posture
) -> dict[str, frozenset[int]]:
    """The waived rows of a scan, and those of the scan with which it is compared."""
    own = posture.triage(store, record).waived.rows
    return {record.scan.id: own, **_find_rows_waived_then(store, record, baseline, posture)}


def _find_rows_waived_then(
    store: SqlReader, record: StoredScan, baseline: NamedBaseline, posture: Posture
) -> dict[str, frozenset[int]]:
    """The waived rows of the scan with which problems are compared: a finding that was waived then is new when it fails."""
    if baseline.ids is not None:
        return {}
    earlier = baseline.scan_id or (record.comparable.id if record.comparable else "")
    if not earlier:
        return {}
    try:
        before = store.read_scan(earlier)
    except UsageError:
        # A pruned scan has no report; its findings count as if no waiver had applied.
        return {}
    return {earlier: posture.triage_then(store, before).waived.rows}


def _describe_lapsed(waived: Waived) -> str:
    """The findings that are no longer waived, with the names of their waivers, or an empty string."""
    if not waived.lapsed:
        return ""
    number = sum(lapsed.findings for lapsed in waived.lapsed)
    verb = "finding is" if number == 1 else "findings are"
    ended = map(_explain_lapse, waived.lapsed[:_NAMED])
    more = f" and {len(waived.lapsed) - _NAMED} more" if len(waived.lapsed) > _NAMED else ""
    return f"{number:,} {verb} no longer waived: {', '.join(ended)}{more}"


def _explain_lapse(lapsed: LapsedWaiver) -> str:
    from scanner.posture.waivers.waivers import WaiverState

    if lapsed.state is WaiverState.EXPIRED:
        return f"waiver {lapsed.waiver.name} expired on {lapsed.waiver.until}"
    return f"waiver {lapsed.waiver.name} is for a check that asks something else now"


def _read_problems(path: Path) -> ReportedProblems:
    """The problems of a JSON report. Raises UsageError for another file."""
    import orjson

    from scanner.files import OBJECTS, read_file
    from scanner.model.json import as_list, as_object, as_text, dig
    from scanner.model.scans.stored_finding import SINGLE_SCAN_STATUSES

    try:
        report = as_object(orjson.loads(read_file(path, OBJECTS)))
    except (OSError, ValueError) as error:
        raise UsageError(f"--baseline {path} cannot be read as a JSON report: {error}") from error
    if not isinstance(report.get("findings"), list):
        raise UsageError(f"--baseline {path} is no JSON report of Assay: make one with assay report -o json")
    findings = [
        finding for finding in as_list(report["findings"]) if dig(finding, "status") not in SINGLE_SCAN_STATUSES
    ]
    if findings and all(not dig(finding, "problem") for finding in findings):
        raise UsageError(f"--baseline {path} names no problems: an older version made it; make it again")
    ids: set[str] = set()
    waived: set[str] = set()
    opened: dict[str, datetime] = {}
    for finding in findings:
        problem = as_text(dig(finding, "problem"))
        (ids if dig(finding, "waiver") is None else waived).add(problem)
        with suppress(ValueError):
            began = datetime.fromisoformat(as_text(dig(finding, "openedAt")))
            opened[problem] = min(began, opened.get(problem, began))
    return ReportedProblems(str(path), frozenset(ids), frozenset(waived), opened)


def _describe_failure(
    gate: Gate, counts: ProblemCounts, record: StoredScan, triage: Triage, below: BelowSeverity
) -> str:
    """The name of a gate that fails, and the numbers for which it fails; empty for a gate that passes."""
    text = next(_describe_failures(gate, counts, record, triage, below), "")
    return f"{gate.value} ({text})" if text else ""


def _describe_failures(
    gate: Gate, counts: ProblemCounts, record: StoredScan, triage: Triage, below: BelowSeverity
) -> Iterator[str]:
    match gate:
        case Gate.NEW if counts.new:
            yield f"{_count_problems(counts.new, 'new ')}{_describe_new(record, triage, below, counts.new)}"
        case Gate.DENY if counts.denied:
            yield _describe_denied(counts)
        case Gate.VIOLATED if counts.violated:
            yield f"{_count_problems(counts.violated)} with violations"
        case Gate.ERRORED if counts.errored:
            yield f"{_count_problems(counts.errored)} with errors"
        case Gate.DRIFT if counts.drifting:
            yield f"{_count_problems(counts.drifting)} with changes by mutating policies"
        case Gate.HEALTH:
            yield from _describe_health(record, below)
        case Gate.NEW | Gate.DENY | Gate.VIOLATED | Gate.ERRORED | Gate.DRIFT:
            return
        case _ as never:
            assert_never(never)


def _describe_denied(counts: ProblemCounts) -> str:
    """The number of problems that would be refused, and of others whose pods would be."""
    refused, pods = counts.denied - counts.pods_refused, counts.pods_refused
    own = f"{_count_problems(refused)} that admission would refuse" if refused or not pods else ""
    others = f"{_count_problems(pods)} whose pods admission would refuse" if pods else ""
    return " and ".join(filter(None, (own, others)))


def _describe_new(record: StoredScan, triage: Triage, below: BelowSeverity, number: int) -> str:
    """The baseline, and the worst of the problems that are new since then; empty without a baseline."""
    from scanner.posture.worst_problems import find_new_problems
    from scanner.report.formats.worst_table import place

    if record.baseline is None or not record.baseline.title:
        return ""
    worst = find_new_problems(record, triage, below, _NAMED)
    names = ", ".join(f"{each.problem.id} {each.problem.policy} on {place(each)}" for each in worst)
    more = f" and {number - len(worst):,} more" if number > len(worst) else ""
    return f" since {record.baseline.title}: {names}{more}"


def _describe_health(record: StoredScan, below: BelowSeverity) -> Iterator[str]:
    from scanner.model.scans.health import HealthKind

    own = (entry for entry in record.health if not below.has_policy(entry.policy_key))
    entries = [entry for entry in own if entry.kind not in (HealthKind.NOTE, HealthKind.NOT_SERVED)]
    if entries:
        yield f"{len(entries)} {'entry' if len(entries) == 1 else 'entries'} under Policy health"


def _count_problems(number: int, which: str = "") -> str:
    return f"{number:,} {which}{'problem' if number == 1 else 'problems'}"


def _print(line: str) -> None:
    from scanner.cli.terminal.stdout import visible

    sys.stderr.write(f"assay: {visible(line)}\n")
