"""The options of a scan."""

from __future__ import annotations

from dataclasses import dataclass, field

from scanner.model.outcome import Gap
from scanner.model.resource import UserInfo
from scanner.model.scan import (
    Scope,
)
from scanner.policies.kyverno import configuration
from scanner.policies.kyverno.configuration import Configuration
from scanner.policies.kyverno.inventory import Parse
from scanner.policies.kyverno.libraries import Network
from scanner.policies.kyverno.modes import KyvernoMode
from scanner.scan.documents import Manifest
from scanner.scan.policy_set import PolicySet


@dataclass(frozen=True, slots=True)
class KyvernoConfiguration:
    """Where Kyverno's configuration is: in a ConfigMap (namespace and name), or (`given`) with the user."""

    place: tuple[str, str] = (configuration.NAMESPACE, configuration.NAME)
    given: Configuration | None = None

    def wanted(self, rules: PolicySet, mode: KyvernoMode) -> bool:
        """Whether a scan has to read the ConfigMap: only Kyverno's webhook asks it."""
        return self.given is None and mode.server and any(not policy.unauditable() for policy in rules.kyverno)


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked for.

    `manifests` come from policy files: policies, bindings and params; `gaps` are the documents among them that could
    not be read. `assume_bound` names policies and the action to preview them with. `user` makes the simulated requests
    instead of the identity that scans. `kyverno_compat` says in whose manner Kyverno's policies judge: as admission does, or as
    Kyverno's `controller` or `cli` report; `parse` reads YAML for them, `network` makes the requests that they name, and
    `kyverno_configuration` tells what never gets to Kyverno's webhook.
    """

    scope: Scope = field(default_factory=Scope)
    manifests: tuple[Manifest, ...] = ()
    gaps: tuple[Gap, ...] = ()
    cluster_policies: bool = True
    assume_bound: tuple[tuple[str, str], ...] = ()
    user: UserInfo | None = None
    kyverno_compat: str = ""
    parse: Parse | None = None
    network: Network | None = None
    kyverno_configuration: KyvernoConfiguration = KyvernoConfiguration()
