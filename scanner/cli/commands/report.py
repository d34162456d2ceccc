"""`assay report`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

import typer

from scanner.cli.flags.database import ClusterNameOption, DbOption, open_reader_at
from scanner.cli.flags.flag_group import with_flag_groups
from scanner.cli.flags.gates import GateFlags
from scanner.cli.flags.report_formats import ReportFlags
from scanner.cli.flags.screen import ScreenFlags, make_screen
from scanner.cli.flags.stored_scan import LAST, ScanArgument, find_stored_scan
from scanner.cli.flags.waivers import PostureFlags

_INCOMPLETE: Final = 3


@with_flag_groups
def command(
    arguments: typer.Context,
    scan: ScanArgument = LAST,
    *,
    reports: ReportFlags,
    gates: GateFlags,
    posture_flags: PostureFlags,
    db: DbOption = "",
    cluster_name: ClusterNameOption = "",
    screen: ScreenFlags,
) -> None:
    """Render the report of a stored scan again, without the cluster."""
    from scanner.model.scans.scan import ScanState
    from scanner.report.document.document import document_of

    outputs = reports.outputs()
    posture = posture_flags.posture()
    with open_reader_at(db) as store:
        record = find_stored_scan(store, scan, cluster_name, posture.at)
        baseline = gates.named_baseline(store, record.scan.cluster.name)
        record, verdict = gates.compare_and_evaluate(store, record, baseline, posture)
        options = replace(gates.report_options(), compare=partial(store.compare_since, record.scan.id))
        document = document_of(record, posture.of(store, record), posture.day, options)
        outputs.write(document, make_screen(arguments, db, screen, pages=outputs.has_pages))
        if gates.fail_on and record.scan.state is not ScanState.COMPLETE:
            raise typer.Exit(_INCOMPLETE)
        raise typer.Exit(verdict.code)
