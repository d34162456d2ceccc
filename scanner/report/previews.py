"""The results of the bindings that `--assume-bound` added, by policy: they are no violations, because nothing is in force."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from scanner.model.census import Census
from scanner.model.policy import PolicyKey
from scanner.model.scan import ScanRecord
from scanner.report.counts import NOTHING, Counts, counts_by


@dataclass(frozen=True, slots=True)
class Preview:
    """The checks of a policy's assumed bindings, and the number of their findings that admission would refuse."""

    counts: Counts = NOTHING
    refused: int = 0


NO_PREVIEW = Preview()


def previews_of(record: ScanRecord, census: Census) -> Mapping[PolicyKey, Preview]:
    """The previews of the policies that have one."""
    assumed = {binding.key for used in record.policies for binding in used.bindings if binding.assumed}
    counts = counts_by(record.tallies, lambda key: key.policy_key if key.binding_key in assumed else None)
    refused = Counter[PolicyKey]()
    for bucket, number in census.items():
        if bucket.status == "preview" and bucket.denies:
            refused[bucket.policy] += number
    return {policy: Preview(of_policy, refused[policy]) for policy, of_policy in counts.items()}
