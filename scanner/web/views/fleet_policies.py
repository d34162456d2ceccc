"""The policies of all clusters, merged from the numbers of their newest scans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from scanner.model.policy import PolicyKey
from scanner.posture.severity import Severity
from scanner.web.views.fleet_rows import FleetRow
from scanner.web.views.scan_counts import NONE, CountedBinding, CountedPolicy, CountedScan, Numbers

BOUND: Final = "bound"
NOT_BOUND: Final = "not bound"
MISSING: Final = "missing"
OUT_OF_SCOPE: Final = "not in the scope of the scan"
NOT_RECORDED: Final = "has outcomes, but was not recorded"
NOT_SURE: Final = "not found, but the scan is incomplete"


@dataclass(frozen=True)
class PolicyInCluster:
    """A policy in one cluster: `policy` is None if the newest scan does not have it, and `state` tells what that means."""

    row: FleetRow
    counts: CountedScan
    policy: CountedPolicy | None

    @property
    def state(self) -> str:
        """Return whether the policy is bound. A policy that a scan did not read may exist: only a complete list shows that it is missing."""
        if self.policy is not None:
            return BOUND if self.policy.bindings_in_force else NOT_BOUND if self.policy.digest else NOT_RECORDED
        if self.counts.limits_policies:
            return OUT_OF_SCOPE
        return MISSING if self.counts.complete else NOT_SURE

    @property
    def numbers(self) -> Numbers:
        """The open problems."""
        return self.policy.numbers if self.policy else NONE

    @property
    def digest(self) -> str:
        """The digest of the spec, empty if the policy is missing."""
        return self.policy.digest if self.policy else ""

    @property
    def bindings(self) -> tuple[CountedBinding, ...]:
        """The bindings of the policy, with those that the scan assumed."""
        return self.policy.bindings if self.policy else ()


@dataclass(frozen=True)
class FleetPolicy:
    """A policy across clusters; `clusters` are all those with numbers, in their order."""

    key: PolicyKey
    clusters: tuple[PolicyInCluster, ...]

    @property
    def language(self) -> str:
        """The language of the policy."""
        return self.key[0]

    @property
    def name(self) -> str:
        """The name of the policy."""
        return self.key[1]

    @cached_property
    def states(self) -> Counter[str]:
        """The number of clusters in each state."""
        return Counter(each.state for each in self.clusters)

    @property
    def bound_clusters(self) -> int:
        """The number of clusters in which the policy is bound."""
        return self.states[BOUND]

    @property
    def missing_clusters(self) -> int:
        """The number of clusters that do not have the policy."""
        return self.states[MISSING]

    @cached_property
    def versions(self) -> tuple[tuple[str, int], ...]:
        """The digests of its specs with the numbers of clusters, the most frequent one first."""
        numbers = Counter(each.digest for each in self.clusters if each.digest)
        return tuple(sorted(numbers.items(), key=lambda pair: (-pair[1], pair[0])))

    @cached_property
    def numbers(self) -> Numbers:
        """The sums of its open problems."""
        total = NONE
        for each in self.clusters:
            total = total.plus(each.numbers)
        return total

    @property
    def severities(self) -> list[Severity]:
        """Its severities, the worst first: annotations may differ between clusters."""
        return sorted({each.policy.severity for each in self.clusters if each.policy}, key=lambda each: each.rank)


def policies_of_fleet(rows: Iterable[FleetRow]) -> list[FleetPolicy]:
    """The policies that any cluster has, by name and language."""
    counted = _select_counted(rows)
    keys = {key for _, counts in counted for key in counts.policies}
    return [_policy(key, counted) for key in sorted(keys, key=sort_key)]


def policy_of_fleet(key: PolicyKey, rows: Iterable[FleetRow]) -> FleetPolicy | None:
    """One policy across clusters; None if no cluster has it."""
    counted = _select_counted(rows)
    known = any(key in counts.policies for _, counts in counted)
    return _policy(key, counted) if known else None


def sort_key(key: PolicyKey) -> tuple[str, str]:
    """Name and language."""
    return key[1], key[0]


def _select_counted(rows: Iterable[FleetRow]) -> list[tuple[FleetRow, CountedScan]]:
    return [(row, row.counts) for row in sorted(rows, key=name_sort_key) if row.counts is not None]


def _policy(key: PolicyKey, counted: Sequence[tuple[FleetRow, CountedScan]]) -> FleetPolicy:
    return FleetPolicy(key, tuple(PolicyInCluster(row, counts, counts.policies.get(key)) for row, counts in counted))


def name_sort_key(row: FleetRow) -> tuple[str, str]:
    """The key of a list by the names of clusters."""
    return row.cluster.name, row.key


@dataclass(frozen=True, slots=True)
class SharedPolicySet:
    """Clusters whose newest scans have the same policy set digest; it is empty if it is not known."""

    digest: str
    rows: tuple[FleetRow, ...]


def policy_sets(rows: Collection[FleetRow]) -> list[SharedPolicySet]:
    """The clusters by the digest of their policy sets: the largest set first, those without a digest last."""
    sets: dict[str, list[FleetRow]] = {}
    for row, counts in _select_counted(rows):
        sets.setdefault(counts.scan.policy_set_digest, []).append(row)
    ordered = sorted(sets.items(), key=lambda pair: (not pair[0], -len(pair[1]), pair[0]))
    return [SharedPolicySet(digest, tuple(members)) for digest, members in ordered]
