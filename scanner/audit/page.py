"""Evaluates one raw page and returns its outcomes: the part of a scan that needs neither the cluster nor the store.

Objects are decoded, evaluated against every policy that may match them, and dropped; only counts, findings and gaps remain.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

import orjson
from msgspec import Struct

from scanner.admission.context import EvaluationContext
from scanner.admission.cost_budget import BudgetUse
from scanner.admission.dispatch import BoundPolicy, Combination, CombinedChange, InvocationResult, evaluate_object
from scanner.admission.request import Request
from scanner.audit import object_sets, population, redact
from scanner.audit.evidence import EvidenceParts
from scanner.audit.fast_path import FastPath, MutatingPolicy, NamespaceTally
from scanner.audit.fast_policy import NotPassed
from scanner.audit.findings import FindingForms, make_findings, make_tally_key
from scanner.audit.items import (
    decode_item,
    digest_page,
    find_item_fault,
    find_withheld,
    may_have_long_numbers,
    split_items,
)
from scanner.audit.object_sets import ObjectSets, SetKey, get_invocation_key, list_reasons
from scanner.audit.population import list_controllers, record_object
from scanner.audit.withheld_reads import Withheld, WithheldReads, count_redacted
from scanner.errors import AuthorizerFailed, SchemaUnknown
from scanner.model.json import JsonObject, as_object
from scanner.model.outcome import Finding, Gap, GapKind, WouldChange
from scanner.model.policy import BindingKey, PolicyKey
from scanner.model.population import DEFAULT_KEYS, KeptKeys, PopulationMember
from scanner.model.resource import Kind, Page, Resource, resource_of
from scanner.model.scans.scan import PageResult
from scanner.model.scans.tally import TallyKey
from scanner.model.withheld import Place, mark_withheld
from scanner.mutate.custom import fill_defaults
from scanner.mutate.schema import Custom
from scanner.policies.plan import KindPlan


@dataclass(frozen=True, slots=True)
class PageEvaluator:
    """Evaluates pages of objects. `by_name` identifies objects by name, as for files, instead of by UID.

    `exclude_namespaces` are glob patterns. `kept_keys` are the labels and annotations that the record of each object keeps. `defaults` are
    the schemas of kinds whose lists may lack defaults: custom resources that are stored in another version. `withheld` is None unless
    the pages come from a snapshot. `evidence` has the parts of the evidence of findings. `fast_paths` are kept from page to page.
    """

    context: EvaluationContext
    exclude_namespaces: tuple[str, ...] = ()
    by_name: bool = False
    kept_keys: KeptKeys = DEFAULT_KEYS
    defaults: Mapping[Kind, Custom] = field(default_factory=dict)
    withheld: Withheld | None = None
    evidence: EvidenceParts = EvidenceParts.ALL
    fast_paths: dict[Kind, FastPath] = field(default_factory=dict, compare=False, repr=False)

    def evaluate(self, page: Page, plan: KindPlan, evaluated: AbstractSet[str] = frozenset()) -> PageResult:
        """The results of every object of a page, each evaluated once; objects whose identity is in `evaluated` are left out.

        A page or an object that cannot be decoded or evaluated is a gap of the result.
        """
        tally = _PageTally(self.context, gaps=[])
        try:
            items = split_items(page)
            places = find_withheld(page) if self.withheld is not None else {}
        except ValueError as error:
            tally.gaps.append(Gap(GapKind.OBJECT, _name_place(page.kind), f"the page could not be decoded: {error}"))
            return _make_result(page, tally)
        fast_path = self.fast_paths.setdefault(page.kind, FastPath(self.context, plan))
        reads = None if self.withheld is None else WithheldReads(tally.context, self.withheld)
        read_item = decode_item if may_have_long_numbers(page.data) else orjson.loads
        for index, text in enumerate(items):
            resource = self._read_object(page.kind, text, read_item, tally)
            if resource is not None and _is_new(resource, evaluated, tally):
                tally.begin(record_object(resource, self.kept_keys))
                resource = redact.remove_data(resource) if fast_path.drops_secret_data else resource
                counts = fast_path.get_tally(resource.namespace)
                if index in places:
                    resource = resource._replace(marked=self._mark(resource.kind, text, places[index]))
                if reads is None or not self._evaluate_withheld(resource, counts, reads, tally):
                    self._evaluate_object(resource, counts, len(text), tally)
                tally.end()
            # Free the object first, so that the next reuses its memory, which is still in the processor's cache.
            resource = None
        fast_path.move_into(tally.tallies, tally.matched, tally.sets)
        return _make_result(page, tally)

    def _read_object(
        self, kind: Kind, text: memoryview, read_item: Callable[[memoryview], Any], tally: _PageTally
    ) -> Resource | None:
        """The object that a text describes; None if the user excluded it, or if the text is no object, which is a gap."""
        try:
            item = read_item(text)
        except ValueError as error:
            tally.gaps.append(
                Gap(GapKind.OBJECT, _name_place(kind), f"an item of the list could not be decoded: {error}")
            )
            return None
        if fault := find_item_fault(kind, item):
            tally.gaps.append(Gap(GapKind.OBJECT, _name_place(kind), fault))
            return None
        # A server sends the items of built-in kinds without both fields.
        item["apiVersion"], item["kind"] = kind.api_version, kind.kind
        resource = resource_of(kind, self.add_defaults(kind, item))
        if self._is_excluded(resource.namespace):
            tally.excluded += 1
            return None
        return resource

    def add_defaults(self, kind: Kind, body: JsonObject) -> JsonObject:
        """The object as a request on the kind has it: the server sets the defaults of the version when it reads the request."""
        custom = self.defaults.get(kind)
        return body if custom is None else fill_defaults(custom, body)

    def _is_excluded(self, namespace: str) -> bool:
        patterns = self.exclude_namespaces
        return bool(patterns and namespace) and any(fnmatchcase(namespace, pattern) for pattern in patterns)

    def _mark(self, kind: Kind, text: memoryview, places: Sequence[Place]) -> JsonObject:
        """The body of an object of a snapshot with its withheld parts marked."""
        marked = self.add_defaults(kind, {**as_object(decode_item(text)), **_typed(kind)})
        mark_withheld(marked, places)
        return marked

    def _evaluate_withheld(
        self, resource: Resource, counts: NamespaceTally, reads: WithheldReads, tally: _PageTally
    ) -> bool:
        """Evaluate an object of a snapshot if a check may read what is withheld; else return False."""
        marked = resource.marked or resource.body
        policies = [(policy.bound, policy.original) for policy in counts.policies.fast_policies] + [
            *counts.policies.others
        ]
        if not reads.concern(resource, marked, (bound for bound, _ in policies)):
            return False
        if resource.namespace and self.context.find_namespace(resource.namespace) is None:
            return False
        tally.changing.clear()
        together = any(reads.reads_any(bound, resource, marked) for bound, _ in policies if bound.combination)
        matched = False
        for bound, original in policies:
            if reads.hides_match(bound, resource, marked):
                why = f"policy {bound.policy.name}: it selects by a label that the snapshot withholds"
                tally.gaps.append(Gap(GapKind.EVALUATION, _name_place(resource.kind, resource), why))
                continue
            view = _WithheldView(reads, marked, together=together)
            matched |= self._evaluate_policy(resource, bound, original, tally, view)
        if tally.changing:
            tally.not_passed = {bound.policy.key for bound, _ in policies}
            self._record_changes(resource, counts.policies.mutating, tally)
        tally.evaluated += matched
        return True

    def _evaluate_object(self, resource: Resource, counts: NamespaceTally, size: int, tally: _PageTally) -> None:
        if resource.namespace and self.context.find_namespace(resource.namespace) is None:
            why = "its namespace was not in the list of namespaces: created or deleted while scanning; scan again"
            tally.gaps.append(Gap(GapKind.OBJECT, _name_place(resource.kind, resource), why))
            return
        tally.changing.clear()
        remaining = counts.find_not_passed(resource, size, tally.bit)
        matched = len(remaining) < len(counts.policies.fast_policies)
        inputs = request = None
        for not_passed in remaining:
            fast_policy = not_passed.test.fast_policy
            if request is None or not_passed.inputs is not inputs:
                # Policies with the same inputs have the same request.
                inputs, request = not_passed.inputs, fast_policy.make_request(resource)
            matched |= self._evaluate_fast(request, counts, not_passed, tally) or self._evaluate_policy(
                resource, fast_policy.bound, fast_policy.original, tally
            )
        for bound, original in counts.policies.others:
            matched |= self._evaluate_policy(resource, bound, original, tally)
        if tally.changing:
            tally.not_passed = {not_passed.test.fast_policy.bound.policy.key for not_passed in remaining}
            self._record_changes(resource, counts.policies.mutating, tally)
        tally.evaluated += matched

    def _evaluate_fast(
        self, request: Request, counts: NamespaceTally, not_passed: NotPassed, tally: _PageTally
    ) -> bool:
        """Evaluate a policy that an object does not simply pass, check by check; False if that needs `evaluate_object`."""
        fast_policy, resource = not_passed.test.fast_policy, request.resource
        try:
            check_results = fast_policy.evaluate_checks(resource, not_passed)
            if check_results is None:
                return False
            if fast_policy.bound.exempts is not None:
                namespace = self.context.find_namespace(resource.namespace)
                check_results = fast_policy.bound.add_exemptions(check_results, resource, namespace)
            findings: list[Finding] = []
            for invocation, forms in zip(fast_policy.invocations, fast_policy.forms, strict=True):
                result = InvocationResult(invocation, fast_policy.operation, resource, check_results, request)
                findings += self._make_findings(result, fast_policy.bound, resource.kind, forms, not_passed.inputs)
        except Exception:  # noqa: BLE001 - `evaluate_object` raises it again and records its place
            return False
        tally.findings += findings
        counts.count_outcomes(fast_policy, check_results, tally.bit)
        return True

    def _record_changes(self, resource: Resource, mutating: Sequence[MutatingPolicy], tally: _PageTally) -> None:
        """Record the changes of mutating policies, of each policy alone and of all together."""
        try:
            drifts = any(
                isinstance(check_result.outcome, WouldChange)
                for _, invocation_result in tally.changing
                for check_result in invocation_result.check_results
            )
            results = _TogetherResults(resource, mutating, tally)
            for bound, invocation_result in tally.changing:
                together = results.get(bound.combination) if drifts else None
                result = _add_other_changes(invocation_result, together)
                tally.findings.extend(self._make_findings(result, bound, resource.kind))
        except Exception as error:  # noqa: BLE001 - see below
            why = f"internal error while its mutating policies were combined: {type(error).__name__}; please report it"
            tally.gaps.append(Gap(GapKind.EVALUATION, _name_place(resource.kind, resource), why))

    def _evaluate_policy(
        self,
        resource: Resource,
        bound: BoundPolicy,
        original: Kind,
        tally: _PageTally,
        withheld: _WithheldView | None = None,
    ) -> bool:
        tally.last_use.worst = 0.0
        try:
            invocation_results = (
                tuple(evaluate_object(bound, resource, original, tally.context))
                if withheld is None
                else withheld.evaluate(bound, resource, original, tally.context)
            )
            final_results = invocation_results if bound.combination is None else ()
            changing = (
                () if final_results else tuple((bound, invocation_result) for invocation_result in invocation_results)
            )
            findings = tuple(
                finding
                for invocation_result in final_results
                for finding in self._make_findings(invocation_result, bound, resource.kind)
            )
        except SchemaUnknown as error:
            tally.add_gap_once(
                Gap(GapKind.EVALUATION, _name_place(resource.kind), f"policy {bound.policy.name}: {error}")
            )
            return False
        except AuthorizerFailed as error:
            why = f"policy {bound.policy.name}: {error}"
            tally.gaps.append(Gap(GapKind.EVALUATION, _name_place(resource.kind, resource), why))
            return False
        except Exception as error:  # noqa: BLE001 - a bug of Assay must not become a verdict, nor stop the scan
            why = f"internal error while policy {bound.policy.name} was evaluated: {type(error).__name__}; please report it"
            tally.gaps.append(Gap(GapKind.EVALUATION, _name_place(resource.kind, resource), why))
            return False
        tally.findings.extend(findings)
        tally.changing.extend(changing)
        tally.count(bound, resource.kind, invocation_results)
        if withheld is not None:
            tally.redacted[bound.policy.key] += sum(map(count_redacted, invocation_results))
        return bool(invocation_results)

    def _make_findings(
        self,
        invocation_result: InvocationResult,
        bound: BoundPolicy,
        listed: Kind,
        forms: FindingForms | None = None,
        inputs: Mapping[str, object] | None = None,
    ) -> Iterator[Finding]:
        return make_findings(invocation_result, bound, listed, forms, inputs, by_name=self.by_name, parts=self.evidence)


class _WithheldView(Struct, frozen=True):
    """An object of a snapshot with its withheld parts marked; with `together`, policies that change it may read some of them."""

    reads: WithheldReads
    marked: JsonObject
    together: bool

    def evaluate(
        self, bound: BoundPolicy, resource: Resource, original: Kind, context: EvaluationContext
    ) -> tuple[InvocationResult, ...]:
        """The results of a policy, with `skipped: redacted` for each check that may read a withheld part."""
        skipped = self.reads.skip(bound, resource, self.marked, original)
        if skipped is not None:
            return skipped
        results = tuple(evaluate_object(bound, resource, original, context))
        return self.reads.withhold(bound, results, self.marked, together=self.together)


class _TogetherResults:
    """The combined result of all policies that act together on an object that at least one changes, computed once."""

    def __init__(self, resource: Resource, mutating: Sequence[MutatingPolicy], tally: _PageTally) -> None:
        self._resource, self._mutating, self._tally = resource, mutating, tally
        self._together_by_combination: dict[int, CombinedChange | None] = {}

    def get(self, combination: Combination | None) -> CombinedChange | None:
        """The combined result of the policies of one combination; None if it adds nothing or could not be computed."""
        if combination is None:
            return None
        if id(combination) not in self._together_by_combination:
            self._together_by_combination[id(combination)] = self._combine(combination)
        return self._together_by_combination[id(combination)]

    def _combine(self, combination: Combination) -> CombinedChange | None:
        """Include policies that leave the stored object alone: they may change it after other policies."""
        changing: defaultdict[PolicyKey, list[InvocationResult]] = defaultdict(list)
        for bound, invocation_result in self._tally.changing:
            changing[bound.policy.key].append(invocation_result)
        mutating = [policy for policy in self._mutating if policy.bound.combination is combination]
        acting = [
            (policy.bound, invocation_result)
            for policy in mutating
            for invocation_result in changing.get(policy.bound.policy.key)
            or policy.list_invocations(self._resource, self._tally.context)
        ]
        at_rest = _PoliciesAtRest(self._resource, mutating, self._tally.not_passed | changing.keys())
        try:
            together = combination.combine(acting, at_rest)
        except (SchemaUnknown, AuthorizerFailed):
            return None
        return together and redact.redact_together(together, acting)


class _PoliciesAtRest:
    """The policies that leave an object unchanged: as stored, all but the `acting`; after other changes, by the fast path."""

    def __init__(self, resource: Resource, mutating: Sequence[MutatingPolicy], acting: AbstractSet[PolicyKey]) -> None:
        self._resource, self._acting = resource, acting
        self._fast_policies = {policy.bound.policy.key: policy.fast_policy for policy in mutating}
        self._sizes: dict[int, int] = {}

    def __call__(self, bound: BoundPolicy, body: JsonObject) -> bool:
        key, resource = bound.policy.key, self._resource
        if body is resource.body:
            return key not in self._acting
        fast_policy = self._fast_policies[key]
        return fast_policy is not None and fast_policy.leaves(resource, body, self._measure_both(body))

    def _measure_both(self, body: JsonObject) -> int:
        """The power of two above the sizes of both objects."""
        if id(body) not in self._sizes:
            size = max(_measure(body), _measure(self._resource.body))
            self._sizes[id(body)] = 1 << size.bit_length()
        return self._sizes[id(body)]


def _measure(body: JsonObject) -> int:
    """The size of an object as JSON, in bytes; the largest int for an object that JSON cannot express."""
    try:
        return len(orjson.dumps(body))
    except TypeError:
        return sys.maxsize


class _PageTally:
    """The results of a page during its evaluation. `context` is the context of the page, with its own `budget_use`."""

    def __init__(self, context: EvaluationContext, gaps: list[Gap]) -> None:
        self.last_use = BudgetUse()
        self.context = replace(context, budget_use=self.last_use)
        self.gaps = gaps
        self.findings: list[Finding] = []
        self.changing: list[tuple[BoundPolicy, InvocationResult]] = []
        self.not_passed: set[PolicyKey] = set()
        self.tallies: Counter[TallyKey] = Counter()
        self.matched: Counter[BindingKey] = Counter()
        self.budget_use: dict[PolicyKey, float] = {}
        self.redacted: Counter[PolicyKey] = Counter()
        self.without_param: Counter[BindingKey] = Counter()
        self.sets: defaultdict[SetKey, int] = defaultdict(int)
        self.examined: list[PopulationMember] = []
        self.places: list[int] = []
        self.bit = 0
        self.evaluated = 0
        self.identities: dict[str, None] = {}
        self.repeated = 0
        self.excluded = 0

    def begin(self, record: PopulationMember) -> None:
        """Count the next object, whose bit stands for it in the sets of the page."""
        self.bit = 1 << len(self.examined)
        self.examined.append(record)

    def end(self) -> None:
        """Note the place of the object for each of its findings."""
        if len(self.places) < len(self.findings):
            self.places += [len(self.examined) - 1] * (len(self.findings) - len(self.places))

    def count(self, bound: BoundPolicy, listed: Kind, invocation_results: tuple[InvocationResult, ...]) -> None:
        """Count the results of a policy for the object, and the largest share of the cost budget among them."""
        key = bound.policy.key
        if self.last_use.worst > self.budget_use.get(key, 0.0):
            self.budget_use[key] = self.last_use.worst
        self.matched.update(dict.fromkeys(result.invocation.binding.key for result in invocation_results).keys())
        for result in invocation_results:
            if bound.policy.param_kind and not result.check_results:
                self.without_param[result.invocation.binding.key] += 1
            self.tallies.update(make_tally_key(result, check, bound, listed) for check in result.check_results)
            self._mark(result)

    def _mark(self, invocation_result: InvocationResult) -> None:
        """Put the object into the set of an invocation and its results."""
        checks = list_reasons(invocation_result.check_results)
        self.sets[SetKey(get_invocation_key(invocation_result.invocation), checks)] |= self.bit

    def add_gap_once(self, gap: Gap) -> None:
        """Record a gap that applies to all objects of the page only once."""
        if gap not in self.gaps:
            self.gaps.append(gap)


def _add_other_changes(invocation_result: InvocationResult, together: CombinedChange | None) -> InvocationResult:
    """Add the changes that other policies make to the same object to a result."""
    if together is None:
        return invocation_result
    check_results = tuple(
        check_result._replace(outcome=_with_together(check_result.outcome, together))
        if isinstance(check_result.outcome, WouldChange)
        else check_result
        for check_result in invocation_result.check_results
    )
    return invocation_result._replace(check_results=check_results)


def _with_together(outcome: WouldChange, together: CombinedChange) -> WouldChange:
    return replace(
        outcome,
        together=together.patch,
        order_matters=together.order_matters,
        undone=together.undone,
        refused=together.refused,
    )


def _make_result(page: Page, tally: _PageTally) -> PageResult:
    return PageResult(
        api_version=page.kind.api_version,
        kind=page.kind.kind,
        number=page.number,
        objects=len(tally.examined),
        evaluated=tally.evaluated,
        findings=tuple(tally.findings),
        tallies=dict(tally.tallies),
        matched=dict(tally.matched),
        budget_use=tally.budget_use,
        without_param=dict(tally.without_param),
        gaps=tuple(tally.gaps),
        identities=tuple(tally.identities),
        repeated=tally.repeated,
        examined=population.pack(tally.examined),
        sets=object_sets.pack(ObjectSets(len(tally.examined), tally.sets)),
        places=tuple(tally.places),
        controllers=list_controllers(tally.examined),
        digest=digest_page(page),
        excluded=tally.excluded,
        redacted={key: number for key, number in tally.redacted.items() if number},
    )


def _typed(kind: Kind) -> dict[str, str]:
    """The fields that a server may leave out of the items of a list."""
    return {"apiVersion": kind.api_version, "kind": kind.kind}


def _is_new(resource: Resource, evaluated: AbstractSet[str], tally: _PageTally) -> bool:
    """Return whether an object appears for the first time. A list that was started again has some objects twice."""
    identity = get_identity(resource)
    if identity in evaluated or identity in tally.identities:
        tally.repeated += 1
        return False
    tally.identities[identity] = None
    return True


def get_identity(resource: Resource) -> str:
    """The UID of an object, or its names if it has none."""
    return resource.uid or f"{resource.namespace}/{resource.name}"


def _name_place(kind: Kind, resource: Resource | None = None) -> str:
    prefix = f"{kind.api_version}/{kind.kind}"
    if resource is None:
        return prefix
    return f"{prefix} {resource.namespace}/{resource.name}" if resource.namespace else f"{prefix} {resource.name}"
