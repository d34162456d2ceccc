"""The fast path for the ordinary case: an object that passes a policy is only counted.

Most objects pass most policies, and most facts that decide whether a policy evaluates an object (rules, selectors of
namespaces, bindings, the size below which the cost need not be counted) are the same for all objects of a kind in a
namespace. They are decided once; for each object, only a few generated functions are called. Objects that do not
simply pass are evaluated check by check; `judge` evaluates only the rest, whose cost must be counted or whose result depends
on more inputs, and does not depend on this module.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from scanner.admission.context import EvaluationContext
from scanner.admission.dispatch import BoundPolicy, InvocationResult, requests
from scanner.audit.fast_eligibility import choice_of, sees_data, traits_of
from scanner.audit.fast_policy import SKIPS, BindingChoice, FastPolicy, Inputs, NotPassed, PassTest
from scanner.model.outcome import Check
from scanner.model.policy import BindingKey
from scanner.model.resource import Kind, Resource
from scanner.model.scan import OutcomeName, TallyKey
from scanner.policies.plan import KindPlan

_OFTEN = 64
"""The number of objects with an exception after which the policy uses its fallback."""


class MutatingPolicy(NamedTuple):
    """A policy that may change objects, and its fast form or None."""

    bound: BoundPolicy
    original: Kind
    quick: FastPolicy | None

    def invocations(self, resource: Resource, world: EvaluationContext) -> Iterable[InvocationResult]:
        """The invocations of the policy for an object, not yet evaluated."""
        if self.quick is None:
            return requests(self.bound, resource, self.original, world)
        request = self.quick.request(resource)
        return [InvocationResult(it, self.quick.operation, resource, (), request) for it in self.quick.invocations]


class NamespacePolicies:
    """The policies for the objects of a namespace: those of the fast path, and those for `judge`.

    Namespaces to which the same policies apply share one instance.
    """

    def __init__(
        self,
        quicks: Iterable[FastPolicy],
        judged: Iterable[tuple[BoundPolicy, Kind]],
        mutating: Iterable[MutatingPolicy] = (),
    ) -> None:
        """Group policies with equal inputs, which are built once for each object.

        `mutating` are all policies that may change an object, in their order, on the fast path or not.
        """
        self.mutating = tuple(mutating)
        groups: dict[tuple[object, ...], list[FastPolicy]] = {}
        for quick in quicks:
            groups.setdefault(quick.needs, []).append(quick)
        self._groups = tuple(groups.values())
        self._tests: dict[int, tuple[tuple[Callable[[Resource], Inputs], tuple[PassTest, ...]], ...]] = {}
        self._raised: Counter[FastPolicy] = Counter()
        self.quicks = tuple(quick for group in self._groups for quick in group)
        self.judged = tuple(judged)

    def held_back(self, resource: Resource, size: int, skipped: Counter[FastPolicy]) -> list[NotPassed]:
        """The policies of the fast path that an object does not simply pass; `size` is the length of its JSON text in bytes.

        Policies that evaluate nothing, because a match condition is false, are counted as `skipped`.
        """
        groups = self._tests.get(size.bit_length())
        if groups is None:
            groups = self._tests[size.bit_length()] = self._of_size(1 << size.bit_length())
        held: list[NotPassed] = []
        for made, tests in groups:
            inputs = made(resource)
            for test in tests:
                try:
                    answer = test[0](inputs)
                    if answer is True:
                        continue
                    if answer is SKIPS:
                        skipped[test[1]] += 1
                        continue
                except Exception:  # noqa: BLE001 - a later evaluation raises any error again and records it
                    self._raise(test.quick)
                held.append(NotPassed(test, inputs))
        return held

    def _raise(self, quick: FastPolicy) -> None:
        """Count an exception of a function; after many, use a form that does not raise, or the exact evaluator."""
        self._raised[quick] += 1
        if self._raised[quick] == _OFTEN:
            quick.use_fallback()
            self._tests.clear()

    def _of_size(self, size: int) -> tuple[tuple[Callable[[Resource], Inputs], tuple[PassTest, ...]], ...]:
        return tuple((group[0].inputs, tuple(quick.test(size) for quick in group)) for group in self._groups)


class NamespaceCounts:
    """The counts of one namespace since they were last emptied."""

    __slots__ = ("_held", "_namespace", "_others", "_ruled", "_seen", "_skipped", "shape")

    def __init__(self, namespace: str, shape: NamespacePolicies) -> None:
        """Begin with empty counts."""
        self.shape = shape
        self._namespace = namespace
        self._seen = 0
        self._held: Counter[FastPolicy] = Counter()
        self._ruled: Counter[FastPolicy] = Counter()
        self._skipped: Counter[FastPolicy] = Counter()
        self._others: Counter[tuple[FastPolicy, Check, OutcomeName]] = Counter()

    def held_back(self, resource: Resource, size: int) -> list[NotPassed]:
        """See `NamespacePolicies.held_back`. Policies with false conditions are counted as skipped, all others as passed."""
        self._seen += 1
        held = self.shape.held_back(resource, size, self._skipped)
        for one in held:
            self._held[one.test.quick] += 1
        return held

    def rule(self, quick: FastPolicy, outcomes: Iterable[tuple[Check, OutcomeName]]) -> None:
        """Count the outcomes of a policy that held an object back."""
        self._ruled[quick] += 1
        for check, outcome in outcomes:
            self._others[quick, check, outcome] += 1

    def empty_into(self, tallies: Counter[TallyKey], matched: Counter[BindingKey], kind: Kind) -> None:
        """Add the counts: outcomes, and the objects that each binding matched."""
        for quick in self.shape.quicks:
            skipped = self._skipped[quick]
            passed = self._seen - self._held[quick] - skipped
            counts = [(check, OutcomeName.PASSED, passed) for check in quick.checks] if passed else []
            counts += [(check, OutcomeName.SKIPPED, skipped) for check in quick.checks] if skipped else []
            counts += [(check, name, number) for (one, check, name), number in self._others.items() if one is quick]
            for binding in quick.bindings:
                matched[binding.key] += passed + skipped + self._ruled[quick]
                for check, outcome, number in counts:
                    tallies[quick.key(binding, check, outcome, kind, self._namespace)] += number
        self._seen = 0
        for counter in (self._held, self._ruled, self._skipped, self._others):
            counter.clear()


class FastPath:
    """The policies of one list, by namespace. Counts its outcomes until they are emptied."""

    def __init__(self, world: EvaluationContext, plan: KindPlan) -> None:
        """Take the policies of a list."""
        self._world = world
        self._plan = plan
        self._traits = [traits_of(bound, plan.kind) for bound, _ in plan.policies]
        self._everywhere: dict[int, BindingChoice | None] = {}
        self._quicks: dict[tuple[object, ...], FastPolicy | None] = {}
        self._shapes: dict[tuple[FastPolicy | None, ...], NamespacePolicies] = {}
        self._meshes: dict[str, NamespaceCounts] = {}
        self._touched: dict[str, NamespaceCounts] = {}
        self.withholds = (plan.kind.group, plan.kind.kind) == ("", "Secret") and not any(map(sees_data, plan.policies))
        """True for Secrets whose data no policy reads."""

    def mesh(self, namespace: str) -> NamespaceCounts:
        """The policies for the objects of a namespace."""
        mesh = self._touched.get(namespace)
        if mesh is None:
            mesh = self._meshes.get(namespace) or NamespaceCounts(namespace, self._shape(namespace))
            self._meshes[namespace] = self._touched[namespace] = mesh
        return mesh

    def _shape(self, namespace: str) -> NamespacePolicies:
        found = tuple(self.quick(number, namespace) for number in range(len(self._plan.policies)))
        if found not in self._shapes:
            policies = [(*policy, quick) for policy, quick in zip(self._plan.policies, found, strict=True)]
            judged = ((bound, original) for bound, original, quick in policies if quick is None)
            mutating = (
                MutatingPolicy(bound, original, quick)
                for bound, original, quick in policies
                if bound.may_change_objects and (quick is None or quick.bindings)
            )
            self._shapes[found] = NamespacePolicies(
                (quick for quick in found if quick and quick.bindings), judged, mutating
            )
        return self._shapes[found]

    def quick(self, number: int, namespace: str) -> FastPolicy | None:
        """The fast form of a policy for the objects of a namespace, or None.

        A form without bindings evaluates no object of the namespace.
        """
        bound, original = self._plan.policies[number]
        traits = self._traits[number]
        try:
            chosen = self._choice(number, namespace) if traits.plain else None
        except Exception:  # noqa: BLE001 - `judge` raises any error again for every object and records it
            return None
        if chosen is None:
            return None
        read = namespace if traits.reads_namespace else ""
        key = (number, chosen.key, read)
        if key not in self._quicks:
            self._quicks[key] = FastPolicy(bound, original, chosen, self._plan.kind, namespace, self._world)
        return self._quicks[key]

    def _choice(self, number: int, namespace: str) -> BindingChoice | None:
        """The choice of bindings for a namespace; a policy that treats all namespaces alike has a single choice."""
        if number in self._everywhere:
            return self._everywhere[number]
        bound, original = self._plan.policies[number]
        chosen = choice_of(bound, original, self._plan.kind, namespace, self._world)
        if self._traits[number].everywhere:
            self._everywhere[number] = chosen
        return chosen

    def empty_into(self, tallies: Counter[TallyKey], matched: Counter[BindingKey]) -> None:
        """Add the counts since the last call: outcomes, and the objects that each binding matched."""
        for mesh in self._touched.values():
            mesh.empty_into(tallies, matched, self._plan.kind)
        self._touched.clear()
