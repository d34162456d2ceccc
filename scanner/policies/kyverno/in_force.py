"""Kyverno's policies in force: their forms, and the objects on which they rely in one scan.

Imported for the first policy: most clusters have none, and these modules are a fifth of those of `assay check`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from scanner.admission.dispatch import BoundPolicy
from scanner.model.policy import Policy
from scanner.model.reading import Reading
from scanner.model.release import Release
from scanner.model.resource import Kind, Resource
from scanner.model.scans.health import Health
from scanner.model.scans.out_of_scope import OutOfScope
from scanner.model.selector import Selector
from scanner.policies.bound_language import (
    BindingContext,
    BoundLanguage,
    ListRight,
    Places,
    PolicyDocuments,
    RuleDocument,
    Supporting,
)
from scanner.policies.kyverno import health, installed
from scanner.policies.kyverno.autogen import served_by, unresolved
from scanner.policies.kyverno.bind import AS_WRITTEN, BoundForm, KyvernoContext, bind_forms
from scanner.policies.kyverno.exceptions import PolicyException, read_exception, rule_documents
from scanner.policies.kyverno.family import ENTRY, EXCEPTION, KyvernoOptions
from scanner.policies.kyverno.installed import installed_release
from scanner.policies.kyverno.inventory import Inventory
from scanner.policies.kyverno.legacy import describe_legacy, list_rights
from scanner.policies.kyverno.modes import MODES
from scanner.policies.kyverno.own_configuration import OwnConfiguration, own_configuration
from scanner.policies.kyverno.spec import KyvernoPolicy, policy_of


def bind(options: KyvernoOptions, documents: PolicyDocuments, context: BindingContext) -> BoundKyverno:
    """The policies of one kind in force, with the objects on which they rely."""
    policies = tuple(map(policy_of, documents.policies))
    scan = read_scan(options, policies, documents.supporting, context)
    return BoundKyverno(bind_forms(policies, scan.exceptions, scan.context, context.rules), scan)


@dataclass(frozen=True, slots=True)
class KyvernoScan:
    """The objects on which Kyverno's policies of one kind rely in one scan, and the context of their evaluation.

    `release` is that of Kyverno, None without policies. `rights` are those to read it and Kyverno's own configuration, `rules` the
    exceptions and entries that decide together with the policies, `legacy` the numbers of Kyverno's older policies.
    """

    exceptions: tuple[PolicyException, ...]
    inventory: Inventory
    configuration: OwnConfiguration
    context: KyvernoContext
    release: Release | None
    rights: tuple[ListRight, ...]
    rules: tuple[RuleDocument, ...]
    legacy: tuple[OutOfScope, ...]


def read_scan(
    options: KyvernoOptions,
    policies: tuple[KyvernoPolicy, ...],
    supporting: Iterable[Supporting],
    context: BindingContext,
) -> KyvernoScan:
    """The objects on which the policies of one kind rely in a scan, and the context of their evaluation."""
    supporting = tuple(supporting)
    exceptions, entries = ([each for each in supporting if each.what == what] for what in (EXCEPTION, ENTRY))
    mode = MODES[options.compat]
    inventory = Inventory(context.served, [entry.body for entry in entries], options.parse, options.network)
    wanted = options.context is None and options.configuration.wanted(policies, mode)
    own = own_configuration(options.configuration, context, wanted=wanted)
    reads_release = bool(policies) and options.context is None and not options.version
    release = installed_release(options.namespace, context) if reads_release else options.given
    return KyvernoScan(
        exceptions=tuple(read_exception(exception.body) for exception in exceptions),
        inventory=inventory,
        configuration=own,
        context=options.context
        or KyvernoContext(
            now=context.now,
            mode=mode,
            cluster_data=inventory,
            operations=context.operations,
            configuration=own.configuration,
            release=release.rules,
            resolve=served_by(context.served) if mode.server else unresolved,
        ),
        release=release if policies else None,
        rights=(
            *([options.configuration.right()] if wanted else []),
            *([installed.right(options.namespace)] if reads_release else []),
            *list_rights(context.served),
        ),
        legacy=describe_legacy(supporting, context),
        rules=tuple(rule_documents(policies, exceptions, entries)),
    )


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
