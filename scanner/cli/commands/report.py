"""`assay report`."""

from __future__ import annotations

from typing import Final

import typer

from scanner.cli.flags.database import ClusterNameOption, DbOption, reader_at
from scanner.cli.flags.gates import BaselineOption, FailOnOption, MinSeverityOption, baseline_of, compare_and_evaluate
from scanner.cli.flags.report_formats import (
    DEFAULT,
    ControlsOption,
    Exports,
    JunitFailAllOption,
    OutputOption,
    has_pages,
    report_options,
    with_export_flags,
)
from scanner.cli.flags.screen import ColorOption, WideOption, screen_of
from scanner.cli.flags.stored_scan import LAST, AtOption, ScanArgument, stored_scan
from scanner.cli.flags.waivers import Posture, WaiversOption
from scanner.config.current import get_settings
from scanner.report.text.screen import Color

_INCOMPLETE: Final = 3


@with_export_flags
def command(
    arguments: typer.Context,
    scan: ScanArgument = LAST,
    output: OutputOption = DEFAULT,
    *,
    exports: Exports,
    fail_on: FailOnOption = None,
    baseline: BaselineOption = "",
    min_severity: MinSeverityOption = None,
    junit_fail_all: JunitFailAllOption = False,
    at: AtOption = "",
    controls: ControlsOption = None,
    waivers: WaiversOption = None,
    db: DbOption = "",
    cluster_name: ClusterNameOption = "",
    wide: WideOption = False,
    color: ColorOption = Color.AUTO,
) -> None:
    """Render the report of a stored scan again, without the cluster."""
    from scanner.cli.flags.report_formats import to_exports, to_stdout
    from scanner.model.scans.scan import ScanState
    from scanner.report.document.document import document_of

    posture = Posture(get_settings(controls or ()), waivers, at=at)
    with reader_at(db) as store:
        record = stored_scan(store, scan, cluster_name, at)
        compared = baseline_of(store, baseline, record.scan.cluster.name)
        record, gates = compare_and_evaluate(store, record, fail_on or (), compared, posture, min_severity)
        for_pipelines = report_options(fail_on, min_severity, fail_all=junit_fail_all)
        document = document_of(record, posture.of(store, record), posture.day, for_pipelines)
        to_stdout(document, output, screen_of(arguments, db, wide=wide, color=color, pages=has_pages(exports)))
        to_exports(document, exports)
        if fail_on and record.scan.state is not ScanState.COMPLETE:
            raise typer.Exit(_INCOMPLETE)
        raise typer.Exit(gates.code)
