"""The server's own reports of a validating policy: its type check, and its conditions.

Source of truth: `status` of ValidatingAdmissionPolicy; no other policy has an `observedGeneration`, and MutatingAdmissionPolicy
has no status at all. kube-controller-manager checks the types of the version that `observedGeneration` names; its warnings are
about the policy as it is only when that is the current generation.
"""

from __future__ import annotations

from collections.abc import Iterator

from scanner.model.json import JsonObject, as_list, as_text, dig
from scanner.model.policy import Policy
from scanner.model.scans.scan import Health, HealthKind


def of_policy(policy: Policy) -> Iterator[Health]:
    """The health entries from `status.typeChecking`, `status.conditions` and `status.observedGeneration` of a policy."""
    name = policy.name
    if _stale(policy):
        yield Health(HealthKind.STALE_STATUS, name, "", _generations(policy.manifest), policy.language)
    else:
        warnings = as_list(dig(policy.manifest, "status", "typeChecking", "expressionWarnings"))
        for item in warnings:
            where, warning = as_text(dig(item, "fieldRef")), as_text(dig(item, "warning")).strip()
            yield Health(HealthKind.TYPE_WARNING, name, "", f"{where}: {warning}", policy.language)
    for item in as_list(dig(policy.manifest, "status", "conditions")):
        if as_text(dig(item, "status")) != "True":
            message = ": ".join(filter(None, (as_text(dig(item, "reason")), as_text(dig(item, "message")))))
            what = f"{as_text(dig(item, 'type'))} is {as_text(dig(item, 'status')) or 'not known'}"
            yield Health(HealthKind.CONDITION, name, "", f"{what} ({message})" if message else what, policy.language)


def _stale(policy: Policy) -> bool:
    """Return whether the status is about another generation; a file that was never on a server has neither."""
    generation = dig(policy.manifest, "metadata", "generation")
    observed = dig(policy.manifest, "status", "observedGeneration")
    return isinstance(generation, int) and observed != generation


def _generations(manifest: JsonObject) -> str:
    generation = dig(manifest, "metadata", "generation")
    observed = dig(manifest, "status", "observedGeneration")
    if not isinstance(observed, int):
        return f"no controller has checked its types yet (its generation is {generation}): is kube-controller-manager well?"
    return f"its types were checked as of generation {observed}, and it is at {generation}: the warnings are not shown"
