"""What another engine made of the same expressions on a sample of the objects. It decides nothing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limited:
    """Evaluations that the other engine cannot do, for one known reason; `expressions` are how many different ones."""

    limit: str
    reason: str
    evaluations: int
    expressions: int


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An expression that came to something else, how often, and the first object on which it did.

    `place` is the path of the expression in the manifest; `ours` and `theirs` say what each engine came to, without values that
    may be secret. Verdicts follow ours.
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
    """The comparison of a scan. `percent` of the objects were chosen by their identity; `objects` are those.

    Of the `evaluations`, `agreed` came to the same value or failed in both engines, `limits` has those that the other cannot
    do, `disagreements` the rest; `left_out` counts further expressions that disagree.
    """

    engine: str
    percent: float
    objects: int = 0
    evaluations: int = 0
    agreed: int = 0
    expressions: int = 0
    limits: tuple[Limited, ...] = ()
    disagreements: tuple[Disagreement, ...] = ()
    left_out: int = 0

    @property
    def limited(self) -> int:
        """Evaluations that the other engine cannot do."""
        return sum(it.evaluations for it in self.limits)

    @property
    def disagreed(self) -> int:
        """Evaluations that came to something else."""
        return self.evaluations - self.agreed - self.limited
