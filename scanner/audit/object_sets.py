"""Sets of the objects of a page, and then of a kind: those that a policy matched, and those it did not evaluate, by reason.

A set is an int with one bit per object, in the order of the list: bit 0 is the first object. Whatever holds for all
objects of a namespace is marked once per page. Sets that are equal are built, packed and kept once, however many policies
have them.
"""

from __future__ import annotations

import json
import zlib
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

_BLOCK: Final = 64
"""The number of pages that are kept apart until they are joined: joining many takes as long as joining two."""
_LEVEL: Final = 1

Reason: TypeAlias = str
"""The reason why a matched object was not evaluated; empty in the keys of matched objects."""

_Key = TypeVar("_Key", bound=Hashable)


class InvocationKey(NamedTuple):
    """Policy, binding and param, by name: workers that read params in another order have the same keys."""

    language: str
    policy: str
    binding: str
    param_namespace: str = ""
    param_name: str = ""


class SetKey(NamedTuple):
    """The content of a set: an invocation, and a reason.

    `check` is the place of a check among those of the policy where its set differs from that of the invocation, else -1.
    """

    invocation: InvocationKey
    check: int = -1
    reason: Reason = ""


@dataclass(frozen=True, slots=True)
class ObjectSets(Generic[_Key]):
    """The sets of `count` objects. A key without a set has the empty set."""

    count: int
    sets: Mapping[_Key, int] = field(repr=False)  # Python's repr rejects an int of so many digits

    def shared(self) -> dict[int, list[_Key]]:
        """The keys of each different set that is not empty."""
        keys: defaultdict[int, list[_Key]] = defaultdict(list)
        for key, bits in self.sets.items():
            if bits:
                keys[bits].append(key)
        return dict(keys)


class PageSets:
    """The sets of a page, while its objects are evaluated."""

    def __init__(self) -> None:
        """Begin with no object."""
        self._count = 0
        self._namespaces: defaultdict[str, int] = defaultdict(int)
        self._whole: defaultdict[str, list[Sequence[SetKey]]] = defaultdict(list)
        self._left_out: defaultdict[SetKey, int] = defaultdict(int)
        self._marked: defaultdict[SetKey, int] = defaultdict(int)

    def add(self, namespace: str) -> int:
        """Count an object of a namespace, and return its place (from 0) for `mark` and `leave_out`."""
        place = self._count
        self._namespaces[namespace] |= 1 << place
        self._count += 1
        return place

    def mark(self, key: SetKey, place: int) -> None:
        """Put an object into a set."""
        self._marked[key] |= 1 << place

    def mark_namespace(self, keys: Sequence[SetKey], namespace: str) -> None:
        """Put all objects of a namespace into several sets, including later objects of the page.

        This takes as long for many keys as for few. Pass the same object for namespaces that have the same keys.
        """
        self._whole[namespace].append(keys)

    def leave_out(self, key: SetKey, place: int) -> None:
        """Keep an object out of a set that has its whole namespace. A marked object is in the set all the same."""
        self._left_out[key] |= 1 << place

    def finished(self) -> ObjectSets[SetKey]:
        """The sets of all objects that were counted."""
        sets: defaultdict[SetKey, int] = defaultdict(int)
        for keys, bits in self._wholes():
            for key in keys:
                sets[key] |= bits
        for key, bits in self._left_out.items():
            sets[key] &= ~bits
        for key, bits in self._marked.items():
            sets[key] |= bits
        return ObjectSets(self._count, dict(sets))

    def _wholes(self) -> Iterable[tuple[Sequence[SetKey], int]]:
        """Each sequence of keys once, with the objects of its namespaces."""
        sequences: dict[int, Sequence[SetKey]] = {}
        bits: defaultdict[int, int] = defaultdict(int)
        for namespace, own in self._whole.items():
            for keys in own:
                sequences[id(keys)] = keys
                bits[id(keys)] |= self._namespaces.get(namespace, 0)
        return ((keys, bits[number]) for number, keys in sequences.items())


class KindSets(Generic[_Key]):
    """The sets of a kind, from those of its pages. Holds one set for all keys whose sets are equal."""

    def __init__(self) -> None:
        """Begin with no page."""
        self._blocks: list[ObjectSets[_Key]] = []
        self._pages: list[ObjectSets[_Key]] = []

    def add(self, page: ObjectSets[_Key]) -> None:
        """Add the next page of the list."""
        self._pages.append(page)
        if len(self._pages) == _BLOCK:
            self._blocks.append(concatenate(self._pages))
            self._pages.clear()

    def finished(self) -> ObjectSets[_Key]:
        """The sets of all objects of the kind."""
        return concatenate([*self._blocks, *self._pages])


def concatenate(parts: Sequence[ObjectSets[_Key]]) -> ObjectSets[_Key]:
    """The sets of the objects of all parts, one part after another. Equal sets are one int."""
    pieces: defaultdict[_Key, list[tuple[int, int]]] = defaultdict(list)
    offset = 0
    for part in parts:
        for bits, keys in part.shared().items():
            piece = offset, bits
            for key in keys:
                pieces[key].append(piece)
        offset += part.count
    joined: dict[tuple[int, ...], int] = {}
    sets: dict[_Key, int] = {}
    for key, own in pieces.items():
        history = tuple(map(id, own))
        if history not in joined:
            joined[history] = _joined(own)
        sets[key] = joined[history]
    return ObjectSets(offset, sets)


def _joined(pieces: Sequence[tuple[int, int]]) -> int:
    """Pieces at their offsets, in ascending order. Neighbours are joined first, so that few long ints are made."""
    level = list(pieces)
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=False)
        last = level[-1:] if len(level) % 2 else []
        level = [(start, low | high << (end - start)) for (start, low), (end, high) in pairs] + last
    return level[0][1] << level[0][0]


def packed(sets: ObjectSets[SetKey]) -> bytes:
    """The bytes of sets, for staging: compressed JSON, in which equal sets and invocations are written once."""
    invocations: dict[InvocationKey, int] = {}
    rows = [
        [f"{bits:x}", [(invocations.setdefault(key[0], len(invocations)), *key[1:]) for key in keys]]
        for bits, keys in sets.shared().items()
    ]
    return zlib.compress(json.dumps([sets.count, [*invocations], rows], separators=(",", ":")).encode(), _LEVEL)


def unpacked(data: bytes) -> ObjectSets[SetKey]:
    """The sets that `packed` wrote."""
    count, names, rows = json.loads(zlib.decompress(data))
    invocations = [InvocationKey(*each) for each in names]
    sets: dict[SetKey, int] = {}
    for text, keys in rows:
        bits = int(text, 16)
        for place, check, reason in keys:
            sets[SetKey(invocations[place], check, reason)] = bits
    return ObjectSets(count, sets)


def places(bits: int) -> Iterable[int]:
    """The places of the objects of a set, ascending."""
    text = f"{bits:b}"[::-1]
    place = text.find("1")
    while place >= 0:
        yield place
        place = text.find("1", place + 1)
