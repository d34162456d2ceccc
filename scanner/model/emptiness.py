"""Whether a scan had nothing to evaluate: such a scan is not complete, because silence is never success."""

from __future__ import annotations

from scanner.model.scan import Emptiness, ScanRecord, Scope


def emptiness(*, bound: bool, objects: int, scope: Scope) -> Emptiness:
    """What a scan had none of: no policy is bound, or no object was listed although the user narrowed nothing."""
    if not bound:
        return Emptiness.POLICIES
    return Emptiness.OBJECTS if not objects and scope == Scope() else Emptiness.NONE


def is_empty(record: ScanRecord) -> bool:
    """Return whether a stored scan had nothing to evaluate."""
    bound = any(policy_record.bindings for policy_record in record.policies)
    objects = sum(line.objects for line in record.coverage)
    return emptiness(bound=bound, objects=objects, scope=record.scan.scope) is not Emptiness.NONE
