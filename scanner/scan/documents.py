"""Documents sorted into policies, bindings and params; a document that cannot be used becomes a gap.

Documents come from the cluster's lists and from files; those of files are held to what the API would store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from scanner.errors import InvalidManifest
from scanner.model.json import JsonObject, as_text, dig
from scanner.model.outcome import Gap, GapKind
from scanner.model.policy import Binding, Policy
from scanner.model.release import Minor
from scanner.model.resource import Kind, Resource
from scanner.model.scan import Health, HealthKind
from scanner.policies import manifest
from scanner.policies.api_validation import Undecodable, unknown_fields
from scanner.policies.kyverno import spec
from scanner.policies.kyverno.exceptions import PLURAL, PolicyException, is_exception, read_exception
from scanner.policies.kyverno.spec import KyvernoPolicy
from scanner.policies.mutating import bind as mutating
from scanner.policies.validating import bind as validating
from scanner.scan.param_table import param_of

ACTIONS = ("Deny", "Warn", "Audit")


LANGUAGES = (validating.LANGUAGE, mutating.LANGUAGE)


@dataclass(frozen=True, slots=True)
class Manifest:
    """One document. `source` is `cluster`, or a file and the number of the document in it."""

    source: str
    body: JsonObject


def is_policy(document: JsonObject) -> bool:
    """Whether a document is a policy or a binding of a language that Assay speaks, or what its policies lean on."""
    ours = any(manifest.is_a(document, kind) for name in LANGUAGES for kind in (name, f"{name}Binding"))
    return ours or spec.is_policy(document) or is_exception(document) or spec.is_entry(document)


def policy_kinds(kinds: Iterable[Kind]) -> Iterator[Kind]:
    """The kinds to list policies and bindings from, each in the newest version that is served."""
    for plural in (validating.POLICIES, validating.BINDINGS, mutating.POLICIES, mutating.BINDINGS):
        served = {kind.version: kind for kind in kinds if (kind.group, kind.plural) == (manifest.GROUP, plural)}
        newest = next((served[version] for version in manifest.VERSIONS if version in served), None)
        if newest:
            yield newest
    yield from _kyverno_kinds(kinds)


def _kyverno_kinds(kinds: Iterable[Kind]) -> Iterator[Kind]:
    """Kyverno's kinds, as far as the cluster has them, each in the preferred version: all versions have one schema."""
    wanted = {*((spec.GROUP, plural) for plural in (*spec.PLURALS, PLURAL)), (spec.ENTRIES_GROUP, spec.ENTRIES)}
    served: dict[tuple[str, str], Kind] = {}
    for kind in kinds:
        if (kind.group, kind.plural) in wanted:
            served.setdefault((kind.group, kind.plural), kind)
    yield from (served[key] for key in sorted(served))


