"""The report as static HTML pages without requests, for screens, phones and paper.

Every page shows the provenance of the scan. A Content-Security-Policy forbids everything but the page's own style
sheet, so that text from a cluster stays text even where an escape is missing. The list of findings has a script; it is complete without.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from scanner.report import csv_population
from scanner.report.change_counts import changes_of
from scanner.report.document import Document
from scanner.report.file import text_file
from scanner.report.findings_html import write_findings
from scanner.report.folder import replaced
from scanner.report.html_pages import HtmlPages
from scanner.report.owner_rows import owners_with_scores
from scanner.report.site import site_of
from scanner.report.worst_rows import Subject, worst_rows


def render(document: Document, folder: Path) -> None:
    """Write the pages to `folder` in one step, in place of an earlier report.

    Raises UsageError when `folder` holds other files, or cannot be written.
    """
    owners = owners_with_scores(document)
    site = site_of(document, [row.owner for row in owners])
    with replaced(folder) as fresh:
        spilled = write_findings(site, fresh, fresh.with_name("aside"))

        def worst(subject: Subject, names: Sequence[str]) -> str:
            return worst_rows(spilled, subject, *names)

        days = cache(lambda: document.stored.policy_days(None))
        for page in HtmlPages(site, owners, worst, lambda: changes_of(spilled), lambda _: days()):
            path = fresh / page.path
            path.parent.mkdir(exist_ok=True)
            path.write_text(page.render(), "utf-8", newline="\n")
        with text_file(fresh / "population.csv") as population:
            csv_population.render(document, population)
