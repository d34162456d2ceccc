"""The file `kyverno`: what Kyverno's command line says in its own test suites, suite by suite.

As its command line does it: objects without a namespace are in `default`, every number is a double, unmet match conditions and
objects that a policy does not match are `skip`, a VAP's bindings limit it in place of its own constraints, and a resource name
means every object of that name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from scanner.api import Auditor, Circumstances, Ruling
from scanner.cel import EvaluationError, Value
from scanner.cel.kyverno import Alone, Collection
from scanner.cluster.definitions import builtin_kinds
from scanner.cluster.schemas import KnownSchemas, builtin_schemas
from scanner.model.outcome import Errored, Judgement, Passed, Skipped, SkipReason, Violated, WouldChange
from scanner.model.resource import Kind, UserInfo
from scanner.policies.kyverno.manner import CLI
from scanner.policies.kyverno.result import result_of
from scanner.policies.kyverno.spec import is_policy, read_policy
from tests.conformance.cases import Result
from tests.conformance.policies import kinds_of

_NOW = datetime(2026, 8, 21, tzinfo=UTC)
_EMPTIED = ("data", "stringData")
_UNRECORDED = {"http", "json", "globalcontext"}
_OTHER_KINDS = ("MutatingPolicy", "ImageValidatingPolicy", "ClusterPolicy")
_EVERYTHING = {"resourceRules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}]}


def compare_kyverno(data: Any) -> Iterator[Result]:
    """Every pair of an expected entry and a resource name."""
    for suite in data:
        loaded = _Suite(suite)
        for entry in suite["results"]:
            for name in entry.get("resources") or [""]:
                yield _compared(suite, entry, name, loaded)


def _compared(suite: Any, entry: Any, name: str, loaded: _Suite) -> Result:
    subject = [suite["name"], entry["policy"], name]
    why = _out_of_scope(suite, entry)
    if why:
        return Result(right=False, same_text=False, expected=entry["result"], actual=why, subject=subject, skipped=True)
    found = loaded.results(entry, name)
    right = bool(found) and all(_matches(entry["result"], status) for status, _ in found)
    return Result(right, right, entry["result"], found, subject)


def _matches(expected: str, actual: str) -> bool:
    return expected == actual or (expected == "skip" and actual == "excluded")


def _out_of_scope(suite: Any, entry: Any) -> str:
    if _UNRECORDED & set(suite["tags"]):
        return f"the mock answers of {', '.join(suite['tags'])} are not recorded"
    kinds = {policy["kind"] for policy in suite["policies"] if policy["metadata"]["name"] == _policy_name(entry)}
    if kinds and kinds <= set(_OTHER_KINDS):
        return f"{', '.join(kinds)} is another kind of policy"
    modes = {policy["spec"].get("evaluation", {}).get("mode", "Kubernetes") for policy in suite["policies"]}
    if not modes <= {"Kubernetes"}:
        return f"it judges payloads of {', '.join(sorted(modes))}"
    return "a DELETE is not simulated" if entry.get("operation") == "DELETE" else ""


def _policy_name(entry: Any) -> str:
    return str(entry["policy"].rpartition("/")[2])


@dataclass(frozen=True, slots=True)
class _Given(Alone):
    """What a suite's context file serves: objects, and what registries say about images."""

    objects: tuple[Any, ...]
    images: Mapping[str, Any]

    def get(self, collection: Collection, namespace: str, name: str, /) -> Value:
        """The object of that name, or None."""
        return next((one for one in self._of(collection, namespace) if one["metadata"]["name"] == name), None)

    def list(self, collection: Collection, namespace: str, labels: Mapping[str, str], /) -> Value:
        """All of them, whatever their labels are."""
        del labels
        items = list(self._of(collection, namespace))
        if not items and not any(kind.plural == collection.plural for kind in builtin_kinds()):
            raise EvaluationError(f"failed to list resource: {collection.plural}")
        return {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items}

    def _of(self, collection: Collection, namespace: str) -> Iterator[Any]:
        kinds = {(kind.api_version, kind.kind): kind for kind in builtin_kinds()}
        for document in self.objects:
            kind = kinds.get((document["apiVersion"], document["kind"]))
            known = kind and Collection(kind.group, kind.version, kind.plural)
            if known == collection and namespace in ("", document["metadata"].get("namespace", "")):
                yield document

    def image(self, reference: str, /) -> Value:
        """What the context file says about an image."""
        if reference not in self.images:
            raise EvaluationError(f"failed to get image data: {reference}")
        return self.images[reference]


