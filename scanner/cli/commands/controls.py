"""`assay controls`."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final, assert_never

import typer

from scanner.cli.flags.database import ClusterNameOption, DbOption, open_reader_at
from scanner.cli.flags.flag_group import with_flag_groups
from scanner.cli.flags.stored_scan import LAST, ScanOption, find_stored_scan
from scanner.cli.flags.waivers import PostureFlags
from scanner.cli.terminal.stderr import explain
from scanner.cli.terminal.stdout import standard_output, table
from scanner.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from scanner.report.document.by_control import ControlSection, FrameworkSection
    from scanner.report.document.document import Document

EPILOG: Final = (
    "Examples: `assay controls --controls mappings/` · `assay controls --controls cis.yaml --at 2026-03-31 -o csv` · "
    "`assay controls --controls cis-kubernetes-5 --by namespace`. "
    "Exit codes: 0 · 2 usage or a mapping with an error · 4 the database cannot be read."
)


class By(StrEnum):
    """The parts of a scan by which the controls are listed."""

    SCAN = "scan"
    NAMESPACE = "namespace"


class Output(StrEnum):
    """The forms of the list."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


@with_flag_groups
def command(
    scan: ScanOption = LAST,
    output: Annotated[Output, typer.Option("-o", "--output", help="Output format.")] = Output.TABLE,
    by: Annotated[
        By, typer.Option("--by", help="List the state of each control in the scan, or in each namespace.")
    ] = By.SCAN,
    *,
    posture_flags: PostureFlags,
    db: DbOption = "",
    cluster_name: ClusterNameOption = "",
) -> None:
    """List the controls of mappings, and what a stored scan shows about each of them."""
    from scanner.report.document.document import document_of

    posture = posture_flags.posture()
    if not posture.settings.frameworks:
        raise UsageError("there is no control mapping: name a file or folder with --controls PATH")
    with open_reader_at(db) as store:
        record = find_stored_scan(store, scan, cluster_name, posture.at)
        document = document_of(record, posture.of(store, record), posture.day)
    match output:
        case Output.TABLE if by is By.NAMESPACE:
            _print_namespaces(document)
        case Output.CSV if by is By.NAMESPACE:
            _write_csv(_NAMESPACE_COLUMNS, _list_namespace_columns(document))
        case Output.TABLE:
            _print_table(document)
        case Output.CSV:
            _write_csv(_COLUMNS, (_make_columns(*each) for each in _list_controls(document)))
        case Output.JSON:
            _print_json(document)
        case _ as never:
            assert_never(never)


_HEAD: Final = ("CONTROL", "STATE", "OBJECTS", "OPEN", "NEW", "KINDS", "SCORE", "TITLE")
_COLUMNS: Final = (
    *("framework", "version", "control", "title", "state", "stateWithWaivers", "why", "policies", "unmatched"),
    *("objects", "findings", "new", "kinds", "kindsListed", "score", "scoreLow", "scoreHigh"),
)


def _print_table(document: Document) -> None:
    """Print a table of the controls of all frameworks; the sums, and the reasons of what is not shown, on stderr."""
    table(_HEAD, (_make_cells(document, framework, control) for framework, control in _list_controls(document)))
    explain(_list_notes(document))


def _list_notes(document: Document) -> Iterator[str]:
    from scanner.report.document.sentences import control_notes, controls_line, whole_policies_note

    for framework in document.controls:
        yield f"{framework.heading}: {controls_line(framework)}"
        if note := whole_policies_note(framework):
            yield f"{framework.heading}: {note}"
    for _, control in _list_controls(document):
        yield from (f"{control.id}: {note}" for note in control_notes(control))


def _list_controls(document: Document) -> Iterator[tuple[FrameworkSection, ControlSection]]:
    for framework in document.controls:
        for control in framework.controls:
            yield framework, control


