"""A policy language in one file: a `RequiredLabel` demands a label of every Pod. It has no expressions and needs no binding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from scanner.admission.compiled import CompiledPolicy, checks_of
from scanner.admission.dispatch import BoundPolicy
from scanner.admission.evaluator import FastForm
from scanner.admission.request import Request
from scanner.errors import UsageError
from scanner.model.json import JsonObject, as_text, dig
from scanner.model.outcome import Check, CheckKind, CheckResult, Passed, Violated
from scanner.model.policy import Action, Binding, MatchResources, Policy, PolicyKey, Rule, Validation
from scanner.model.release import Minor
from scanner.model.resource import Kind, Resource
from scanner.model.scan import Health
from scanner.model.selector import EVERYTHING
from scanner.policies.admission_api import bound_policy
from scanner.policies.bound_language import BindingContext, BoundLanguage
from scanner.policies.documents import PolicyDocuments, ReadDocument
from scanner.policies.manifest import digest
from scanner.policies.unknown_fields import UnknownField

KIND = "RequiredLabel"
_PODS = MatchResources((Rule(("CREATE",), ("",), ("v1",), ("pods",)),), (), EVERYTHING, EVERYTHING)


@dataclass(frozen=True)
class RequiredLabels:
    """Satisfies `Language`."""

    names: tuple[str, ...] = (KIND,)
    needs_bindings: bool = False
    single_process: bool = False
    report_source: str = ""
    custom_kinds: tuple[Kind, ...] = (Kind("labels.example.com", "v1", KIND, "requiredlabels", namespaced=False),)

    def kinds(self, served: Iterable[Kind]) -> Iterator[Kind]:
        yield from (kind for kind in served if kind.kind == KIND)

    @property
    def derive(self) -> None:
        return

    def reads(self, document: JsonObject) -> bool:
        return document.get("kind") == KIND

    def read(self, document: JsonObject, *, source: str, namespace: str, rules: Minor) -> ReadDocument:
        del namespace, rules
        name, label = as_text(dig(document, "metadata", "name")), as_text(dig(document, "spec", "label"))
        checks = (Validation(label, f"it needs the label {label}"),)
        policy = Policy(KIND, name, _PODS, None, (), (), checks, (), "Fail", document, digest(document), source)
        return ReadDocument(policy)

    def unknown_fields(self, document: JsonObject) -> tuple[UnknownField, ...]:
        del document
        return ()

    def assume_bound(self, policy: Policy, action: Action) -> Binding:
        raise UsageError(f"--assume-bound {policy.name}={action}: it is in force already")

    def generated(self, own: Iterable[Policy], others: Iterable[Policy]) -> Iterator[tuple[PolicyKey, Health]]:
        del own, others
        yield from ()

    @property
    def patch_decides(self) -> bool:
        return False

    def deciding(self, spec: JsonObject, check: CheckKind) -> JsonObject:
        del check
        return spec

    def constraints(self, policy: Policy) -> tuple[MatchResources, ...]:
        return (policy.match,) if policy.match else ()

    def compile(self, policy: Policy, rules: Minor) -> CompiledPolicy:
        del rules
        return CompiledPolicy.without_expressions(policy, checks_of(policy))

    def bind(self, documents: PolicyDocuments, context: BindingContext) -> BoundLanguage:
        return BoundLabels(tuple(self._bound(policy, context) for policy in documents.policies))

    def _bound(self, policy: Policy, context: BindingContext) -> BoundPolicy:
        binding = Binding.unwritten(policy, "always", ("Deny",), policy.source)
        return bound_policy(self.compile(policy, context.rules), (binding,), context.operations, LabelEvaluator())


@dataclass(frozen=True)
class LabelEvaluator:
    """Satisfies `Evaluator`."""

    reads_whole_object: bool = False

    def evaluate(self, compiled: CompiledPolicy, request: Request, param: Resource | None) -> tuple[CheckResult, ...]:
        del param
        (validation,) = compiled.policy.validations
        missing = validation.expression not in request.resource.labels
        return (CheckResult(compiled.checks[0], Violated(validation.message, "Invalid", 422) if missing else Passed()),)

    def inputs(
        self, compiled: CompiledPolicy, request: Request, param: Resource | None, check: Check
    ) -> dict[str, object]:
        del compiled, request, param, check
        return {}

    def fast_form(self, compiled: CompiledPolicy, kind: Kind) -> FastForm | None:
        del compiled, kind
        return None


class BoundLabels(BoundLanguage):
    """Required labels in force."""

    def __init__(self, bound: tuple[BoundPolicy, ...]) -> None:
        self._bound = bound

    @property
    def bound(self) -> tuple[BoundPolicy, ...]:
        return self._bound
