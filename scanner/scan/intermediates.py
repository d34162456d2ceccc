"""The objects between those that a scan evaluates and their workloads, such as ReplicaSets: listed as metadata only.

Upstream: `metav1.OwnerReference` names a controller of any kind, so kinds are listed round by round: the controllers of the
evaluated objects first, then the controllers of those, until every served kind among them was listed once.

A kind that cannot be listed is a note and no gap: the workloads above it are derived, and every object is evaluated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from scanner.audit.population import record_object
from scanner.errors import ListFailed
from scanner.model.population import Controller, GroupKind, KeptKeys, PopulationMember
from scanner.model.resource import Kind, Page
from scanner.posture.workloads import list_intermediate_kinds, list_usual_controllers
from scanner.scan.lists import ScanLists, decode_objects

_NO_KEYS: Final = KeptKeys(labels=frozenset(), prefixes=())


@dataclass(frozen=True, slots=True)
class IntermediatePage:
    """A page of a metadata-only list, and the records of its objects, without those in excluded namespaces."""

    page: Page
    objects: tuple[PopulationMember, ...]


@dataclass(frozen=True, slots=True)
class IntermediateNote:
    """A kind that could not be listed, or not completely: the text names the kind, the reason and the remedy.

    If the list is not `needed`, then no workload of an examined object depends on the kind.
    """

    kind: Kind
    text: str
    needed: bool = True


IntermediateStep: TypeAlias = IntermediatePage | IntermediateNote


def list_intermediate_pages(
    listing: ScanLists,
    controllers: Iterable[Controller],
    examined_kinds: Iterable[Kind],
    served: Iterable[Kind],
    workload_kinds: Iterable[GroupKind] = (),
) -> Iterator[IntermediateStep]:
    """List the metadata of every served kind that controls objects and was not examined, in its preferred version.

    `controllers` are the references of the examined objects; one for each kind suffices. `examined_kinds` are the kinds whose
    list was tried; a scan with a selector lists them again, because an object that it left out may control another.
    `workload_kinds` are listed even if no examined object names them, to find out which workloads exist. If one of them cannot be
    listed, so are the usual controllers below it, which prove that it exists. No workload is derived for a kind of these that cannot
    be listed, so its note is not needed.
    """
    examined_kinds = tuple(examined_kinds)
    preferred: dict[GroupKind, Kind] = {}
    for kind in served:
        preferred.setdefault((kind.group, kind.kind), kind)
    references = {controller.group_kind: controller for controller in controllers}
    tried = [] if listing.has_selector else [*examined_kinds]
    while kinds := [
        preferred[name] for name in list_intermediate_kinds(references.values(), tried) if name in preferred
    ]:
        for kind in kinds:
            for step in _list_kind(listing, kind):
                if isinstance(step, IntermediatePage):
                    references.update(_group_controllers(step.objects))
                yield step
        tried += kinds
    if listing.has_selector:
        return  # such a scan resolves nothing
    unlisted_kinds = sorted({*workload_kinds}.difference((kind.group, kind.kind) for kind in tried))
    unlisted = False
    for step in _list_unneeded(listing, [preferred[name] for name in unlisted_kinds if name in preferred]):
        unlisted |= isinstance(step, IntermediateNote)
        yield step
    if unlisted:
        below = list_usual_controllers((kind.group, kind.kind) for kind in examined_kinds)
        known_kinds = {*unlisted_kinds, *((kind.group, kind.kind) for kind in tried)}
        yield from _list_unneeded(
            listing, [preferred[name] for name in below if name in preferred and name not in known_kinds]
        )


def _list_unneeded(listing: ScanLists, kinds: Iterable[Kind]) -> Iterator[IntermediateStep]:
    for kind in kinds:
        for step in _list_kind(listing, kind):
            yield replace(step, needed=False) if isinstance(step, IntermediateNote) else step


def _group_controllers(objects: Iterable[PopulationMember]) -> dict[GroupKind, Controller]:
    return {record.controller.group_kind: record.controller for record in objects if record.controller}


def _list_kind(listing: ScanLists, kind: Kind) -> Iterator[IntermediateStep]:
    """The pages of a kind in the namespaces of the scan, then a note if any of them may be missing."""
    reasons: list[str] = []
    for pages in listing.list_metadata(kind):
        try:
            for page in pages:
                if page.inconsistency:
                    reasons.append(f"the list of {kind.resource} is inconsistent: {page.inconsistency}")
                yield IntermediatePage(page, _record_objects(listing, page))
        except ListFailed as error:
            reasons.append(error.why)
        except ValueError as error:
            reasons.append(f"cannot read the list of {kind.resource}: {error}. Scan again")
    if reasons:
        yield IntermediateNote(kind, _write_note(kind, reasons))


def _record_objects(listing: ScanLists, page: Page) -> tuple[PopulationMember, ...]:
    resources = decode_objects(page, metadata_only=True)
    return tuple(
        record_object(resource, _NO_KEYS) for resource in resources if not listing.excludes(resource.namespace)
    )


def _write_note(kind: Kind, reasons: Iterable[str]) -> str:
    return f"workloads of objects that a {kind.kind} controls are derived: {'; '.join(dict.fromkeys(reasons))}"
