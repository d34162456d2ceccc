"""The common parts of the languages of Kyverno's policies: the user's options, exceptions, global context entries and cluster data.

Each kind of policies is a language of its own; all of them have the same options, and rely on the same objects.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final

from scanner.errors import UsageError
from scanner.model.json import JsonObject, as_list, as_text, dig
from scanner.model.policy import Action, Binding, Policy, PolicyKey
from scanner.model.release import Minor, Release
from scanner.model.resource import Kind
from scanner.model.scans.health import Health, HealthKind
from scanner.policies.bound_language import ReadDocument, Supporting
from scanner.policies.kyverno import spec
from scanner.policies.kyverno.exceptions import is_exception, read_exception
from scanner.policies.kyverno.kinds import SHARED_KINDS, KyvernoKind
from scanner.policies.kyverno.legacy import LEGACY_KINDS, is_legacy, read_legacy
from scanner.policies.kyverno.own_configuration import ConfigurationSource
from scanner.policies.kyverno.releases import NEWEST, release_of
from scanner.policies.manifest import UnknownField

if TYPE_CHECKING:
    from scanner.policies.kyverno.bind import KyvernoContext
    from scanner.policies.kyverno.inventory import Parse
    from scanner.policies.kyverno.libraries import Network

EXCEPTION: Final = "policy exception"
ENTRY: Final = "global context entry"


@dataclass(frozen=True, slots=True)
class KyvernoOptions:
    """The options of Kyverno's policies, the same for every kind of them.

    `compat` is empty for the evaluation of admission, or `controller` or `cli` for that of Kyverno's reports. `parse` reads YAML
    for expressions, `network` makes their requests. `configuration` is the source of Kyverno's own configuration, which filters
    requests. `version` is the version of Kyverno whose rules are applied; empty for that of the cluster. `context` replaces
    everything that otherwise depends on these options and on the cluster.
    """

    compat: str = ""
    parse: Parse | None = None
    network: Network | None = None
    configuration: ConfigurationSource = field(default_factory=ConfigurationSource)
    version: str = ""
    context: KyvernoContext | None = None

    @property
    def release(self) -> Minor:
        """The release whose rules are applied where no cluster tells it: the newest by default."""
        return self.given.rules

    @property
    def given(self) -> Release:
        """The release that the user names, without a cluster that tells it."""
        if self.context:
            return Release(self.context.release)
        return release_of(self.version) if self.version else Release(NEWEST)

    @property
    def namespace(self) -> str:
        """The namespace of Kyverno: that of its ConfigMap."""
        return self.configuration.place[0]


@dataclass(frozen=True, slots=True)
class KyvernoLanguage(ABC):
    """The methods of `Language` that are the same for every kind of Kyverno's policies; `api` is the kind."""

    options: KyvernoOptions = field(default_factory=KyvernoOptions)
    api: ClassVar[KyvernoKind]

    @property
    def names(self) -> tuple[str, ...]:
        """See Language."""
        return self.api.names

    @property
    def needs_bindings(self) -> bool:
        """See Language."""
        return False

    @property
    def single_process(self) -> bool:
        """See Language: a scan sends each request once."""
        return self.options.network is not None

    @property
    def report_source(self) -> str:
        """See Language."""
        return self.api.report_source

    @property
    def custom_kinds(self) -> tuple[Kind, ...]:
        """See Language."""
        return (*self.api.served, *SHARED_KINDS)

    @property
    def counted_kinds(self) -> tuple[Kind, ...]:
        """See Language: the older policies, and the exceptions from them."""
        return LEGACY_KINDS

    def kinds(self, served: Iterable[Kind]) -> Iterator[Kind]:
        """See Language: each in the preferred version, because all versions have one schema."""
        wanted = {(kind.group, kind.plural) for kind in self.custom_kinds}
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
        return (
            spec.is_policy(document, self.api)
            or is_exception(document)
            or spec.is_entry(document)
            or is_legacy(document)
        )

    def read(self, document: JsonObject, *, source: str, namespace: str, rules: Minor) -> ReadDocument:
        """See Language: Kyverno's own rules are the same for every release."""
        del rules
        if spec.is_policy(document, self.api):
            return ReadDocument(spec.read_policy(document, self.api, source=source, namespace=namespace).written())
        if is_exception(document):
            return ReadDocument(Supporting(EXCEPTION, read_exception(document, source=source).key, document))
        if is_legacy(document):
            return ReadDocument(read_legacy(document, namespace))
        return ReadDocument(Supporting(ENTRY, as_text(dig(document, "metadata", "name")), document))

    def unknown_fields(self, document: JsonObject) -> tuple[UnknownField, ...]:
        """See Language: those of policies. The health of a policy names those of its exceptions."""
        return spec.unknown_fields(document, self.api.schema) if spec.is_policy(document, self.api) else ()

    def assume_bound(self, policy: Policy, action: Action) -> Binding:
        """Raises UsageError: the policy is in force already."""
        del action
        raise UsageError(f"--assume-bound {policy.name}: a {policy.language} needs no binding, and is in force already")

    def find_generated(self, own: Iterable[Policy], others: Iterable[Policy]) -> Iterator[tuple[PolicyKey, Health]]:
        """See Language: the admission policies that Kyverno generates from policies that are evaluated here."""
        kind = self.api.cluster_wide
        cluster_wide = (policy for policy in own if policy.language == kind)
        evaluated = {policy.name for policy in cluster_wide if not spec.policy_of(policy, self.api).unauditable()}
        for policy in others:
            owners = as_list(dig(policy.manifest, "metadata", "ownerReferences"))
            names = {as_text(dig(owner, "name")) for owner in owners if dig(owner, "kind") == kind}
            for name in sorted(names & evaluated):
                detail = f"Kyverno generated {policy.language} {policy.name} from it; only this policy is evaluated, so that each object has one outcome"
                yield policy.key, Health(HealthKind.NOTE, name, "", detail, kind)

    @property
    def is_kyvernos(self) -> bool:
        """See Language."""
        return True

    @property
    def patch_decides(self) -> bool:
        """See Language."""
        return True
