"""Compares a suite's expectations with the results of its policies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from scanner.api import Auditor, InvocationResult, KyvernoContext, Schemas
from scanner.cel import EvaluationError, Value
from scanner.model.json import Json, JsonObject, as_object, as_text, dig
from scanner.model.outcome import CheckResult, Errored, Passed, Skipped, SkipReason, Violated, WouldChange
from scanner.model.policy import ADMISSION_API, MatchResources, Operation, Policy, PolicyKey
from scanner.model.release import Minor
from scanner.model.resource import Kind
from scanner.mutate.schema import Conversion, Schema
from scanner.policies.kyverno.libraries import Call, Collection, NoClusterData
from scanner.policies.kyverno.modes import ADMISSION, CLI
from scanner.policies.kyverno.releases import NEWEST
from scanner.policies.kyverno.request import with_doubles
from scanner.policies.kyverno.result import result_of
from scanner.policies.kyverno.spec import KyvernoPolicy, is_policy, read_policy
from scanner.posture.policy_kinds import plural_of
from scanner.suite.form import Expectation, Suite

NOT_MATCHED: Final = "not matched"
EXCLUDED: Final = "excluded"
NOT_FOUND: Final = "not found"
_VOWELS: Final = frozenset("AEIOUaeiou")
_RESPONSES_KEPT_UNTIL: Final[Minor] = (1, 17)
"""The last release whose CLI counts every object that a policy does not match as excluded."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a policy for one object: pass, fail, warn, error or skip, as policy reports name it, or the reason for none.

    An object that admission does not evaluate is `NOT_MATCHED`. For the Kyverno CLI, it is `EXCLUDED`, or `NOT_FOUND` if the policy
    has but one plain rule. A policy that the suite does not have is `NOT_FOUND`, too.
    """

    status: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Checked:
    """An expectation about the objects of one name, with a result for each object and each autogen variant of the policy.

    `unsupported` is the reason why Assay cannot tell whether the expectation is met, a sentence without its full stop, or empty.
    """

    expectation: Expectation
    resource: str
    results: tuple[Result, ...] = ()
    unsupported: str = ""

    @property
    def right(self) -> bool:
        """Return whether every object that counts is known to have the expected result; if none counts, the result is skip."""
        if self.unsupported:
            return False
        counted = [result for result in self.results if result.status != NOT_MATCHED]
        return all(_meets(self.expectation, result) for result in counted or [Result("skip")])


def _meets(expectation: Expectation, result: Result) -> bool:
    if result.status == EXCLUDED:
        return True
    return result.status == expectation.result and expectation.message in ("", result.message)


def check(
    suite: Suite,
    kinds: Iterable[Kind],
    schemas: Schemas,
    now: datetime,
    parse: Callable[[str], Json] | None = None,
    release: Minor = NEWEST,
) -> Iterator[Checked]:
    """Evaluate every object that an expectation names, by the rules of a release of Kyverno.

    `kinds` and `schemas` are those of Kubernetes itself. Raises an AssayError for a suite that cannot be evaluated.
    """
    questions = [(expectation, name) for expectation in suite.expectations for name in expectation.resources or ("",)]
    if suite.payloads:
        reason = f"{suite.payloads}: payloads are not objects of a cluster"
        yield from (Checked(expectation, name, unsupported=reason) for expectation, name in questions)
        return
    evaluation = _SuiteEvaluation(suite, kinds, schemas, now, parse, release)
    for expectation, name in questions:
        yield evaluation.check(expectation, name)


class _SuiteEvaluation:
    """The policies of a suite, prepared to evaluate its objects."""

    def __init__(
        self,
        suite: Suite,
        kinds: Iterable[Kind],
        schemas: Schemas,
        now: datetime,
        parse: Callable[[str], Json] | None,
        release: Minor,
    ) -> None:
        loads = self._loads = suite.as_command_line
        self._release = release
        served_kinds = {(kind.api_version, kind.kind): kind for kind in (*kinds, *suite.kinds)}
        self._objects = (
            [placed(document, served_kinds, unknown=loads) for document in suite.resources]
            if loads
            else [*suite.resources]
        )
        served = with_unknown(served_kinds.values(), (*self._objects, *suite.given))
        policies = [*bound(suite.policies)] if loads else [*suite.policies]
        kyverno = [read_policy(document, source="document") for document in policies if is_policy(document)]
        elsewhere = {policy.key: policy.elsewhere for policy in kyverno if policy.elsewhere}
        self._kyverno: Mapping[PolicyKey, KyvernoPolicy] = {policy.key: policy for policy in kyverno}
        self._unsupported = {
            **{_short(name): f"{name} is not evaluated: {reason}" for (_, name), reason in elsewhere.items()},
            **{_name_of(document): _describe_unsupported(document) for document in suite.others},
        }
        policies = [document for document in policies if _key_of(document) not in elsewhere]
        self._evaluated = {_name_of(document) for document in policies if not _is_binding(document)}
        table = {(kind.api_version, kind.kind): kind for kind in served}
        given = Given(table, suite.given, suite.images, suite.answers, suite.entries, parse)
        mode = replace(CLI, create_only=False) if loads else ADMISSION
        self._kyverno_context = KyvernoContext(now, mode, given, ("CREATE", "UPDATE", "DELETE"), release=release)
        self._suite, self._policies, self._kinds = suite, policies, served
        self._schemas = _SuiteSchemas(suite.schemas, schemas)
        self._auditors: dict[bool, Auditor] = {}

    def _auditor(self, operation: Operation) -> Auditor:
        """The policies that can be evaluated for an operation: for a DELETE, Kyverno's alone."""
        deletes = operation == "DELETE"
        if deletes not in self._auditors:
            documents = [document for document in self._policies if is_policy(document) or not deletes]
            self._auditors[deletes] = Auditor(
                policies=[document for document in documents if not _is_binding(document)],
                bindings=[document for document in documents if _is_binding(document)],
                params=self._suite.params,
                namespaces=self._suite.namespaces,
                kinds=self._kinds,
                user=self._suite.user,
                schemas=self._schemas,
                exceptions=self._suite.exceptions,
                kyverno_context=self._kyverno_context,
            )
        return self._auditors[deletes]

    def check(self, expectation: Expectation, name: str) -> Checked:
        """Compare an expectation about the objects of a name with their results.

        Of policies with one name, some may be of kinds that are not evaluated: then only a difference is certain.
        """
        policy = _short(expectation.policy)
        unsupported = self._unsupported.get(policy, "")
        if policy in self._evaluated:
            checked = Checked(expectation, name, tuple(self._results(expectation, name)))
            return replace(checked, unsupported=unsupported) if checked.right else checked
        if unsupported:
            return Checked(expectation, name, unsupported=unsupported)
        return Checked(expectation, name, (Result(NOT_FOUND, "the suite has no policy of this name"),))

    def _results(self, expectation: Expectation, name: str) -> Iterator[Result]:
        """The results of the policy for the objects of a name, or for all objects if none has that name."""
        namespace, _, short_name = name.rpartition("/")
        named = [document for document in self._objects if short_name in ("", dig(document, "metadata", "name"))]
        chosen = [document for document in named if namespace in ("", dig(document, "metadata", "namespace"))]
        for document in chosen or self._objects:
            yield from self._about(document, expectation)

    def _about(self, document: JsonObject, expectation: Expectation) -> Iterator[Result]:
        invocation_results = [
            invocation_result
            for invocation_result in self._auditor(expectation.operation).evaluate(
                document, operation=expectation.operation
            )
            if _short(invocation_result.invocation.policy.name) == _short(expectation.policy)
        ]
        yield from map(self._result, invocation_results) if invocation_results else (self._without_result(expectation),)

    def _without_result(self, expectation: Expectation) -> Result:
        """The result for an object that a policy does not match.

        Mirrors `hasSelector` of the Kyverno CLI: since 1.18 the response is dropped if the policy has one rule without names and
        neither a selector nor an exclusion. A ValidatingAdmissionPolicy always has a response, a MutatingAdmissionPolicy none.
        """
        if not self._loads:
            return Result(NOT_MATCHED)
        forms = [
            bound_policy.policy
            for bound_policy in self._auditor(expectation.operation).bound
            if _short(bound_policy.policy.name) == _short(expectation.policy)
        ]
        return Result(EXCLUDED if any(map(self._keeps_response, forms)) else NOT_FOUND)

    def _keeps_response(self, form: Policy) -> bool:
        if form.language in ADMISSION_API:
            return form.language == "ValidatingAdmissionPolicy"
        return self._release <= _RESPONSES_KEPT_UNTIL or form.match is None or not _is_plain(form.match)

    def _result(self, invocation_result: InvocationResult) -> Result:
        variant = invocation_result.invocation.policy
        excepted = next((check.excepted_by for check in invocation_result.check_results if check.excepted_by), "")
        policy = self._kyverno.get((variant.language, variant.name))
        if policy is not None and not (excepted and not self._loads):
            result = result_of(policy, variant, invocation_result.check_results, self._release)
            return Result(result.status, result.message)
        if excepted:
            return Result("skip", f"excepted by {excepted}")
        results = map(_result_of, invocation_result.check_results)
        return next((result for result in results if result.status != "pass"), Result("pass"))


