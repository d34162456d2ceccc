"""Continuations: which finding that a scan found first continues one that it did not find again.

Both belong to one problem. The steps are taken in their order, and each finding continues at most one other; what is ambiguous
stays separate, because a wrong continuation would give a new finding the age of another one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from scanner.posture.history.causes import CircumstanceChanges, Coordinates


class LocatedFinding(NamedTuple):
    """A finding of one problem. `number` is its row, `object_id` that of its object, and `place` the name of the object."""

    number: int
    object_id: int
    place: tuple[str, str, str, str]
    coordinates: Coordinates


Pair: TypeAlias = tuple[LocatedFinding, LocatedFinding]
_Step: TypeAlias = Callable[[LocatedFinding], Hashable]


def _key_of_reworded(finding: LocatedFinding) -> Hashable:
    """Return the object and the invocation: equal ones stay when the check has another expression, or another position."""
    return finding.object_id, finding.coordinates


def _key_of_recreated(finding: LocatedFinding) -> Hashable:
    """Return the name of the object and the invocation: equal ones stay when the object is created again."""
    return finding.place, finding.coordinates


_STEPS: Final[tuple[_Step, ...]] = (_key_of_reworded, _key_of_recreated)


def pair_continuations(
    gone: Sequence[LocatedFinding],
    come: Sequence[LocatedFinding],
    comparison: Callable[[LocatedFinding], CircumstanceChanges],
) -> Iterator[Pair]:
    """The pairs of a finding of a problem that is gone and the one that continues it.

    `comparison` returns what changed since the scan that last saw a finding.
    """
    for step in _STEPS:
        pairs = list(_pair_one_to_one(gone, come, step))
        yield from pairs
        gone, come = _drop_paired(gone, come, pairs)
    yield from _pair_renamed(gone, come, comparison)


def _pair_one_to_one(gone: Sequence[LocatedFinding], come: Sequence[LocatedFinding], step: _Step) -> Iterator[Pair]:
    earlier, later = _group_by_step(gone, step), _group_by_step(come, step)
    for key, before in earlier.items():
        now = later.get(key, [])
        if len(before) == len(now) == 1:
            yield before[0], now[0]


def _group_by_step(findings: Sequence[LocatedFinding], step: _Step) -> dict[Hashable, list[LocatedFinding]]:
    groups: defaultdict[Hashable, list[LocatedFinding]] = defaultdict(list)
    for finding in findings:
        groups[step(finding)].append(finding)
    return groups


def _drop_paired(
    gone: Sequence[LocatedFinding], come: Sequence[LocatedFinding], pairs: Sequence[Pair]
) -> tuple[list[LocatedFinding], list[LocatedFinding]]:
    paired = {finding.number for pair in pairs for finding in pair}
    return [each for each in gone if each.number not in paired], [each for each in come if each.number not in paired]


def _pair_renamed(
    gone: Sequence[LocatedFinding],
    come: Sequence[LocatedFinding],
    comparison: Callable[[LocatedFinding], CircumstanceChanges],
) -> Iterator[Pair]:
    """The pairs about one object whose binding or param has another name and the same content."""
    candidates = [
        (before, now)
        for before in gone
        for now in come
        if before.object_id == now.object_id and _differ_in_name_alone(before, now, comparison)
    ]
    for before, now in candidates:
        if sum(before is each or now is other for each, other in candidates) == 1:
            yield before, now


def _differ_in_name_alone(
    before: LocatedFinding, now: LocatedFinding, comparison: Callable[[LocatedFinding], CircumstanceChanges]
) -> bool:
    earlier, later = before.coordinates, now.coordinates
    if earlier.param == later.param:
        return comparison(before).renames_binding(earlier.binding_key, later.binding_key)
    return earlier.binding == later.binding and comparison(before).renames_param(earlier.param, later.param)
