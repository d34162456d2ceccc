"""Refusals that no policy causes: what the server thinks of a mutated object after admission, or other plug-ins during it.

Each has its reason. A refusal is one of these only where Assay says that the policy changes the object: of an object that is
left as it is, the server would have to take what it holds already.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.integration.fuzz.case import Outcome, Refused


@dataclass(frozen=True, slots=True)
class Explained:
    """Refusals with this status and these words."""

    reason: str
    code: int
    words: str

    def covers(self, theirs: Refused) -> bool:
        """Whether a refusal is one of these."""
        return theirs.code == self.code and re.search(self.words, theirs.message, re.DOTALL) is not None


EXPLAINED: tuple[Explained, ...] = (
    Explained("the validation of the kind refuses the mutated object", 422, r"^\S+ \".*\" is invalid: "),
)


def reason(theirs: Outcome, *, changed: bool) -> str | None:
    """Why a refusal says nothing about the prediction, None when nothing explains it."""
    if not changed or not isinstance(theirs, Refused):
        return None
    return next((one.reason for one in EXPLAINED if one.covers(theirs)), None)
