"""The lines of the page of owners: the teams that own a checked object, with findings and score."""

from __future__ import annotations

from typing import NamedTuple

from scanner.posture.score import NO_SCORE, Score
from scanner.report.by_owner import OwnerSection
from scanner.report.counts import NO_FINDINGS
from scanner.report.document import Document
from scanner.report.sentences import worst_owners
from scanner.report.words import owner_title


class OwnerRow(NamedTuple):
    """A line of the page of owners."""

    owner: str
    title: str
    findings: OwnerSection
    score: Score


def owners_with_scores(document: Document) -> list[OwnerRow]:
    """The owners of objects that were checked, with their scores, worst first; unowned objects last."""
    scores = document.owner_scores()
    there = {section.owner: section for section in document.owners}
    clean = (OwnerSection(owner, NO_FINDINGS, ()) for owner in scores.keys() - there.keys())
    sections = worst_owners((*there.values(), *clean))
    return [OwnerRow(each.owner, owner_title(each.owner), each, scores.get(each.owner, NO_SCORE)) for each in sections]
