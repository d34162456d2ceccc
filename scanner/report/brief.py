"""A finding as one row, for lists that link to the page of its policy: by namespace, new, drift, resolved."""

from __future__ import annotations

from typing import NamedTuple

from scanner.model.outcome import Finding, WouldChange
from scanner.model.scan import StoredFinding
from scanner.report.rows import RowForm
from scanner.report.words import check_title, message_of, minute, object_name, result_word, visible, workload_name

_LONGEST = 240


class Place(NamedTuple):
    """The links of a row: `up` leads from the page to the top folder, `path` is empty for a finding without a page.

    `policy` is the title of the policy, and `owner` empty for an unowned object.
    """

    up: str
    path: str
    policy_path: str
    policy: str
    severity: str
    owner: str
    waiver: str = ""


def brief_row(form: RowForm, stored: StoredFinding, place: Place) -> str:
    """A finding as a row without line ends."""
    finding = stored.finding
    workload = _brief(workload_name(stored))
    owner = _brief(place.owner)
    waiver = _brief(place.waiver)
    flags = bool(place.path), bool(workload), bool(owner), bool(waiver)
    words = (place.up, result_word(finding.outcome), finding.denies, stored.status, place.severity, *flags)
    texts = (
        stored.id,
        place.path,
        place.policy_path,
        _brief(finding.kind),
        _brief(object_name(finding)),
        workload,
        owner,
        waiver,
        _brief(place.policy),
        check_title(finding.check),
        _brief(_line(finding)),
        minute(stored.first_seen),
        minute(stored.resolved_at) if stored.resolved_at else "",
    )
    return form.row(words, texts)


def _line(finding: Finding) -> str:
    """The message of a finding, with the lines of a diff joined."""
    text = message_of(finding)
    return text.replace("\n", "; ") if isinstance(finding.outcome, WouldChange) else text


def _brief(text: str) -> str:
    return visible(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")
