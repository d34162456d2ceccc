"""The gaps of discovery that a scan needs, apart from the items that no bound policy can match: those are out of scope.

Upstream: `matchConstraints` of `admissionregistration.k8s.io/v1`. An item is out of scope only if its group and its kind prove that
no rule of a bound policy matches it, and that nothing else reads it: not as a policy, a param, a Namespace or a definition, and not
in an expression. Where anything is in doubt, the item stays a gap.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from scanner.admission.dispatch import BoundPolicy
from scanner.model.outcome import Gap, GapKind
from scanner.model.policy import Operation
from scanner.model.population import GroupKind
from scanner.model.resource import Kind
from scanner.model.scans.out_of_scope import OutOfScope, Unneeded
from scanner.policies import manifest
from scanner.policies.bound_language import BoundLanguage
from scanner.policies.language import Language, list_document_kinds
from scanner.posture.policy_kinds import may_match
from scanner.scan.edges import Discovery

_DECIDING: Final = frozenset({("", "Namespace"), ("apiextensions.k8s.io", "CustomResourceDefinition")})
"""The kinds whose objects decide about the objects of other kinds."""
_NO_RULE: Final = "no rule of a bound policy can match"
_CORE_VERSION: Final = re.compile(r"v[0-9][a-z0-9]*")
_ROOTS: Final = ("/api", "/apis")


def list_policy_kinds(languages: Iterable[Language], kinds: Sequence[Kind]) -> frozenset[GroupKind]:
    """The kinds of policies, of bindings and of what they rely on."""
    languages = tuple(languages)
    custom = (kind for language in languages for kind in language.custom_kinds)
    names = (name for language in languages for name in language.names)
    builtin = ((manifest.GROUP, kind) for name in names for kind in (name, f"{name}Binding"))
    return frozenset(
        {*((kind.group, kind.kind) for kind in (*custom, *list_document_kinds(languages, kinds))), *builtin}
    )


def split_gaps(
    discovery: Discovery,
    languages: Iterable[BoundLanguage],
    kinds_of_policies: frozenset[GroupKind],
    operations: tuple[Operation, ...],
    *,
    policies_known: bool,
) -> tuple[tuple[Gap, ...], tuple[OutOfScope, ...]]:
    """The gaps of discovery that may concern bound policies, and the items that do not.

    Without `policies_known`, some policies could not be listed, and every gap may concern one of them.
    """
    concerns = {gap: _find_concern(gap, discovery) for gap in discovery.gaps}
    if not policies_known or _hides_policies(concerns, kinds_of_policies):
        return discovery.gaps, discovery.outside
    needs = _ScanNeeds(tuple(languages), kinds_of_policies, operations, discovery.kinds)
    needed = {concern: concern is None or needs.may_include(*concern) for concern in {*concerns.values()}}
    gaps: list[Gap] = []
    outside: list[OutOfScope] = []
    for gap, concern in concerns.items():
        if concern is None or needed[concern]:
            gaps.append(gap)
        else:
            outside.append(_set_aside(gap, concern))
    return tuple(gaps), (*discovery.outside, *outside)


def _hides_policies(concerns: Mapping[Gap, GroupKind | None], kinds_of_policies: frozenset[GroupKind]) -> bool:
    """Return whether an API group that did not answer may serve policies. A document that could not be read is a single policy."""
    unanswered = (concern for gap, concern in concerns.items() if gap.kind is GapKind.DISCOVERY)
    groups = {group for group, _ in kinds_of_policies}
    return any(concern is None or concern[0] in groups for concern in unanswered)


def _find_concern(gap: Gap, discovery: Discovery) -> GroupKind | None:
    """The group and the kind that a gap concerns; an empty kind stands for every kind of the group, None for any group."""
    if gap.kind is not GapKind.DISCOVERY:
        return discovery.kinds_of_gaps.get(gap)
    if gap.where in _ROOTS or not gap.where:
        return None
    # A name without a slash is a version of the core group, or a group of which no version is known.
    return ("" if _CORE_VERSION.fullmatch(gap.where) else gap.where.partition("/")[0], "")


def _set_aside(gap: Gap, concern: GroupKind) -> OutOfScope:
    group, kind = concern
    if gap.kind is GapKind.DISCOVERY:
        return OutOfScope(Unneeded.API_GROUP, gap.where, f"{_NO_RULE} the kinds of this group ({gap.why})")
    kind_text = f"{kind or 'any kind'} of the group {group}" if group else f"{kind or 'any kind'} of the core group"
    return OutOfScope(Unneeded.DOCUMENT, gap.where, f"{_NO_RULE} {kind_text} ({gap.why})")


class _ScanNeeds(Struct, frozen=True):
    """All that a scan needs to know."""

    languages: tuple[BoundLanguage, ...]
    kinds_of_policies: frozenset[GroupKind]
    operations: tuple[Operation, ...]
    kinds: tuple[Kind, ...]

    def may_include(self, group: str, kind: str) -> bool:
        """Return whether objects of a kind, or of every kind of a group, may decide or be evaluated."""
        of_policy = any(group == policy[0] and kind in ("", policy[1]) for policy in self.kinds_of_policies)
        misspelt = (manifest.GROUP, kind) in self.kinds_of_policies
        if of_policy or misspelt or self._decides(group, kind):
            return True
        plurals = frozenset(each.plural for each in self.kinds if (each.group, each.kind) == (group, kind))
        bound_policies = (bound for language in self.languages for bound in language.bound)
        return any(self._matches(bound, group, kind, plurals) for bound in bound_policies) or any(
            read in (group, "*") for language in self.languages for read in language.read_groups()
        )

    def _matches(self, bound: BoundPolicy, group: str, kind: str, plurals: Collection[str]) -> bool:
        policy = bound.policy
        param = policy.param_kind
        if param and param.api_version.rpartition("/")[0] == group and kind in ("", param.kind):
            return True
        rules = policy.match.rules if policy.match else ()
        if may_match(rules, group, kind, plurals=plurals, operations=self.operations):
            return True
        # The kind of a document that no cluster serves may be a typing error: rules about its group may be about it.
        group_rules = [rule for rule in rules if not plurals and {"*", group}.intersection(rule.api_groups)]
        return may_match(group_rules, group, "", operations=self.operations)

    @staticmethod
    def _decides(group: str, kind: str) -> bool:
        """Return whether objects of the kind, or the objects in a list of another kind, decide about other objects."""
        if kind.endswith("List"):
            return True
        return any(group == decisive[0] and kind in ("", decisive[1]) for decisive in _DECIDING)
