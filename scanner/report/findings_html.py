"""The findings of the HTML report: one pass over the problems fills the list and the places of their findings."""

from __future__ import annotations

from scanner.report.finding_groups import groups_of
from scanner.report.finding_list import FindingList
from scanner.report.place_pages import PlacePages
from scanner.report.place_texts import PlaceTexts
from scanner.report.places import Places
from scanner.report.site import Site
from scanner.report.spill import Spill


def write_findings(site: Site, spill: Spill) -> None:
    """Write `findings.html` and the pages in `f`. Raises ValueError if findings of a policy were not counted."""
    texts = PlaceTexts(site)
    places, pages, rows = Places(site, texts), PlacePages(site, spill, texts), FindingList(site, spill)
    for group in groups_of(site.document):
        rows.add(group)
        for each in group.findings:
            pages.add(places.placed(each))
    pages.write()
    rows.write()
