"""Gaps that concern one policy."""

from __future__ import annotations

from scanner.admission.dispatch import BoundPolicy
from scanner.model.outcome import Gap, GapKind
from scanner.model.policy import policy_label


def policy_gap(bound: BoundPolicy, why: str) -> Gap:
    """The gap of a policy that Assay cannot evaluate correctly, for a reason."""
    return Gap(GapKind.EVALUATION, policy_label(bound.policy.key), why)
