"""A policy language in one file whose policies are labels of namespaces: no document contains them, and no expression decides.

The labels `levels.example.com/enforce` and `levels.example.com/warn` name a level: `none`, `basic` or `strict`; any other value is
`strict`. Without the second label, the first one warns, too. A level has some checks of one policy, `pod-levels`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from scanner.admission.auditability import classify_policy
from scanner.admission.compiled import CompiledPolicy, list_checks
from scanner.admission.dispatch import BoundPolicy, CoveredNamespaces
from scanner.admission.evaluator import FastForm
from scanner.admission.request import Request
from scanner.errors import InvalidManifest
from scanner.model.json import JsonObject, as_list, as_text, dig, text_map
from scanner.model.outcome import Check, CheckResult, FieldPlace, Passed, Violated
from scanner.model.policy import NAMESPACE_LABELS, Action, Binding, MatchResources, Policy, Rule, Validation
from scanner.model.reading import Reading
from scanner.model.release import Minor
from scanner.model.resource import Kind, Resource
from scanner.model.scans.health import Health, HealthKind
from scanner.model.selector import EVERYTHING
from scanner.policies.admission_api import make_bound_policy
from scanner.policies.bound_language import BindingContext, BoundLanguage, PolicyDocuments, ReadDocument
from scanner.policies.manifest import digest
from tests.policies.plain_language import PlainLanguage

KIND: Final = "PodLevel"
NAME: Final = "pod-levels"
ENFORCE: Final = "levels.example.com/enforce"
WARN: Final = "levels.example.com/warn"
_STRICT: Final = "strict"
_LEVELS: Final[Mapping[str, tuple[str, ...]]] = {
    "none": (),
    "basic": ("hostNetwork",),
    _STRICT: ("hostNetwork", "runAsNonRoot"),
}
_ACTIONS: Final[Mapping[str, Action]] = {"enforce": "Deny", "warn": "Warn"}
_PODS = MatchResources((Rule(("CREATE", "UPDATE"), ("",), ("v1",), ("pods",)),), (), EVERYTHING, EVERYTHING)
_MANIFEST: Final[JsonObject] = {
    "apiVersion": "levels.example.com/v1",
    "kind": KIND,
    "metadata": {"name": NAME, "annotations": {"policies.kyverno.io/title": "Pod levels"}},
    "spec": {"checks": [*_LEVELS[_STRICT]]},
}


@dataclass(frozen=True)
class PodLevels(PlainLanguage):
    """Satisfies `Language`."""

    names: tuple[str, ...] = (KIND,)
    needs_bindings: bool = True
    report_source: str = ""
    custom_kinds: tuple[Kind, ...] = ()
    counted_kinds: tuple[Kind, ...] = ()

    def kinds(self, served: Iterable[Kind]) -> Iterator[Kind]:
        del served
        yield from ()

    @property
    def derive(self) -> Callable[[Collection[JsonObject], Minor], Iterator[Policy | Binding]]:
        return _derived

    def reads(self, document: JsonObject) -> bool:
        del document
        return False

    def read(self, document: JsonObject, *, source: str, namespace: str, rules: Minor) -> ReadDocument:
        raise InvalidManifest(("no document is a policy of this language",))

    def assume_bound(self, policy: Policy, action: Action) -> Binding:
        return Binding.create_without_manifest(
            policy, f"assumed:{policy.name}", (action,), "--assume-bound", assumed=True
        )

    def compile(self, policy: Policy, rules: Minor) -> CompiledPolicy:
        del rules
        return CompiledPolicy.make_without_expressions(policy, list_checks(policy))

    def bind(self, documents: PolicyDocuments, context: BindingContext) -> BoundLanguage:
        return BoundLevels(documents, context)


def _derived(namespaces: Collection[JsonObject], rules: Minor) -> Iterator[Policy | Binding]:
    """The policy if any namespace has a label, and a binding for each mode and level."""
    del rules
    labelled = [labels for labels in map(_labels, namespaces) if not labels.keys().isdisjoint((ENFORCE, WARN))]
    if not labelled:
        return
    validations = tuple(Validation(name) for name in _LEVELS[_STRICT])
    yield Policy(
        KIND, NAME, _PODS, None, (), (), validations, (), "Fail", _MANIFEST, digest(_MANIFEST), NAMESPACE_LABELS
    )
    for mode, level in sorted({(mode, _level(mode, labels)) for labels in labelled for mode in _ACTIONS}):
        if _LEVELS[level]:
            yield _binding(mode, level)


def _binding(mode: str, level: str) -> Binding:
    spec: JsonObject = {"mode": mode, "level": level}
    document: JsonObject = {"kind": f"{KIND}Binding", "metadata": {"name": f"{mode}-{level}"}, "spec": spec}
    actions = (_ACTIONS[mode],)
    return Binding(KIND, f"{mode}-{level}", NAME, None, None, actions, document, digest(document), NAMESPACE_LABELS)


def _labels(namespace: JsonObject | None) -> Mapping[str, str]:
    return text_map(dig(namespace, "metadata", "labels"))


def _level(mode: str, labels: Mapping[str, str]) -> str:
    level = labels.get(_key(mode, labels), "none")
    return level if level in _LEVELS else _STRICT


def _key(mode: str, labels: Mapping[str, str]) -> str:
    """The label that decides the level of a mode."""
    return WARN if mode == "warn" and WARN in labels else ENFORCE


class BoundLevels(BoundLanguage):
    """The policy in force: once for each binding, which has checks of its own."""

    def __init__(self, documents: PolicyDocuments, context: BindingContext) -> None:
        self._documents, self._context = documents, context
        self._bound = tuple(self._of(policy, each) for policy in documents.policies for each in documents.bindings)

    def _of(self, policy: Policy, binding: Binding) -> BoundPolicy:
        mode, level = (as_text(dig(binding.manifest, "spec", name)) for name in ("mode", "level"))
        names = _LEVELS[level or _STRICT]
        checks = tuple(check for check in list_checks(policy) if check.expression in names)
        compiled = CompiledPolicy.make_without_expressions(policy, checks)
        covered = CoveredNamespaces((ENFORCE, WARN), lambda labels: _level(mode, labels) == level)
        bound = make_bound_policy(compiled, (binding,), self._context.operations, LevelEvaluator(mode, checks))
        return replace(bound, covered=None if binding.assumed else covered)

    @property
    def bound(self) -> tuple[BoundPolicy, ...]:
        return self._bound

    def list_recorded(self) -> Iterator[tuple[Policy, Reading]]:
        for policy in self._documents.policies:
            yield (
                policy,
                classify_policy(
                    CompiledPolicy.make_without_expressions(policy, list_checks(policy)), self._context.operations
                ),
            )

    def health(self, evaluable: tuple[BoundPolicy, ...], served: tuple[Kind, ...]) -> Iterator[Health]:
        del evaluable, served
        values = (_labels(each).get(key, "none") for each in self._context.namespaces for key in (ENFORCE, WARN))
        unknown = len([value for value in values if value not in _LEVELS])
        if unknown and self._documents.policies:
            yield Health(HealthKind.NOTE, NAME, "", f"{unknown} labels name no level", KIND)


@dataclass(frozen=True)
class LevelEvaluator:
    """Satisfies `Evaluator`. `mode` is empty for an assumed binding."""

    mode: str
    checks: tuple[Check, ...]
    reads_whole_object: bool = False

    def evaluate(self, compiled: CompiledPolicy, request: Request, param: Resource | None) -> tuple[CheckResult, ...]:
        del param
        labels = _labels(request.namespace_object)
        label = ("namespaceObject", "metadata", "labels", _key(self.mode, labels))
        return tuple(_result(check, request.resource.body, label) for check in compiled.checks)

    def inputs(
        self, compiled: CompiledPolicy, request: Request, param: Resource | None, check: Check
    ) -> dict[str, object]:
        del compiled, request, param, check
        return {}

    def fast_form(self, compiled: CompiledPolicy, kind: Kind) -> FastForm | None:
        del compiled, kind
        return FastForm((self._passes,))

    def _passes(self, inputs: Mapping[str, object]) -> bool:
        body = inputs["object"]
        return isinstance(body, Mapping) and not any(_CHECKS[check.expression](body) for check in self.checks)


def _result(check: Check, body: JsonObject, label: FieldPlace) -> CheckResult:
    fields = _CHECKS[check.expression](body)
    if not fields:
        return CheckResult(check, Passed())
    names = [as_text(dig(container, "name")) for container in as_list(dig(body, "spec", "containers"))]
    message = f"{check.expression} is wrong in a pod with the containers {', '.join(names)}"
    return CheckResult(check, Violated(message, "Forbidden", 403), fields=(*fields, label))


_HOST: Final[FieldPlace] = ("object", "spec", "hostNetwork")


def _host_network(body: JsonObject) -> tuple[FieldPlace, ...]:
    return (_HOST,) if dig(body, "spec", "hostNetwork") is True else ()


def _run_as_non_root(body: JsonObject) -> tuple[FieldPlace, ...]:
    return tuple(
        ("object", "spec", "containers", index, "securityContext", "runAsNonRoot")
        for index, container in enumerate(as_list(dig(body, "spec", "containers")))
        if dig(container, "securityContext", "runAsNonRoot") is not True
    )


_CHECKS: Final[Mapping[str, Callable[[JsonObject], tuple[FieldPlace, ...]]]] = {
    "hostNetwork": _host_network,
    "runAsNonRoot": _run_as_non_root,
}
