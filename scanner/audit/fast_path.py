"""The fast path for the ordinary case: an object that passes a policy is only counted.

Most objects pass most policies, and most facts that decide whether a policy evaluates an object (rules, selectors of
namespaces, bindings, the size below which the cost need not be counted) are the same for all objects of a kind in a
namespace. They are decided once; for each object, only a few generated functions are called. Objects that do not
simply pass are evaluated check by check. `dispatch.evaluate_object` evaluates only the rest, whose cost must be counted or
whose result depends on more inputs; it does not depend on this module.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, MutableMapping
from typing import NamedTuple, TypeAlias

from scanner.admission.compiled import Expression
from scanner.admission.context import EvaluationContext, Selection
from scanner.admission.dispatch import BoundPolicy, InvocationResult, is_viewed, list_requests, select_first
from scanner.admission.evaluator import SKIPPED
from scanner.admission.params import resolve_params
from scanner.audit.fast_policy import BindingChoice, FastPolicy, Inputs, NotPassed, Passes, PassTest, reads_namespace
from scanner.audit.findings import name_counted_outcome
from scanner.audit.object_sets import CheckReasons, SetKey, get_invocation_key, list_reasons
from scanner.audit.redact import reads_data
from scanner.errors import ConfigurationError
from scanner.model.outcome import Check, CheckResult, SkipReason, Violated
from scanner.model.policy import Binding, BindingKey, MatchResources, Operation
from scanner.model.resource import Kind, Resource
from scanner.model.scans.tally import OutcomeName, TallyKey
from scanner.policies.plan import KindPlan

_OFTEN = 64
"""The number of objects with an exception after which the policy uses its fallback."""


_Tests: TypeAlias = tuple[tuple[Callable[[Resource], Inputs], tuple[tuple[Passes, PassTest], ...]], ...]
"""For each group of policies, the function of their inputs, and their tests, each behind its function."""


class MutatingPolicy(NamedTuple):
    """A policy that may change objects, and its fast form or None."""

    bound: BoundPolicy
    original: Kind
    fast_policy: FastPolicy | None

    def list_invocations(self, resource: Resource, context: EvaluationContext) -> Iterable[InvocationResult]:
        """The invocations of the policy for an object, not evaluated: results with a request and without check results."""
        if self.fast_policy is None:
            return list_requests(self.bound, resource, self.original, context)
        request = self.fast_policy.make_request(resource)
        return [
            InvocationResult(invocation, self.fast_policy.operation, resource, (), request)
            for invocation in self.fast_policy.invocations
        ]


class NamespacePolicies:
    """The policies for the objects of a namespace: those of the fast path, and those for `evaluate_object`.

    Namespaces to which the same policies apply share one instance.
    """

    def __init__(
        self,
        fast_policies: Iterable[FastPolicy],
        others: Iterable[tuple[BoundPolicy, Kind]],
        mutating: Iterable[MutatingPolicy] = (),
    ) -> None:
        """Group policies with equal inputs, which are built once for each object.

        `mutating` are all policies that may change an object, in their order, on the fast path or not.
        """
        self.mutating = tuple(mutating)
        groups: dict[tuple[object, ...], list[FastPolicy]] = {}
        for fast_policy in fast_policies:
            groups.setdefault(fast_policy.needs, []).append(fast_policy)
        self._groups = tuple(groups.values())
        self._tests: dict[int, _Tests] = {}
        self._raised: Counter[FastPolicy] = Counter()
        self.fast_policies = tuple(fast_policy for group in self._groups for fast_policy in group)
        self.others = tuple(others)

    def find_not_passed(
        self, resource: Resource, size: int, bit: int, skipped: defaultdict[FastPolicy, int]
    ) -> list[NotPassed]:
        """The policies of the fast path that an object does not simply pass; `size` is the length of its JSON text in bytes.

        Adds the bit of the object to `skipped` for each policy that evaluates nothing, because a match condition is false.
        """
        # Objects of a size up to the same power of two share the tests.
        groups = self._tests.get(size.bit_length())
        if groups is None:
            groups = self._tests[size.bit_length()] = self._make_tests(1 << size.bit_length())
        not_passed: list[NotPassed] = []
        for inputs_of, tests in groups:
            inputs = inputs_of(resource)
            for passes, test in tests:
                try:
                    if (answer := passes(inputs)) is True:
                        continue
                except Exception:  # noqa: BLE001 - a later evaluation raises any error again and records it
                    self._count_exception(test.fast_policy)
                    answer = None
                if answer is SKIPPED:
                    skipped[test.fast_policy] |= bit
                else:
                    not_passed.append(NotPassed(test, inputs, answer))
        return not_passed

    def _count_exception(self, fast_policy: FastPolicy) -> None:
        """Count an exception of a function; after many, use a form that does not raise, or the exact evaluator."""
        self._raised[fast_policy] += 1
        if self._raised[fast_policy] == _OFTEN:
            fast_policy.use_fallback()
            self._tests.clear()

    def _make_tests(self, size: int) -> _Tests:
        tests = (
            (group[0].make_inputs, (fast_policy.make_test(size) for fast_policy in group)) for group in self._groups
        )
        return tuple(
            (inputs_of, tuple((test.passes, test) for test in group_tests)) for inputs_of, group_tests in tests
        )


class _Bits:
    """A set of objects that grows: found once for each object, while an int in a dict is found and then replaced."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


