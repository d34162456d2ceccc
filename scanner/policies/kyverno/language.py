"""Kyverno's ValidatingPolicy and NamespacedValidatingPolicy as a policy language."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from scanner.admission.compiled import CompiledPolicy
from scanner.admission.dispatch import BoundPolicy
from scanner.model.json import JsonObject
from scanner.model.outcome import CheckKind
from scanner.model.policy import MatchResources, Policy
from scanner.model.reading import Reading
from scanner.model.release import Minor
from scanner.model.resource import Kind, Resource
from scanner.model.scans.health import Health
from scanner.model.selector import Selector
from scanner.policies.bound_language import (
    BindingContext,
    BoundLanguage,
    ListRight,
    Places,
    PolicyDocuments,
    RuleDocument,
)
from scanner.policies.kyverno import health
from scanner.policies.kyverno.autogen import anywhere
from scanner.policies.kyverno.bind import AS_WRITTEN, BoundForm, bind_forms
from scanner.policies.kyverno.compile import compile_policy
from scanner.policies.kyverno.family import KyvernoLanguage, KyvernoScan
from scanner.policies.kyverno.kinds import KyvernoKind
from scanner.policies.kyverno.spec import VALIDATING, policy_of
from scanner.policies.manifest import remove_texts


@dataclass(frozen=True, slots=True)
class KyvernoValidating(KyvernoLanguage):
    """Satisfies `Language`."""

    api: ClassVar[KyvernoKind] = VALIDATING

    def select_deciding(self, spec: JsonObject, check: CheckKind) -> JsonObject:
        """See Language: all but messages. An expression of a message is evaluated only after a violation, without a budget.

        Kyverno does not load a policy of which any expression does not compile.
        """
        whole = check in (CheckKind.CONDITIONS, CheckKind.CONFIGURATION)
        expressions = () if whole else ("messageExpression",)
        return remove_texts(spec, fields=(), of_validations=("message", *expressions))

    def constraints(self, policy: Policy) -> tuple[MatchResources, ...]:
        """See Language: those of the policy as it is written, and of its autogen variants in any release and cluster."""
        return tuple(form.match for _, form in policy_of(policy).variants(resolve=anywhere) if form.match)

    def compile(self, policy: Policy, rules: Minor) -> CompiledPolicy:
        """See Language."""
        del rules
        return compile_policy(policy, self.options.release, namespaced=policy.language == self.api.namespaced)

    def bind(self, documents: PolicyDocuments, context: BindingContext) -> BoundKyverno:
        """See Language."""
        policies = tuple(map(policy_of, documents.policies))
        scan = self.options.at(policies, documents.supporting, context)
        return BoundKyverno(bind_forms(policies, scan.exceptions, scan.context, context.rules), scan)


class BoundKyverno(BoundLanguage):
    """Kyverno's policies in force, each in all its forms."""

    own_health = True

    def __init__(self, forms: tuple[BoundForm, ...], scan: KyvernoScan) -> None:
        """Take the forms, and the objects on which they rely."""
        self._forms, self._scan = forms, scan
        self.gaps = scan.configuration.gaps
        self.outside = (*scan.configuration.outside, *scan.legacy)
        self.release = scan.release

    @property
    def bound(self) -> tuple[BoundPolicy, ...]:
        """See BoundLanguage."""
        return tuple(form.bound for form in self._forms)

    def list_recorded(self) -> Iterator[tuple[Policy, Reading]]:
        """See BoundLanguage: the original policy, without its autogen forms."""
        for bound_policy in self.bound:
            if all(binding.name == AS_WRITTEN for binding in bound_policy.bindings):
                yield bound_policy.policy, bound_policy.reading

    def reads(self) -> Iterator[tuple[BoundPolicy, Places]]:
        """See BoundLanguage."""
        yield from ((form.bound, self._scan.inventory.wanted(form)) for form in self._forms)

    def read_groups(self) -> Iterator[str]:
        """See BoundLanguage."""
        for form in self._forms:
            yield from self._scan.inventory.groups(form)

    def take(self, kind: Kind, namespace: str, resources: Iterable[Resource]) -> None:
        """See BoundLanguage."""
        self._scan.inventory.put(kind, namespace, resources)

    def rules(self) -> Iterator[RuleDocument]:
        """See BoundLanguage."""
        yield from self._scan.rules

    def namespace_labels(self) -> Iterator[str]:
        """See BoundLanguage: those of the policies, and those of Kyverno's webhooks."""
        yield from super().namespace_labels()
        yield from (requirement.key for selector in self.request_selectors() for requirement in selector.requirements)

    def request_selectors(self) -> Iterator[Selector]:
        """See BoundLanguage: that of Kyverno's webhooks."""
        yield self._scan.context.configuration.namespace_selector

    def other_paths(self, bound_policy: BoundPolicy) -> Iterator[tuple[str, ...]]:
        """See BoundLanguage: those of the conditions of policy exceptions."""
        for form in self._forms:
            for exception in form.decision.exceptions if form.bound is bound_policy else ():
                yield from (path for _, expression in exception.conditions for path in expression.paths)

    def rights(self) -> Iterator[ListRight]:
        """See BoundLanguage."""
        yield from self._scan.rights

    def health(self, evaluable: tuple[BoundPolicy, ...], served: tuple[Kind, ...]) -> Iterator[Health]:
        """See BoundLanguage: every policy can have health entries, those that cannot be evaluated included."""
        del evaluable
        yield from health.of_policies(self._forms, served)

    def adapt_health(self, health_of_all: Iterable[Health]) -> Iterator[Health]:
        """See BoundLanguage."""
        yield from health.without_noise(health_of_all, self._forms)
