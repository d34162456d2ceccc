"""The interface of a policy language, and the table of languages.

A language reads documents into policies, puts them into force, and has an evaluator (`scanner.admission.evaluator`) for matched
objects. Matching, params, findings, history and reports are the same for all languages.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, Protocol, TypeAlias, assert_never

from scanner.admission.compiled import CompiledPolicy
from scanner.errors import UsageError
from scanner.model.json import JsonObject
from scanner.model.outcome import CheckKind
from scanner.model.policy import Action, Binding, MatchResources, Policy, PolicyKey
from scanner.model.release import Minor
from scanner.model.resource import NAMESPACES, Kind
from scanner.model.scans.health import Health
from scanner.policies.bound_language import BindingContext, BoundLanguage, PolicyDocuments, ReadDocument, Supporting
from scanner.policies.kyverno.family import KyvernoOptions
from scanner.policies.kyverno.language import KyvernoValidating
from scanner.policies.manifest import UnknownField
from scanner.policies.mutating.language import Mutating
from scanner.policies.pod_security.language import PodSecurity
from scanner.policies.validating.language import Validating

Derivation: TypeAlias = Callable[[Collection[JsonObject], Minor], Iterable[Policy | Binding]]
"""Returns the policies and bindings that follow from the labels of some Namespaces, by the rules of a Kubernetes release.

Their source is `NAMESPACE_LABELS`. A binding covers all namespaces with certain labels: their names are no part of it.
"""


class Language(Protocol):
    """A policy language: one kind of policies, in all its scopes.

    Its options are fields of the value that satisfies this Protocol. Languages with the same options are a family: each has the value
    of these options, and may read the same objects besides policies.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """The `Policy.language` of its policies: the kinds of their manifests."""
        ...

    @property
    def needs_bindings(self) -> bool:
        """Return whether a policy is in force only if a binding names it, which is a document or is derived."""
        ...

    @property
    def single_process(self) -> bool:
        """Return whether only one process may evaluate, because processes cannot share a connection."""
        ...

    @property
    def report_source(self) -> str:
        """The `source` of its results in policy reports, by which dashboards know it; empty for the name of the language."""
        ...

    @property
    def custom_kinds(self) -> tuple[Kind, ...]:
        """The kinds of its documents that are not built into Kubernetes, in each of their versions, which have one schema.

        Files that stand for a cluster need no CustomResourceDefinitions of these kinds.
        """
        ...

    @property
    def counted_kinds(self) -> tuple[Kind, ...]:
        """The kinds, in each of their versions, whose objects it counts and does not need; files need no definitions of these either."""
        ...

    def kinds(self, served: Iterable[Kind]) -> Iterable[Kind]:
        """The kinds to list for its documents: each served kind once, in one version."""
        ...

    @property
    def derive(self) -> Derivation | None:
        """The function by which policies follow from the namespaces of the cluster; None if documents contain all of them."""
        ...

    def reads(self, document: JsonObject) -> bool:
        """Return whether a document is one of its policies or bindings, or an object that its policies rely on."""
        ...

    def read(self, document: JsonObject, *, source: str, namespace: str, rules: Minor) -> ReadDocument:
        """Read a document of this language; a document without a namespace is in `namespace`.

        Raises InvalidManifest for a document from a file (`source` is not `cluster`) that a server of the release would reject.
        """
        ...

    def unknown_fields(self, document: JsonObject) -> tuple[UnknownField, ...]:
        """The fields of a document of this language that its kind does not have, and that the API server drops."""
        ...

    def assume_bound(self, policy: Policy, action: Action) -> Binding:
        """The binding that `--assume-bound` creates for a policy. Raises UsageError if policies need no binding."""
        ...

    def find_generated(self, own: Iterable[Policy], others: Iterable[Policy]) -> Iterable[tuple[PolicyKey, Health]]:
        """The policies of other languages that a controller generated from its `own`, each with a health entry.

        They would repeat every finding, so a scan does not evaluate them.
        """
        ...

    def constraints(self, policy: Policy) -> tuple[MatchResources, ...]:
        """The match constraints of each form in which a policy is evaluated, generated variants included."""
        ...

    @property
    def patch_decides(self) -> bool:
        """Return whether a patch release of the API server may decide other verdicts, or is not known not to."""
        ...

    @property
    def is_kyvernos(self) -> bool:
        """Return whether Kyverno evaluates its policies: then the release of Kyverno decides besides that of Kubernetes."""
        ...

    def select_deciding(self, spec: JsonObject, check: CheckKind) -> JsonObject:
        """The parts of the spec of a policy, or of a binding, that decide the verdicts of checks of a kind.

        The others are texts and actions: an object passes the same checks with any of them.
        """
        ...

    def compile(self, policy: Policy, rules: Minor) -> CompiledPolicy:
        """Compile a policy, without generated variants, by the rules of a Kubernetes release."""
        ...

    def bind(self, documents: PolicyDocuments, context: BindingContext) -> BoundLanguage:
        """Put the policies into force, for the requests and the release of a context."""
        ...


