"""The options of a scan."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scanner.admission.auditability import OPERATIONS
from scanner.model.outcome import Gap
from scanner.model.policy import Operation
from scanner.model.population import DEFAULT_KEYS, KeptKeys
from scanner.model.release import Minor
from scanner.model.resource import Kind, UserInfo
from scanner.model.scans.method import Method
from scanner.model.scans.out_of_scope import OutOfScope
from scanner.model.scans.scan import FILES, SILENCE, ClusterIdentity, Scope
from scanner.policies.language import LANGUAGES, Language
from scanner.scan.documents import Manifest

if TYPE_CHECKING:
    from scanner.model.waiver import WaiverSet


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the user.

    `manifests` come from policy files: policies, bindings and params; `gaps` are the documents among them that could not be read.
    Without `cluster_policies` the cluster's policies are not listed, and without `derived_policies` none follows from its namespaces.
    `assume_bound` names policies and the action to preview them with. `user` makes the simulated requests instead of the
    scanner's identity. `languages` are the policy languages that are evaluated, each with its own options. `kept_keys` are the labels
    and annotations of the examined objects that are stored.
    `method` has the circumstances of the scan that only the caller knows, such as the command line.
    `silence` is the longest time in seconds in which the scan may give no sign of life. With `allow_empty` a scan is complete
    although no policy is bound or no object was listed. The cluster was `restored`, if its lists may be older than those of earlier
    scans. With `accept_damage` a scan builds on damaged rows of earlier scans.
    `definitions` are the custom kinds that the policy files define, `outside` their documents that nothing needs, and `notes`
    sentences about them. `waivers` are stored with the scan, unless they are None; they change no
    outcome.
    """

    scope: Scope = field(default_factory=Scope)
    manifests: tuple[Manifest, ...] = ()
    gaps: tuple[Gap, ...] = ()
    cluster_policies: bool = True
    derived_policies: bool = True
    assume_bound: tuple[tuple[str, str], ...] = ()
    user: UserInfo | None = None
    languages: tuple[Language, ...] = LANGUAGES
    kept_keys: KeptKeys = DEFAULT_KEYS
    method: Method = field(default_factory=Method)
    silence: int = SILENCE
    allow_empty: bool = False
    restored: bool = False
    accept_damage: bool = False
    waivers: WaiverSet | None = None
    definitions: tuple[Kind, ...] = ()
    outside: tuple[OutOfScope, ...] = ()
    notes: tuple[str, ...] = ()


# The cluster that a scan evaluates, the user of the simulated requests, and the scope.


@dataclass(frozen=True, slots=True)
class ScanContext:
    """The cluster of a scan, the user, and the scope."""

    cluster: ClusterIdentity
    user: UserInfo
    scope: Scope
    kept_keys: KeptKeys = DEFAULT_KEYS

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
