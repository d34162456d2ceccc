"""`assay diff`."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final, assert_never

import typer

from scanner.cli.flags.completion import complete_scans
from scanner.cli.flags.database import ClusterNameOption, DbOption, open_reader_at
from scanner.cli.flags.stored_scan import LAST, SCAN_HELP, name_chosen_cluster
from scanner.cli.flags.waivers import Posture
from scanner.cli.terminal.stdout import text
from scanner.config.current import get_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scanner.model.policy import PolicyKey
    from scanner.posture.history.scan_diff import ScanDiff
    from scanner.posture.score import SeverityOf
    from scanner.posture.severity import Severity
    from scanner.posture.waivers.waiving import WaiverChanges
    from scanner.store import SqlReader

EPILOG: Final = (
    "Examples: `assay diff` · `assay diff last~7 last` · `assay diff last -o markdown --limit 20`. "
    "Without scans, the two newest comparable scans, complete or not; with one scan, that scan and the newest earlier comparable one. "
    "Comparable scans have the same scope, operation, requester and options, and the earlier one is no preview. "
    "Exit codes: 0 compared · 2 usage · 4 the database cannot be read."
)


class DiffForm(StrEnum):
    """The forms of a difference."""

    TABLE = "table"
    JSON = "json"
    MARKDOWN = "markdown"


def command(
    first: Annotated[
        str,
        typer.Argument(
            metavar="[A]",
            help=f"Earlier scan; alone, the later one. {SCAN_HELP}",
            show_default=False,
            autocompletion=complete_scans,
        ),
    ] = "",
    second: Annotated[
        str,
        typer.Argument(
            metavar="[B]", help=f"Later scan. {SCAN_HELP}", show_default=False, autocompletion=complete_scans
        ),
    ] = "",
    limit: Annotated[
        int,
        typer.Option(
            "--limit",
            min=0,
            metavar="N",
            help="Problems of each cause to print, and rules, in a table or Markdown; 0 prints all.",
        ),
    ] = 50,
    output: Annotated[DiffForm, typer.Option("-o", "--output", help="Output format.")] = DiffForm.TABLE,
    db: DbOption = "",
    cluster_name: ClusterNameOption = "",
) -> None:
    """Print what changed between two stored scans, by cause: problems, numbers of findings, and the text of rules."""
    with open_reader_at(db) as store:
        diff = store.compare_scans(*_choose_scans(store, first, second, cluster_name))
        text(_render(diff, output, limit or None, _find_severities(store, diff), _compare_waivers(store, diff)))


def _choose_scans(store: SqlReader, first: str, second: str, cluster_name: str) -> tuple[str, str]:
    """The ids of the scans to compare, the earlier one first. Raises UsageError."""
    if not first or any(each.startswith(LAST) for each in (first, second)):
        cluster = store.cluster(cluster_name or None)
        if not cluster_name:
            name_chosen_cluster(store, cluster.name)
        cluster_name = cluster.identity
        if not first:
            return store.find_newest_scans_to_compare(cluster)
    named = store.find_scan(first, cluster_name or None).id
    if not second:
        return store.find_earlier_scan_to_compare(named), named
    return named, store.find_scan(second, cluster_name or None).id


def _find_severities(store: SqlReader, diff: ScanDiff) -> SeverityOf:
    """The severities of the checks as the later scan used them, and of others as the earlier scan did."""
    from scanner.posture.severity import describe, describe_by_annotations

    overrides = get_settings().descriptions
    used = (each.policy for scan in (diff.before, diff.now) for each in store.read_scan(scan.id).policies)
    described = {policy.key: describe(policy, overrides) for policy in used}

    def severity(policy: PolicyKey, expression: str) -> Severity:
        description = described.get(policy) or describe_by_annotations(policy, {}, overrides)
        return description.severity_of(expression)

    return severity


def _compare_waivers(store: SqlReader, diff: ScanDiff) -> WaiverChanges:
    """The problems that the stored waivers cover in one of both scans only."""
    from scanner.posture.waivers.waiving import waiver_changes

    before, now = (store.read_scan(scan.id) for scan in (diff.before, diff.now))
    posture = Posture(get_settings())
    return waiver_changes(before, now, posture.triage(store, before).waived, posture.triage(store, now).waived)


def _render(
    diff: ScanDiff, output: DiffForm, limit: int | None, severity: SeverityOf, waivers: WaiverChanges
) -> Iterator[str]:
    from scanner.report.diff import json, markdown, table
    from scanner.report.text.screen import width_of

    match output:
        case DiffForm.TABLE:
            return table.lines(diff, limit, severity, waivers, min(table.WIDTH, width_of(sys.stdout, os.environ)))
        case DiffForm.JSON:
            return json.lines(diff, severity, waivers)
        case DiffForm.MARKDOWN:
            return markdown.lines(diff, limit, severity, waivers)
        case _ as never:
            assert_never(never)