_KYVERNO: Final = KyvernoOptions()
_POD_SECURITY: Final = PodSecurity()


def with_options(
    kyverno: KyvernoOptions = _KYVERNO, pod_security: PodSecurity | None = _POD_SECURITY
) -> tuple[Language, ...]:
    """Every language with the options of its family, in the order in which policies are evaluated; Pod Security may be left out."""
    return (
        Validating(),
        Mutating(),
        KyvernoValidating(kyverno),
        *([pod_security] if pod_security else ()),
    )


LANGUAGES: Final = with_options()
"""Every language with the default options."""


def select_documents(language: Language, nouns: Iterable[Policy | Binding | Supporting]) -> PolicyDocuments:
    """The policies and bindings of a language, and the objects that they rely on: those that the language reads."""
    policies: list[Policy] = []
    bindings: list[Binding] = []
    supporting: list[Supporting] = []
    for noun in nouns:
        match noun:
            case Policy():
                policies += [noun] if noun.language in language.names else []
            case Binding():
                bindings += [noun] if noun.language in language.names else []
            case Supporting():
                supporting += [noun] if language.reads(noun.body) else []
            case _ as never:
                assert_never(never)
    return PolicyDocuments(tuple(policies), tuple(bindings), tuple(supporting))


def list_document_kinds(languages: Iterable[Language], served: Iterable[Kind]) -> tuple[Kind, ...]:
    """The kinds to list for the documents of some languages, each once: those of a family have kinds in common."""
    every = tuple(served)
    return tuple(dict.fromkeys(kind for language in languages for kind in language.kinds(every)))


def list_deciding_kinds(language: Language, served: Iterable[Kind]) -> Iterator[Kind]:
    """The kinds whose objects are the policies of a language, or decide which policies it has."""
    yield from language.kinds(served)
    yield from (NAMESPACES,) if language.derive else ()


def derive_from_namespaces(
    languages: Iterable[Language], namespaces: Collection[JsonObject], rules: Minor
) -> Iterator[Policy | Binding]:
    """The policies and bindings of some languages that follow from the namespaces of a cluster."""
    for language in languages:
        if language.derive:
            yield from language.derive(namespaces, rules)


def compile_policy(policy: Policy, rules: Minor, languages: Iterable[Language] = LANGUAGES) -> CompiledPolicy:
    """Compile a policy of one of some languages, without generated variants. Raises UsageError for another language."""
    if language := _find_language(policy.language, languages):
        return language.compile(policy, rules)
    raise UsageError(f"policy {policy.name}: {policy.language} is no policy language that this version evaluates")


def find_report_source(language: str, languages: Iterable[Language] = LANGUAGES) -> str:
    """The `source` of results in policy reports; empty for the name of the language, and for one that this version does not know."""
    found_language = _find_language(language, languages)
    return found_language.report_source if found_language else ""


def select_deciding(language: str, spec: JsonObject, check: CheckKind) -> JsonObject:
    """The parts of a spec that decide about a kind of check: every part, for a language that this version does not know."""
    found_language = _find_language(language)
    return found_language.select_deciding(spec, check) if found_language else spec


def patch_decides(language: str) -> bool:
    """Return whether a patch release of the API server may decide; true for a language that this version does not know."""
    found_language = _find_language(language)
    return found_language is None or found_language.patch_decides


def is_kyvernos(language: str) -> bool:
    """Return whether the release of Kyverno may decide; true for a language that this version does not know."""
    known = _find_language(language)
    return known is None or known.is_kyvernos


def list_constraints(policy: Policy) -> tuple[MatchResources, ...]:
    """The match constraints of each form of a policy. Those that it states itself, for a language that this version does not know."""
    language = _find_language(policy.language)
    if language:
        return language.constraints(policy)
    return (policy.match,) if policy.match else ()


def _find_language(name: str, languages: Iterable[Language] = LANGUAGES) -> Language | None:
    return next((language for language in languages if name in language.names), None)