_Outcomes: TypeAlias = tuple[CheckReasons, tuple[OutcomeName, ...]]
"""The checks of some results with the reasons why they were not evaluated, and the names under which each is counted."""


class NamespaceTally:
    """The objects of one namespace, as sets (see `object_sets`), and their outcomes since they were last moved."""

    __slots__ = ("_evaluated", "_namespace", "_not_passed", "_objects", "_skipped", "_violated", "policies")

    def __init__(self, namespace: str, policies: NamespacePolicies) -> None:
        """Begin with empty counts."""
        self.policies = policies
        self._namespace = namespace
        self._objects = 0
        self._not_passed: defaultdict[FastPolicy, int] = defaultdict(int)
        self._evaluated: dict[tuple[FastPolicy, _Outcomes], _Bits] = {}
        self._violated: dict[FastPolicy, _Bits] = {}
        self._skipped: defaultdict[FastPolicy, int] = defaultdict(int)

    def find_not_passed(self, resource: Resource, size: int, bit: int) -> list[NotPassed]:
        """See `NamespacePolicies.find_not_passed`. Policies with false conditions are counted as skipped, all others as passed."""
        self._objects |= bit
        not_passed = self.policies.find_not_passed(resource, size, bit, self._skipped)
        for policy in not_passed:
            self._not_passed[policy.test.fast_policy] |= bit
        return not_passed

    def count_outcomes(self, fast_policy: FastPolicy, check_results: tuple[CheckResult, ...], bit: int) -> None:
        """Count the outcomes of a policy for an object that `find_not_passed` returned, and that was then evaluated check by check."""
        is_violation = _is_violation(fast_policy, check_results)
        bits = self._violated.get(fast_policy) if is_violation else None
        if bits is None:
            bits = self._get_bits(fast_policy, check_results)
            if is_violation:  # these are counted alike for every object
                self._violated[fast_policy] = bits
        bits.value |= bit

    def _get_bits(self, fast_policy: FastPolicy, check_results: tuple[CheckResult, ...]) -> _Bits:
        names = tuple([name_counted_outcome(check_result) for check_result in check_results])
        key = fast_policy, (list_reasons(check_results), names)
        bits = self._evaluated.get(key)
        if bits is None:
            bits = self._evaluated[key] = _Bits()
        return bits

    def move_into(self, tallies: Counter[TallyKey], matched: Counter[BindingKey], kind: Kind) -> None:
        """Add the numbers of outcomes to `tallies` and of matched objects to `matched`, and set all counts to 0."""
        evaluated: Counter[FastPolicy] = Counter()
        others: defaultdict[FastPolicy, list[tuple[Check, OutcomeName, int]]] = defaultdict(list)
        for (fast_policy, (reasons, names)), bits in self._evaluated.items():
            number = bits.value.bit_count()
            evaluated[fast_policy] += number
            others[fast_policy] += [(check, name, number) for (check, _), name in zip(reasons, names, strict=True)]
        for fast_policy in self.policies.fast_policies:
            skipped = self._skipped[fast_policy].bit_count()
            passed = self._objects.bit_count() - self._not_passed[fast_policy].bit_count() - skipped
            counts = [(check, OutcomeName.PASSED, passed) for check in fast_policy.checks] if passed else []
            counts += [(check, OutcomeName.SKIPPED, skipped) for check in fast_policy.checks] if skipped else []
            counts += others[fast_policy]
            for binding in fast_policy.bindings:
                matched[binding.key] += passed + skipped + evaluated[fast_policy]
                for check, outcome, number in counts:
                    key = fast_policy.make_tally_key(binding, check, outcome, kind, self._namespace)
                    tallies[key] = tallies.get(key, 0) + number
        self._objects = 0
        for sets in (self._not_passed, self._skipped):
            sets.clear()
        self._evaluated.clear()
        self._violated.clear()

    def add_to(self, sets: _PageSets) -> None:
        """Add the objects to the sets of a page."""
        sets.objects[self.policies] |= self._objects
        for excluded in (self._not_passed, self._skipped):
            for fast_policy, bits in excluded.items():
                sets.excluded[fast_policy] |= bits
        for fast_policy, bits in self._skipped.items():
            reasons = tuple((check, SkipReason.CONDITION_FALSE.value) for check in fast_policy.checks)
            sets.others[fast_policy, reasons] |= bits
        for (fast_policy, (reasons, _)), evaluated in self._evaluated.items():
            sets.others[fast_policy, reasons] |= evaluated.value


