"""The manifests from files that kubectl would refuse although they are evaluated: an unknown field, a version that is not served."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from scanner.model.scan import Health, HealthKind
from scanner.report.document import Document
from scanner.report.words import HEALTH_TITLES, plural

_SHOWN: Final = 5
_MORE: Final = "see policy health"


class ManifestNote(NamedTuple):
    """A note for the first screen: the problem in two or three words, and a sentence without its full stop."""

    title: str
    text: str


def manifest_notes(document: Document) -> tuple[ManifestNote, ...]:
    """A note for each manifest with unknown fields, and one for all manifests of a version that is not served."""
    return *_unknown_fields(document), *_versions(document)


def _unknown_fields(document: Document) -> Iterator[ManifestNote]:
    title = HEALTH_TITLES[HealthKind.UNKNOWN_FIELD]
    entries = [entry for entry in document.health if entry.kind is HealthKind.UNKNOWN_FIELD]
    for entry in entries[:_SHOWN]:
        yield ManifestNote(title, f"{_subject(document, entry)}: {entry.detail}")
    if len(entries) > _SHOWN:
        others = plural(len(entries) - _SHOWN, "more manifest has", "more manifests have")
        yield ManifestNote(title, f"{others} unknown fields: {_MORE}")


def _versions(document: Document) -> Iterator[ManifestNote]:
    by_detail: dict[str, list[Health]] = {}
    for entry in document.health:
        if entry.kind is HealthKind.NOT_SERVED:
            by_detail.setdefault(entry.detail, []).append(entry)
    for detail, entries in by_detail.items():
        others = f" and {plural(len(entries) - 1, 'other manifest')}" if entries[1:] else ""
        yield ManifestNote(HEALTH_TITLES[HealthKind.NOT_SERVED], f"{_subject(document, entries[0])}{others}: {detail}")


def _subject(document: Document, entry: Health) -> str:
    policy = document.title(entry.policy_key)
    return f"binding {entry.binding} of policy {policy}" if entry.binding else f"policy {policy}"
