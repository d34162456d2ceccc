"""The clusters of the recorded suites: their documents, and what was recorded about each policy and object."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from scanner.cluster.definitions import builtin_kinds
from scanner.cluster.yaml import load as parse_yaml
from scanner.model.resource import Kind
from scanner.policies.kyverno.family import KyvernoOptions
from scanner.policies.language import with_options
from scanner.suite.checking import bound, placed, with_unknown
from tests.conformance.cases import RECORDED
from tests.conformance.kyverno import explain_exclusion
from tests.conformance.policies import policy_of, validation_of
from tests.conformance.replays import Answer, Json, Key, Suite, name_of
from tests.integration.definitions import FREE, definition

_RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
_FREE_FIELDS = dict.fromkeys(("spec", "status", "data"), FREE)


def as_written(document: Json) -> Json:
    """A document without what an API server adds to its metadata."""
    written = ("name", "namespace", "labels", "annotations")
    return {**document, "metadata": {key: document["metadata"][key] for key in written if key in document["metadata"]}}


def define(documents: Iterable[Json]) -> Iterator[Json]:
    """The definitions of the kinds that no server has built in."""
    known = {(kind.group, kind.kind) for kind in builtin_kinds()}
    kinds: dict[tuple[str, str], list[Kind]] = {}
    for kind in with_unknown(builtin_kinds(), documents):
        if (kind.group, kind.kind) not in known:
            kinds.setdefault((kind.group, kind.kind), []).append(kind)
    for (group, name), versions in kinds.items():
        scope = "Namespaced" if versions[0].namespaced else "Cluster"
        names = [kind.version for kind in versions]
        yield definition(group, names, name, versions[0].plural, scope, _FREE_FIELDS)


def of_matching(data: Any) -> Iterator[Suite]:
    """Random policies, with the stored objects as the server had them: each object is updated without a change."""
    stored, probes = [*data["namespaces"], *data["params"], *data["update"]], data["update"]
    rules = [as_written(document) for case in data["cases"] for document in (case["policy"], case["binding"])]
    recorded: dict[Key, Answer] = {
        (case["policy"]["metadata"]["name"], name_of(probe)): Counter() for case in data["cases"] for probe in probes
    }
    for case in data["cases"]:
        for result in case["results"]:
            if result["operation"] == "UPDATE":
                failures = Counter((each["expressionIndex"], each["message"]) for each in result.get("failures", ()))
                recorded[case["policy"]["metadata"]["name"], name_of(probes[result["probe"]])] = failures
    yield Suite("matching", (*define(stored), *rules, *stored), recorded, operation="update")


def of_expressions(data: Any) -> Iterator[Suite]:
    """A policy for each expression that the server stored, about the kinds of the objects."""
    param = data["params"]["metadata"]
    reference = {"name": param["name"], "namespace": param["namespace"], "parameterNotFoundAction": "Deny"}
    objects = [data["namespace"], data["params"], *data["objects"].values()]
    defined = [*define(objects)]
    rules, recorded = list[Json](), dict[Key, Answer]()
    for number, case in enumerate(each for each in data["cases"] if "rejected" not in each):
        name, validation = f"case-{number}", validation_of(case)
        policy = policy_of(validation)
        match = {"resourceRules": [*_match_kinds(data["objects"].values(), defined)]}
        spec = {"policyName": name, "paramRef": reference, "validationActions": ["Deny"]}
        rules += [
            {**policy, "metadata": {"name": name}, "spec": {**policy["spec"], "matchConstraints": match}},
            {**policy, "kind": f"{policy['kind']}Binding", "metadata": {"name": name}, "spec": spec},
        ]
        for subject, answer in case["results"].items():
            recorded[name, name_of(data["objects"][subject])] = _failures_of(answer, case["kind"], validation)
    yield Suite("expressions", (*defined, *rules, *objects), recorded)


def _match_kinds(objects: Iterable[Json], defined: Iterable[Json]) -> Iterator[Json]:
    """A rule for each kind of the objects: rules for all kinds would only take time."""
    plurals = {(kind.api_version, kind.kind): kind.plural for kind in builtin_kinds()}
    for document in defined:
        names, group = document["spec"]["names"], document["spec"]["group"]
        plurals |= {
            (f"{group}/{each['name']}", names["kind"]): names["plural"] for each in document["spec"]["versions"]
        }
    for api_version, kind in {(each["apiVersion"], each["kind"]): None for each in objects}:
        group, _, version = api_version.rpartition("/")
        resource = plurals[api_version, kind]
        yield {"operations": ["CREATE"], "apiGroups": [group], "apiVersions": [version], "resources": [resource]}


def _failures_of(answer: Json, kind: str, validation: dict[str, str]) -> Counter[tuple[int, str]]:
    """The failure that the recorded value or error of an expression is; none for a pass."""
    if "error" in answer:
        return Counter([(0, answer["error"])])
    if kind == "value":
        return Counter([(0, f"~VAL~{answer['value']}")])
    return Counter() if answer["value"] else Counter([(0, f"failed expression: {validation['expression']}")])


def of_policies(data: Any) -> Iterator[Suite]:
    """Policies of users, with the objects of all cases."""
    objects = [case["object"] for case in data["cases"]]
    defined = data.get("definitions") or [*define([*objects, *data["params"]])]
    policies = [policy["metadata"]["name"] for policy in data["policies"]]
    recorded: dict[Key, Answer] = {}
    for case in data["cases"]:
        for policy in policies:
            failures = (each for each in case["failures"] if each["policy"] == policy)
            answer = frozenset((each["expressionIndex"], each["message"]) for each in failures)
            recorded[policy, name_of(case["object"])] = answer
    rules = map(as_written, (*data["policies"], *data["bindings"]))
    yield Suite("policies", (*defined, *rules, *data["params"], *data["namespaces"], *objects), recorded, "create")


def of_mutations(data: Any) -> Iterator[Suite]:
    """Mutating policies: whether they change an object."""
    params = data["params"] if isinstance(data["params"], list) else [data["params"]]
    cases = [case for case in data["cases"] if "binding" in case and "rejected" not in case]
    rules = [as_written(document) for case in cases for document in (case["policy"], case["binding"])]
    recorded: dict[Key, Answer] = {}
    for case in cases:
        for subject, result in case["results"].items():
            changed = "error" if "denied" in result else "changed" if result["changed"] else "unchanged"
            recorded[case["policy"]["metadata"]["name"], name_of(data["objects"][subject])] = changed
    sprocket = json.loads((RECORDED / "sprocket.json").read_text(encoding="utf-8"))
    yield Suite("mutations", (sprocket, *rules, data["namespace"], *params, *data["objects"].values()), recorded)


def of_pod_security(data: Any) -> Iterator[Suite]:
    """Pods and workloads in a namespace with the level restricted."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "levels", "labels": _RESTRICTED}}
    objects = [
        {**each, "metadata": {**each["metadata"], "name": f"case-{number}", "namespace": "levels"}}
        for number, each in enumerate(data["objects"])
    ]
    yield Suite("pod-security", (namespace, *objects))


def of_kyverno(data: Any) -> Iterator[Suite]:
    """The suites of Kyverno's command line, each as a cluster."""
    languages = with_options(KyvernoOptions(compat="cli", parse=parse_yaml), None)
    known = {(kind.api_version, kind.kind): kind for kind in builtin_kinds()}
    for case in data:
        written = (*case["resources"], *case.get("paramResources", ()))
        objects = [dict[str, Any](placed(each, known, unknown=True)) for each in written]
        documents = (*bound(case["policies"]), *case["exceptions"], *objects)
        recorded: dict[Key, Answer] = {}
        for result in case["results"]:
            named = [each for each in objects if each["metadata"]["name"] in result.get("resources", ())]
            if not explain_exclusion(case, result):
                recorded |= {(result["policy"].rpartition("/")[2], name_of(each)): result["result"] for each in named}
        yield Suite(case["name"], (*define(objects), *documents), recorded, languages=languages)


SUITES: dict[str, Callable[[Any], Iterator[Suite]]] = {
    "matching": of_matching,
    "expressions": of_expressions,
    "policies": of_policies,
    "mutations": of_mutations,
    "pod-security": of_pod_security,
    "kyverno": of_kyverno,
}
