"""Kyverno's ValidatingPolicy and NamespacedValidatingPolicy as a policy language."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from scanner.admission.compiled import CompiledPolicy
from scanner.admission.dispatch import BoundPolicy
from scanner.errors import UsageError
from scanner.model.json import JsonObject, as_list, as_text, dig
from scanner.model.outcome import CheckKind
from scanner.model.policy import Action, Binding, MatchResources, Policy, PolicyKey
from scanner.model.reading import Reading
from scanner.model.release import Minor
from scanner.model.resource import Kind, Resource
from scanner.model.scan import Health, HealthKind
from scanner.model.selector import EVERYTHING, Selector
from scanner.policies.bound_language import BindingContext, BoundLanguage, ListRight, Places, RuleDocument
from scanner.policies.documents import PolicyDocuments, ReadDocument, Supporting
from scanner.policies.kyverno import health, spec
from scanner.policies.kyverno.bind import AS_WRITTEN, BoundForm, KyvernoContext, bind_forms
from scanner.policies.kyverno.compile import compile_policy
from scanner.policies.kyverno.exceptions import is_exception, read_exception
from scanner.policies.kyverno.inventory import Inventory, Parse
from scanner.policies.kyverno.kinds import CLUSTER_WIDE, CUSTOM_KINDS, NAMESPACED
from scanner.policies.kyverno.libraries import Network
from scanner.policies.kyverno.modes import MODES
from scanner.policies.kyverno.own_configuration import ConfigurationSource, OwnConfiguration, own_configuration
from scanner.policies.kyverno.rules import rule_documents
from scanner.policies.texts import without
from scanner.policies.unknown_fields import UnknownField

_EXCEPTION = "policy exception"
_ENTRY = "global context entry"


@dataclass(frozen=True, slots=True)
class Kyverno:
    """Satisfies `Language`. The fields are the options of Kyverno's policies.

    `compat` is empty for the evaluation of admission, or `controller` or `cli` for that of Kyverno's reports. `parse` reads YAML
    for expressions, `network` makes their requests. `configuration` is the source of Kyverno's own configuration, which filters
    requests. `context` replaces everything that otherwise depends on these options and on the cluster.
    """

    compat: str = ""
    parse: Parse | None = None
    network: Network | None = None
    configuration: ConfigurationSource = field(default_factory=ConfigurationSource)
    context: KyvernoContext | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """See Language."""
        return spec.KINDS

    @property
    def needs_bindings(self) -> bool:
        """See Language."""
        return False

    @property
    def single_process(self) -> bool:
        """See Language: a scan sends each request once."""
        return self.network is not None

    @property
    def report_source(self) -> str:
        """See Language: the source that Kyverno's own reports state for both kinds of policies."""
        return "KyvernoValidatingPolicy"

    @property
    def custom_kinds(self) -> tuple[Kind, ...]:
        """See Language."""
        return CUSTOM_KINDS

    def kinds(self, served: Iterable[Kind]) -> Iterator[Kind]:
        """See Language: each in the preferred version, because all versions have one schema."""
        wanted = {(kind.group, kind.plural) for kind in CUSTOM_KINDS}
        preferred: dict[tuple[str, str], Kind] = {}
        for kind in served:
            if (kind.group, kind.plural) in wanted:
                preferred.setdefault((kind.group, kind.plural), kind)
        yield from (preferred[key] for key in sorted(preferred))

    @property
    def derive(self) -> None:
        """See Language: every policy is a document."""
        return

    def reads(self, document: JsonObject) -> bool:
        """See Language."""
        return spec.is_policy(document) or is_exception(document) or spec.is_entry(document)

    def read(self, document: JsonObject, *, source: str, namespace: str, rules: Minor) -> ReadDocument:
        """See Language: Kyverno's own rules are the same for every release."""
        del rules
        if spec.is_policy(document):
            return ReadDocument(spec.read_policy(document, source=source, namespace=namespace).written())
        language = CLUSTER_WIDE
        if is_exception(document):
            exception = read_exception(document, source=source)
            return ReadDocument(Supporting(language, _EXCEPTION, exception.key, document))
        return ReadDocument(Supporting(language, _ENTRY, as_text(dig(document, "metadata", "name")), document))

    def unknown_fields(self, document: JsonObject) -> tuple[UnknownField, ...]:
        """See Language: those of policies. The health of a policy names those of its exceptions."""
        return spec.unknown_fields(document) if spec.is_policy(document) else ()

    def assume_bound(self, policy: Policy, action: Action) -> Binding:
        """Raises UsageError: the policy is in force already."""
        del action
        raise UsageError(f"--assume-bound {policy.name}: a {policy.language} needs no binding, and is in force already")

    def generated(self, own: Iterable[Policy], others: Iterable[Policy]) -> Iterator[tuple[PolicyKey, Health]]:
        """See Language: the admission policies that Kyverno generates from policies that are evaluated here."""
        cluster_wide = (policy for policy in own if policy.language == CLUSTER_WIDE)
        evaluated = {policy.name for policy in cluster_wide if not spec.policy_of(policy).unauditable()}
        for policy in others:
            owners = as_list(dig(policy.manifest, "metadata", "ownerReferences"))
            names = {as_text(dig(owner, "name")) for owner in owners if dig(owner, "kind") == CLUSTER_WIDE}
            for name in sorted(names & evaluated):
                detail = f"Kyverno generated {policy.language} {policy.name} from it; only this policy is evaluated, so that each object has one outcome"
                yield policy.key, Health(HealthKind.NOTE, name, "", detail, CLUSTER_WIDE)

    @property
    def patch_decides(self) -> bool:
        """See Language."""
        return True

    def deciding(self, spec: JsonObject, check: CheckKind) -> JsonObject:
        """See Language: all but messages. An expression of a message is evaluated only after a violation, without a budget.

        Kyverno does not load a policy of which any expression does not compile.
        """
        whole = check in (CheckKind.CONDITIONS, CheckKind.CONFIGURATION)
        expressions = () if whole else ("messageExpression",)
        return without(spec, fields=(), of_validations=("message", *expressions))

    def constraints(self, policy: Policy) -> tuple[MatchResources, ...]:
        """See Language: those of the policy as it is written, and of its autogen variants."""
        return tuple(form.match for _, form in spec.policy_of(policy).variants() if form.match)

    def compile(self, policy: Policy, rules: Minor) -> CompiledPolicy:
        """See Language."""
        del rules
        return compile_policy(policy, namespaced=policy.language == NAMESPACED)

    def bind(self, documents: PolicyDocuments, context: BindingContext) -> BoundKyverno:
        """See Language."""
        policies = tuple(map(spec.policy_of, documents.policies))
        supporting = documents.supporting
        inventory = Inventory(
            context.served,
            [document.body for document in supporting if document.what == _ENTRY],
            self.parse,
            self.network,
        )
        mode = MODES[self.compat]
        own = self.context is None and self.configuration.wanted(policies, mode)
        configuration = own_configuration(self.configuration, context, wanted=own)
        circumstances = self.context or KyvernoContext(
            context.now, mode, inventory, context.operations, configuration.configuration
        )
        policy_exceptions = [read_exception(document.body) for document in supporting if document.what == _EXCEPTION]
        rights = (self.configuration.right(),) if own else ()
        exempting = [document for document in supporting if document.what == _EXCEPTION]
        entries = [document for document in supporting if document.what == _ENTRY]
        rules = tuple(rule_documents(policies, exempting, entries))
        selector = circumstances.configuration.namespace_selector
        forms = bind_forms(policies, policy_exceptions, circumstances)
        return BoundKyverno(forms, inventory, configuration, rights, rules, selector)


