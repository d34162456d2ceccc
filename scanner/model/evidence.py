"""Why a check came to its outcome: what a finding says of the values that decided it, without the object."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reason:
    """One part of an expression that decided, and what it came to.

    `value` is text as CEL writes it, cut and redacted, or the text of an error where `erred`. `path` is where in the object
    the value stands (`spec.containers[2].image`), or below the name of another document (`params.data.limit`); empty for what
    was computed. `variable` names the policy variable in whose expression the part stands.
    """

    expression: str
    value: str
    path: str = ""
    variable: str = ""
    erred: bool = False


@dataclass(frozen=True, slots=True)
class Evidence:
    """The reasons in the order of evaluation, and how many more there are."""

    reasons: tuple[Reason, ...] = ()
    left_out: int = 0

    def __bool__(self) -> bool:
        """Whether there is anything to say."""
        return bool(self.reasons)


NO_EVIDENCE = Evidence()
