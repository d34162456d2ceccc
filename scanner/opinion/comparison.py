"""Compares two engines on the same expressions and a sample of the objects: agreements, limits of the other engine, differences.

The verdicts come from the evaluation of the pages; nothing here changes a verdict. The identity of an object decides whether the
object is in the sample, so the same cluster always has the same sample.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from scanner.admission.compiled import CompiledPolicy, Expression
from scanner.admission.context import EvaluationContext
from scanner.admission.cost_budget import Variables
from scanner.admission.dispatch import BoundPolicy, InvocationResult, evaluate_object
from scanner.audit.items import decode_item, split_items
from scanner.audit.page import PageEvaluator
from scanner.audit.repeats import RepeatDetector
from scanner.model.outcome import Check, CheckKind
from scanner.model.resource import Kind, Page, Resource, resource_of
from scanner.model.scans.opinion import Disagreement, Limitation, Opinion
from scanner.opinion.engine import AssayEngine, Engine, EngineAnswer, is_same_value
from scanner.opinion.limits import LIMITS, find_limit, find_traits
from scanner.policies.plan import KindPlan

_MOST_DISAGREEMENTS = 100
_KINDS = {
    "variables": CheckKind.VALIDATION,
    "matchConditions": CheckKind.CONDITIONS,
    "validations": CheckKind.VALIDATION,
    "auditAnnotations": CheckKind.AUDIT_ANNOTATION,
    "mutations": CheckKind.MUTATION,
}


@dataclass(slots=True)
class _Tally:
    """The counts of a comparison."""

    objects: int = 0
    evaluations: int = 0
    agreed: int = 0
    limited: Counter[str] = field(default_factory=Counter)
    expressions: dict[str, None] = field(default_factory=dict)
    limited_expressions: dict[str, dict[str, None]] = field(default_factory=dict)
    first: dict[tuple[str, str, str], Disagreement] = field(default_factory=dict)
    disagreed: Counter[tuple[str, str, str]] = field(default_factory=Counter)


class EngineComparison:
    """The comparison of one engine with another on `percent` (0 to 100) of the objects, page by page."""

    def __init__(self, engine: Engine, name: str, percent: float) -> None:
        """Begin with no counts; `name` is the name of the other engine in reports."""
        self._ours = AssayEngine()
        self._theirs = engine
        self._name = name
        self._percent = percent
        self._tally = _Tally()
        self._seen = RepeatDetector()

    def compare_page(self, page: Page, plan: KindPlan, page_evaluator: PageEvaluator) -> None:
        """Compare the engines on the sampled objects of a page. An error here does not affect the scan."""
        for resource in _list_objects(page, page_evaluator):
            identity = (_get_identity(resource),)
            if is_in_sample(resource, self._percent) and not self._seen.find_repeats(identity):
                self._seen.add(identity)
                self._tally.objects += 1
                for bound, original in plan.policies:
                    self._compare_object(resource, bound, original, page_evaluator.context)

    def _compare_object(
        self, resource: Resource, bound: BoundPolicy, original: Kind, context: EvaluationContext
    ) -> None:
        # The evaluation of the page has recorded every error that evaluating raises here.
        with suppress(Exception):
            for invocation_result in evaluate_object(bound, resource, original, context):
                self._compare_invocation(invocation_result, bound)

    def _compare_invocation(self, invocation_result: InvocationResult, bound: BoundPolicy) -> None:
        """Compare all expressions of a policy that matched."""
        if invocation_result.request is None:
            return
        for kind, expressions in _group_expressions(bound.compiled):
            activation = _make_activation(invocation_result, bound, kind)
            names = frozenset(
                name for _, expression in expressions for name in _list_variables(expression, bound.compiled)
            )
            self._ours.show(activation, names)
            self._theirs.show(activation, names)
            for place, expression in expressions:
                self._compare(invocation_result, place, expression)

    def _compare(self, invocation_result: InvocationResult, place: str, expression: Expression) -> None:
        ours, theirs = self._ours.ask(expression), self._theirs.ask(expression)
        tally, text = self._tally, expression.text
        tally.evaluations += 1
        tally.expressions[text] = None
        if answers_agree(ours, theirs):
            tally.agreed += 1
            return
        limit = find_limit(find_traits(text), ours, theirs)
        if limit is not None:
            tally.limited[limit.name] += 1
            tally.limited_expressions.setdefault(limit.name, {})[text] = None
            return
        policy = invocation_result.invocation.policy
        key = policy.language, policy.name, place
        tally.disagreed[key] += 1
        tally.first.setdefault(
            key,
            Disagreement(
                policy=policy.name,
                language=policy.language,
                place=place,
                expression=text,
                evaluations=0,
                object=_describe_resource(invocation_result.resource),
                ours=_describe_answer(ours),
                theirs=_describe_answer(theirs),
            ),
        )

    def opinion(self) -> Opinion:
        """The result of the comparison."""
        tally = self._tally
        limits = (
            Limitation(limit.name, limit.reason, tally.limited[limit.name], len(tally.limited_expressions[limit.name]))
            for limit in LIMITS
            if tally.limited[limit.name]
        )
        keys = sorted(tally.first)
        return Opinion(
            engine=self._name,
            percent=self._percent,
            objects=tally.objects,
            evaluations=tally.evaluations,
            agreed=tally.agreed,
            expressions=len(tally.expressions),
            limits=tuple(limits),
            disagreements=tuple(
                replace(tally.first[key], evaluations=tally.disagreed[key]) for key in keys[:_MOST_DISAGREEMENTS]
            ),
            left_out=max(0, len(keys) - _MOST_DISAGREEMENTS),
        )


def is_in_sample(resource: Resource, percent: float) -> bool:
    """Return whether an object is in a sample of `percent` (0 to 100) of all objects; only its identity decides."""
    number = int.from_bytes(hashlib.sha256(_get_identity(resource).encode("utf-8", "surrogatepass")).digest()[:8])
    return number < percent / 100 * 2**64


def _get_identity(resource: Resource) -> str:
    kind = resource.kind
    return resource.uid or f"{kind.group}/{kind.kind}/{resource.namespace}/{resource.name}"


def _list_objects(page: Page, page_evaluator: PageEvaluator) -> Iterator[Resource]:
    """The objects of a page that were evaluated; objects that cannot be read are gaps already."""
    try:
        items = split_items(page)
    except ValueError:
        return
    for text in items:
        resource = _decode_resource(page.kind, text)
        if resource is None or any(
            fnmatchcase(resource.namespace, pattern) for pattern in page_evaluator.exclude_namespaces
        ):
            continue
        if not resource.namespace or page_evaluator.context.find_namespace(resource.namespace) is not None:
            yield resource


def _decode_resource(kind: Kind, text: memoryview) -> Resource | None:
    try:
        item = decode_item(text)
    except ValueError:
        return None
    if not isinstance(item, Mapping) or not isinstance(item.get("metadata"), Mapping):
        return None
    return resource_of(kind, {**item, "apiVersion": kind.api_version, "kind": kind.kind})


def _group_expressions(compiled: CompiledPolicy) -> Iterator[tuple[CheckKind, list[tuple[str, Expression]]]]:
    """The expressions that compile, by the variables that they can read; a message can read what its validation can."""
    by_kind: dict[CheckKind, list[tuple[str, Expression]]] = {}
    for place, expression in compiled.expressions():
        if expression.program is not None:
            kind = _KINDS[place.removeprefix("spec.").partition("[")[0]]
            by_kind.setdefault(kind, []).append((place, expression))
    yield from by_kind.items()


def _make_activation(invocation_result: InvocationResult, bound: BoundPolicy, kind: CheckKind) -> Mapping[str, object]:
    request, compiled = invocation_result.request, bound.compiled
    if request is None:
        return {}
    activation = bound.evaluator.inputs(compiled, request, invocation_result.invocation.param, Check(kind))
    variables = activation.get("variables")
    if isinstance(variables, Variables):
        variables.metered = True
    return activation


def _list_variables(expression: Expression, compiled: CompiledPolicy) -> Iterator[str]:
    """The policy variables that an expression reads itself."""
    for path in expression.program.reads if expression.program else ():
        if path[0] == "variables":
            yield from path[1:2] or compiled.variables


def answers_agree(ours: EngineAnswer, theirs: EngineAnswer) -> bool:
    """Return whether both have the same value, or both fail; the error messages are not compared."""
    if ours.kind == "value" and theirs.kind == "value":
        return is_same_value(list(ours.value), list(theirs.value))
    return ours.kind == theirs.kind == "error"


def _describe_answer(answer: EngineAnswer) -> str:
    """The answer of an engine without possible secrets: of texts, numbers and lists only the type."""
    match answer:
        case EngineAnswer(kind="value", value=("bool", bool() as value)):
            return "true" if value else "false"
        case EngineAnswer(kind="value", value=("null", _)):
            return "null"
        case EngineAnswer(kind="value", value=(kind, _)):
            return f"a value of type {kind}"
        case _:
            return "an error"


def _describe_resource(resource: Resource) -> str:
    name = f"{resource.namespace}/{resource.name}" if resource.namespace else resource.name
    return f"{resource.kind.kind} {name}"
