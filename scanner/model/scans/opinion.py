"""The second opinion: the results of another engine for the same expressions on a sample of the objects."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limitation:
    """Evaluations that the other engine does not support, for one known reason; `expressions` counts different expressions."""

    limit: str
    reason: str
    evaluations: int
    expressions: int


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An expression with different results, their number, and the first object with a difference.

    `place` is the path of the expression in the manifest; `ours` and `theirs` describe the results of both engines, without
    values that may be secret. Verdicts follow ours.
    """

    policy: str
    language: str
    place: str
    expression: str
    evaluations: int
    object: str
    ours: str
    theirs: str


@dataclass(frozen=True, slots=True)
class Opinion:
    """The comparison of a scan. The sample has `percent` of the objects, chosen by their identity; `objects` is their number.

    Of the `evaluations`, `agreed` have the same value or an error in both engines; `limits` has those that the other engine does
    not support, `disagreements` the rest. `left_out` counts further expressions with differences.
    """

    engine: str
    percent: float
    objects: int = 0
    evaluations: int = 0
    agreed: int = 0
    expressions: int = 0
    limits: tuple[Limitation, ...] = ()
    disagreements: tuple[Disagreement, ...] = ()
    left_out: int = 0

    @property
    def limited(self) -> int:
        """Evaluations that the other engine does not support."""
        return sum(limit.evaluations for limit in self.limits)

    @property
    def disagreed(self) -> int:
        """Evaluations with different results."""
        return self.evaluations - self.agreed - self.limited
