"""A packet: a small snapshot with the items of a sample and everything that their verdicts depend on, and parts for readers."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from scanner.audit.items import decode_items
from scanner.cluster.snapshots.archive import PACKET, SNAPSHOT, ArchiveForm, SnapshotWriter
from scanner.cluster.snapshots.replay import ReplayedCluster, narrow
from scanner.model.json import Json, JsonObject, as_object, as_text, dig
from scanner.model.resource import Kind, Page
from scanner.model.texts import clean

Name = tuple[str, str, str, str, str]
"""The version, kind, namespace, name and UID of an object."""

_IDENTITY: Final = ("namespace", "name", "uid")


class ChosenObjects(ReplayedCluster):
    """The cluster of a snapshot, of which only some objects are listed after `choose`. Lists before that are whole: those of rules."""

    def __init__(self, path: Path, form: ArchiveForm = SNAPSHOT) -> None:
        """Open and verify a snapshot or a packet. Raises UsageError."""
        super().__init__(path, form=form)
        self._chosen: frozenset[Name] | None = None
        self.bodies: dict[Name, JsonObject] = {}
        """The chosen objects that were listed, as the snapshot has them."""

    def choose(self, names: Collection[Name]) -> None:
        """List these objects alone from now on."""
        self._chosen = frozenset(names)

    def pages(self, kind: Kind, *, namespace: str = "", selector: str = "") -> Iterator[Page]:
        """See Cluster."""
        pages = super().pages(kind, namespace=namespace, selector=selector)
        return pages if self._chosen is None else self._choose_items(pages, self._chosen)

    def _choose_items(self, pages: Iterator[Page], chosen: frozenset[Name]) -> Iterator[Page]:
        for page in pages:
            kind = page.kind
            own = narrow(page, lambda item, kind=kind: _name_of(kind, item) in chosen)  # type: ignore[misc]
            items = [*decode_items(own)]
            self.bodies.update((_name_of(kind, item), as_object(item)) for item in items)
            if items:
                yield own


class PacketWriter:
    """Writes a packet. The pages of a snapshot are redacted already, and are written as they are. Satisfies `PageWriter`."""

    def __init__(self, path: Path, tool_version: str) -> None:
        """Begin a packet. Raises UsageError for a path that exists or cannot be written."""
        self._writer = SnapshotWriter(path, tool_version, form=PACKET)

    def add(self, name: str, content: bytes) -> None:
        """See PageWriter."""
        self._writer.add(name, content)

    def add_page(self, name: str, page: Page, *, metadata_only: bool) -> None:  # noqa: ARG002 - see PageWriter
        """See PageWriter."""
        self._writer.add(name, page.data)

    def close(self) -> tuple[str, int]:
        """See PageWriter."""
        return self._writer.close(), 0

    def discard(self) -> None:
        """See PageWriter."""
        self._writer.discard()


def _name_of(kind: Kind, item: Json) -> Name:
    namespace, name, uid = (clean(as_text(dig(item, "metadata", field))) for field in _IDENTITY)
    return kind.api_version, kind.kind, namespace, name, uid
