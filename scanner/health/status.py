"""Notes on policies and bindings that are being deleted, from their metadata.

Source of truth: `metadata.deletionTimestamp`; the server evaluates an object until its last finalizer is gone.
"""

from __future__ import annotations

from collections.abc import Iterator

from scanner.model.json import JsonObject, dig
from scanner.model.policy import Binding, Policy
from scanner.model.scans.scan import Health, HealthKind

_LEAVING = "it is being deleted, and the server evaluates it until it is gone"


def of_policy(policy: Policy) -> Iterator[Health]:
    """A note for a policy that is being deleted."""
    if _deleting(policy.manifest):
        yield Health(HealthKind.NOTE, policy.name, "", _LEAVING, policy.language)


def of_binding(binding: Binding) -> Iterator[Health]:
    """A note for a binding that is being deleted."""
    if _deleting(binding.manifest):
        yield Health(HealthKind.NOTE, binding.policy_name, binding.name, _LEAVING, binding.language)


def _deleting(manifest: JsonObject) -> bool:
    return dig(manifest, "metadata", "deletionTimestamp") is not None
