"""Evaluates one raw page and returns its outcomes: the part of a scan that needs neither the cluster nor the store.

Objects are decoded, evaluated against every policy that may match them, and dropped; only counts, findings and gaps remain.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import assert_never

import orjson

from scanner.admission.context import EvaluationContext
from scanner.admission.cost_budget import BudgetUse
from scanner.admission.dispatch import BoundPolicy, Combination, InvocationResult, Together, judge
from scanner.audit import redact
from scanner.audit.evidence import Evidence, evidence
from scanner.audit.fast_path import FastPath, MutatingPolicy, NamespaceCounts
from scanner.audit.fast_policy import NotPassed
from scanner.audit.findings import denies, fingerprint
from scanner.audit.items import decoded, item_fault, listed, may_have_long_numbers
from scanner.audit.tally import counted_as, tally_key
from scanner.errors import AuthorizerFailed, SchemaUnknown
from scanner.model.json import Json, JsonObject, as_object
from scanner.model.outcome import (
    CheckResult,
    Errored,
    Finding,
    Gap,
    GapKind,
    Passed,
    Skipped,
    Violated,
    WouldChange,
)
from scanner.model.policy import BindingKey, PolicyKey
from scanner.model.resource import Kind, Page, Resource, resource_of
from scanner.model.scan import PageResult, TallyKey
from scanner.policies.plan import KindPlan


@dataclass(frozen=True, slots=True)
class PageEvaluator:
    """The settings for evaluating pages; `by_name` identifies objects by name, as for files, instead of by UID."""

    world: EvaluationContext
    exclude_namespaces: tuple[str, ...] = ()
    by_name: bool = False
    sieves: dict[Kind, FastPath] = field(default_factory=dict, compare=False, repr=False)

    def page(self, page: Page, plan: KindPlan, known: AbstractSet[str] = frozenset()) -> PageResult:
        """Evaluate every object of a page once, except the `known` ones."""
        sheet = _PageTally(self.world, gaps=[])
        try:
            items = listed(page)
        except ValueError as error:
            sheet.gaps.append(Gap(GapKind.OBJECT, _where(page.kind), f"the page could not be decoded: {error}"))
            return _result(page, sheet)
        fast_path = self.sieves.setdefault(page.kind, FastPath(self.world, plan))
        read = decoded if may_have_long_numbers(page.data) else orjson.loads
        for text in items:
            resource = self._resource(page.kind, text, read, sheet)
            if resource is not None and _is_new(resource, known, sheet):
                sheet.objects += 1
                resource = redact.without_data(resource) if fast_path.withholds else resource
                self._object(resource, fast_path.mesh(resource.namespace), len(text), sheet)
            # Free the object first, so that the next reuses its memory, which is still in the processor's cache.
            resource = None
        fast_path.empty_into(sheet.tallies, sheet.matched)
        return _result(page, sheet)

    def _resource(
        self, kind: Kind, text: memoryview, read: Callable[[memoryview], Json], sheet: _PageTally
    ) -> Resource | None:
        """The object that a text describes; None if the user excluded it, or if the text is no object, which is a gap."""
        try:
            item = read(text)
        except ValueError as error:
            sheet.gaps.append(Gap(GapKind.OBJECT, _where(kind), f"an item of the list could not be decoded: {error}"))
            return None
        if fault := item_fault(kind, item):
            sheet.gaps.append(Gap(GapKind.OBJECT, _where(kind), fault))
            return None
        resource = resource_of(kind, {**as_object(item), "apiVersion": kind.api_version, "kind": kind.kind})
        return None if self._excluded(resource.namespace) else resource

    def _excluded(self, namespace: str) -> bool:
        return bool(namespace) and any(fnmatchcase(namespace, pattern) for pattern in self.exclude_namespaces)

    def _object(self, resource: Resource, mesh: NamespaceCounts, size: int, sheet: _PageTally) -> None:
        if resource.namespace and self.world.namespace(resource.namespace) is None:
            why = "its namespace was not in the list of namespaces: created or deleted while scanning; scan again"
            sheet.gaps.append(Gap(GapKind.OBJECT, _where(resource.kind, resource), why))
            return
        sheet.changing.clear()
        held = mesh.held_back(resource, size)
        matched = len(held) < len(mesh.shape.quicks)
        for one in held:
            quick = one.test.quick
            matched |= self._ruled(resource, mesh, one, sheet) or self._policy(
                resource, quick.bound, quick.original, sheet
            )
        for bound, original in mesh.shape.judged:
            matched |= self._policy(resource, bound, original, sheet)
        sheet.held = {one.test.quick.bound.policy.key for one in held}
        self._drift(resource, mesh.shape.mutating, sheet)
        sheet.evaluated += matched

    def _ruled(self, resource: Resource, mesh: NamespaceCounts, held: NotPassed, sheet: _PageTally) -> bool:
        """Evaluate a policy that an object does not simply pass, check by check; return False if only `judge` can do it."""
        quick = held.test.quick
        try:
            check_results = quick.check_results(resource, held)
            if check_results is None:
                return False
            check_results = quick.bound.heard(check_results, resource, self.world.namespace(resource.namespace))
            request = quick.request(resource)
            invocation_results = [
                InvocationResult(it, quick.operation, resource, check_results, request) for it in quick.invocations
            ]
            findings = [
                finding
                for invocation_result in invocation_results
                for finding in self._findings(invocation_result, quick.bound)
            ]
        except Exception:  # noqa: BLE001 - `judge` raises it again and records its place
            return False
        sheet.findings += findings
        mesh.rule(quick, ((check_result.check, counted_as(check_result)) for check_result in check_results))
        return True

    def _drift(self, resource: Resource, mutating: Sequence[MutatingPolicy], sheet: _PageTally) -> None:
        """Record the changes of mutating policies, of each policy alone and of all together."""
        if not sheet.changing:
            return
        try:
            drifts = any(
                isinstance(it.outcome, WouldChange)
                for _, invocation_result in sheet.changing
                for it in invocation_result.check_results
            )
            joint = _Joint(resource, mutating, sheet)
            for bound, invocation_result in sheet.changing:
                found = joint.of(bound.combination) if drifts else None
                sheet.findings.extend(self._findings(_joined(invocation_result, found), bound))
        except Exception as error:  # noqa: BLE001 - see below
            why = f"internal error while its mutating policies were combined: {type(error).__name__}; please report it"
            sheet.gaps.append(Gap(GapKind.EVALUATION, _where(resource.kind, resource), why))

    def _policy(self, resource: Resource, bound: BoundPolicy, original: Kind, sheet: _PageTally) -> bool:
        sheet.last_use.worst = 0.0
        try:
            invocation_results = tuple(judge(bound, resource, original, sheet.world))
            judged = invocation_results if bound.combination is None else ()
            changing = () if judged else tuple((bound, it) for it in invocation_results)
            findings = tuple(
                finding for invocation_result in judged for finding in self._findings(invocation_result, bound)
            )
        except SchemaUnknown as error:
            sheet.unevaluable(Gap(GapKind.EVALUATION, _where(resource.kind), f"policy {bound.policy.name}: {error}"))
            return False
        except AuthorizerFailed as error:
            why = f"policy {bound.policy.name}: {error}"
            sheet.gaps.append(Gap(GapKind.EVALUATION, _where(resource.kind, resource), why))
            return False
        except Exception as error:  # noqa: BLE001 - a bug of Assay must not become a verdict, nor stop the scan
            why = f"internal error while policy {bound.policy.name} was evaluated: {type(error).__name__}; please report it"
            sheet.gaps.append(Gap(GapKind.EVALUATION, _where(resource.kind, resource), why))
            return False
        if sheet.last_use.worst > sheet.budget_use.get(bound.policy.key, 0.0):
            sheet.budget_use[bound.policy.key] = sheet.last_use.worst
        sheet.findings.extend(findings)
        sheet.changing.extend(changing)
        sheet.matched.update({invocation_result.invocation.binding.key for invocation_result in invocation_results})
        if bound.policy.param_kind:
            sheet.without_param.update(
                invocation_result.invocation.binding.key
                for invocation_result in invocation_results
                if not invocation_result.check_results
            )
        sheet.tallies.update(
            tally_key(invocation_result, check_result, bound)
            for invocation_result in invocation_results
            for check_result in invocation_result.check_results
        )
        return bool(invocation_results)

    def _findings(self, invocation_result: InvocationResult, bound: BoundPolicy) -> Iterator[Finding]:
        for check_result in invocation_result.check_results:
            match check_result.outcome:
                case Violated() | WouldChange() | Errored() as outcome:
                    safe = redact.safe(outcome, check_result.check, invocation_result, bound.compiled)
                    yield self._finding(
                        invocation_result, check_result, safe, evidence(invocation_result, check_result, bound)
                    )
                case Passed() | Skipped():
                    pass
                case _ as never:
                    assert_never(never)

    def _finding(
        self,
        invocation_result: InvocationResult,
        check_result: CheckResult,
        outcome: Violated | WouldChange | Errored,
        why: Evidence,
    ) -> Finding:
        invocation, resource, check = invocation_result.invocation, invocation_result.resource, check_result.check
        return Finding(
            fingerprint=fingerprint(invocation, check, resource, by_name=self.by_name),
            policy=invocation.policy.name,
            binding=invocation.binding.name,
            param_namespace=invocation.param.namespace if invocation.param else "",
            param_name=invocation.param.name if invocation.param else "",
            check=check,
            outcome=outcome,
            api_version=resource.kind.api_version,
            kind=resource.kind.kind,
            namespace=resource.namespace,
            name=resource.name,
            uid=resource.uid,
            resource_version=resource.resource_version,
            operation=invocation_result.operation,
            actions=invocation.binding.actions,
            denies=not check_result.excepted_by and denies(outcome, invocation),
            excepted_by=check_result.excepted_by,
            language=invocation.policy.language,
            evidence=why,
        )


class _Joint:
    """The combined result of all policies that act together on an object that at least one changes, computed once."""

    def __init__(self, resource: Resource, mutating: Sequence[MutatingPolicy], sheet: _PageTally) -> None:
        self._resource, self._mutating, self._sheet = resource, mutating, sheet
        self._found: dict[int, Together | None] = {}

    def of(self, combination: Combination | None) -> Together | None:
        """Return the combined result of the policies of one combination; None if it adds nothing."""
        if combination is None:
            return None
        if id(combination) not in self._found:
            self._found[id(combination)] = self._together(combination)
        return self._found[id(combination)]

    def _together(self, combination: Combination) -> Together | None:
        """Include policies that leave the stored object alone: they may change it after other policies."""
        changing: defaultdict[PolicyKey, list[InvocationResult]] = defaultdict(list)
        for bound, invocation_result in self._sheet.changing:
            changing[bound.policy.key].append(invocation_result)
        mutating = [policy for policy in self._mutating if policy.bound.combination is combination]
        acting = [
            (policy.bound, invocation_result)
            for policy in mutating
            for invocation_result in changing.get(policy.bound.policy.key)
            or policy.invocations(self._resource, self._sheet.world)
        ]
        resting = _Resting(self._resource, mutating, self._sheet.held | changing.keys())
        try:
            found = combination.together(acting, resting)
        except (SchemaUnknown, AuthorizerFailed):
            return None
        return found and redact.joint(found, acting)


class _Resting:
    """The policies that leave an object unchanged: as stored, all but the `judged`; after other changes, by the fast path."""

    def __init__(self, resource: Resource, mutating: Sequence[MutatingPolicy], judged: AbstractSet[PolicyKey]) -> None:
        self._resource, self._judged = resource, judged
        self._quicks = {it.bound.policy.key: it.quick for it in mutating}
        self._sizes: dict[int, int] = {}

    def __call__(self, bound: BoundPolicy, body: JsonObject) -> bool:
        key, resource = bound.policy.key, self._resource
        if body is resource.body:
            return key not in self._judged
        quick = self._quicks[key]
        return quick is not None and quick.leaves(resource, body, self._size(body))

    def _size(self, body: JsonObject) -> int:
        """The power of two above the sizes of both objects."""
        if id(body) not in self._sizes:
            size = max(_size_of(body), _size_of(self._resource.body))
            self._sizes[id(body)] = 1 << size.bit_length()
        return self._sizes[id(body)]


def _size_of(body: JsonObject) -> int:
    """The size of an object as JSON, in bytes; the largest int for an object that JSON cannot express."""
    try:
        return len(orjson.dumps(body))
    except TypeError:
        return sys.maxsize


class _PageTally:
    """The results of a page during its evaluation. `world` is the context of the page, with its own `budget_use`."""

    def __init__(self, world: EvaluationContext, gaps: list[Gap]) -> None:
        self.last_use = BudgetUse()
        self.world = replace(world, budget_use=self.last_use)
        self.gaps = gaps
        self.findings: list[Finding] = []
        self.changing: list[tuple[BoundPolicy, InvocationResult]] = []
        self.held: set[PolicyKey] = set()
        self.tallies: Counter[TallyKey] = Counter()
        self.matched: Counter[BindingKey] = Counter()
        self.budget_use: dict[PolicyKey, float] = {}
        self.without_param: Counter[BindingKey] = Counter()
        self.objects = 0
        self.evaluated = 0
        self.identities: dict[str, None] = {}
        self.repeated = 0

    def unevaluable(self, gap: Gap) -> None:
        """Record a gap that applies to all objects of the page only once."""
        if gap not in self.gaps:
            self.gaps.append(gap)


def _joined(invocation_result: InvocationResult, joint: Together | None) -> InvocationResult:
    """Add the changes that other policies make to the same object to a result."""
    if joint is None:
        return invocation_result
    check_results = tuple(
        replace(it, outcome=_beside(it.outcome, joint)) if isinstance(it.outcome, WouldChange) else it
        for it in invocation_result.check_results
    )
    return replace(invocation_result, check_results=check_results)


def _beside(outcome: WouldChange, joint: Together) -> WouldChange:
    return replace(
        outcome,
        together=joint.patch,
        order_matters=joint.order_matters,
        undone=joint.undone,
        refused=joint.refused,
    )


def _result(page: Page, sheet: _PageTally) -> PageResult:
    return PageResult(
        api_version=page.kind.api_version,
        kind=page.kind.kind,
        number=page.number,
        objects=sheet.objects,
        evaluated=sheet.evaluated,
        findings=tuple(sheet.findings),
        tallies=dict(sheet.tallies),
        matched=dict(sheet.matched),
        budget_use=sheet.budget_use,
        without_param=dict(sheet.without_param),
        gaps=tuple(sheet.gaps),
        identities=tuple(sheet.identities),
        repeated=sheet.repeated,
    )


def _is_new(resource: Resource, known: AbstractSet[str], sheet: _PageTally) -> bool:
    """Return whether an object appears for the first time. A list that was started again has some objects twice."""
    identity = resource.uid or f"{resource.namespace}/{resource.name}"
    if identity in known or identity in sheet.identities:
        sheet.repeated += 1
        return False
    sheet.identities[identity] = None
    return True


def _where(kind: Kind, resource: Resource | None = None) -> str:
    prefix = f"{kind.api_version}/{kind.kind}"
    if resource is None:
        return prefix
    return f"{prefix} {resource.namespace}/{resource.name}" if resource.namespace else f"{prefix} {resource.name}"