class _PageSets:
    """The objects of the fast policies of a page: all, those that do not simply pass, and those with other results."""

    def __init__(self) -> None:
        self.objects: defaultdict[NamespacePolicies, int] = defaultdict(int)
        self.excluded: defaultdict[FastPolicy, int] = defaultdict(int)
        self.others: defaultdict[tuple[FastPolicy, CheckReasons], int] = defaultdict(int)

    def move_into(self, sets: MutableMapping[SetKey, int]) -> None:
        """Add the objects to the sets of their invocations. Namespaces that share policies are added at once."""
        every: defaultdict[FastPolicy, int] = defaultdict(int)
        for policies, bits in self.objects.items():
            for fast_policy in policies.fast_policies:
                every[fast_policy] |= bits
        for fast_policy, bits in every.items():
            if passed := bits & ~self.excluded[fast_policy]:
                _mark(sets, fast_policy, tuple((check, "") for check in fast_policy.checks), passed)
        for (fast_policy, checks), bits in self.others.items():
            _mark(sets, fast_policy, checks, bits)


def _is_violation(fast_policy: FastPolicy, check_results: tuple[CheckResult, ...]) -> bool:
    """Return whether the results are a violation of the only check of a policy."""
    if len(check_results) != 1 or len(fast_policy.checks) != 1:
        return False
    check, outcome, excepted_by = check_results[0][:3]
    return outcome.__class__ is Violated and check is fast_policy.checks[0] and not excepted_by


def _mark(sets: MutableMapping[SetKey, int], fast_policy: FastPolicy, checks: CheckReasons, bits: int) -> None:
    for invocation in fast_policy.invocations:
        key = SetKey(get_invocation_key(invocation), checks)
        sets[key] = sets.get(key, 0) | bits


