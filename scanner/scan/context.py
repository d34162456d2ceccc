"""The cluster that a scan evaluates, the user of the simulated requests, and the scope."""

from __future__ import annotations

from dataclasses import dataclass

from scanner.admission.auditability import OPERATIONS
from scanner.model.policy import Operation
from scanner.model.population import DEFAULT_KEYS, KeptKeys
from scanner.model.release import Minor
from scanner.model.resource import UserInfo
from scanner.model.scans.scan import (
    FILES,
    ClusterIdentity,
    Scope,
)


@dataclass(frozen=True, slots=True)
class ScanContext:
    """The cluster of a scan, the user, and the scope."""

    cluster: ClusterIdentity
    user: UserInfo
    scope: Scope
    kept: KeptKeys = DEFAULT_KEYS

    @property
    def files(self) -> bool:
        """Return whether the cluster consists of files."""
        return self.cluster.source == FILES

    @property
    def rules(self) -> Minor:
        """The Kubernetes release whose rules apply."""
        return self.cluster.release.rules

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The operations to simulate, by preference: a request uses the first one that a rule matches."""
        return OPERATIONS[self.scope.operation]
