"""Whether a scan had nothing to evaluate: such a scan is not complete, because silence is never success."""

from __future__ import annotations

from scanner.model.scan import ScanRecord, Scope


def had_nothing_to_evaluate(*, bound: bool, objects: int, scope: Scope) -> bool:
    """Return whether no policy is bound, or no object was listed although the user narrowed nothing."""
    return not bound or (not objects and scope == Scope())


def is_empty(record: ScanRecord) -> bool:
    """Return whether a stored scan had nothing to evaluate."""
    bound = any(policy_record.bindings for policy_record in record.policies)
    objects = sum(line.objects for line in record.coverage)
    return had_nothing_to_evaluate(bound=bound, objects=objects, scope=record.scan.scope)
