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


def _line(reason: Reason) -> str:
    origin = f"in variables.{reason.variable}: " if reason.variable else ""
    if not reason.expression:
        return reason.value
    verb = "failed:" if reason.erred else "is"
    named = reason.path.startswith("variables.") or reason.expression in (reason.path, f"object.{reason.path}")
    where = f" ({reason.path})" if reason.path and not named else ""
    return f"{origin}{reason.expression} {verb} {reason.value}{where}"
