"""Pod Security admission as a policy language: one policy, which the labels of namespaces bind.

No document is its policy or its binding. Each mode, level and policy version that namespaces demand is a binding, and covers every
namespace that demands it: one more namespace changes no binding.

Source of truth: `k8s.io/pod-security-admission` v0.30 to v0.38.

Rules: `docs/semantics/pod-security.md`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from scanner.admission.auditability import classify_policy
from scanner.admission.compiled import CompiledPolicy, list_checks
from scanner.admission.dispatch import BoundPolicy, CoveredNamespaces
from scanner.errors import InvalidManifest, UsageError
from scanner.model.json import JsonObject, as_object, as_text, dig, text_map
from scanner.model.outcome import CheckKind
from scanner.model.policy import NAMESPACE_LABELS, Action, Binding, MatchResources, Policy, PolicyKey, Rule, Validation
from scanner.model.reading import Reading
from scanner.model.release import Minor
from scanner.model.resource import Kind, Resource
from scanner.model.rule import RuleType
from scanner.model.scans.health import Health, HealthKind
from scanner.model.selector import EVERYTHING
from scanner.policies.admission_api import make_bound_policy
from scanner.policies.bound_language import BindingContext, BoundLanguage, PolicyDocuments, ReadDocument, RuleDocument
from scanner.policies.manifest import UnknownField, digest
from scanner.policies.pod_security.checks import READ_FIELDS, WORKLOADS, Judge, Seen
from scanner.policies.pod_security.configuration import DEFAULT, Configuration
from scanner.policies.pod_security.health import find_health
from scanner.policies.pod_security.labels import KEYS, Demand, Mode, read_labels, read_level, read_version
from scanner.policies.pod_security.pods import find_template
from scanner.policies.pod_security.standards import LATEST, STANDARDS, Level, Server, list_judges

LANGUAGE: Final = "PodSecurity"
NAME: Final = "pod-security"
_WRITES: Final = ("CREATE", "UPDATE")


def _match(*resources: tuple[str, str]) -> MatchResources:
    rules = tuple(Rule(_WRITES, (group,), ("*",), (plural,), "Namespaced") for group, plural in resources)
    return MatchResources(rules, (), EVERYTHING, EVERYTHING)


_PODS: Final = _match(("", "pods"))
_TEMPLATES: Final = _match(*WORKLOADS)
_ALL: Final = _match(("", "pods"), *WORKLOADS)
_MANIFEST: Final[JsonObject] = {
    "apiVersion": "pod-security.admission.config.k8s.io/v1",
    "kind": LANGUAGE,
    "metadata": {
        "name": NAME,
        "annotations": {
            "assay.dev/severity": "critical",
            "assay.dev/category": "Pod Security Standards",
            "assay.dev/description": "The levels of the Pod Security Standards that the labels of namespaces demand of pods.",
            "assay.dev/remediation": "Change the fields that the message names in the template of the workload.",
            "assay.dev/docs": "https://kubernetes.io/docs/concepts/security/pod-security-standards/",
            **{f"assay.dev/severity.{each.id}": each.severity for each in STANDARDS},
            **{f"assay.dev/remediation.{each.id}": each.remediation for each in STANDARDS},
        },
    },
    "spec": {"checks": [each.id for each in STANDARDS]},
}


def _make_policy() -> Policy:
    validations = tuple(Validation(each.id, each.title) for each in STANDARDS)
    return Policy(
        language=LANGUAGE,
        name=NAME,
        match=_ALL,
        param_kind=None,
        match_conditions=(),
        variables=(),
        validations=validations,
        audit_annotations=(),
        failure_policy="Fail",
        manifest=_MANIFEST,
        digest=digest(_MANIFEST),
        source=NAMESPACE_LABELS,
    )


def _list_bindings(mode: Mode, demand: Demand) -> Iterator[Binding]:
    """What a mode does about a level: pods are refused, or pods and templates are warned of or audited.

    The server judges no template by `enforce`: it admits the workload, and refuses its pods later. That is a binding of its own.
    """
    if mode is Mode.ENFORCE:
        yield _make_binding(mode, demand, "Deny", _PODS)
        yield _make_binding(mode, demand, "RefusePods", _TEMPLATES)
    else:
        yield _make_binding(mode, demand, "Warn" if mode is Mode.WARN else "Audit", None)


def _make_binding(mode: Mode, demand: Demand, action: Action, match: MatchResources | None) -> Binding:
    of_pods = action == "RefusePods"
    name = f"{mode}-{demand.level}-{demand.version}{'-pods' * of_pods}"
    spec: JsonObject = {"mode": mode.value, "level": demand.level.value, "version": str(demand.version)}
    if of_pods:
        spec = {**spec, "podsOf": "templates"}
    manifest: JsonObject = {"kind": f"{LANGUAGE}Binding", "metadata": {"name": name}, "spec": spec}
    return Binding(LANGUAGE, name, NAME, None, match, (action,), manifest, digest(manifest), NAMESPACE_LABELS)


@dataclass(frozen=True, slots=True)
class PodSecurity:
    """Satisfies `Language`. `configuration` is that of the API server's own plug-in; None if the user gives no file."""

    configuration: Configuration | None = None
    names: tuple[str, ...] = (LANGUAGE,)
    needs_bindings: bool = True
    single_process: bool = False
    report_source: str = ""
    custom_kinds: tuple[Kind, ...] = ()
    counted_kinds: tuple[Kind, ...] = ()
    patch_decides: bool = False
    is_kyvernos: bool = False

    @property
    def _own(self) -> Configuration:
        """Labels alone decide without a configuration."""
        return self.configuration or DEFAULT

    def kinds(self, served: Iterable[Kind]) -> Iterator[Kind]:
        """See Language: it has no documents."""
        del served
        yield from ()

    def derive(self, namespaces: Collection[JsonObject], rules: Minor) -> Iterator[Policy | Binding]:
        """See Language: the policy, if a namespace has a label or the configuration is known, and what is demanded."""
        del rules
        labelled = [labels for labels in map(_labels, namespaces) if not labels.keys().isdisjoint(KEYS)]
        if not labelled and self.configuration is None:
            return
        yield _make_policy()
        defaults = self._own.defaults
        distinct = {_select(each) for each in map(_labels, namespaces)}
        policies = [read_labels(dict(each), defaults) for each in distinct]
        demanded = {(mode, policy.demands[mode]) for policy in policies for mode in Mode}
        for mode, demand in sorted(demanded, key=lambda each: (each[0], str(each[1]))):
            if demand.level is not Level.PRIVILEGED:
                yield from _list_bindings(mode, demand)

    def reads(self, document: JsonObject) -> bool:
        """See Language."""
        del document
        return False

    def read(self, document: JsonObject, *, source: str, namespace: str, rules: Minor) -> ReadDocument:
        """See Language. Raises InvalidManifest for every document."""
        del document, source, namespace, rules
        raise InvalidManifest(("no document is a policy of Pod Security: the labels of namespaces are",))

    def unknown_fields(self, document: JsonObject) -> tuple[UnknownField, ...]:
        """See Language."""
        del document
        return ()

    def assume_bound(self, policy: Policy, action: Action) -> Binding:
        """Raises UsageError: only a level and a version can bind."""
        del action
        raise UsageError(f"--assume-bound {policy.name}: labels of namespaces bind it, to a level and a version")

    def find_generated(self, own: Iterable[Policy], others: Iterable[Policy]) -> Iterator[tuple[PolicyKey, Health]]:
        """See Language: nothing is generated."""
        del own, others
        yield from ()

    def constraints(self, policy: Policy) -> tuple[MatchResources, ...]:
        """See Language."""
        return (policy.match,) if policy.match else ()

    def select_deciding(self, spec: JsonObject, check: CheckKind) -> JsonObject:
        """See Language: every part."""
        del check
        return spec

    def compile(self, policy: Policy, rules: Minor) -> CompiledPolicy:
        """See Language."""
        del rules
        return CompiledPolicy.make_without_expressions(policy, list_checks(policy))

    def bind(self, documents: PolicyDocuments, context: BindingContext) -> BoundPodSecurity:
        """See Language."""
        return BoundPodSecurity(documents, context, self._own, given=self.configuration is not None)


