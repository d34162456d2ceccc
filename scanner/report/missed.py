"""What a scan could not examine, each part once: the gaps, a kind that was not listed completely, an end before its time."""

from __future__ import annotations

from typing import NamedTuple

from scanner.model.outcome import GapKind
from scanner.report.coverage import ending_of, unlisted_text
from scanner.report.document import Document
from scanner.report.words import GAP_TITLES


class Missed(NamedTuple):
    """A part that a scan missed: the kind of gap as a title, and a sentence without its full stop, whose parts are `where` and `why`."""

    title: str
    text: str
    where: str
    why: str


def missed(document: Document) -> tuple[Missed, ...]:
    """Every part that the scan missed; empty only for a scan that missed nothing, or that had nothing to evaluate."""
    listed = {gap.where for gap in document.gaps if gap.kind is GapKind.LIST}
    ending = (Missed("Not finished", text, "the scan", text) for text in ending_of(document.provenance.state))
    kinds = (
        Missed(GAP_TITLES[GapKind.LIST], text, where, text.partition(": ")[2])
        for line in document.coverage.kinds
        if (text := unlisted_text(line)) and (where := f"{line.api_version}/{line.kind}") not in listed
    )
    gaps = (Missed(GAP_TITLES[gap.kind], f"{gap.where}: {gap.why}", gap.where, gap.why) for gap in document.gaps)
    return *ending, *kinds, *gaps
