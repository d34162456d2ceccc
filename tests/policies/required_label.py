"""A family of two policy languages in one file, without expressions and without bindings.

A `RequiredLabel` demands a label of every Pod, a `RequiredAnnotation` an annotation. An `Exemption` exempts the Pods of a name from
both, and both add the advice in a ConfigMap to their messages, which the options of the family name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from scanner.admission.compiled import CompiledPolicy, Expression, compile_expression, list_checks
from scanner.admission.dispatch import BoundPolicy
from scanner.admission.evaluator import FastForm
from scanner.admission.request import Request
from scanner.cel import STRING, Environment
from scanner.errors import UsageError
from scanner.model.json import JsonObject, as_object, as_text, dig
from scanner.model.outcome import Check, CheckResult, Passed, Violated
from scanner.model.policy import Action, Binding, MatchResources, Policy, Rule, Validation
from scanner.model.release import Minor
from scanner.model.resource import Kind, Resource
from scanner.model.selector import EVERYTHING
from scanner.policies.admission_api import make_bound_policy
from scanner.policies.bound_language import (
    BindingContext,
    BoundLanguage,
    ListRight,
    PolicyDocuments,
    ReadDocument,
    Supporting,
)
from scanner.policies.language import LANGUAGES, Language
from scanner.policies.manifest import digest
from tests.policies.plain_language import PlainLanguage

GROUP = "labels.example.com"
KIND, ANNOTATION, EXEMPTION = "RequiredLabel", "RequiredAnnotation", "Exemption"
EXEMPTIONS = Kind(GROUP, "v1", EXEMPTION, "exemptions", namespaced=False)
HOME = "default"
"""The namespace of the ConfigMap with the advice."""
_PODS = MatchResources((Rule(("CREATE",), ("",), ("v1",), ("pods",)),), (), EVERYTHING, EVERYTHING)
_ADVICE = compile_expression("advice", Environment(variables=(("advice", STRING),)), {})


@dataclass(frozen=True)
class RequirementOptions:
    """The options of both languages: the name of the ConfigMap with the advice, if messages have one."""

    advice_from: str = ""

    def advice(self, context: BindingContext) -> str:
        """The advice of the ConfigMap."""
        kinds = (kind for kind in context.served if (kind.group, kind.plural) == ("", "configmaps"))
        kind = next(kinds, None)
        listed = context.lists.list_all(kind, (HOME,)) if kind and context.lists and self.advice_from else ()
        return next((as_text(dig(each.body, "data", "advice")) for each in listed if each.name == self.advice_from), "")


@dataclass(frozen=True)
class Requirements(PlainLanguage):
    """The methods of `Language` for both kinds: `kind` demands an entry in a `part` of the metadata."""

    options: RequirementOptions = field(default_factory=RequirementOptions)
    kind: ClassVar[Kind]
    part: ClassVar[str]
    source: ClassVar[str]
    open_roots: ClassVar[frozenset[str]] = frozenset()

    @property
    def names(self) -> tuple[str, ...]:
        return (self.kind.kind,)

    @property
    def needs_bindings(self) -> bool:
        return False

    @property
    def report_source(self) -> str:
        return self.source

    @property
    def custom_kinds(self) -> tuple[Kind, ...]:
        return self.kind, EXEMPTIONS

    @property
    def counted_kinds(self) -> tuple[Kind, ...]:
        return ()

    def kinds(self, served: Iterable[Kind]) -> Iterator[Kind]:
        yield from (kind for kind in served if kind in self.custom_kinds)

    @property
    def derive(self) -> None:
        return

    def reads(self, document: JsonObject) -> bool:
        return document.get("kind") in (self.kind.kind, EXEMPTION)

    def read(self, document: JsonObject, *, source: str, namespace: str, rules: Minor) -> ReadDocument:
        del namespace, rules
        name, key = as_text(dig(document, "metadata", "name")), as_text(dig(document, "spec", "key"))
        if document.get("kind") == EXEMPTION:
            return ReadDocument(Supporting("exemption", name, document))
        checks = (Validation(key, f"it needs the {self.part[:-1]} {key}"),)
        policy = Policy(
            *(self.kind.kind, name, _PODS, None, (), (), checks, (), "Fail", document, digest(document), source)
        )
        return ReadDocument(policy)

    def assume_bound(self, policy: Policy, action: Action) -> Binding:
        raise UsageError(f"--assume-bound {policy.name}={action}: it is in force already")

    def compile(self, policy: Policy, rules: Minor) -> CompiledPolicy:
        del rules
        checks = tuple(
            (validation, Expression(validation.expression, None), _ADVICE) for validation in policy.validations
        )
        return CompiledPolicy(policy, {}, (), checks, (), checks=list_checks(policy), open_roots=self.open_roots)

    def bind(self, documents: PolicyDocuments, context: BindingContext) -> BoundLanguage:
        exempt = frozenset(as_text(dig(exemption.body, "spec", "pod")) for exemption in documents.supporting)
        advice = self.options.advice(context) if documents.policies else ""
        evaluator = RequirementEvaluator(self.part, exempt, advice)
        bound = tuple(self._bound(policy, evaluator, context) for policy in documents.policies)
        return BoundRequirements(bound, reads_advice=bool(self.options.advice_from))

    def _bound(self, policy: Policy, evaluator: RequirementEvaluator, context: BindingContext) -> BoundPolicy:
        binding = Binding.create_without_manifest(policy, "always", ("Deny",), policy.source)
        return make_bound_policy(self.compile(policy, context.rules), (binding,), context.operations, evaluator)


@dataclass(frozen=True)
class RequiredLabels(Requirements):
    """Satisfies `Language`. Its messages may show the advice."""

    kind = Kind(GROUP, "v1", KIND, "requiredlabels", namespaced=False)
    part = "labels"
    source = "LabelChecker"
    open_roots = frozenset({"advice"})


@dataclass(frozen=True)
class RequiredAnnotations(Requirements):
    """Satisfies `Language`."""

    kind = Kind(GROUP, "v1", ANNOTATION, "requiredannotations", namespaced=False)
    part = "annotations"
    source = "AnnotationChecker"


@dataclass(frozen=True)
class RequirementEvaluator:
    """Satisfies `Evaluator`."""

    part: str
    exempt: frozenset[str] = frozenset()
    advice: str = ""
    reads_whole_object: bool = False

    def evaluate(self, compiled: CompiledPolicy, request: Request, param: Resource | None) -> tuple[CheckResult, ...]:
        del param
        ((validation, _, _),) = compiled.validations
        entries = as_object(dig(request.resource.body, "metadata", self.part))
        if validation.expression in entries or request.resource.name in self.exempt:
            return (CheckResult(compiled.checks[0], Passed()),)
        message = f"{validation.message}: {self.advice}" if self.advice else validation.message
        return (CheckResult(compiled.checks[0], Violated(message, "Invalid", 422)),)

    def inputs(
        self, compiled: CompiledPolicy, request: Request, param: Resource | None, check: Check
    ) -> dict[str, object]:
        del compiled, request, param, check
        return {}

    def fast_form(self, compiled: CompiledPolicy, kind: Kind) -> FastForm | None:
        del compiled, kind
        return None


class BoundRequirements(BoundLanguage):
    """Requirements in force."""

    def __init__(self, bound: tuple[BoundPolicy, ...], *, reads_advice: bool) -> None:
        self._bound, self._reads_advice = bound, reads_advice

    @property
    def bound(self) -> tuple[BoundPolicy, ...]:
        return self._bound

    def rights(self) -> Iterator[ListRight]:
        if self._bound and self._reads_advice:
            yield ListRight("", "configmaps", HOME, "the advice of requirements")


def with_requirements(options: RequirementOptions | None = None) -> tuple[Language, ...]:
    """The table of languages with the family."""
    own = options or RequirementOptions()
    return (*LANGUAGES, RequiredLabels(own), RequiredAnnotations(own))


OWN_KINDS = tuple(dict.fromkeys((*RequiredLabels().custom_kinds, *RequiredAnnotations().custom_kinds)))
"""The kinds of the documents of the family."""


def requirement(kind: str, name: str, **spec: str) -> Any:
    """A document of the family."""
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


LABELLED, ANNOTATED = requirement(KIND, "labelled", key="team"), requirement(ANNOTATION, "annotated", key="docs")
