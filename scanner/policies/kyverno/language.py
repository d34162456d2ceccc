"""Kyverno's ValidatingPolicy and NamespacedValidatingPolicy as a policy language."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from scanner.admission.compiled import CompiledPolicy
from scanner.admission.dispatch import BoundPolicy
from scanner.model.json import JsonObject
from scanner.model.outcome import CheckKind
from scanner.model.policy import MatchResources, Policy
from scanner.model.release import Minor
from scanner.model.selector import Selector
from scanner.policies.bound_language import BindingContext, BoundLanguage, ListRight, PolicyDocuments
from scanner.policies.kyverno import configuration
from scanner.policies.kyverno.autogen import anywhere
from scanner.policies.kyverno.family import KyvernoLanguage, KyvernoOptions
from scanner.policies.kyverno.kinds import KyvernoKind
from scanner.policies.kyverno.legacy import describe_legacy, list_rights
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
        from scanner.policies.kyverno.compile import compile_policy  # noqa: PLC0415 - see `bind`

        del rules
        return compile_policy(policy, self.options.release, namespaced=policy.language == self.api.namespaced)

    def bind(self, documents: PolicyDocuments, context: BindingContext) -> BoundLanguage:
        """See Language."""
        if not documents.policies and self.options.context is None:
            return WithoutPolicies(self.options, documents, context)
        from scanner.policies.kyverno import in_force  # noqa: PLC0415 - 30 modules, and most clusters have no policy

        return in_force.bind(self.options, documents, context)


class WithoutPolicies(BoundLanguage):
    """A cluster without a policy of the kind: its older policies are counted all the same."""

    own_health = True

    def __init__(self, options: KyvernoOptions, documents: PolicyDocuments, context: BindingContext) -> None:
        """Count the older policies."""
        self._options = options
        self._rights = tuple(list_rights(context.served))
        self.outside = describe_legacy(documents.supporting, context)

    @property
    def bound(self) -> tuple[BoundPolicy, ...]:
        """See BoundLanguage."""
        return ()

    def namespace_labels(self) -> Iterator[str]:
        """See BoundLanguage: those of Kyverno's webhooks."""
        yield from (requirement.key for selector in self.request_selectors() for requirement in selector.requirements)

    def request_selectors(self) -> Iterator[Selector]:
        """See BoundLanguage: that of Kyverno's webhooks."""
        yield (self._options.configuration.given or configuration.NOTHING).namespace_selector

    def rights(self) -> Iterator[ListRight]:
        """See BoundLanguage."""
        yield from self._rights