def _is_plain(match: MatchResources) -> bool:
    """Return whether constraints are one rule without names, selectors and exclusions."""
    selectors = (match.namespace_selector, match.object_selector)
    return (
        len(match.rules) == 1
        and not match.rules[0].resource_names
        and not match.exclude_rules
        and not any(selector.requirements for selector in selectors)
    )


def _short(name: str) -> str:
    return name.rpartition("/")[2]


def _name_of(document: JsonObject) -> str:
    return as_text(dig(document, "metadata", "name"))


def _is_binding(document: JsonObject) -> bool:
    return as_text(document.get("kind")).endswith("Binding")


def _key_of(document: JsonObject) -> PolicyKey | None:
    return read_policy(document).key if is_policy(document) else None


def _describe_unsupported(document: JsonObject) -> str:
    kind, group = as_text(document.get("kind")), as_text(document.get("apiVersion")).rpartition("/")[0]
    noun = f"{kind} of {group}" if group else kind or "document without a kind"
    article = "an" if noun[0] in _VOWELS else "a"
    return f"{_name_of(document)} is {article} {noun}, which Assay does not evaluate"


def _result_of(check_result: CheckResult) -> Result:
    match check_result.outcome:
        case Passed() | WouldChange():
            return Result("pass")
        case Violated(message=message):
            return Result("fail", message)
        case Errored(message=message):
            return Result("error", message)
        case Skipped(reason=SkipReason.CONDITION_FALSE, detail=detail):
            return Result("skip", detail)
        case Skipped(detail=detail):
            return Result("error", detail)


