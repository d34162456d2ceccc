"""The staged pages of a running scan, list by list, one page in memory at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, select, update

from scanner.audit import object_sets, packed_objects
from scanner.audit.object_sets import ObjectSets, SetKey
from scanner.model.population import Examined, GroupKind
from scanner.model.resource import Kind
from scanner.posture.workloads import Workloads
from scanner.store.packing import StagedPage, unpack
from scanner.store.tables import STAGED_PAGES

_NAMESPACE: Final[GroupKind] = ("", "Namespace")


@dataclass(frozen=True, slots=True)
class StagedList:
    """The pages of one list, in the order in which they were committed."""

    connection: Connection
    api_version: str
    kind: str
    numbers: tuple[int, ...]

    @property
    def group_kind(self) -> GroupKind:
        """Group and kind of the objects."""
        return self.api_version.rpartition("/")[0], self.kind

    def pages(self) -> Iterator[StagedPage]:
        """The findings and tallies of each page, once: the space of a page is free for others when the next one is read."""
        own = STAGED_PAGES.c
        for number in self.numbers:
            wanted = select(own.content).where(own.id == number)
            yield unpack(bytes(self.connection.execute(wanted).scalar_one()))
            self.connection.execute(update(STAGED_PAGES).where(own.id == number).values(content=b""))

    def objects(self) -> Iterator[Sequence[Examined]]:
        """The examined objects of each page."""
        kind = self._kind()
        pages = self._values(STAGED_PAGES.c.objects)
        return (tuple(packed_objects.unpacked(kind, data)) if data else () for data in pages)

    def sets(self) -> Iterator[ObjectSets[SetKey]]:
        """The sets of each page. A page that could not be evaluated has no objects and no sets."""
        return map(object_sets.unpacked, filter(None, self._values(STAGED_PAGES.c.sets)))

    def _values(self, column: ColumnElement[Any]) -> Iterator[bytes]:
        for number in self.numbers:
            yield bytes(self.connection.execute(select(column).where(STAGED_PAGES.c.id == number)).scalar_one() or b"")

    def _kind(self) -> Kind:
        group, _, version = self.api_version.rpartition("/")
        return Kind(group, version, self.kind, plural="", namespaced=True)


class StagedLists:
    """The lists of a scan, in the order in which they began."""

    def __init__(self, connection: Connection, scan: int) -> None:
        """Take the number of a scan."""
        self._connection = connection
        own = STAGED_PAGES.c
        of_objects, of_controllers = own.content.is_not(None), own.content.is_(None)
        self._evaluated = self._lists(scan, of_objects)
        self._controllers = self._lists(scan, of_controllers)

    def __iter__(self) -> Iterator[StagedList]:
        """The lists of evaluated kinds."""
        return iter(self._evaluated)

    def namespaces(self) -> Iterator[StagedList]:
        """The list of the namespaces that were read for their labels alone."""
        return (listed for listed in self._controllers if listed.group_kind == _NAMESPACE)

    def workloads(self, kinds: Mapping[GroupKind, bool]) -> Workloads:
        """The workloads of all objects, given the kinds of their controllers: true for a namespaced kind."""
        workloads = Workloads(kinds)
        for listed in (*self._evaluated, *self._controllers):
            if listed.group_kind in kinds:
                for page in listed.objects():
                    for examined in page:
                        workloads.add(examined)
        return workloads

    def _lists(self, scan: int, chosen: ColumnElement[bool]) -> list[StagedList]:
        own = STAGED_PAGES.c
        wanted = select(own.api_version, own.kind, own.id).where(own.scan == scan, chosen).order_by(own.id)
        rows = self._connection.execute(wanted).all()
        lists: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for api_version, kind, page in rows:
            lists[api_version, kind].append(page)
        return [StagedList(self._connection, *kind, tuple(pages)) for kind, pages in lists.items()]
