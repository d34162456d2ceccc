"""The rows of the population that a scan closes and opens: a merge join of two sorted streams, without any SQL.

Rows are intervals of revisions, as findings are (ADR 4): a row is in force until a scan that could see its object finds
the object gone or different. Groups of objects, by kind and namespace, that a sum of hashes shows to be equal to what is
in force need not be read at all.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

Group: TypeAlias = tuple[str, str, str]
"""API version, kind and namespace."""

_BITS: Final = 256
_MASK: Final = (1 << _BITS) - 1

_Object = TypeVar("_Object")
_identity = attrgetter("identity")
_digest = attrgetter("digest")


class Identity(NamedTuple):
    """The identity of the object of a row.

    Streams are in the order of these tuples, as Python compares texts: by code point, which is the order of SQLite's BINARY
    and of PostgreSQL's "C".
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    @property
    def group(self) -> Group:
        """The group of the object."""
        return self.api_version, self.kind, self.namespace


class InForce(NamedTuple):
    """A row that is in force. `digest` covers all that is kept of the object beside its identity."""

    identity: Identity
    digest: bytes
    row_id: int


class Seen(NamedTuple, Generic[_Object]):
    """An object that a scan examined; `item` is the data that the caller needs to write its row."""

    identity: Identity
    digest: bytes
    item: _Object


@dataclass(frozen=True, slots=True)
class Close:
    """A row ends: its object is gone, or another row is opened for it."""

    row_id: int


@dataclass(frozen=True, slots=True)
class Open(Generic[_Object]):
    """An object needs a row of its own."""

    seen: Seen[_Object]


@dataclass(frozen=True, slots=True)
class Keep(Generic[_Object]):
    """A row that is in force stands for an object, unchanged."""

    row_id: int
    seen: Seen[_Object]


@dataclass(frozen=True, slots=True)
class Repeat(Generic[_Object]):
    """The object appeared before, as it can in files: it has the row of the last step that opened or kept one."""

    seen: Seen[_Object]


Step: TypeAlias = Close | Open[_Object] | Keep[_Object] | Repeat[_Object]


def plan(
    rows: Iterable[InForce], objects: Iterable[Seen[_Object]], reaches: Callable[[Identity], bool] = lambda _: True
) -> Iterator[Step[_Object]]:
    """The steps from the rows in force to the objects of a scan, in the order of identities.

    Both streams are ascending, and `rows` has no identity twice. Of several objects with one identity, the one with the
    least digest decides. `reaches` returns whether the scan would have listed an object if it existed: a row beyond its reach
    stays in force and has no step. Raises ValueError for a stream that is not in order.
    """
    for row, same in _aligned(_ascending(rows), _ascending(objects)):
        if same:
            yield from _present(row, same)
        elif row is not None and reaches(row.identity):
            yield Close(row.row_id)


def _present(row: InForce | None, same: Sequence[Seen[_Object]]) -> Iterator[Step[_Object]]:
    """The steps for an object that the scan examined."""
    first, *others = same
    if row is not None and row.digest == first.digest:
        yield Keep(row.row_id, first)
    else:
        if row is not None:
            yield Close(row.row_id)
        yield Open(first)
    yield from map(Repeat, others)


def _aligned(
    rows: Iterator[InForce], objects: Iterator[Seen[_Object]]
) -> Iterator[tuple[InForce | None, list[Seen[_Object]]]]:
    """Every identity of either stream: its row, if there is one, and its objects by digest."""
    row = next(rows, None)
    for identity, same in groupby(objects, key=_identity):
        while row is not None and row.identity < identity:
            yield row, []
            row = next(rows, None)
        matches = row is not None and row.identity == identity
        yield row if matches else None, sorted(same, key=_digest)
        row = next(rows, None) if matches else row
    while row is not None:
        yield row, []
        row = next(rows, None)


_Sorted = TypeVar("_Sorted", InForce, Seen[Any])


def _ascending(stream: Iterable[_Sorted]) -> Iterator[_Sorted]:
    """The stream, which must be sorted: a merge of others would close and open rows without a reason."""
    last: Identity | None = None
    for item in stream:
        if last is not None and item.identity < last:
            raise ValueError(f"the population is not in order: {item.identity} comes after {last}")
        last = item.identity
        yield item


class GroupSum(NamedTuple):
    """The number of objects of a group, and the sum of their hashes modulo 2^256, in any order."""

    objects: int
    total: int


class GroupSums:
    """The sums of groups, updated for each object.

    A user who can create objects at will, and knows how hashes are made, can find two sets of objects with one sum. Therefore
    hashes have a key, which is a secret of the database.
    """

    def __init__(self, key: bytes) -> None:
        """Begin without objects; `key` has at most 64 bytes."""
        self._key = key
        self._counts: defaultdict[Group, int] = defaultdict(int)
        self._totals: defaultdict[Group, int] = defaultdict(int)

    def add(self, identity: Identity, digest: bytes) -> None:
        """Count an object."""
        self._change(identity, digest, 1)

    def remove(self, identity: Identity, digest: bytes) -> None:
        """Count an object no longer."""
        self._change(identity, digest, -1)

    def include(self, sums: Mapping[Group, GroupSum]) -> None:
        """Count the objects of other sums with the same key, such as those of a page."""
        for group, (objects, total) in sums.items():
            self._counts[group] += objects
            self._totals[group] = self._totals[group] + total & _MASK

    def sums(self) -> dict[Group, GroupSum]:
        """The number of objects and the sum of hashes, by group; groups without objects are left out."""
        return {group: GroupSum(count, self._totals[group]) for group, count in self._counts.items() if count}

    def _change(self, identity: Identity, digest: bytes, sign: int) -> None:
        group = identity[:3]
        self._counts[group] += sign
        self._totals[group] = self._totals[group] + sign * self._hash(identity, digest) & _MASK

    def _hash(self, identity: Identity, digest: bytes) -> int:
        version, kind, namespace, name, uid = identity
        text = (
            f"{len(version)}:{version}{len(kind)}:{kind}{len(namespace)}:{namespace}{len(name)}:{name}{len(uid)}:{uid}"
        )
        data = text.encode(errors="surrogatepass") + digest
        return int.from_bytes(hashlib.blake2b(data, digest_size=_BITS // 8, key=self._key).digest(), "little")


def unequal(before: Mapping[Group, GroupSum], after: Mapping[Group, GroupSum]) -> frozenset[Group]:
    """The groups whose rows and objects must be planned; in all others nothing has changed."""
    return frozenset(group for group in before.keys() | after.keys() if before.get(group) != after.get(group))