def _make_cells(document: Document, framework: FrameworkSection, control: ControlSection) -> tuple[str, ...]:
    from scanner.report.document.sentences import control_score
    from scanner.report.text.titles import CONTROL_STATES

    several = len(document.controls) > 1
    return (
        f"{framework.name}/{control.id}" if several else control.id,
        CONTROL_STATES[control.state],
        "not known" if control.objects is None else f"{control.objects:,}",
        f"{control.findings.total:,}",
        f"{control.findings.new:,}",
        f"{control.coverage.listed:,}/{control.coverage.kinds:,}",
        control_score(control) or "-",
        control.title,
    )


def _write_csv(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    from scanner.report.formats import csv

    with standard_output() as out:
        csv.write(out, columns, rows)


_NAMESPACE_HEAD: Final = ("CONTROL", "STATE", "NAMESPACES", "OPEN", "EXEMPT", "NAMES")
_NAMESPACE_COLUMNS: Final = (
    *("framework", "version", "control", "title", "namespace", "state", "checks", "open", "accepted", "remedies"),
)
_FEW: Final = 5


def _print_namespaces(document: Document) -> None:
    """Print the states of each covered control with their namespaces; on stderr the controls that no judged policy covers."""
    from scanner.report.document.sentences import uncovered_line
    from scanner.report.text.numbers import plural

    covered = [each for each in _list_controls(document) if each[1].covered]
    table(_NAMESPACE_HEAD, (cells for each in covered for cells in _list_namespace_cells(document, *each)))
    uncovered = [control for _, control in _list_controls(document) if not control.covered]
    if uncovered:
        explain([f"No judged policy covers {plural(len(uncovered), 'control')}:"])
    explain(f"{control.id}: {uncovered_line(control)}" for control in uncovered)


def _list_namespace_cells(
    document: Document, framework: FrameworkSection, control: ControlSection
) -> Iterator[tuple[str, ...]]:
    from scanner.report.document.sentences import group_namespaces
    from scanner.report.text.titles import NAMESPACE_STATES

    name = f"{framework.name}/{control.id}" if len(document.controls) > 1 else control.id
    for state, namespaces in group_namespaces(control):
        names = [each.namespace or "(cluster-scoped)" for each in namespaces]
        more = f" and {len(names) - _FEW:,} more" if len(names) > _FEW else ""
        yield (
            name,
            NAMESPACE_STATES[state],
            f"{len(names):,}",
            f"{sum(each.open for each in namespaces):,}",
            f"{sum(each.accepted for each in namespaces):,}",
            ", ".join(names[:_FEW]) + more,
        )


def _list_namespace_columns(document: Document) -> Iterator[tuple[str, ...]]:
    """A row for each namespace of a control; one without a namespace for a control that nothing covers."""
    for framework, control in _list_controls(document):
        head = framework.name, framework.version, control.id, control.title
        remedies = "; ".join(control.remedies)
        for each in control.namespaces:
            yield (*head, each.namespace, each.state, str(each.checks), str(each.open), str(each.accepted), remedies)
        if not control.namespaces:
            yield (*head, "", "noPolicy", "0", "0", "0", remedies)


def _make_columns(framework: FrameworkSection, control: ControlSection) -> tuple[str, ...]:
    score = control.score
    return (
        framework.name,
        framework.version,
        control.id,
        control.title,
        control.state,
        control.state_with_waivers,
        "; ".join(control.why),
        ", ".join(policy.name if policy.bound else f"{policy.name} (not bound)" for policy in control.policies),
        ", ".join(control.unmatched),
        "" if control.objects is None else str(control.objects),
        str(control.findings.total),
        str(control.findings.new),
        str(control.coverage.kinds),
        str(control.coverage.listed),
        *("" if share is None else f"{share:.4f}" for share in (score.value, score.low, score.high)),
    )


def _print_json(document: Document) -> None:
    """Print one object with the scan and the frameworks, in the form of the section `controls` of the JSON report."""
    from scanner.report.formats.json import section
    from scanner.report.text.json_text import dump
    from scanner.report.text.times import iso

    provenance = document.provenance
    finished = iso(provenance.finished_at) if provenance.finished_at else None
    head = {"scan": provenance.scan_id, "cluster": provenance.cluster.name, "finishedAt": finished}
    with standard_output() as out:
        out.write(
            dump({**head, "complete": document.complete, "controls": section(document, "controls")}).decode() + "\n"
        )
