"""Parts of findings and problems as JSON values."""

from __future__ import annotations

from typing import TypeAlias, Union

from scanner.model.cause import Cause
from scanner.model.evidence import Evidence
from scanner.model.json import Json
from scanner.model.outcome import Check, WouldChange
from scanner.model.population import Workload
from scanner.posture.waivers import AppliedWaiver

Plain: TypeAlias = Union[Json, "dict[str, Plain]", "list[Plain]"]


def check_json(check: Check, check_id: str | None) -> dict[str, Plain]:
    """A check of a policy; its id is null if it is not one of this scan's, as that of a resolved finding may be."""
    return {"id": check_id, "kind": str(check.kind), "index": check.index, "expression": check.expression}


def waiver_json(waiver: AppliedWaiver | None) -> Plain:
    """A waiver as a JSON object, or null if none applies."""
    if waiver is None:
        return None
    return {"name": waiver.name, "state": waiver.state.value, "until": waiver.until.isoformat()}


def cause_json(cause: Cause | None) -> Plain:
    """A cause as a JSON object, or null if nothing changed."""
    return None if cause is None else {"kind": cause.kind.value, "also": [kind.value for kind in cause.also]}


def workload_json(workload: Workload) -> dict[str, Plain]:
    """A workload as a JSON object."""
    return {
        "apiVersion": workload.api_version,
        "kind": workload.kind,
        "namespace": workload.namespace,
        "name": workload.name,
        "derived": workload.derived,
    }


def evidence_json(evidence: Evidence) -> Plain:
    """The evidence, or null for a finding without evidence."""
    if not evidence:
        return None
    reasons: list[Plain] = [
        {
            "expression": reason.expression,
            "value": None if reason.erred else reason.value,
            "error": reason.value if reason.erred else None,
            "path": reason.path,
            "variable": reason.variable,
        }
        for reason in evidence.reasons
    ]
    return {"reasons": reasons, "leftOut": evidence.left_out, "excerpt": evidence.excerpt or None}


def drift_json(outcome: WouldChange) -> dict[str, Plain]:
    """The patches of a change, in the form of RFC 6902."""
    return {
        "patch": [change.json() for change in outcome.patch],
        "converges": outcome.converges,
        "together": [change.json() for change in outcome.together],
        "orderMatters": outcome.order_matters,
        "undone": outcome.undone,
        "refused": outcome.refused,
    }