class DocumentReader:
    """Sorts documents into policies, bindings and params; what cannot be used becomes a gap."""

    def __init__(self, kinds: Iterable[Kind], namespace: str, rules: Minor) -> None:
        self._rules = rules
        self.policies: list[Policy] = []
        self.bindings: list[Binding] = []
        self.params: list[Resource] = []
        self.kyverno: list[KyvernoPolicy] = []
        self.exceptions: list[PolicyException] = []
        self.entries: list[JsonObject] = []
        self.gaps: list[Gap] = []
        self.health: list[Health] = []
        self.refused: dict[str, str] = {}
        self._kinds = {(kind.api_version, kind.kind): kind for kind in kinds}
        self._namespace = namespace
        self._seen: dict[tuple[str, ...], str] = {}

    @property
    def knows_all(self) -> bool:
        """Whether every list of policies and bindings was read to its end."""
        return not any(gap.kind is GapKind.LIST for gap in self.gaps)

    def read(self, document: Manifest | Gap) -> None:
        """Sort one document."""
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
            self._miss(document, str(error) if undecodable else f'{kind}.{group} "{name}" is invalid: {error}')

    def _sort(self, document: Manifest) -> None:
        body, source = document.body, document.source
        if manifest.is_a(body, validating.LANGUAGE):
            self._policy(validating.read_policy(body, source=source, rules=self._rules), body)
        elif manifest.is_a(body, mutating.LANGUAGE):
            self._policy(mutating.read_policy(body, source=source, rules=self._rules), body)
        elif manifest.is_a(body, f"{validating.LANGUAGE}Binding"):
            self._binding(validating.read_binding(body, source=source), body)
        elif manifest.is_a(body, f"{mutating.LANGUAGE}Binding"):
            self._binding(mutating.read_binding(body, source=source), body)
        elif not self._of_kyverno(document) and source != "cluster":
            self._param(document)

    def _policy(self, policy: Policy, document: JsonObject) -> None:
        if self._first("policy", policy.name, policy.source, policy.language):
            self.policies.append(policy)
            self.health.extend(_ignored(policy.source, document, policy.name, "", policy.language))

    def _binding(self, binding: Binding, document: JsonObject) -> None:
        if self._first("binding", binding.name, binding.source, binding.language):
            self.bindings.append(binding)
            self.health.extend(_ignored(binding.source, document, binding.policy_name, binding.name, binding.language))

    def _of_kyverno(self, document: Manifest) -> bool:
        """Take what is Kyverno's, and tell whether it is."""
        body, source = document.body, document.source
        if spec.is_policy(body):
            policy = spec.read_policy(body, source=source, namespace=self._namespace)
            if self._first("policy", policy.full_name, source, policy.kind):
                self.kyverno.append(policy)
        elif is_exception(body):
            exception = read_exception(body, source=source)
            if self._first("policy exception", exception.key, source):
                self.exceptions.append(exception)
        elif spec.is_entry(body):
            if self._first("global context entry", as_text(dig(body, "metadata", "name")), source):
                self.entries.append(body)
        else:
            return False
        return True

    def _param(self, document: Manifest) -> None:
        version, name = as_text(document.body.get("apiVersion")), as_text(document.body.get("kind"))
        if version.startswith(f"{manifest.GROUP}/"):
            self._miss(document, f"Assay evaluates nothing for {name} in version {version}")
            return
        kind = self._kinds.get((version, name))
        if kind is None:
            why = f"it is no policy and no binding, and {name} in version {version}, which could be a param, is not served"
            self._miss(document, why)
            return
        param = param_of(kind, document.body, self._namespace)
        if self._first(kind.kind, param.name, document.source, kind.group, param.namespace):
            self.params.append(param)

    def _miss(self, document: Manifest, why: str) -> None:
        self.gaps.append(Gap(GapKind.DOCUMENT, document.source, why))

    def _first(self, what: str, name: str, source: str, *where: str) -> bool:
        """Whether this is the first of its name: files come before the cluster, and stand in for its objects."""
        key = (what, name, *where)
        if key not in self._seen:
            self._seen[key] = source
            return True
        earlier = self._seen[key]
        if source == "cluster":
            detail = f"the {what} in {earlier} is used instead of the cluster's"
            policy, binding = (name, "") if what == "policy" else ("", name)
            language = where[0] if what in ("policy", "binding") else ""
            self.health.append(Health(HealthKind.NOTE, policy, binding, detail, language))
            return False
        why = f"{what} {name} is defined already in {earlier}; this one is not used: rename or remove one of them"
        self.gaps.append(Gap(GapKind.DOCUMENT, source, why))
        return False


def _ignored(source: str, document: JsonObject, policy: str, binding: str, language: str) -> Iterator[Health]:
    """The fields of a manifest in a file that its kind does not have, and that the API server drops with a warning."""
    unknown = unknown_fields(document) if source != "cluster" else ()
    if unknown:
        detail = f"the API server ignores unknown fields: {', '.join(unknown)}"
        yield Health(HealthKind.NOTE, policy, binding, detail, language)
