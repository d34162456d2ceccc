"""A finding on one line, for the lists that point to the page of its policy: by namespace, new, resolved."""

from __future__ import annotations

from typing import NamedTuple

from scanner.model.outcome import Finding, WouldChange
from scanner.model.scan import StoredFinding
from scanner.report.rows import RowForm
from scanner.report.words import check_title, minute, object_name, result_word, told, visible

_LONGEST = 240


class Place(NamedTuple):
    """Where a finding stands, seen from the list: `up` leads to the top, `path` is empty when it has no page.

    `policy` is what the policy is called.
    """

    up: str
    path: str
    policy_path: str
    policy: str


def brief_row(form: RowForm, stored: StoredFinding, place: Place) -> str:
    """Print a finding as a row without line ends."""
    it = stored.finding
    words = (place.up, result_word(it.outcome), it.denies, stored.status, bool(place.path))
    texts = (
        stored.id,
        place.path,
        place.policy_path,
        _brief(it.kind),
        _brief(object_name(it)),
        _brief(place.policy),
        check_title(it.check),
        _brief(_line(it)),
        minute(stored.first_seen),
        minute(stored.resolved_at) if stored.resolved_at else "",
    )
    return form.row(words, texts)


def _line(finding: Finding) -> str:
    """What a finding says; the lines of a diff one after the other."""
    text = told(finding)
    return text.replace("\n", "; ") if isinstance(finding.outcome, WouldChange) else text


def _brief(text: str) -> str:
    return visible(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")