# Loads policies and objects as the Kyverno CLI does.
#
# Source of truth: the CLI of Kyverno 1.16 to 1.19. Objects without a namespace are in `default`, null maps are empty, and the
# bindings of a policy of the admission API replace its own constraints.

_EMPTIED = ("data", "stringData")
_EVERYTHING: Json = {
    "resourceRules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}]
}


def placed(document: JsonObject, kinds: Mapping[tuple[str, str], Kind], *, unknown: bool) -> JsonObject:
    """The object with a namespace and without null maps. With `unknown`, objects of unknown kinds get a namespace too."""
    metadata = dict(as_object(document.get("metadata")))
    kind = kinds.get((as_text(document.get("apiVersion")), as_text(document.get("kind"))))
    if unknown if kind is None else kind.namespaced:
        metadata.setdefault("namespace", "default")
    empty: dict[str, Json] = {
        name: {} for name in ("annotations", "labels") if name in metadata and metadata[name] is None
    }
    emptied: dict[str, Json] = {name: {} for name in _EMPTIED if name in document and document[name] is None}
    return {**document, "metadata": {**metadata, **empty}, **emptied}


def bound(policies: Iterable[JsonObject]) -> Iterator[JsonObject]:
    """Policies and bindings. A policy without a binding gets one; a policy with a binding loses its own constraints."""
    documents = tuple(policies)
    bindings = [document for document in documents if _is_binding(document)]
    named = {as_text(dig(binding, "spec", "policyName")) for binding in bindings}
    yield from bindings
    for document in documents:
        name = as_text(dig(document, "metadata", "name"))
        kind = as_text(document.get("kind"))
        if document in bindings:
            continue
        if not kind.endswith("AdmissionPolicy"):
            yield document
        elif name in named:
            yield {**document, "spec": {**as_object(document.get("spec")), "matchConstraints": _EVERYTHING}}
        else:
            yield document
            yield _binding(document, f"{kind}Binding", name)


def _binding(document: JsonObject, kind: str, name: str) -> JsonObject:
    return {
        "apiVersion": document.get("apiVersion"),
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }


# The objects, images and responses of a suite, in place of a cluster and registries.
#
# Mirrors the fake client of the Kyverno CLI: other objects do not exist, and label selectors have no effect.

_OK = 200


