"""The kinds that a policy can match, among those whose lists a scan recorded.

A record has the kind of a list, and rules have the plural of a resource, which no record keeps. So the plural is derived, as
`UnsafeGuessKindToResource` (apimachinery/pkg/api/meta) does. A plural that belongs to no listed kind may be that of any kind whose
derived plural no rule names. So the answer can have a kind too many, but lacks none that the policy matches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from scanner.model.policy import MatchResources, Rule
from scanner.model.scan import Coverage

KindKey: TypeAlias = tuple[str, str]
"""API version and kind."""

_ANY: Final = "*"
_ES: Final = ("s", "x", "ch", "sh")
_SAME: Final = ("endpoints",)
_VOWEL_Y: Final = ("ay", "ey", "oy", "uy")


class CoveredKinds:
    """The kinds of the lists of a scan, and the rules of all its policies."""

    def __init__(self, coverage: Iterable[Coverage], matches: Iterable[MatchResources]) -> None:
        """Note the plurals of the kinds that are listed, and those that rules name."""
        self.kinds = tuple(dict.fromkeys((line.api_version, line.kind) for line in coverage))
        named = {pair for match in matches for rule in match.rules for pair in _named(rule)}
        derived = {(_group(kind), plural_of(kind[1])) for kind in self.kinds}
        self._irregular = {
            kind
            for kind in self.kinds
            if named.isdisjoint((group, plural_of(kind[1])) for group in (_group(kind), _ANY))
        }
        self._known: Mapping[str, frozenset[str]] = {
            group: frozenset(plural for own, plural in derived if own == group) for group, _ in derived
        }

    def of(self, match: MatchResources) -> frozenset[KindKey]:
        """The kinds that a policy with these constraints can match."""
        return frozenset(kind for kind in self.kinds if any(self._possible(rule, kind) for rule in match.rules))

    def _possible(self, rule: Rule, kind: KindKey) -> bool:
        group, version = _group(kind), kind[0].rpartition("/")[2]
        if not (_lists(rule.api_groups, group) and _lists(rule.api_versions, version)):
            return False
        plurals = {resource.partition("/")[0] for resource in rule.resources}
        if plurals & {_ANY, plural_of(kind[1])}:
            return True
        return kind in self._irregular and not plurals <= self._known[group]


def plural_of(kind: str) -> str:
    """The plural of a kind with a regular name."""
    name = kind.lower()
    if name.endswith(_SAME):
        return name
    if name.endswith(_ES):
        return f"{name}es"
    return f"{name[:-1]}ies" if name.endswith("y") and not name.endswith(_VOWEL_Y) else f"{name}s"


def names_group(match: MatchResources, group: str) -> bool:
    """Return whether a rule can match a resource of an API group."""
    return any(_lists(rule.api_groups, group) for rule in match.rules)


def _named(rule: Rule) -> Iterable[tuple[str, str]]:
    return ((group, resource.partition("/")[0]) for group in rule.api_groups for resource in rule.resources)


def _group(kind: KindKey) -> str:
    return kind[0].rpartition("/")[0]


def _lists(allowed: Iterable[str], value: str) -> bool:
    return bool({_ANY, value} & set(allowed))
