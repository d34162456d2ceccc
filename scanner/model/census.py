"""The numbers of a scan's findings, in the groups from which reports add them up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from scanner.model.outcome import WouldChange
from scanner.model.policy import PolicyKey

if TYPE_CHECKING:
    from scanner.model.scan import StoredFinding


class Bucket(NamedTuple):
    """The key under which findings are counted. `status` is that of `StoredFinding`."""

    policy: PolicyKey
    namespace: str
    status: str
    denies: bool
    drift: bool


Census: TypeAlias = Mapping[Bucket, int]


def census_of(findings: Iterable[StoredFinding]) -> Census:
    """Count findings."""
    return Counter(map(_bucket, findings))


def _bucket(stored: StoredFinding) -> Bucket:
    finding = stored.finding
    drift = isinstance(finding.outcome, WouldChange)
    return Bucket(finding.policy_key, finding.namespace, stored.status, finding.denies, drift)
