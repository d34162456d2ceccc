"""The findings of the HTML report: two processes read the problems of half the policies each, then write half the pages each."""

from __future__ import annotations

from pathlib import Path

from scanner.model.policy import PolicyKey
from scanner.report.change_counts import ChangeCounts
from scanner.report.document import Document
from scanner.report.finding_groups import groups_of
from scanner.report.finding_list import FindingList
from scanner.report.finding_rows import FindingRows
from scanner.report.group_files import GroupReader, GroupWriter
from scanner.report.halves import in_halves
from scanner.report.place_pages import PlacePages, keep_place
from scanner.report.place_texts import PlaceTexts
from scanner.report.places import Places
from scanner.report.site import Site


def write_findings(site: Site, folder: Path, aside: Path) -> GroupReader:
    """Write `findings.html` and the pages in `f` into `folder`, and return what other pages show of the findings.

    `aside` is a folder to work in. Raises ValueError if findings were not counted.
    """
    texts = PlaceTexts(site)
    halves = _halves(site.document)
    folders = [aside / str(half) for half in range(len(halves))]
    in_halves(lambda half: _collect(site, texts, halves[half], GroupWriter(folders[half])))
    spilled = GroupReader(folders)
    PlacePages(site.styled("places"), texts).write(folder, spilled)
    FindingList(site.styled("list"), folder, spilled).write()
    return spilled


def _collect(site: Site, texts: PlaceTexts, policies: frozenset[PolicyKey], spill: GroupWriter) -> None:
    """GroupWriter the places and the rows of the problems of some policies."""
    places, rows, changes = Places(site, texts), FindingRows(site, spill), ChangeCounts()
    for group in groups_of(site.document, policies):
        rows.add(group)
        changes.add(group.findings)
        for each in group.findings:
            keep_place(spill, places.placed(each))
    rows.worst.write(spill)
    changes.write(spill)
    spill.flush()


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
