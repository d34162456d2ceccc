"""Evaluates a policy for Pods on the Pods of the templates in another workload, such as a JobSet.

Source of truth: `pkg/cel/autogen/extract`, and `evaluateExtracted` of `pkg/cel/policies/vpol/engine`, of Kyverno 1.19. A template is
any object in the spec that has the form of one. Kyverno evaluates the templates in a random order, up to the first that does not
pass; here their order is that of their paths.

Rules: `docs/semantics/kyverno.md#extracted-templates`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

from scanner.admission.compiled import CompiledPolicy
from scanner.admission.request import Request
from scanner.model.json import Json, JsonObject, as_object, as_text, dig
from scanner.model.outcome import (
    Check,
    CheckKind,
    CheckResult,
    Errored,
    Outcome,
    Passed,
    Skipped,
    SkipReason,
    Violated,
)
from scanner.model.resource import Kind, Resource
from scanner.policies.kyverno.decide import CONTEXT, REFUSED, Decision

PODS: Final = Kind("", "v1", "Pod", "pods", namespaced=True)
_Results: TypeAlias = tuple[CheckResult, ...]
_NO_TEMPLATE: Final = Skipped(SkipReason.NOT_REACHED, "the object has no pod template")


class PodTemplate(NamedTuple):
    """A part of an object that has the form of a Pod template, and its path."""

    path: str
    body: JsonObject


def pod_templates(body: JsonObject) -> Iterator[PodTemplate]:
    """The templates in the spec of an object, by path. A template is not searched for further ones."""
    waiting: list[tuple[str, Json]] = [("spec", body.get("spec"))] if isinstance(body.get("spec"), Mapping) else []
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, Mapping):
            if _is_template(value):
                yield PodTemplate(path, value)
            else:
                waiting += [(f"{path}.{key}", value[key]) for key in sorted(value, reverse=True)]
        elif isinstance(value, list):
            waiting += [(f"{path}[{index}]", value[index]) for index in reversed(range(len(value)))]


def _is_template(value: JsonObject) -> bool:
    if not isinstance(value.get("metadata", {}), Mapping):
        return False
    containers = dig(value.get("spec"), "containers")
    return isinstance(containers, list) and bool(containers) and all(map(_is_container, containers))


def _is_container(value: Json) -> bool:
    return bool(as_text(dig(value, "name"))) and isinstance(dig(value, "image"), str)


class Extraction(Struct, frozen=True):
    """The evaluation of one policy on the templates of an object. Satisfies Evaluator; `decision` is that of each Pod."""

    decision: Decision
    reads_whole_object: bool = True

    def evaluate(self, compiled: CompiledPolicy, request: Request, param: Resource | None) -> _Results:
        """See Evaluator: an object without a template is an error."""
        if compiled.excess or self.decision.fault:
            return self.decision.evaluate(compiled, request, param)
        templates = tuple(pod_templates(request.resource.body))
        if not templates:
            return _without_template(compiled, request.resource)
        results = [self._of_pod(compiled, template, request) for template in templates]
        return _by_check(results) if self.decision.mode.all_validations else _up_to_first(results)

    def inputs(
        self, compiled: CompiledPolicy, request: Request, param: Resource | None, check: Check
    ) -> dict[str, object]:
        """See Evaluator: those of the Pod, if the request is one for a Pod, else those of the first template."""
        template = next(pod_templates(request.resource.body), None)
        own = request if template is None else for_pod(template, request)
        return self.decision.inputs(compiled, own, param, check)

    def fast_form(self, compiled: CompiledPolicy, kind: Kind) -> None:
        """See Evaluator: the paths of the expressions are not those of the object."""
        del compiled, kind

    def _of_pod(self, compiled: CompiledPolicy, template: PodTemplate, request: Request) -> _Results:
        own = for_pod(template, request)
        results = self.decision.evaluate(compiled, own, None)
        return tuple(
            result._replace(outcome=_placed(result.outcome, template.path), evaluated=own.resource, place=template.path)
            for result in results
        )


def for_pod(template: PodTemplate, request: Request) -> Request:
    """The request for the Pod of a template: `SynthesizePodAttributes` and `SynthesizePodAdmissionRequest`."""
    metadata = as_object(template.body.get("metadata"))
    name = as_text(metadata.get("name")) or request.resource.name
    namespace = as_text(metadata.get("namespace")) or request.namespace
    body: JsonObject = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "name": name, "namespace": namespace},
        "spec": template.body["spec"],
    }
    return request.on(Resource(PODS, namespace, name, "", "", body))


def _placed(outcome: Outcome, path: str) -> Outcome:
    """The outcome with the path of the template in its message."""
    match outcome:
        case Violated(message=message):
            return replace(outcome, message=f"{message} (pod template at {path})" if message else "")
        case Errored(message=message) if message.startswith(CONTEXT):
            return replace(outcome, message=f"{CONTEXT}pod template at {path}: {message.removeprefix(CONTEXT)}")
        case Errored(message=message):
            return replace(outcome, message=f"{message} (pod template at {path})")
        case _:
            return outcome


def _without_template(compiled: CompiledPolicy, resource: Resource) -> _Results:
    """The results of an object without a template: the first check is an error, and ends the evaluation."""
    what = f"{resource.kind.api_version}/{resource.kind.kind}"
    error = Errored(
        f"error: extraction mode: no pod template found in {what}", would_deny=True, reason="", code=REFUSED
    )
    first, *others = compiled.checks or (Check(CheckKind.CONDITIONS),)
    return (CheckResult(first, error), *(CheckResult(check, _NO_TEMPLATE) for check in others))


def _by_check(results: Sequence[_Results]) -> _Results:
    """The result of each check in the order of its weight: denied, excepted, not auditable, passed, skipped.

    If the match conditions of the first Pod that is denied err, that is the only result.
    """
    first = next((of_pod for of_pod in results if any(map(_denied, of_pod))), results[0])
    if _is_whole(first):
        return first
    of_checks = (of_pod for of_pod in results if not _is_whole(of_pod))
    return tuple(min(of_check, key=_weight) for of_check in zip(*of_checks, strict=True))


def _up_to_first(results: Sequence[_Results]) -> _Results:
    """The results of the first Pod that does not pass, else of the last one that passes, as Kyverno reports them.

    Without such a Pod, the exceptions of all Pods are those of the result.
    """
    for of_pod in results:
        if any(_weight(result) in (_DENIED, _NOT_AUDITABLE) for result in of_pod):
            return of_pod
    passed = [of_pod for of_pod in results if any(_weight(result) == _PASSED for result in of_pod)]
    if passed:
        return passed[-1]
    exempted = [of_pod for of_pod in results if any(result.excepted_by for result in of_pod)]
    if not exempted:
        return results[0]
    keys = ", ".join(of_pod[0].excepted_by for of_pod in exempted)
    return tuple(result._replace(excepted_by=keys) for result in exempted[0])


_DENIED, _EXCEPTED, _NOT_AUDITABLE, _PASSED, _SKIPPED = range(5)


def _weight(result: CheckResult) -> int:
    match result.outcome:
        case Violated() | Errored():
            return _EXCEPTED if result.excepted_by else _DENIED
        case Skipped(reason=SkipReason.NOT_AUDITABLE):
            return _NOT_AUDITABLE
        case Passed() if not result.excepted_by:
            return _PASSED
        case _:
            return _SKIPPED


def _denied(result: CheckResult) -> bool:
    return _weight(result) == _DENIED


def _is_whole(of_pod: _Results) -> bool:
    """Return whether the only result is that of the match conditions."""
    return any(result.check.kind is CheckKind.CONDITIONS for result in of_pod)
