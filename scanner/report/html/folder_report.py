"""The report as static HTML pages without requests, for screens, phones and paper.

Every page shows the provenance of the scan. A Content-Security-Policy forbids everything but the page's own style
sheet, so that text from a cluster stays text even where an escape is missing. The list of findings has a script; it is complete without.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from shutil import copyfileobj

from scanner.model.policy import PolicyKey
from scanner.model.scans.stored_finding import ProblemFinding
from scanner.report.document.document import Document
from scanner.report.formats import csv, rules
from scanner.report.group_files import GroupReader, GroupWriter
from scanner.report.html.change_counts import ChangeCounts, changes_of
from scanner.report.html.finding_list import FindingList
from scanner.report.html.finding_rows import FindingRows, Subject, worst_rows
from scanner.report.html.halves import work_in_halves
from scanner.report.html.pages import HtmlPage, HtmlPages, owners_with_scores
from scanner.report.html.place_pages import PlacePages, keep_place
from scanner.report.html.places import PlaceRenderer, PlaceTexts
from scanner.report.html.resolved import ResolvedProblems
from scanner.report.html.row_files import RowReader, RowWriter
from scanner.report.html.site import Site, site_of
from scanner.report.lists.finding_columns import FINDINGS
from scanner.report.lists.problem_facts import groups_of
from scanner.report.output import binary_file, replace_folder, text_file


def render(document: Document, folder: Path, *, keeps_resolved: bool = True) -> None:
    """Write the pages to `folder` in one step, in place of an earlier report.

    With `keeps_resolved`, the findings that earlier scans resolved have their places, too: an address that a reader cited goes on to answer.
    Raises UsageError when `folder` holds other files, or cannot be written.
    """
    owners = owners_with_scores(document)
    site = site_of(document, [row.owner for row in owners])
    resolved = ResolvedProblems.of(site) if keeps_resolved else ResolvedProblems()
    with replace_folder(folder) as fresh:
        spilled = write_findings(site, fresh, fresh.with_name("aside"), resolved)

        def worst(subject: Subject, names: Sequence[str]) -> str:
            return worst_rows(spilled, subject, *names)

        days = cache(document.stored.policy_days)
        pages = HtmlPages(site, owners, worst, lambda: changes_of(spilled), days, lambda: resolved)
        work_in_halves(lambda half: _write_method(pages, fresh) if half else _write_others(pages, fresh))


def _write_others(pages: HtmlPages, folder: Path) -> None:
    """Write all pages but *Method*, and the files beside them."""
    for page in pages:
        if page.path != _METHOD:
            _write(page, folder)
    document = pages.site.document
    with text_file(folder / "population.csv") as population:
        csv.render_population(document, population)
    with text_file(folder / "rules.csv") as table:
        rules.render_csv(document, table)
    with (folder / "rules.json").open("wb") as listed:
        rules.render_json(document, listed)


def _write_method(pages: HtmlPages, folder: Path) -> None:
    """Write *Method*, whose digests read every finding: this takes as long as all other pages."""
    if method := pages.find(_METHOD):
        _write(method, folder)


def _write(page: HtmlPage, folder: Path) -> None:
    path = folder / page.path
    path.parent.mkdir(exist_ok=True)
    path.write_text(page.render(), "utf-8", newline="\n")


# The findings of the HTML report: two processes read the problems of half the policies each, then write half the
# pages each.


_ROWS = "rows"
_LIST = "findings.csv"
_METHOD = "method.html"


def write_findings(site: Site, folder: Path, aside: Path, resolved: ResolvedProblems) -> GroupReader:
    """Write `findings.html` and the pages in `f` into `folder`, and return what other pages show of the findings.

    `aside` is a folder to work in, and `resolved` is what earlier scans resolved. Raises ValueError if findings were not counted.
    """
    texts = PlaceTexts(site)
    halves = _halves(site.document)
    folders = [aside / str(half) for half in range(len(halves))]
    work_in_halves(lambda half: _collect(site, texts, halves[half], folders[half], resolved))
    spilled = GroupReader(folders)
    PlacePages(site.with_style("places"), texts).write(folder, spilled, resolved.elsewhere(site))
    rows = RowReader([each / _ROWS for each in folders])
    FindingList(site.with_style("list"), folder, rows).write()
    rows.close()
    _join_lists([each / _LIST for each in folders], folder / _LIST)
    return spilled


def _collect(
    site: Site, texts: PlaceTexts, policies: frozenset[PolicyKey], folder: Path, resolved: ResolvedProblems
) -> None:
    """Collect the places and the rows of the problems of some policies in a folder."""
    spill, writer = GroupWriter(folder), RowWriter(folder / _ROWS)
    places, rows, changes = PlaceRenderer(site, texts), FindingRows(site, writer), ChangeCounts()
    with text_file(folder / _LIST) as listed:
        add_lines = csv.open_rows(listed)
        for group in groups_of(site.document, policies):
            rows.add(group)
            changes.add(group.findings)
            for each in group.findings:
                keep_place(spill, places.render_place(each))
            add_lines(FINDINGS.cells(each.stored, site.document) for each in group.findings if each.checked)
    for stored in resolved.findings:
        if stored.finding.policy_key in policies:
            keep_place(spill, places.render_place(ProblemFinding(stored, checked=True, episode="open")))
    rows.worst.write(spill)
    changes.write(spill)
    spill.flush()
    writer.close()


def _join_lists(parts: Sequence[Path], path: Path) -> None:
    """Write the lines of the format `csv`, those of a problem together: no finding is read a second time for them."""
    with binary_file(path) as out:
        out.write(f"{csv.line(FINDINGS.titles)}\n".encode())
        for part in parts:
            with part.open("rb") as lines:
                copyfileobj(lines, out)


def _halves(document: Document) -> tuple[frozenset[PolicyKey], frozenset[PolicyKey]]:
    """The policies in order of their names, cut where half of the findings are on either side."""
    sections = sorted(document.policies, key=lambda section: (section.name, section.language))
    half, before = sum(section.findings.total for section in sections) / 2, 0
    first: list[PolicyKey] = []
    for section in sections:
        if before >= half:
            break
        first.append(section.key)
        before += section.findings.total
    chosen = frozenset(first)
    return chosen, frozenset(section.key for section in sections) - chosen
