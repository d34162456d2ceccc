"""Since when the rules of a scan have had their content."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple


class RuleKey(NamedTuple):
    """A policy, a binding or another rule object. `type` is policy, binding or a value of `RuleType`; only the first two have a language.

    Bindings of two policies may have one name in some languages, so `policy` is the name of the policy of a binding.
    """

    type: str
    language: str
    policy: str
    name: str


class RuleTimes(NamedTuple):
    """The ends of scans that show since when a rule has its content.

    `since` is that of the first of the scans that have this content without a break, and `before` that of the last scan before it,
    which had another content or no such rule: the rule changed in between. It is None if no earlier scan with this scope is kept.
    `changed` are the ends of all scans that found another content than the scan before them, the newest first.
    """

    since: datetime
    before: datetime | None
    changed: tuple[datetime, ...]