class FastPath:
    """The policies of one list, by namespace. Counts its outcomes until they are emptied."""

    def __init__(self, context: EvaluationContext, plan: KindPlan) -> None:
        """Take the policies of a list, and decide which of them the fast path may evaluate."""
        self._context = context
        self._plan = plan
        self._traits = [find_traits(bound, original, plan.kind) for bound, original in plan.policies]
        self._everywhere: dict[int, BindingChoice | None] = {}
        self._fast_policies: dict[tuple[object, ...], FastPolicy | None] = {}
        self._shared: dict[tuple[FastPolicy | None, ...], NamespacePolicies] = {}
        self._tallies: dict[str, NamespaceTally] = {}
        self._in_use: dict[str, NamespaceTally] = {}
        self.drops_secret_data = (plan.kind.group, plan.kind.kind) == ("", "Secret") and not any(
            map(may_read_secret_data, plan.policies)
        )
        """True for Secrets whose data no policy reads."""

    def get_tally(self, namespace: str) -> NamespaceTally:
        """The counts of a namespace, with its policies; the same instance until `move_into` is called."""
        tally = self._in_use.get(namespace)
        if tally is None:
            tally = self._tallies.get(namespace) or NamespaceTally(namespace, self._get_policies(namespace))
            self._tallies[namespace] = self._in_use[namespace] = tally
        return tally

    def _get_policies(self, namespace: str) -> NamespacePolicies:
        fast_policies = tuple(self.get_fast_policy(number, namespace) for number in range(len(self._plan.policies)))
        if fast_policies not in self._shared:
            policies = [
                (*policy, fast_policy) for policy, fast_policy in zip(self._plan.policies, fast_policies, strict=True)
            ]
            others = ((bound, original) for bound, original, fast_policy in policies if fast_policy is None)
            mutating = (
                MutatingPolicy(bound, original, fast_policy)
                for bound, original, fast_policy in policies
                if bound.may_change_objects and (fast_policy is None or fast_policy.bindings)
            )
            self._shared[fast_policies] = NamespacePolicies(
                (fast_policy for fast_policy in fast_policies if fast_policy and fast_policy.bindings), others, mutating
            )
        return self._shared[fast_policies]

    def get_fast_policy(self, number: int, namespace: str) -> FastPolicy | None:
        """The fast form of policy `number` of the plan for the objects of a namespace, or None if only `evaluate_object` can do it.

        A form without bindings evaluates no object of the namespace.
        """
        bound, original = self._plan.policies[number]
        traits = self._traits[number]
        try:
            choice = self._get_choice(number, namespace) if traits.is_plain else None
        except Exception:  # noqa: BLE001 - `evaluate_object` raises any error again for every object and records it
            return None
        if choice is None:
            return None
        read_namespace = namespace if traits.reads_namespace else ""
        key = (number, choice.key, read_namespace)
        if key not in self._fast_policies:
            self._fast_policies[key] = FastPolicy(bound, original, choice, self._plan.kind, namespace, self._context)
        return self._fast_policies[key]

    def _get_choice(self, number: int, namespace: str) -> BindingChoice | None:
        """The choice of bindings for a namespace; a policy that treats all namespaces alike has a single choice."""
        if number in self._everywhere:
            return self._everywhere[number]
        bound, original = self._plan.policies[number]
        choice = choose_bindings(bound, original, self._plan.kind, namespace, self._context)
        if self._traits[number].ignores_namespaces:
            self._everywhere[number] = choice
        return choice

    def move_into(
        self, tallies: Counter[TallyKey], matched: Counter[BindingKey], sets: MutableMapping[SetKey, int]
    ) -> None:
        """Add the outcomes since the last call to `tallies`, the objects of each binding to `matched`, and the sets to `sets`."""
        page_sets = _PageSets()
        for tally in self._in_use.values():
            tally.add_to(page_sets)
            tally.move_into(tallies, matched, self._plan.kind)
        page_sets.move_into(sets)
        self._in_use.clear()


# The policies that the fast path may evaluate, with their bindings and param.


