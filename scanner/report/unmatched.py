"""The bound policies that match no object, as far as a scan shows that: each kind that they can match was listed completely."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from scanner.model.outcome import GapKind
from scanner.model.policy import PolicyKey
from scanner.model.scan import CoverageState, HealthKind, PolicyRecord, ScanRecord
from scanner.posture.control_facts import PolicyNeeds, needs_of

_HEALTH: Final = frozenset({HealthKind.NO_KIND, HealthKind.NO_OBJECT})
_AUTO: Final = "auto"
_POLICY: Final = ""
"""The binding of an entry about a whole policy."""


def unmatched_policies(record: ScanRecord) -> frozenset[PolicyKey]:
    """These policies; none of a scan that shows a part of the cluster alone, or one of the operations."""
    scope = record.scan.scope
    noted = {(entry.policy_key, entry.binding) for entry in record.health if entry.kind in _HEALTH}
    unmatched = [used.policy.key for used in record.policies if _matches_nothing(used, noted)]
    if scope.is_limited or scope.operation != _AUTO or not unmatched:
        return frozenset()
    # Languages bring the compiler of expressions, which no other metric needs.
    from scanner.policies.language import constraints  # noqa: PLC0415

    needs = needs_of(record, constraints)
    return frozenset(policy for policy in unmatched if _all_listed(needs[policy]))


def _matches_nothing(used: PolicyRecord, noted: Collection[tuple[PolicyKey, str]]) -> bool:
    """Return whether no binding in force has matched an object."""
    key, bindings = used.policy.key, [binding.name for binding in used.bindings if not binding.assumed]
    return bool(bindings) and ((key, _POLICY) in noted or all((key, name) in noted for name in bindings))


def _all_listed(needs: PolicyNeeds) -> bool:
    # A document that cannot be read has no kind.
    gaps = any(gap.kind is not GapKind.DOCUMENT for gap in needs.gaps)
    return not gaps and all(line.state is CoverageState.LISTED for line in needs.coverage)
