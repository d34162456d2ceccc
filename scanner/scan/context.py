"""Which cluster a scan evaluates, for which user, and in which scope."""

from __future__ import annotations

from dataclasses import dataclass

from scanner.admission.auditability import OPERATIONS
from scanner.model.policy import Operation
from scanner.model.release import Minor
from scanner.model.resource import UserInfo
from scanner.model.scan import (
    ClusterIdentity,
    Scope,
)


@dataclass(frozen=True, slots=True)
class ScanContext:
    """Which cluster is looked at, by whom, and what for."""

    cluster: ClusterIdentity
    user: UserInfo
    scope: Scope

    @property
    def files(self) -> bool:
        """Whether the cluster is made of files."""
        return self.cluster.source == "files"

    @property
    def rules(self) -> Minor:
        """The Kubernetes release whose rules judge."""
        return self.cluster.release.rules

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The operations of the simulated requests; the first that a rule names is taken."""
        return OPERATIONS[self.scope.operation]
