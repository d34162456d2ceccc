"""The notes of the first screen: what a scan could not examine, the rights that it lacked, and manifests that kubectl would refuse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from scanner.model.missing_right import MissingRight, parse_missing_right
from scanner.model.outcome import GapKind
from scanner.model.scans.health import Health, HealthKind
from scanner.report.document.coverage import ending_of, unlisted_text
from scanner.report.document.document import Document
from scanner.report.text.numbers import plural
from scanner.report.text.titles import GAP_TITLES, HEALTH_TITLES


class Missed(NamedTuple):
    """A part that a scan missed: the kind of gap as a title, and a sentence without its full stop, whose parts are `where` and `why`."""

    title: str
    text: str
    where: str
    why: str


def list_missed(document: Document) -> tuple[Missed, ...]:
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


# The rights that a scan lacked, from the reasons of its gaps.

_SHOWN: Final = 4
_KINDS: Final = (GapKind.LIST, GapKind.EVALUATION)


def missing_rights(document: Document) -> tuple[MissingRight, ...]:
    """Each right once, in the order of the gaps."""
    rights = (parse_missing_right(gap.why) for gap in document.gaps if gap.kind in _KINDS)
    return tuple(dict.fromkeys(right for right in rights if right))


def rights_heading(rights: Sequence[MissingRight]) -> str:
    """The user and the number of the missing rights, before a list of them."""
    return f"{rights[0].user} lacks {plural(len(rights), 'right')} that the scan needs:"


def rights_line(document: Document) -> str:
    """The user and the missing rights as a sentence, or an empty string."""
    rights = missing_rights(document)
    if not rights:
        return ""
    named = ", ".join(right.right for right in rights[:_SHOWN])
    more = f" and {len(rights) - _SHOWN:,} more" if len(rights) > _SHOWN else ""
    return f"{rights_heading(rights)} {named}{more}. See `assay rbac check`."


# The manifests from files that kubectl would refuse although they are evaluated: an unknown field, a version that is
# not served.

_SHOWN_MANIFESTS: Final = 5
_MORE_MANIFESTS: Final = "see policy health"


class ManifestNote(NamedTuple):
    """A note for the first screen: the problem in two or three words, and a sentence without its full stop."""

    title: str
    text: str


def manifest_notes(document: Document) -> tuple[ManifestNote, ...]:
    """A note for each manifest with unknown fields, and one for all manifests of a version that is not served."""
    return *_note_unknown_fields(document), *_note_versions(document)


def _note_unknown_fields(document: Document) -> Iterator[ManifestNote]:
    title = HEALTH_TITLES[HealthKind.UNKNOWN_FIELD]
    entries = [manifest for manifest in document.health if manifest.kind is HealthKind.UNKNOWN_FIELD]
    for manifest in entries[:_SHOWN_MANIFESTS]:
        yield ManifestNote(title, f"{_subject(document, manifest)}: {manifest.detail}")
    if len(entries) > _SHOWN_MANIFESTS:
        others = plural(len(entries) - _SHOWN_MANIFESTS, "more manifest has", "more manifests have")
        yield ManifestNote(title, f"{others} unknown fields: {_MORE_MANIFESTS}")


def _note_versions(document: Document) -> Iterator[ManifestNote]:
    by_detail: dict[str, list[Health]] = {}
    for manifest in document.health:
        if manifest.kind is HealthKind.NOT_SERVED:
            by_detail.setdefault(manifest.detail, []).append(manifest)
    for detail, entries in by_detail.items():
        others = f" and {plural(len(entries) - 1, 'other manifest')}" if entries[1:] else ""
        yield ManifestNote(HEALTH_TITLES[HealthKind.NOT_SERVED], f"{_subject(document, entries[0])}{others}: {detail}")


def _subject(document: Document, entry: Health) -> str:
    policy = document.title(entry.policy_key)
    return f"binding {entry.binding} of policy {policy}" if entry.binding else f"policy {policy}"
