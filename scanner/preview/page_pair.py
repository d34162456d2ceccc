"""Evaluates one page of objects by two sets of rules, and keeps only what differs: the store of a preview is a comparison.

Policies that the change leaves alone have the same outcomes on both sides. They are evaluated once, and only for pages with a
difference: they tell whether an object is denied anyway.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields, replace
from typing import Final, NamedTuple

from scanner.admission.context import EvaluationContext
from scanner.audit import object_sets
from scanner.audit.page import PageEvaluator
from scanner.audit.population import unpack
from scanner.model.outcome import Gap, SkipReason
from scanner.model.policy import BindingKey, PolicyKey
from scanner.model.population import PopulationMember
from scanner.model.resource import Kind, Page
from scanner.model.scans.scan import PageResult
from scanner.model.scans.tally import OutcomeName
from scanner.policies.plan import KindPlan
from scanner.preview.contested_fields import MutatingSide, add_contested_fields
from scanner.preview.differences import (
    Difference,
    ObjectDifference,
    PolicyDifference,
    SideEffect,
    SideFindings,
    compare,
    find_strictest,
    group_findings,
)
from scanner.preview.object_requests import ObjectRequests
from scanner.preview.workload_risks import NO_RISKS, PageRisks, share_texts

_LEVEL: Final = 1
_WITHOUT_OUTCOME: Final = frozenset({SkipReason.NOT_AUDITABLE.value, SkipReason.REDACTED.value})


class PageChanges(NamedTuple):
    """The objects of a page that the change concerns, and the risks of the requests about its objects."""

    differences: tuple[ObjectDifference, ...]
    risks: PageRisks


@dataclass(frozen=True, slots=True)
class ComparedPage(PageResult):
    """The result of a page, without findings, and its changes: packed, so that they need little memory until every page is listed.

    `not_auditable` counts, by policy, the checks of the rules after the change that only a server can decide.
    """

    changes: bytes = b""
    not_auditable: Mapping[PolicyKey, int] | None = None


def pack_changes(changes: PageChanges) -> bytes:
    """The bytes of the changes of a page: a process of this program reads them, and they are stored nowhere."""
    return zlib.compress(pickle.dumps(tuple(changes), pickle.HIGHEST_PROTOCOL), _LEVEL)


def unpack_changes(packed: bytes) -> PageChanges:
    """The changes that `pack_changes` packed."""
    return PageChanges(*pickle.loads(zlib.decompress(packed)))  # noqa: S301 - see `pack_changes`


@dataclass(frozen=True, slots=True)
class Side:
    """The evaluation of some policies: of one side of the change, or of both. `plans` has the policies by the kind of the list."""

    evaluator: PageEvaluator
    plans: Mapping[Kind, KindPlan]

    def evaluate(self, page: Page, evaluated: AbstractSet[str]) -> PageResult:
        """The results of a page; a kind that no policy of this side matches has no findings."""
        return self.evaluator.evaluate(page, self.plans.get(page.kind) or KindPlan(page.kind, ()), evaluated)

    def group(self, result: PageResult) -> SideFindings:
        """The findings of a page, and what its checks without an outcome could be."""
        possible: dict[PolicyKey, list[tuple[int, SideEffect]]] = {}
        undecided = {key.policy_key for key in result.tallies if key.outcome is OutcomeName.NOT_AUDITABLE}
        undecided |= result.redacted.keys()
        if undecided:
            effects = self._list_effects(result)
            for key, bits in object_sets.unpack(result.sets).sets.items():
                if any(reason in _WITHOUT_OUTCOME for _, reason in key.checks):
                    invocation = key.invocation
                    effect = effects[invocation.language, invocation.policy, invocation.binding]
                    possible.setdefault((invocation.language, invocation.policy), []).append((bits, effect))
        return SideFindings(group_findings(result.findings), possible)

    def _list_effects(self, result: PageResult) -> dict[BindingKey, SideEffect]:
        """The strictest effect of a violation under each binding of the kind of a page; mutating policies have no actions."""
        plans = (plan for kind, plan in self.plans.items() if (kind.api_version, kind.kind) == _kind_of(result))
        bindings = (binding for plan in plans for bound, _ in plan.policies for binding in bound.bindings)
        return {
            binding.key: find_strictest(binding.actions) if binding.actions else SideEffect.CHANGED
            for binding in bindings
        }


@dataclass(frozen=True, slots=True)
class PagePair:
    """Evaluates pages by the rules `before` and `after` the change; `others` are the policies that it leaves alone.

    `requests` are made about the objects of `requested` kinds.
    """

    before: Side
    after: Side
    others: Side
    requests: ObjectRequests
    requested: frozenset[Kind]

    @property
    def context(self) -> EvaluationContext:
        """The context of the evaluation after the change."""
        return self.after.evaluator.context

    def evaluate(self, page: Page, plan: KindPlan, evaluated: AbstractSet[str] = frozenset()) -> ComparedPage:
        """The differences of every object of a page, each evaluated once; objects whose identity is in `evaluated` are left out."""
        del plan
        result, risks = self.after.evaluate(page, evaluated), NO_RISKS
        differences: tuple[ObjectDifference, ...] = ()
        if page.kind in self.before.plans or page.kind in self.after.plans:
            result, differences = self._compare(page, result, evaluated)
        if page.kind in self.requested:
            records = {_identify(each.object): each.object for each in differences}
            risks = self.requests.find_risks(page, result.identities, records)
        result = replace(result, gaps=(*result.gaps, *risks.gaps))
        return _make_compared(result, PageChanges(differences, risks))

    def _compare(
        self, page: Page, after: PageResult, evaluated: AbstractSet[str]
    ) -> tuple[PageResult, tuple[ObjectDifference, ...]]:
        """The results of both sides, and the differences of the objects of a page, given the results of the rules after the change."""
        before = self.before.evaluate(page, evaluated)
        gaps = dict.fromkeys((*before.gaps, *after.gaps))
        sides = self.before.group(before), self.after.group(after)
        needed = any(side.found or side.possible for side in sides)
        members = tuple(map(share_texts, unpack(page.kind, after.examined))) if needed else ()
        differences = tuple(compare(members, *sides, {}))
        if differences and page.kind in self.others.plans:
            compared = {_identify(each.object) for each in differences}
            unchanged = self.others.evaluate(page, {*evaluated, *after.identities} - compared)
            gaps |= dict.fromkeys(unchanged.gaps)
            differences = tuple(compare(members, *sides, group_findings(unchanged.findings)))
        result = replace(
            after,
            evaluated=max(before.evaluated, after.evaluated),
            gaps=tuple(gaps),
            redacted=_add_redacted(before.redacted, after.redacted),
        )
        mutating = (
            MutatingSide(side.plans.get(page.kind), side.evaluator.context) for side in (self.before, self.after)
        )
        contested = add_contested_fields(differences, page, *mutating)
        return result, tuple(_list_certain(contested, (*before.gaps, *after.gaps)))


def _identify(member: PopulationMember) -> str:
    """As `audit.page.get_identity` does."""
    return member.uid or f"{member.namespace}/{member.name}"


def _list_certain(differences: Iterable[ObjectDifference], gaps: Sequence[Gap]) -> Iterator[ObjectDifference]:
    """The differences; those of an object that one side could not evaluate completely are undecided."""
    for each in differences:
        kind, name = each.object.kind, "/".join(filter(None, (each.object.namespace, each.object.name)))
        prefix = f"{kind.api_version}/{kind.kind}"
        unknown = [gap for gap in gaps if gap.where in (prefix, f"{prefix} {name}")]
        yield replace(each, policies=tuple(map(_doubt, each.policies))) if unknown else each


def _doubt(each: PolicyDifference) -> PolicyDifference:
    return replace(each, difference=Difference.UNDECIDED)


def _make_compared(result: PageResult, changes: PageChanges) -> ComparedPage:
    values = {field.name: getattr(result, field.name) for field in fields(PageResult)}
    values |= {"tallies": {}, "findings": (), "places": (), "sets": b"", "examined": b""}
    return ComparedPage(**values, changes=pack_changes(changes), not_auditable=_count_not_auditable(result))


def _count_not_auditable(result: PageResult) -> dict[PolicyKey, int]:
    counts: dict[PolicyKey, int] = {}
    for key, number in result.tallies.items():
        if key.outcome is OutcomeName.NOT_AUDITABLE:
            counts[key.policy_key] = counts.get(key.policy_key, 0) + number
    return counts


def _kind_of(result: PageResult) -> tuple[str, str]:
    return result.api_version, result.kind


def _add_redacted(before: Mapping[PolicyKey, int], after: Mapping[PolicyKey, int]) -> dict[PolicyKey, int]:
    """The checks that a snapshot does not let decide, of the side that has more of them."""
    return {key: max(before.get(key, 0), after.get(key, 0)) for key in {**before, **after}}
