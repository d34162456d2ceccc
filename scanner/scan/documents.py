"""Sorts documents into policies, bindings and params; an unusable document becomes a gap.

Documents come from the cluster's lists and from files; a document from a file must be one that the API would store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, assert_never

from scanner.errors import InvalidManifest, UsageError
from scanner.model.json import JsonObject, as_text, dig
from scanner.model.outcome import Gap, GapKind
from scanner.model.policy import Binding, Policy
from scanner.model.resource import Kind, Resource
from scanner.model.scans.health import Health, HealthKind
from scanner.model.scans.out_of_scope import OutOfScope, Unneeded
from scanner.policies import manifest
from scanner.policies.api_validation import Undecodable
from scanner.policies.bound_language import ReadDocument, Supporting
from scanner.policies.language import LANGUAGES, Language
from scanner.policies.manifest import write_unknown_fields
from scanner.policies.served_versions import ServedVersions
from scanner.scan.param_table import read_param

_BINDING: Final = "Binding"
_CONFIGURATION: Final = ("", "ConfigMap")
"""The kind of the configuration of languages whose policies need no binding, which is no param of a policy."""
_VERSIONS_ADVICE: Final = f"write it in a version that is evaluated, such as {manifest.GROUP}/v1"


class FilePlace(NamedTuple):
    """The place of a document in a file: the line where it begins, and the numbers, from 1, of its item in lists."""

    file: str
    line: int
    items: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Manifest:
    """One document. `source` is `cluster`, or a file and the number of the document in it.

    With `is_named` the user names the file, or its folder, as one of policies: a policy that cannot be read is an error then.
    """

    source: str
    body: JsonObject
    is_named: bool = False
    place: FilePlace | None = None


def is_policy(document: JsonObject, languages: Iterable[Language] = LANGUAGES) -> bool:
    """Return whether a document is a policy or binding of some language, or an object that its policies rely on."""
    return any(language.reads(document) for language in languages)


def names_policy_kind(kind: str, languages: Iterable[Language] = LANGUAGES) -> bool:
    """Return whether a kind has the name of a policy or binding of some language, in any API group."""
    return any(kind in (name, f"{name}{_BINDING}") for language in languages for name in language.names)


class DocumentReader:
    """Sorts documents into policies, bindings and params; an unusable document becomes a gap."""

    def __init__(
        self, languages: Iterable[Language], kinds: Iterable[Kind], namespace: str, served: ServedVersions
    ) -> None:
        """Read documents by the rules of a Kubernetes release; `namespace` is the namespace of documents without one."""
        self._languages = tuple(languages)
        self._served = served
        self.policies: list[Policy] = []
        self.bindings: list[Binding] = []
        self.supporting: list[Supporting] = []
        self.params: list[Resource] = []
        self.gaps: list[Gap] = []
        self.health: list[Health] = []
        self.refused: dict[str, str] = {}
        self.outside: list[OutOfScope] = []
        self._others: list[Manifest] = []
        self._kinds = {(kind.api_version, kind.kind): kind for kind in kinds}
        self._namespace = namespace
        self._document_by_name: dict[tuple[str, ...], Manifest] = {}

    @property
    def is_complete(self) -> bool:
        """Return whether every list of policies and bindings was read to its end, so that a missing name does not exist."""
        return not any(gap.kind is GapKind.LIST for gap in self.gaps)

    def read(self, document: Manifest | Gap) -> None:
        """Sort one document into `policies`, `bindings` or `supporting`; an unusable one becomes a gap.

        Other documents of files wait for `read_params`. Raises UsageError for a document of a file that the user names, if it has
        the kind of a policy and cannot be read.
        """
        if isinstance(document, Gap):
            self.gaps.append(document)
            return
        try:
            self._sort(document)
        except InvalidManifest as error:
            kind, name = as_text(document.body.get("kind")), as_text(dig(document.body, "metadata", "name"))
            self.refused[name] = document.source
            group = as_text(document.body.get("apiVersion")).partition("/")[0]
            undecodable = isinstance(error, Undecodable)
            if undecodable and document.is_named:
                raise UsageError(f"-f: {document.source}: {error}. Correct the {kind}") from error
            why = str(error) if undecodable else f'{kind}.{group} "{name}" is invalid: {error}'
            self._add_gap(document, f"{why}{self._describe_unknown_fields(document)}")

    def add(self, noun: Policy | Binding) -> None:
        """Take a policy or binding that no document contains."""
        if isinstance(noun, Policy):
            self.policies.append(noun)
        else:
            self.bindings.append(noun)

    def _sort(self, document: Manifest) -> None:
        body, source = document.body, document.source
        language = self._find_language(body)
        if language is not None:
            read_document = language.read(body, source=source, namespace=self._namespace, rules=self._served.rules)
            self._keep(read_document, document, language)
        elif source != "cluster":
            self._reject_policy(document)
            self._others.append(document)

    def _find_language(self, body: JsonObject) -> Language | None:
        return next((language for language in self._languages if language.reads(body)), None)

    def _describe_unknown_fields(self, document: Manifest) -> str:
        """The unknown fields of a manifest that the API rejects: one of them may be the required field, misspelt."""
        language = self._find_language(document.body)
        fields = language.unknown_fields(document.body) if language else ()
        return f"; unknown fields: {write_unknown_fields(fields)}" if fields else ""

    def _reject_policy(self, document: Manifest) -> None:
        """Raise UsageError for a document that the user names, with the kind of a policy in an unknown version or group."""
        kind, version = as_text(document.body.get("kind")), as_text(document.body.get("apiVersion"))
        if document.is_named and names_policy_kind(kind, self._languages):
            raise UsageError(
                f"-f: {document.source}: {kind} in version {version} cannot be evaluated: {_VERSIONS_ADVICE}"
            )

    def read_params(self) -> None:
        """Take the other documents of files as params, if a policy that was read names their kind; the rest is out of scope."""
        param_kinds = {
            (policy.param_kind.api_version.rpartition("/")[0], policy.param_kind.kind)
            for policy in self.policies
            if policy.param_kind
        }
        without_bindings = (name for each in self._languages if not each.needs_bindings for name in each.names)
        configured = not {*without_bindings}.isdisjoint(policy.language for policy in self.policies)
        for document in self._others:
            group = as_text(document.body.get("apiVersion")).rpartition("/")[0]
            kind = as_text(document.body.get("kind"))
            if (group, kind) in param_kinds or (configured and (group, kind) == _CONFIGURATION):
                self._read_param(document)
            else:
                why = f"{kind} is no policy and no binding, and no policy has params of this kind"
                self.outside.append(OutOfScope(Unneeded.UNUSED_DOCUMENT, document.source, why))

    def _keep(self, read: ReadDocument, document: Manifest, language: Language) -> None:
        match read.content:
            case Policy() as policy:
                if self._is_first("policy", policy.name, document, policy.language):
                    self.policies.append(policy)
                    self.health.extend(self._find_refusals(document, language, policy.name, "", policy.language))
            case Binding() as binding:
                if self._is_first("binding", binding.name, document, binding.language):
                    self.bindings.append(binding)
                    policy_name, name = binding.policy_name, binding.name
                    self.health.extend(self._find_refusals(document, language, policy_name, name, binding.language))
            case Supporting() as supporting:
                if self._is_first(supporting.what, supporting.name, document):
                    self.supporting.append(supporting)
            case _ as never:
                assert_never(never)

    def _find_refusals(
        self, document: Manifest, language: Language, policy: str, binding: str, kind: str
    ) -> Iterator[Health]:
        """The reasons why kubectl would refuse a manifest from a file that is evaluated all the same."""
        if document.source == "cluster":
            return
        if fields := language.unknown_fields(document.body):
            detail = f"kubectl refuses the manifest, and the API server ignores {write_unknown_fields(fields)}"
            yield Health(HealthKind.UNKNOWN_FIELD, policy, binding, detail, kind)
        if note := self._served.make_note(document.body):
            yield Health(HealthKind.NOT_SERVED, policy, binding, note, kind)

    def _read_param(self, document: Manifest) -> None:
        version, name = as_text(document.body.get("apiVersion")), as_text(document.body.get("kind"))
        kind = self._kinds.get((version, name))
        if kind is None:
            why = f"it is no policy and no binding, and {name} in version {version}, which could be a param, is not served"
            self._add_gap(document, why)
            return
        param = read_param(kind, document.body, self._namespace)
        if self._is_first(kind.kind, param.name, document, kind.group, param.namespace):
            self.params.append(param)

    def _add_gap(self, document: Manifest, why: str) -> None:
        self.gaps.append(Gap(GapKind.DOCUMENT, document.source, why))

    def _is_first(self, what: str, name: str, document: Manifest, *where: str) -> bool:
        """Return whether this is the first document of its name: files come before the cluster, and replace its objects."""
        key = (what, name, *where)
        if key not in self._document_by_name:
            self._document_by_name[key] = document
            return True
        source, first = document.source, self._document_by_name[key]
        earlier = first.source
        if source == "cluster":
            detail = f"the {what} in {earlier} is used instead of the cluster's"
            policy, binding = (name, "") if what == "policy" else ("", name)
            language = where[0] if what in ("policy", "binding") else ""
            self.health.append(Health(HealthKind.NOTE, policy, binding, detail, language))
            return False
        if document.body == first.body:
            why = f"this document is equal to {earlier}, which is read"
            self.outside.append(OutOfScope(Unneeded.REPEATED, source, why))
            return False
        why = f"{what} {name} is defined already in {earlier}; this one is not used: rename or remove one of them"
        self.gaps.append(Gap(GapKind.DOCUMENT, source, why))
        return False