def _labels(namespace: JsonObject | None) -> Mapping[str, str]:
    return text_map(dig(namespace, "metadata", "labels"))


def _select(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The labels of a namespace that decide."""
    return tuple((key, labels[key]) for key in KEYS if key in labels)


class BoundPodSecurity(BoundLanguage):
    """The policy in force: once for each binding, with the checks that its level demands."""

    own_health = True

    def __init__(
        self, documents: PolicyDocuments, context: BindingContext, configuration: Configuration, *, given: bool
    ) -> None:
        """Take the policy and its bindings."""
        self._documents, self._context, self._configuration, self._given = documents, context, configuration, given
        self._server = Server(context.rules)
        self._demands_of = lru_cache(maxsize=1024)(self._read_demands)
        self._seen: dict[Demand, Seen] = {}
        self._bound = tuple(self._bind(policy, each) for policy in documents.policies for each in documents.bindings)

    def _read_demands(self, labels: tuple[tuple[str, str], ...]) -> Mapping[Mode, Demand]:
        return read_labels(dict(labels), self._configuration.defaults).demands

    def _bind(self, policy: Policy, binding: Binding) -> BoundPolicy:
        mode, level, version = (as_text(dig(binding.manifest, "spec", each)) for each in ("mode", "level", "version"))
        demand = Demand(read_level(level) or Level.PRIVILEGED, read_version(version) or LATEST)
        of_pods = "RefusePods" in binding.actions
        judges = list_judges(*demand, self._server)
        seen = self._seen.setdefault(demand, Seen())
        judge = Judge(Mode(mode), self._server, judges, seen, of_pods=of_pods)
        checks = tuple(check for check in list_checks(policy) if check.expression in judges)
        compiled = CompiledPolicy.make_without_expressions(policy, checks, READ_FIELDS)
        bound = make_bound_policy(compiled, (binding,), self._context.operations, judge)
        covered = CoveredNamespaces(KEYS, lambda labels: self._demands_of(_select(labels))[judge.mode] == demand)
        return replace(bound, covered=covered, exempts=self._find_exemption if self._given else None)

    def _find_exemption(self, resource: Resource, labels: Mapping[str, str], /, *, server_alone: bool = False) -> str:
        del labels, server_alone
        configuration, body = self._configuration, resource.body
        exemption = configuration.find_exemption(resource.namespace, self._context.user.username)
        if not exemption and (found := find_template(resource.kind, body)):
            exemption = configuration.find_runtime_exemption(as_object(found[1].get("spec")))
        return _EXEMPTIONS[exemption] if exemption else ""

    @property
    def bound(self) -> tuple[BoundPolicy, ...]:
        """See BoundLanguage."""
        return self._bound

    def list_recorded(self) -> Iterator[tuple[Policy, Reading]]:
        """See BoundLanguage: the policy with all its checks, once."""
        for policy in self._documents.policies:
            compiled = CompiledPolicy.make_without_expressions(policy, list_checks(policy))
            yield policy, classify_policy(compiled, self._context.operations)

    def rules(self) -> Iterator[RuleDocument]:
        """See BoundLanguage: the configuration, if it is known."""
        body = self._configuration.body
        if self._given and self._documents.policies:
            yield RuleDocument(RuleType.CONFIGURATION, LANGUAGE, body if body is not None else {})

    def adapt_health(self, health: Iterable[Health]) -> Iterator[Health]:
        """See BoundLanguage: a level that is demanded where no object is says nothing about the level."""
        yield from (each for each in health if each.language != LANGUAGE or each.kind is not HealthKind.NO_OBJECT)

    def health(self, evaluable: tuple[BoundPolicy, ...], served: tuple[Kind, ...]) -> Iterator[Health]:
        """See BoundLanguage: labels that do not say what they seem to."""
        del evaluable, served
        if self._documents.policies:
            yield from find_health(self._context.namespaces, self._configuration, self._server, NAME, LANGUAGE)


_EXEMPTIONS: Final = {
    "namespace": "the namespace is exempt in the configuration of Pod Security",
    "user": "the user is exempt in the configuration of Pod Security",
    "runtimeClass": "the runtime class is exempt in the configuration of Pod Security",
}
