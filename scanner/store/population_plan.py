"""The intervals of the population that a scan closes and opens: a merge join of two sorted streams, without any SQL.

An interval of revisions has what is kept of an object, as the rows of findings do (ADR 4): it is in force until a scan that
could list the object finds it gone or different.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

_Item = TypeVar("_Item")
_identity = attrgetter("identity")
_content = attrgetter("content")

Content: TypeAlias = tuple[int, int]
"""All that is kept of an object beside its identity: the ids of its workload and of its labels, 0 for none."""


class Identity(NamedTuple):
    """The identity of an object among those of its kind.

    Streams are in the order of these tuples, as Python compares texts: by code point, which is the order of SQLite's BINARY
    and of PostgreSQL's "C".
    """

    namespace: str
    name: str
    uid: str


class InForce(NamedTuple):
    """An interval that is in force, of the object with an id; `since` is its first revision."""

    identity: Identity
    content: Content
    object_id: int
    since: int


class Seen(NamedTuple, Generic[_Item]):
    """An object that a scan examined; `item` is the data that the caller needs."""

    identity: Identity
    content: Content
    item: _Item


@dataclass(frozen=True, slots=True)
class Close:
    """The object is gone."""

    object_id: int


@dataclass(frozen=True, slots=True)
class Open(Generic[_Item]):
    """An object without an interval in force."""

    seen: Seen[_Item]


@dataclass(frozen=True, slots=True)
class Change(Generic[_Item]):
    """An object with other content than its interval in force."""

    object_id: int
    seen: Seen[_Item]


@dataclass(frozen=True, slots=True)
class Keep(Generic[_Item]):
    """An object whose interval in force has its content."""

    object_id: int
    seen: Seen[_Item]


@dataclass(frozen=True, slots=True)
class Repeat(Generic[_Item]):
    """The object appeared before, as it can in files: it is the object of the step before."""

    seen: Seen[_Item]


Step: TypeAlias = Close | Open[_Item] | Change[_Item] | Keep[_Item] | Repeat[_Item]


def plan(
    rows: Iterable[InForce], objects: Iterable[Seen[_Item]], reaches: Callable[[InForce], bool] = lambda _: True
) -> Iterator[Step[_Item]]:
    """The steps from the intervals in force to the objects of a scan, in the order of identities.

    Both streams are ascending, and `rows` has no identity twice. Of several objects with one identity, the one with the
    least content decides. `reaches` returns whether the scan would have listed an object if it existed: an interval beyond
    its reach stays in force and has no step. Raises ValueError for a stream that is not in order.
    """
    for row, same in _aligned(_ascending(rows), _ascending(objects)):
        if same:
            yield from _present(row, same)
        elif row is not None and reaches(row):
            yield Close(row.object_id)


def _present(row: InForce | None, same: Sequence[Seen[_Item]]) -> Iterator[Step[_Item]]:
    """The steps for an object that the scan examined."""
    first, *others = same
    if row is None:
        yield Open(first)
    elif row.content == first.content:
        yield Keep(row.object_id, first)
    else:
        yield Change(row.object_id, first)
    yield from map(Repeat, others)


def _aligned(
    rows: Iterator[InForce], objects: Iterator[Seen[_Item]]
) -> Iterator[tuple[InForce | None, list[Seen[_Item]]]]:
    """Every identity of either stream: its row, if there is one, and its objects by content."""
    row = next(rows, None)
    for identity, same in groupby(objects, key=_identity):
        while row is not None and row.identity < identity:
            yield row, []
            row = next(rows, None)
        matches = row is not None and row.identity == identity
        yield row if matches else None, sorted(same, key=_content)
        row = next(rows, None) if matches else row
    while row is not None:
        yield row, []
        row = next(rows, None)


_Sorted = TypeVar("_Sorted", InForce, Seen[Any])


def _ascending(stream: Iterable[_Sorted]) -> Iterator[_Sorted]:
    """The stream, which must be sorted: a merge of others would close and open intervals without a reason."""
    last: Identity | None = None
    for item in stream:
        if last is not None and item.identity < last:
            raise ValueError(f"the population is not in order: {item.identity} comes after {last}")
        last = item.identity
        yield item
