"""A right that a list or a read lacked, as the sentence that states it, and read back from the reason of a gap.

The reasons of gaps are stored as sentences, and those of other servers' failures quote texts of these servers. So a right is read
only from a sentence that begins as one here, after at most one clause: a quoted text has at least two before it.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_SENTENCE: Final = re.compile(
    r"(?:[^:]*: )?cannot (list|get) ([\w./-]+)(?: in namespace ([\w.-]+))?: forbidden for (.+?)\. Grant `\1` on .*",
    re.DOTALL,
)


class MissingRight(NamedTuple):
    """A verb on a resource, in a namespace or (empty) in all, that a user lacks."""

    verb: str
    resource: str
    namespace: str
    user: str

    @property
    def right(self) -> str:
        """The right alone: `list configmaps in namespace settings`."""
        return f"{self.verb} {self._target}"

    def __str__(self) -> str:
        """The refusal and its remedy, without the full stop."""
        return f"cannot {self.right}: forbidden for {self.user}. Grant `{self.verb}` on {self._target}"

    @property
    def _target(self) -> str:
        return f"{self.resource} in namespace {self.namespace}" if self.namespace else self.resource


def parse_missing_right(why: str) -> MissingRight | None:
    """The right that the reason of a gap names, or None for a gap with another reason."""
    match = _SENTENCE.fullmatch(why)
    return MissingRight(match[1], match[2], match[3] or "", match[4]) if match else None
