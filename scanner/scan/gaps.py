"""Gaps that concern one policy."""

from __future__ import annotations

from scanner.admission.dispatch import BoundPolicy
from scanner.model.outcome import Gap, GapKind
from scanner.model.policy import VALIDATING


def policy_label(bound: BoundPolicy) -> str:
    """The name of a policy in a gap: `policy NAME`, with its language unless that is ValidatingAdmissionPolicy."""
    language = "" if bound.policy.language == VALIDATING else f" ({bound.policy.language})"
    return f"policy {bound.policy.name}{language}"


def policy_gap(bound: BoundPolicy, why: str) -> Gap:
    """The gap of a policy that Assay cannot evaluate correctly, for a reason."""
    return Gap(GapKind.EVALUATION, policy_label(bound), why)
