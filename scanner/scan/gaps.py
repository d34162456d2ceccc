"""Gaps that concern one policy."""

from __future__ import annotations

from scanner.admission.dispatch import BoundPolicy
from scanner.model.outcome import Gap, GapKind
from scanner.model.policy import VALIDATING


def policy_label(entry: BoundPolicy) -> str:
    """Return the name of a policy in a gap, with its language unless it is the default language."""
    language = "" if entry.policy.language == VALIDATING else f" ({entry.policy.language})"
    return f"policy {entry.policy.name}{language}"


def policy_gap(entry: BoundPolicy, why: str) -> Gap:
    """Return the gap of a policy that Assay cannot evaluate correctly."""
    return Gap(GapKind.EVALUATION, policy_label(entry), why)
