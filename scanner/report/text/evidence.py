"""Evidence as lines of text: `c.image is "nginx:latest" (spec.containers[1].image)`."""

from __future__ import annotations

from collections.abc import Iterator

from scanner.model.outcome import Evidence, Reason
from scanner.report.text.numbers import plural


def evidence_lines(evidence: Evidence) -> Iterator[str]:
    """A line for each reason, and a line with the number of those left out."""
    yield from map(_line, evidence.reasons)
    if evidence.left_out:
        yield f"and {plural(evidence.left_out, 'more reason')}"


def lines_with_excerpt(evidence: Evidence) -> Iterator[str]:
    """The lines of `evidence_lines`, and a line with the excerpt of the object."""
    yield from evidence_lines(evidence)
    if evidence.excerpt:
        yield f"excerpt: {evidence.excerpt}"


def describe_value(reason: Reason) -> str:
    """The value that decided beside its field: `spec.replicas: 5`, `spec.hostNetwork: not set`, or a condition with its field."""
    if reason.expression.startswith("has("):
        return f"{reason.path}: {'set' if reason.value == 'true' else 'not set'}"
    is_condition = (
        reason.value in {"true", "false"}
        and reason.path.rpartition(".")[2] not in reason.expression.rpartition(".")[2:]
    )
    return _line(reason) if is_condition else f"{reason.path}: {reason.value}"


def _line(reason: Reason) -> str:
    origin = f"in variables.{reason.variable}: " if reason.variable else ""
    if not reason.expression:
        return reason.value
    verb = "failed:" if reason.erred else "is"
    named = reason.path.startswith("variables.") or reason.expression in (reason.path, f"object.{reason.path}")
    where = f" ({reason.path})" if reason.path and not named else ""
    return f"{origin}{reason.expression} {verb} {reason.value}{where}"