class _Suite:
    """One suite, loaded as the command line loads it."""

    def __init__(self, suite: Any) -> None:
        kyverno = [read_policy(document) for document in suite["policies"] if is_policy(document)]
        self._kyverno = {policy.full_name: policy for policy in kyverno}
        self._resources = [_loaded(document) for document in suite["resources"]]
        kinds = (*builtin_kinds(), *_more_kinds(self._resources))
        bindings = [document for document in suite["policies"] if document["kind"].endswith("Binding")]
        policies = [document for document in suite["policies"] if document["kind"] not in _OTHER_KINDS]
        policies = [document for document in policies if document not in bindings]
        named = {binding["spec"]["policyName"] for binding in bindings}
        self._auditor = Auditor(
            policies=[
                _opened(document) if document["metadata"]["name"] in named else document for document in policies
            ],
            bindings=[
                *bindings,
                *(_bound(document) for document in policies if document["metadata"]["name"] not in named),
            ],
            params=suite.get("paramResources", ()),
            namespaces=list(_namespaces(suite.get("variables", ()))),
            kinds=kinds,
            user=_user(suite.get("userinfo", ())),
            schemas=KnownSchemas(builtin_schemas()),
            exceptions=[document for document in suite["exceptions"] if document["apiVersion"].startswith("policies.")],
            circumstances=Circumstances(_NOW, CLI, _given(suite)),
        )

    def results(self, entry: Any, name: str) -> list[tuple[str, str]]:
        """Status and message for every object of a name."""
        namespace, _, bare = name.rpartition("/")
        named = [one for one in self._resources if not bare or one["metadata"]["name"] == bare]
        chosen = [one for one in named if not namespace or one["metadata"].get("namespace") == namespace]
        return [result for document in chosen or self._resources for result in self._of(entry, document)]

    def _of(self, entry: Any, document: Any) -> list[tuple[str, str]]:
        rulings = [
            ruling
            for ruling in self._auditor.evaluate(document, operation="CREATE")
            if ruling.invocation.policy.name.rpartition("/")[2] == _policy_name(entry)
        ]
        return [self._status(ruling) for ruling in rulings] or [("excluded", "")]

    def _status(self, ruling: Ruling) -> tuple[str, str]:
        policy = self._kyverno.get(ruling.invocation.policy.name)
        if policy is not None and ruling.invocation.policy.language == policy.kind:
            result = result_of(policy, ruling.invocation.policy, ruling.judgements)
            return result.status, result.message
        for judgement in ruling.judgements:
            status = _admission_status(judgement)
            if status[0] != "pass":
                return status
        return "pass", ""


def _admission_status(judgement: Judgement) -> tuple[str, str]:
    match judgement.outcome:
        case Passed() | WouldChange():
            return "pass", ""
        case Violated(message=message):
            return "fail", message
        case Errored(message=message):
            return "error", message
        case Skipped(reason=SkipReason.CONDITION_FALSE, detail=detail):
            return "skip", detail
        case Skipped(detail=detail):
            return "error", detail


def _loaded(document: Any) -> Any:
    """An object as the command line loads it: in a namespace, and without null maps."""
    metadata = dict(document["metadata"])
    if _is_namespaced(document):
        metadata.setdefault("namespace", "default")
    for name in ("annotations", "labels"):
        if name in metadata and metadata[name] is None:
            metadata[name] = {}
    emptied: dict[str, Any] = {name: {} for name in _EMPTIED if name in document and document[name] is None}
    return {**document, "metadata": metadata, **emptied}


def _is_namespaced(document: Any) -> bool:
    kinds = {(kind.api_version, kind.kind): kind for kind in builtin_kinds()}
    kind = kinds.get((document["apiVersion"], document["kind"]))
    return kind is None or kind.namespaced


def _more_kinds(documents: list[Any]) -> Iterator[Kind]:
    known = {kind.kind for kind in builtin_kinds()}
    for kind in kinds_of(documents):
        plural = next((old.plural for old in builtin_kinds() if old.kind == kind.kind), kind.plural)
        yield kind if kind.kind not in known else Kind(kind.group, kind.version, kind.kind, plural, kind.namespaced)


def _opened(document: Any) -> Any:
    return {**document, "spec": {**document["spec"], "matchConstraints": _EVERYTHING}}


def _bound(document: Any) -> Any:
    kind = document["kind"]
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}Binding",
        "metadata": {"name": document["metadata"]["name"]},
        "spec": {"policyName": document["metadata"]["name"], "validationActions": ["Deny"]},
    }


def _namespaces(variables: Any) -> Iterator[Any]:
    seen = set()
    for values in variables:
        for namespace in values.get("namespaces", ()):
            seen.add(namespace["metadata"]["name"])
            yield namespace
        for selector in values.get("namespaceSelector", ()):
            if selector["name"] not in seen:
                yield {"apiVersion": "v1", "kind": "Namespace", "metadata": dict(selector)}


def _user(documents: Any) -> UserInfo:
    for document in documents:
        user = document["userInfo"]
        return UserInfo(user.get("username", ""), user.get("uid", ""), tuple(user.get("groups", ())))
    return UserInfo()


def _given(suite: Any) -> _Given:
    contexts = [document["spec"] for document in suite.get("context", ())]
    objects = [one for context in contexts for one in context.get("resources", ())]
    images = {one["image"]: one for context in contexts for one in context.get("images", ())}
    return _Given((*objects, *suite.get("clusterResources", ())), images)
