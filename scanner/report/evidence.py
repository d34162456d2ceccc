"""Why a finding is one, in lines that people read: `c.image is "nginx:latest" (spec.containers[1].image)`."""

from __future__ import annotations

from collections.abc import Iterator

from scanner.model.evidence import Evidence, Reason
from scanner.report.words import plural


def evidence_lines(evidence: Evidence) -> Iterator[str]:
    """A line for each reason, and one for those that were left out."""
    yield from map(_line, evidence.reasons)
    if evidence.left_out:
        yield f"and {plural(evidence.left_out, 'more reason')} like these"


def _line(reason: Reason) -> str:
    whose = f"in variables.{reason.variable}: " if reason.variable else ""
    if not reason.expression:
        return reason.value
    said = "failed:" if reason.erred else "is"
    named = reason.path.startswith("variables.") or reason.expression in (reason.path, f"object.{reason.path}")
    where = f" ({reason.path})" if reason.path and not named else ""
    return f"{whose}{reason.expression} {said} {reason.value}{where}"
