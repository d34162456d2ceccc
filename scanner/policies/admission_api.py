"""The common parts of the policy kinds of the admission API: lists, manifests, bindings, and policies joined to them.

Source of truth: `admissionregistration.k8s.io` of Kubernetes 1.36, `ValidatingAdmissionPolicy` and `MutatingAdmissionPolicy`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from msgspec import Struct

from scanner.admission.auditability import AUDITABLE, classify_policy
from scanner.admission.compiled import CompiledPolicy, Plugin, compile_policy
from scanner.admission.dispatch import BoundPolicy, Combination
from scanner.admission.evaluator import Evaluator
from scanner.errors import InvalidManifest
from scanner.model.json import JsonObject
from scanner.model.outcome import CheckKind
from scanner.model.policy import Action, Binding, MatchResources, Operation, Policy, PolicyKey
from scanner.model.reading import Auditability, Reading
from scanner.model.release import NEWEST, Minor
from scanner.model.resource import Kind
from scanner.model.scans.health import Health
from scanner.mutate.schema import Schemas
from scanner.policies import api_validation, manifest
from scanner.policies.api_validation import Faults
from scanner.policies.bound_language import BindingContext, BoundLanguage, PolicyDocuments, ReadDocument
from scanner.policies.manifest import UnknownField


class PolicyKind(Struct, frozen=True):
    """A policy kind and its bindings: their names in the API, their validation and their versions.

    `language` is the kind of the policies, `policies` their plural. `evaluator` gives the evaluator for some schemas, or for none,
    and a Kubernetes release. The faults are those for which the API rejects a manifest.
    """

    language: str
    policies: str
    plugin: Plugin
    evaluator: Callable[[Schemas | None, Minor], Evaluator]
    policy_faults: Callable[[JsonObject, Faults], tuple[str, ...]]
    binding_faults: Callable[[JsonObject], tuple[str, ...]]
    combination: Combination | None = None

    @property
    def bindings(self) -> str:
        """The plural of the bindings."""
        return f"{self.language.lower()}bindings"

    def kinds(self, served: Iterable[Kind]) -> Iterator[Kind]:
        """The served kinds of the policies and of the bindings, each in the newest version."""
        offered = tuple(served)
        for plural in (self.policies, self.bindings):
            versions = {kind.version: kind for kind in offered if (kind.group, kind.plural) == (manifest.GROUP, plural)}
            newest = next((versions[version] for version in manifest.VERSIONS if version in versions), None)
            if newest:
                yield newest

    def reads(self, document: JsonObject) -> bool:
        """Return whether a document is a policy of the kind, or a binding."""
        return manifest.is_a(document, self.language) or self.is_binding(document)

    def is_binding(self, document: JsonObject) -> bool:
        """Return whether a document is a binding."""
        return manifest.is_a(document, f"{self.language}Binding")

    def read_policy(self, document: JsonObject, *, source: str = "cluster", rules: Minor = NEWEST) -> Policy:
        """The policy of a manifest.

        Raises InvalidManifest for a manifest from a file (`source` is not `cluster`) that the API would reject.
        """
        if source == "cluster":
            return manifest.read_policy(document, language=self.language, source=source)
        decoded_manifest = api_validation.decode_manifest(document)
        policy = manifest.read_policy(decoded_manifest, language=self.language, source=source)
        _reject(self.policy_faults(decoded_manifest, api_validation.make_compile_check(policy, rules, self.plugin)))
        return policy

    def read_binding(self, document: JsonObject, *, source: str = "cluster") -> Binding:
        """The binding of a manifest. Raises InvalidManifest like `read_policy`."""
        if source == "cluster":
            return manifest.read_binding(document, language=self.language, source=source)
        decoded_manifest = api_validation.decode_manifest(document)
        _reject(self.binding_faults(decoded_manifest))
        return manifest.read_binding(decoded_manifest, language=self.language, source=source)

    def assume_bound(self, policy: Policy, *actions: Action) -> Binding:
        """The binding that `--assume-bound` creates: it covers the whole policy, and has no param."""
        return Binding.create_without_manifest(
            policy, f"assumed:{policy.name}", actions, "--assume-bound", assumed=True
        )

    def compile(self, policy: Policy, rules: Minor) -> CompiledPolicy:
        """Compile a policy by the rules of a Kubernetes release."""
        return compile_policy(policy, rules, self.plugin)

    def bind(
        self,
        policies: Sequence[Policy],
        bindings: Sequence[Binding],
        operations: tuple[Operation, ...] = AUDITABLE,
        rules: Minor = NEWEST,
        schemas: Schemas | None = None,
    ) -> tuple[BoundPolicy, ...]:
        """The policies that some binding puts into force, compiled, ordered by name.

        `operations` are those of the simulated requests, `rules` is the Kubernetes release that evaluates, and `schemas` identifies
        the native values of objects.
        """
        return self.bind_to(self.evaluator(schemas, rules), policies, bindings, operations, rules)

    def bind_to(
        self,
        evaluator: Evaluator,
        policies: Sequence[Policy],
        bindings: Sequence[Binding],
        operations: tuple[Operation, ...],
        rules: Minor,
    ) -> tuple[BoundPolicy, ...]:
        """The same as `bind`, for an existing evaluator."""
        named: defaultdict[PolicyKey, list[Binding]] = defaultdict(list)
        for binding in bindings:
            named[binding.policy_key].append(binding)
        joined = {policy.key: [each for each in named[policy.key] if each.joins(policy)] for policy in policies}
        return tuple(
            make_bound_policy(self.compile(policy, rules), joined[policy.key], operations, evaluator, self.combination)
            for policy in sorted(policies, key=lambda policy: policy.name)
            if joined[policy.key]
        )


def _reject(faults: tuple[str, ...]) -> None:
    """Raise InvalidManifest with each fault once, as the server does (`ErrorList.ToAggregate`)."""
    if faults:
        raise InvalidManifest(tuple(dict.fromkeys(faults)))


def make_bound_policy(
    compiled: CompiledPolicy,
    bindings: Iterable[Binding],
    operations: tuple[Operation, ...],
    evaluator: Evaluator,
    combination: Combination | None = None,
) -> BoundPolicy:
    """Return a compiled policy with its bindings, ordered by name, for requests of some operations."""
    read = classify_policy(compiled, operations)
    requester = frozenset(
        check_reading.check for check_reading in read.checks if Auditability.REQUESTER in check_reading.classes
    )
    ordered = tuple(sorted(bindings, key=lambda binding: binding.name))
    independent = combination is None
    return BoundPolicy(compiled, ordered, read, requester, evaluator, combination, independent_checks=independent)


class BoundByApi(BoundLanguage):
    """The policies of one kind of the admission API, joined to their bindings."""

    def __init__(self, api: PolicyKind, documents: PolicyDocuments, context: BindingContext) -> None:
        """Compile nothing yet."""
        self.api, self.documents, self.context = api, documents, context

    @cached_property
    def evaluator(self) -> Evaluator:
        """The evaluator of every policy."""
        return self.api.evaluator(self.context.schemas, self.context.rules)

    @cached_property
    def bound(self) -> tuple[BoundPolicy, ...]:
        """See BoundLanguage."""
        documents, context = self.documents, self.context
        return self.api.bind_to(
            self.evaluator, documents.policies, documents.bindings, context.operations, context.rules
        )

    @property
    def bindings(self) -> tuple[Binding, ...]:
        """See BoundLanguage."""
        return self.documents.bindings

    def list_announced(self) -> Iterator[tuple[Policy, tuple[Binding, ...]]]:
        """See BoundLanguage."""
        for policy in self.documents.policies:
            if bindings := tuple(binding for binding in self.documents.bindings if binding.policy_key == policy.key):
                yield policy, bindings

    def list_recorded(self) -> Iterator[tuple[Policy, Reading]]:
        """See BoundLanguage."""
        yield from self._recorded_policies

    @cached_property
    def _recorded_policies(self) -> tuple[tuple[Policy, Reading], ...]:
        readings = {bound_policy.policy.key: bound_policy.reading for bound_policy in self.bound}
        return tuple(
            (policy, readings.get(policy.key) or self._find_reading(policy)) for policy in self.documents.policies
        )

    def _find_reading(self, policy: Policy) -> Reading:
        return classify_policy(self.api.compile(policy, self.context.rules), self.context.operations)


@dataclass(frozen=True, slots=True)
class AdmissionLanguage:
    """The methods of `Language` for one policy kind of the admission API."""

    api: PolicyKind

    @property
    def names(self) -> tuple[str, ...]:
        """See Language."""
        return (self.api.language,)

    @property
    def needs_bindings(self) -> bool:
        """See Language."""
        return True

    @property
    def single_process(self) -> bool:
        """See Language."""
        return False

    @property
    def report_source(self) -> str:
        """See Language."""
        return ""

    @property
    def custom_kinds(self) -> tuple[Kind, ...]:
        """See Language: the kinds of the admission API are built in."""
        return ()

    @property
    def counted_kinds(self) -> tuple[Kind, ...]:
        """See Language."""
        return ()

    def kinds(self, served: Iterable[Kind]) -> Iterator[Kind]:
        """See Language."""
        return self.api.kinds(served)

    @property
    def derive(self) -> None:
        """See Language: every policy is a document."""
        return

    def reads(self, document: JsonObject) -> bool:
        """See Language."""
        return self.api.reads(document)

    def read(self, document: JsonObject, *, source: str, namespace: str, rules: Minor) -> ReadDocument:
        """See Language: neither policies nor bindings have a namespace."""
        del namespace
        if self.api.is_binding(document):
            return ReadDocument(self.api.read_binding(document, source=source))
        return ReadDocument(self.api.read_policy(document, source=source, rules=rules))

    def unknown_fields(self, document: JsonObject) -> tuple[UnknownField, ...]:
        """See Language."""
        return api_validation.unknown_fields(document)

    def find_generated(self, own: Iterable[Policy], others: Iterable[Policy]) -> Iterator[tuple[PolicyKey, Health]]:
        """See Language: the API server generates no policies."""
        del own, others
        yield from ()

    @property
    def is_kyvernos(self) -> bool:
        """See Language."""
        return False

    @property
    def patch_decides(self) -> bool:
        """See Language."""
        return True

    def select_deciding(self, spec: JsonObject, check: CheckKind) -> JsonObject:
        """See Language: every part."""
        del check
        return spec

    def constraints(self, policy: Policy) -> tuple[MatchResources, ...]:
        """See Language."""
        return (policy.match,) if policy.match else ()

    def compile(self, policy: Policy, rules: Minor) -> CompiledPolicy:
        """See Language."""
        return self.api.compile(policy, rules)
