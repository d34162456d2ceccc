"""The scores of owners: of the checks on the objects of one team."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from scanner.model.scan import OwnedTally, TallyKey
from scanner.posture.score import PartSums, Score, Scores


def owner_scores(tallies: Iterable[OwnedTally], scores: Scores) -> dict[str, Score]:
    """The score of each owner in some tallies; the empty name stands for objects without an owner.

    A scan without tallies, such as one of an older version, has no scores.
    """
    parts: defaultdict[str, PartSums] = defaultdict(PartSums)
    for tally in tallies:
        if scores.counts(tally.key):
            weight = scores.weight(tally.key.policy_key)
            for owner, number in tally.numbers.items():
                parts[owner].count(tally.key, number, weight)
    return {owner: scores.of_part(part) for owner, part in parts.items()}


def without_waived(tallies: Iterable[OwnedTally], waived: Mapping[str, Mapping[TallyKey, int]]) -> Iterator[OwnedTally]:
    """The tallies without waived checks, which are counted by owner and by the key of their tally."""
    for tally in tallies:
        key = tally.key
        left = {owner: number - waived.get(owner, {}).get(key, 0) for owner, number in tally.numbers.items()}
        yield OwnedTally(key, left)
