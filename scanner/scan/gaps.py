"""Gaps that concern one policy."""

from __future__ import annotations

from scanner.admission.dispatch import BoundPolicy
from scanner.model.outcome import Gap, GapKind
from scanner.model.policy import VALIDATING


def policy_label(entry: BoundPolicy) -> str:
    """Return the name of a policy in a gap, with its language where it is not the usual one."""
    language = "" if entry.policy.language == VALIDATING else f" ({entry.policy.language})"
    return f"policy {entry.policy.name}{language}"


def policy_gap(entry: BoundPolicy, why: str) -> Gap:
    """What becomes of a policy that could only be judged wrongly."""
    return Gap(GapKind.EVALUATION, policy_label(entry), why)
