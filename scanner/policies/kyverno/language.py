"""Kyverno's ValidatingPolicy and NamespacedValidatingPolicy as a policy language."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from scanner.admission.compiled import CompiledPolicy
from scanner.admission.dispatch import BoundPolicy
from scanner.errors import UsageError
from scanner.model.json import JsonObject, as_list, as_text, dig
from scanner.model.policy import Action, Binding, Policy, PolicyKey
from scanner.model.reading import Reading
from scanner.model.release import Minor
from scanner.model.resource import Kind, Resource
from scanner.model.scan import Health, HealthKind
from scanner.policies.bound_language import BindingContext, BoundLanguage, ListRight, Places
from scanner.policies.documents import PolicyDocuments, ReadDocument, Supporting
from scanner.policies.kyverno import exceptions, health, spec
from scanner.policies.kyverno.bind import AS_WRITTEN, BoundForm, KyvernoContext, bind_forms
from scanner.policies.kyverno.compile import compile_policy
from scanner.policies.kyverno.exceptions import is_exception, read_exception
from scanner.policies.kyverno.inventory import Inventory, Parse
from scanner.policies.kyverno.libraries import Network
from scanner.policies.kyverno.modes import MODES
from scanner.policies.kyverno.own_configuration import ConfigurationSource, OwnConfiguration, own_configuration

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

    def kinds(self, served: Iterable[Kind]) -> Iterator[Kind]:
        """See Language: each in the preferred version, because all versions have one schema."""
        wanted = {*((spec.GROUP, plural) for plural in (*spec.PLURALS, exceptions.PLURAL))}
        wanted.add((spec.ENTRIES_GROUP, spec.ENTRIES))
        found: dict[tuple[str, str], Kind] = {}
        for kind in served:
            if (kind.group, kind.plural) in wanted:
                found.setdefault((kind.group, kind.plural), kind)
        yield from (found[key] for key in sorted(found))

    def reads(self, document: JsonObject) -> bool:
        """See Language."""
        return spec.is_policy(document) or is_exception(document) or spec.is_entry(document)

    def read(self, document: JsonObject, *, source: str, namespace: str, rules: Minor) -> ReadDocument:
        """See Language: Kyverno's own rules are the same for every release."""
        del rules
        if spec.is_policy(document):
            return ReadDocument(spec.read_policy(document, source=source, namespace=namespace).written())
        language = spec.CLUSTER_WIDE
        if is_exception(document):
            exception = read_exception(document, source=source)
            return ReadDocument(Supporting(language, _EXCEPTION, exception.key, document))
        return ReadDocument(Supporting(language, _ENTRY, as_text(dig(document, "metadata", "name")), document))

    def assume_bound(self, policy: Policy, action: Action) -> Binding:
        """Raises UsageError: the policy is in force already."""
        del action
        raise UsageError(f"--assume-bound {policy.name}: a {policy.language} needs no binding, and is in force already")

    def generated(self, own: Iterable[Policy], others: Iterable[Policy]) -> Iterator[tuple[PolicyKey, Health]]:
        """See Language: the admission policies that Kyverno generates from policies that are evaluated here."""
        cluster_wide = (policy for policy in own if policy.language == spec.CLUSTER_WIDE)
        evaluated = {policy.name for policy in cluster_wide if not spec.policy_of(policy).unauditable()}
        for policy in others:
            owners = as_list(dig(policy.manifest, "metadata", "ownerReferences"))
            names = {as_text(dig(owner, "name")) for owner in owners if dig(owner, "kind") == spec.CLUSTER_WIDE}
            for name in sorted(names & evaluated):
                detail = (
                    f"Kyverno generated {policy.language} {policy.name} from it; objects are judged by this one, once"
                )
                yield policy.key, Health(HealthKind.NOTE, name, "", detail, spec.CLUSTER_WIDE)

    def compile(self, policy: Policy, rules: Minor) -> CompiledPolicy:
        """See Language."""
        del rules
        return compile_policy(policy, namespaced=policy.language == spec.NAMESPACED)

    def bind(self, documents: PolicyDocuments, context: BindingContext) -> BoundKyverno:
        """See Language."""
        policies = tuple(map(spec.policy_of, documents.policies))
        supporting = documents.supporting
        inventory = Inventory(
            context.served, [it.body for it in supporting if it.what == _ENTRY], self.parse, self.network
        )
        mode = MODES[self.compat]
        own = self.context is None and self.configuration.wanted(policies, mode)
        configuration = own_configuration(self.configuration, context, wanted=own)
        circumstances = self.context or KyvernoContext(
            context.now, mode, inventory, context.operations, configuration.configuration
        )
        known = [read_exception(it.body) for it in supporting if it.what == _EXCEPTION]
        rights = (self.configuration.right(),) if own else ()
        return BoundKyverno(bind_forms(policies, known, circumstances), inventory, configuration, rights)


class BoundKyverno(BoundLanguage):
    """Kyverno's policies in force, each in all its forms."""

    own_health = True

    def __init__(
        self,
        forms: tuple[BoundForm, ...],
        inventory: Inventory,
        configuration: OwnConfiguration,
        rights: tuple[ListRight, ...],
    ) -> None:
        """Take the forms, and the data that their expressions read."""
        self._forms, self._inventory, self._rights = forms, inventory, rights
        self.gaps, self.outside = configuration.gaps, configuration.outside

    @property
    def bound(self) -> tuple[BoundPolicy, ...]:
        """See BoundLanguage."""
        return tuple(form.bound for form in self._forms)

    def recorded(self) -> Iterator[tuple[Policy, Reading]]:
        """See BoundLanguage: the original policy, without its autogen forms."""
        for entry in self.bound:
            if all(binding.name == AS_WRITTEN for binding in entry.bindings):
                yield entry.policy, entry.reading

    def reads(self) -> Iterator[tuple[BoundPolicy, Places]]:
        """See BoundLanguage."""
        yield from ((form.bound, self._inventory.wanted(form)) for form in self._forms)

    def take(self, kind: Kind, namespace: str, resources: Iterable[Resource]) -> None:
        """See BoundLanguage."""
        self._inventory.put(kind, namespace, resources)

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
