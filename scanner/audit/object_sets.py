"""Sets of the objects of a page, and then of a kind: the objects of an invocation, by the checks that were evaluated.

A set is an int with one bit per object, in the order of the list: bit 0 is the first object. The sets of an invocation have
no object in common: each object that it matched is in the set whose checks, and reasons, are those of its results. Equal
sets are packed and kept once, however many policies have them.
"""

from __future__ import annotations

import json
import zlib
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from scanner.model.outcome import Check, CheckKind, CheckResult, Skipped
from scanner.model.policy import Invocation
from scanner.model.texts import clean

_BLOCK: Final = 64
"""The number of pages that are kept apart until they are joined: joining many takes as long as joining two."""
_LEVEL: Final = 1

Reason: TypeAlias = str
"""The reason why a check of a matched object was not evaluated: a `SkipReason`, or empty for an evaluated check."""

CheckReasons: TypeAlias = tuple[tuple[Check, Reason], ...]
"""Every check with an outcome, and the reason why it was not evaluated."""

_Key = TypeVar("_Key", bound=Hashable)


class InvocationKey(NamedTuple):
    """Policy, binding and param, by name: workers that read params in another order have the same keys."""

    language: str
    policy: str
    binding: str
    param_namespace: str = ""
    param_name: str = ""


class SetKey(NamedTuple):
    """An invocation, and the checks of the objects in the set."""

    invocation: InvocationKey
    checks: CheckReasons


@dataclass(frozen=True, slots=True)
class ObjectSets(Generic[_Key]):
    """The sets of `count` objects. A key without a set has the empty set."""

    count: int
    sets: Mapping[_Key, int] = field(repr=False)  # Python's repr rejects an int of so many digits

    def group_keys(self) -> dict[int, list[_Key]]:
        """The keys of each different set that is not empty."""
        keys: defaultdict[int, list[_Key]] = defaultdict(list)
        for key, bits in self.sets.items():
            if bits:
                keys[bits].append(key)
        return dict(keys)


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

    def finish(self) -> ObjectSets[_Key]:
        """The sets of all objects of the kind."""
        return concatenate([*self._blocks, *self._pages])


def get_invocation_key(invocation: Invocation) -> InvocationKey:
    """The key of an invocation."""
    param = invocation.param
    names = invocation.policy.language, invocation.policy.name, invocation.binding.name
    return InvocationKey(*names, param.namespace if param else "", param.name if param else "")


def list_reasons(check_results: Iterable[CheckResult]) -> CheckReasons:
    """The checks of some results, and the reason why each was not evaluated."""
    return tuple((result.check, _get_reason(result)) for result in check_results)


def _get_reason(result: CheckResult) -> Reason:
    return result.outcome.reason.value if isinstance(result.outcome, Skipped) else ""


def concatenate(parts: Sequence[ObjectSets[_Key]]) -> ObjectSets[_Key]:
    """The sets of the objects of all parts, one part after another. Equal sets are one int."""
    pieces: defaultdict[_Key, list[tuple[int, int]]] = defaultdict(list)
    offset = 0
    for part in parts:
        for bits, keys in part.group_keys().items():
            piece = offset, bits
            for key in keys:
                pieces[key].append(piece)
        offset += part.count
    joined: dict[tuple[int, ...], int] = {}
    sets: dict[_Key, int] = {}
    for key, key_pieces in pieces.items():
        history = tuple(map(id, key_pieces))
        if history not in joined:
            joined[history] = _join(key_pieces)
        sets[key] = joined[history]
    return ObjectSets(offset, sets)


def _join(pieces: Sequence[tuple[int, int]]) -> int:
    """Pieces at their offsets, in ascending order. Neighbours are joined first, so that few long ints are made."""
    level = list(pieces)
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=False)
        last = level[-1:] if len(level) % 2 else []
        level = [(start, low | high << (end - start)) for (start, low), (end, high) in pairs] + last
    return level[0][1] << level[0][0]


def pack(sets: ObjectSets[SetKey]) -> bytes:
    """The bytes of sets, for staging. Equal sets, invocations and checks are written once."""
    invocations: dict[InvocationKey, int] = {}
    checks: dict[CheckReasons, int] = {}
    rows = [
        [f"{bits:x}", [(_number(invocations, key.invocation), _number(checks, key.checks)) for key in keys]]
        for bits, keys in sets.group_keys().items()
    ]
    check_rows = [
        [(check.kind.value, check.index, clean(check.expression), reason) for check, reason in each] for each in checks
    ]
    names = [[clean(name) for name in key] for key in invocations]
    return zlib.compress(json.dumps([sets.count, names, check_rows, rows], separators=(",", ":")).encode(), _LEVEL)


def unpack(data: bytes) -> ObjectSets[SetKey]:
    """The sets that `pack` wrote."""
    count, names, check_rows, rows = json.loads(zlib.decompress(data))
    invocations = [InvocationKey(*each) for each in names]
    checks = [
        tuple((Check(CheckKind(kind), index, expression), reason) for kind, index, expression, reason in each)
        for each in check_rows
    ]
    sets: dict[SetKey, int] = {}
    for text, keys in rows:
        bits = int(text, 16)
        for invocation, check in keys:
            sets[SetKey(invocations[invocation], checks[check])] = bits
    return ObjectSets(count, sets)


def _number(places: dict[_Key, int], key: _Key) -> int:
    return places.setdefault(key, len(places))


def list_places(bits: int) -> Iterable[int]:
    """The places of the objects of a set, ascending."""
    text = f"{bits:b}"[::-1]
    place = text.find("1")
    while place >= 0:
        yield place
        place = text.find("1", place + 1)
