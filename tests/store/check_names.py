"""The names of checks, which later versions of a policy carry on: slow, by their definition."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeAlias

from scanner.model.outcome import Finding
from tests.store.kept_scan import Kept

Check: TypeAlias = tuple[str, str, str, int]
"""A check as its policy has it: policy, kind, expression, and the number of equal ones before it."""


class CheckNames:
    """The names that the checks of all scans have had so far."""

    def __init__(self) -> None:
        """Begin without a name."""
        self._names: dict[Check, Hashable] = {}

    def carry_on(self, earlier: Kept | None, kept: Kept) -> None:
        """Give every check of the next scan a name: that of the check in the `earlier` scan that it continues, or its own."""
        for policy in kept.policies:
            now = checks_of(kept, policy)
            before = checks_of(earlier, policy) if earlier is not None and policy in earlier.policies else []
            names = {key: self._names[of] for key, of in successors(before, now).items()}
            for key in now:
                if key not in names:
                    known = self._names.get(key)
                    names[key] = known if known not in {None, *names.values()} else _fresh(key, names)
            self._names |= names

    def name(self, kept: Kept, finding: Finding) -> Hashable:
        """The name of the check of a finding."""
        return self._names[check_of(kept, finding)]


def _fresh(key: Check, names: Mapping[Check, Hashable]) -> Hashable:
    """The first name made of a check that no other check has."""
    return next(name for again in range(99) if (name := (key, again)) not in names.values())


def checks_of(kept: Kept, policy: str) -> list[Check]:
    """The checks of a policy, in their order."""
    texts = [text.strip() for text in kept.policies[policy].expressions]
    keys = [(policy, "validation", text, texts[:place].count(text)) for place, text in enumerate(texts)]
    return [*keys, (policy, "matchConditions", "", 0), (policy, "configuration", "", 0)]


def check_of(kept: Kept, finding: Finding) -> Check:
    """The check of a finding."""
    if finding.check.kind.value != "validation":
        return finding.policy, finding.check.kind.value, "", 0
    return checks_of(kept, finding.policy)[finding.check.index]


def successors(before: Sequence[Check], now: Sequence[Check]) -> dict[Check, Check]:
    """The checks that go on, each with the earlier one that it continues."""
    found = {key: key for key in now if key in before}
    for key in now:
        twins = [other for other in now if plain(other) == plain(key) and other not in before]
        earlier = [other for other in before if plain(other) == plain(key) and other not in now]
        if key in twins and len(twins) == len(earlier):
            found[key] = earlier[twins.index(key)]
    stayed = dict(found)
    for key in now:
        if key not in stayed:
            [*left] = neighbours(key, now, stayed)
            rivals = [other for other in now if other not in stayed and neighbours(other, now, stayed) == left]
            kept = {of: of for of in stayed.values()}
            lost = [other for other in before if other not in kept and neighbours(other, before, kept) == left]
            if len(rivals) == len(lost) == 1:
                found[key] = lost[0]
    return found


def neighbours(key: Check, keys: Sequence[Check], stayed: Mapping[Check, Check]) -> list[Check | None]:
    """The earlier forms of the nearest checks before and behind a check that stayed; None is an end."""
    own = [other for other in keys if other[1] == key[1]]
    place = own.index(key)
    behind = next((stayed[other] for other in own[place:] if other in stayed), None)
    return [next((stayed[other] for other in reversed(own[:place]) if other in stayed), None), behind]


def plain(key: Check) -> tuple[str, str, str]:
    """A check without spaces and comments, and without its ordinal."""
    return key[0], key[1], re.sub(r"\s|//.*", "", key[2])