class BoundKyverno(BoundLanguage):
    """Kyverno's policies in force, each in all its forms."""

    own_health = True

    def __init__(
        self,
        forms: tuple[BoundForm, ...],
        inventory: Inventory,
        configuration: OwnConfiguration,
        rights: tuple[ListRight, ...],
        rules: tuple[RuleDocument, ...] = (),
        webhook_selector: Selector = EVERYTHING,
    ) -> None:
        """Take the forms, and the data that their expressions read. `webhook_selector` chooses the webhook's namespaces."""
        self._rules, self._webhook_selector = rules, webhook_selector
        self._forms, self._inventory, self._rights = forms, inventory, rights
        self.gaps, self.outside = configuration.gaps, configuration.outside

    @property
    def bound(self) -> tuple[BoundPolicy, ...]:
        """See BoundLanguage."""
        return tuple(form.bound for form in self._forms)

    def recorded(self) -> Iterator[tuple[Policy, Reading]]:
        """See BoundLanguage: the original policy, without its autogen forms."""
        for bound_policy in self.bound:
            if all(binding.name == AS_WRITTEN for binding in bound_policy.bindings):
                yield bound_policy.policy, bound_policy.reading

    def reads(self) -> Iterator[tuple[BoundPolicy, Places]]:
        """See BoundLanguage."""
        yield from ((form.bound, self._inventory.wanted(form)) for form in self._forms)

    def read_groups(self) -> Iterator[str]:
        """See BoundLanguage."""
        for form in self._forms:
            yield from self._inventory.groups(form)

    def take(self, kind: Kind, namespace: str, resources: Iterable[Resource]) -> None:
        """See BoundLanguage."""
        self._inventory.put(kind, namespace, resources)

    def rules(self) -> Iterator[RuleDocument]:
        """See BoundLanguage."""
        yield from self._rules

    def namespace_labels(self) -> Iterator[str]:
        """See BoundLanguage: those of the policies, and those of Kyverno's webhooks."""
        yield from super().namespace_labels()
        yield from (requirement.key for selector in self.request_selectors() for requirement in selector.requirements)

    def request_selectors(self) -> Iterator[Selector]:
        """See BoundLanguage: that of Kyverno's webhooks."""
        yield self._webhook_selector

    def other_paths(self, bound_policy: BoundPolicy) -> Iterator[tuple[str, ...]]:
        """See BoundLanguage: those of the conditions of policy exceptions."""
        for form in self._forms:
            for exception in form.decision.exceptions if form.bound is bound_policy else ():
                yield from (path for _, expression in exception.conditions for path in expression.paths)

    def rights(self) -> Iterator[ListRight]:
        """See BoundLanguage."""
        yield from self._rights

    def health(self, evaluable: tuple[BoundPolicy, ...], served: tuple[Kind, ...]) -> Iterator[Health]:
        """See BoundLanguage: every policy can have health entries, those that cannot be evaluated included."""
        del evaluable
        yield from health.of_policies(self._forms, served)

    def observed(self, health_of_all: Iterable[Health]) -> Iterator[Health]:
        """See BoundLanguage."""
        yield from health.without_noise(health_of_all, self._forms)