@dataclass(frozen=True, slots=True)
class Given(NoClusterData):
    """The cluster data of a suite. `parse` decodes YAML."""

    kinds: Mapping[tuple[str, str], Kind]
    objects: tuple[JsonObject, ...]
    images: Mapping[str, JsonObject]
    answers: Mapping[tuple[str, str], JsonObject] = field(default_factory=dict)
    entries: Mapping[str, Json] = field(default_factory=dict)
    parse: Callable[[str], Json] | None = None

    def get(self, collection: Collection, namespace: str, name: str, /) -> Value:
        """The object of that name as a map, or None."""
        return next(
            (document for document in self._of(collection, namespace) if dig(document, "metadata", "name") == name),
            None,
        )

    def list(self, collection: Collection, namespace: str, labels: Mapping[str, str], /) -> Value:
        """A list object with all objects of a collection; the labels select nothing.

        Raises EvaluationError for a kind that the suite does not know.
        """
        del labels
        items = [*self._of(collection, namespace)]
        if not items and all(_place(kind) != collection for kind in self.kinds.values()):
            raise EvaluationError("failed to list resource: the server could not find the requested resource")
        return {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items}

    def collection(self, group: str, version: str, kind: str, /) -> Collection:
        """The collection of the objects of a kind. Raises EvaluationError for a kind that the suite does not know."""
        name = f"{group}/{version}" if group else version
        served = self.kinds.get((name, kind))
        if served is None:
            raise EvaluationError(f'failed to map kind to resource: no matches for kind "{kind}" in version "{name}"')
        return _place(served)

    def image(self, reference: str, /) -> Value:
        """The image data in the suite, as a map. Raises EvaluationError for an image that the suite does not describe."""
        if reference not in self.images:
            raise EvaluationError(f"failed to get image data: the suite does not describe {reference}")
        return self.images[reference]

    def request(self, call: Call, /) -> Value:
        """The response in the suite, with its body under `body`.

        Raises EvaluationError for a request that the suite does not describe.
        """
        answer = self.answers.get((call.method, call.url)) or self.answers.get(("", call.url))
        if answer is None:
            raise EvaluationError(f"request failed: the suite describes no answer to {call.method} {call.url}")
        status = answer.get("statusCode")
        return {"body": with_doubles(answer.get("body")), "statusCode": status if isinstance(status, int) else _OK}

    def entry(self, name: str, projection: str, /) -> Value:
        """An entry of the global context in the suite, or None. Raises EvaluationError for an unknown projection."""
        data = self.entries.get(name)
        if not projection or data is None:
            return data
        if projection not in as_object(data):
            raise EvaluationError(f'failed to get global reference: projection "{projection}" not found')
        return as_object(data)[projection]

    def parse_yaml(self, text: str, /) -> Value:
        """See ClusterData. Raises EvaluationError for a text that is no YAML."""
        if self.parse is None:
            raise EvaluationError("YAML is not read here")
        try:
            return with_doubles(self.parse(text))
        except ValueError as error:
            raise EvaluationError(f"error converting YAML to JSON: yaml: {error}") from None

    def _of(self, collection: Collection, namespace: str) -> Iterator[JsonObject]:
        for document in self.objects:
            kind = self.kinds.get(_key(document))
            here = namespace in ("", as_text(dig(document, "metadata", "namespace")))
            if kind is not None and _place(kind) == collection and here:
                yield document


def _key(document: JsonObject) -> tuple[str, str]:
    return as_text(document.get("apiVersion")), as_text(document.get("kind"))


def _place(kind: Kind) -> Collection:
    return Collection(kind.group, kind.version, kind.plural)


def with_unknown(kinds: Iterable[Kind], documents: Iterable[JsonObject]) -> tuple[Kind, ...]:
    """The kinds, and the kinds of objects that are not among them.

    Such a kind has the plural and the scope that another version has, or else the regular plural, and the scope of the object.
    """
    served = {(kind.api_version, kind.kind): kind for kind in kinds}
    others = {(kind.group, kind.kind): kind for kind in served.values()}
    for document in documents:
        version, name = _key(document)
        if (version, name) not in served and version and name:
            group, _, short = version.rpartition("/")
            other = others.get((group, name))
            placed = dig(document, "metadata", "namespace") is not None
            served[version, name] = (
                replace(other, version=short) if other else Kind(group, short, name, plural_of(name), namespaced=placed)
            )
    return tuple(served.values())


@dataclass(frozen=True, slots=True)
class _SuiteSchemas:
    """The schemas of the definitions in a suite, and of all other kinds."""

    own: Schemas
    others: Schemas

    def schema(self, kind: Kind) -> Schema | None:
        """See Schemas."""
        return self.own.schema(kind) or self.others.schema(kind)

    def conversion(self, kind: Kind) -> Conversion:
        """See Schemas."""
        return (self.own if self.own.schema(kind) else self.others).conversion(kind)