class PolicyTraits(NamedTuple):
    """The properties of a policy that are the same in every namespace.

    `is_plain`: the fast path may evaluate it; `ignores_namespaces`: its rules treat all namespaces alike.
    """

    is_plain: bool
    ignores_namespaces: bool
    reads_namespace: bool


def find_traits(bound: BoundPolicy, original: Kind, kind: Kind) -> PolicyTraits:
    """The properties of a policy and a kind that the fast path needs."""
    matches = (bound.policy.match, *(binding.match for binding in bound.bindings))
    selects = bool(bound.covered) or any(match is not None and not match.namespace_selector.empty for match in matches)
    plain = (kind.group, kind.plural) != ("", "namespaces") and _is_plain(bound, original, kind)
    return PolicyTraits(plain, not selects and bound.policy.param_kind is None, reads_namespace(bound.compiled))


def choose_bindings(
    bound: BoundPolicy, original: Kind, kind: Kind, namespace: str, context: EvaluationContext
) -> BindingChoice | None:
    """The bindings of a plain policy that match the objects of a kind in a namespace, with their operation and param.

    None if the bindings differ in the operation or in the param, have no param, or evaluate the objects in another version: then the
    fast path cannot treat all alike.
    """
    resource = Resource(kind, namespace, "", "", "", {})
    operations: set[Operation] = set()
    bindings: list[Binding] = []
    params: dict[tuple[str, str] | None, Resource | None] = {}
    for binding in bound.bindings:
        selection = select_first(bound, binding, resource, original, context)
        if selection is not None and is_viewed(selection.matched, kind, original, context):
            return None
        if selection is None or selection.matched != kind:
            continue
        selected_params = _resolve_params(bound, binding, selection, context)
        if not selected_params:
            return None
        operations.add(selection.target.operation)
        bindings.append(binding)
        params |= {(param.namespace, param.name) if param else None: param for param in selected_params}
    if len(operations) > 1 or len(params) > 1:
        return None
    operation = operations.pop() if operations else context.operations[0]
    return BindingChoice(operation, tuple(bindings), next(iter(params.values()), None))


def _resolve_params(
    bound: BoundPolicy, binding: Binding, selection: Selection, context: EvaluationContext
) -> tuple[Resource | None, ...]:
    """The params of a binding, None for an evaluation without a param; empty after a configuration error or without a param."""
    try:
        return (
            () if selection.fault else resolve_params(bound.policy, binding, selection.target.namespace, context.params)
        )
    except ConfigurationError:
        return ()


def may_read_secret_data(policy: tuple[BoundPolicy, Kind]) -> bool:
    """Return whether a policy may read the data of the Secrets that it evaluates."""
    bound, _ = policy
    sees = any(reads_data(expression.paths, "object") for _, expression in bound.compiled.expressions())
    return sees or bound.evaluator.reads_whole_object


def _is_plain(bound: BoundPolicy, original: Kind, kind: Kind) -> bool:
    """Return whether the result of the policy depends only on the kind, namespace and content of an object."""
    compiled, policy = bound.compiled, bound.policy
    narrowings = (policy.match, *(binding.match for binding in bound.bindings))
    return (
        (bound.combination is None or original == kind)
        and bound.evaluator.fast_form(compiled, kind) is not None
        and not bound.reading.reason
        and not bound.namespace
        and not bound.asked_before
        and all(_matches_every_object(match) for match in narrowings if match is not None)
        and all(expression.program is not None for _, expression in compiled.expressions())
        and not any(expression.reads("authorizer") for expression in compiled.list_evaluated())
        and not any(_has_other_inputs(expression) for _, expression in compiled.conditions)
        and not any(expression.reads("namespaceObject") for expression in compiled.annotations)
    )


def _has_other_inputs(condition: Expression) -> bool:
    """Return whether a match condition has other inputs than a validation."""
    return condition.reads("request") or condition.reads("namespaceObject")


def _matches_every_object(match: MatchResources) -> bool:
    names = any(rule.resource_names for rule in (*match.rules, *match.exclude_rules))
    return match.object_selector.empty and not names
