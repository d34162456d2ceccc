"""Pod Security: the answers of a real server and of the module's releases, compared with ours."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from scanner.api import Auditor, UserInfo
from scanner.cluster.definitions import builtin_kinds
from scanner.documents.composer import compose
from scanner.documents.pod_security import read_configuration
from scanner.model.policy import Action
from scanner.model.release import minor_of
from scanner.model.resource import Kind
from scanner.policies.pod_security.answers import write_answers
from scanner.policies.pod_security.configuration import DEFAULT, Configuration
from scanner.policies.pod_security.labels import (
    Demand,
    LabelFault,
    Mode,
    NamespacePolicy,
    is_stricter,
    read_labels,
    read_version,
)
from scanner.policies.pod_security.language import PodSecurity
from scanner.policies.pod_security.pods import find_template, is_significant, read_pod
from scanner.policies.pod_security.standards import Level, Server, apply_checks, list_judges
from tests.conformance.cases import Result

_KINDS = {
    "Pod": ("", "v1", "pods"),
    "PodTemplate": ("", "v1", "podtemplates"),
    "ReplicationController": ("", "v1", "replicationcontrollers"),
    "ReplicaSet": ("apps", "v1", "replicasets"),
    "Deployment": ("apps", "v1", "deployments"),
    "StatefulSet": ("apps", "v1", "statefulsets"),
    "DaemonSet": ("apps", "v1", "daemonsets"),
    "Job": ("batch", "v1", "jobs"),
    "CronJob": ("batch", "v1", "cronjobs"),
}
NOT_JUDGED = {"exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"}
"""The subresources of pods whose requests are not judged."""
_NAME = re.compile(r'\Apods "[^"]*" is forbidden: ')
Json = dict[str, Any]


class _Servers:
    """The two servers of a recording: their configurations, and the labels of their namespaces."""

    def __init__(self, data: Json) -> None:
        minor = minor_of(data["server"])
        assert minor
        self.server = Server(minor)
        self._version = data["server"]
        self._configurations = {"default": DEFAULT, "configured": _configuration(data.get("configuration"))}
        self._languages = {
            "default": PodSecurity(),
            "configured": PodSecurity(self._configurations["configured"]),
        }
        self._namespaces = data["namespaces"]
        self._auditors: dict[tuple[str, str, str], Auditor] = {}

    def configuration(self, case: Json) -> Configuration:
        return self._configurations[case["server"]]

    def answer(self, case: Json, body: Json) -> dict[Action, str]:
        """What we answer to the creation of an object in the namespace of a case."""
        name = case["namespace"]
        place = case["server"], name, case.get("user", "admin")
        if place not in self._auditors:
            labels = {"kubernetes.io/metadata.name": name, **self._namespaces[case["server"]][name]}
            metadata = {"name": name, "labels": labels}
            self._auditors[place] = Auditor(
                policies=(),
                bindings=(),
                namespaces=[{"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}],
                kinds=builtin_kinds(),
                user=UserInfo(place[2]),
                kubernetes_version=self._version,
                pod_security=self._languages[case["server"]],
            )
        there = {**body, "metadata": {**body["metadata"], "namespace": name}}
        return write_answers(self._auditors[place].evaluate(there))


def _configuration(document: Json | None) -> Configuration:
    if not document:
        return DEFAULT
    (root,) = compose(json.dumps(document).encode(), "configuration")
    return read_configuration(root)


def kind_of(body: Json) -> Kind:
    """The kind of a recorded object."""
    group, version, plural = _KINDS[body["kind"]]
    return Kind(group, version, body["kind"], plural, namespaced=True)


def compare_pod_security(data: Json) -> Iterator[Result]:
    """Yield the result of every case."""
    servers = _Servers(data)
    for case in data["cases"]:
        match case["kind"]:
            case "release":
                yield from _compare_releases(case, data["objects"])
            case "namespace":
                yield _compare_namespace(servers, case, data["objects"])
            case "update":
                yield _compare_update(servers, case, data["objects"])
            case "fixture":
                yield _compare_fixture(servers, case, data["objects"])
            case _:
                yield from _compare_creation(servers, case, data["objects"])


def _result(case: Json, expected: object, actual: object, classes: tuple[object, object]) -> Result:
    return Result(classes[0] == classes[1], expected == actual, expected, actual, case)


def _compare_releases(case: Json, objects: list[Json]) -> Iterator[Result]:
    body = objects[case["object"]]
    found = find_template(kind_of(body), body)
    version = read_version(case["version"])
    assert found
    assert version
    pod = read_pod(*found)
    for recorded in case["results"]:
        for variant in recorded["releases"]:
            failures = apply_checks(list_judges(Level(case["level"]), version, _server(variant)), pod).values()
            actual = ", ".join(each.text for each in failures), ", ".join(each.reason for each in failures)
            expected = recorded["detail"], recorded["reasons"]
            yield _result({**case, "variant": variant}, expected, actual, (expected[1], actual[1]))


def _server(variant: str) -> Server:
    release, _, rest = variant.partition(" ")
    minor = minor_of(release)
    assert minor
    emulated = minor_of(rest.removeprefix("emulating ")) if rest.startswith("emulating ") else None
    return Server(minor, emulated, relaxes_user_namespaces=rest.endswith("=true"))


_Answer = tuple[str, list[str], str]
"""The refusal, the warnings, and the violation in the audit log."""


def _recorded(case: Json) -> _Answer:
    violation = case.get("auditAnnotations", {}).get("audit-violations", "")
    return _NAME.sub("", case.get("message", "")), case["warnings"], violation


def _given(texts: Mapping[Action, str]) -> _Answer:
    return texts.get("Deny", ""), [texts["Warn"]] if "Warn" in texts else [], texts.get("Audit", "")


def _compare_creation(servers: _Servers, case: Json, objects: list[Json]) -> Iterator[Result]:
    body = objects[case["object"]]
    texts = servers.answer(case, body)
    yield _compare_answer(case, case, _given(texts))
    if case.get("pod", {}).get("code") in (201, 403):
        refusal = texts.get("RefusePods", "")
        yield _compare_answer(case, {**case["pod"], "warnings": [], "auditAnnotations": {}}, (refusal, [], ""))


def _compare_answer(case: Json, recorded: Json, actual: _Answer) -> Result:
    """An answer with what the audit log has, where that is recorded."""
    expected = _recorded(recorded)
    if "auditAnnotations" not in recorded:
        actual = (*actual[:2], "")
    return _result(case, expected, actual, (tuple(map(bool, expected)), tuple(map(bool, actual))))


def _compare_fixture(servers: _Servers, case: Json, objects: list[Json]) -> Result:
    """A pod of the module's test data, which passes or fails."""
    expected = case["expected"] == "pass"
    actual = "Deny" not in servers.answer(case, objects[case["object"]])
    return _result(case, expected, actual, (expected, actual))


def _compare_update(servers: _Servers, case: Json, objects: list[Json]) -> Result:
    """An update: that of a pod is judged as its creation if it is significant, a template at every write."""
    old, body = objects[case["old"]], objects[case["object"]] if "object" in case else None
    is_pod = old["kind"] == "Pod"
    judged = body is not None and case["subresource"] not in NOT_JUDGED and (is_pod or not case["subresource"])
    if body is None or not judged or (is_pod and not is_significant(body, old)):
        return _compare_answer(case, case, ("", [], ""))
    return _compare_answer(case, case, _given(servers.answer(case, body)))


def _compare_namespace(servers: _Servers, case: Json, objects: list[Json]) -> Result:
    expected = case["code"] == 422, case.get("message", ""), case["warnings"]
    pods = [objects[index] for index in case.get("pods", ())]
    actual = _answer_namespace(servers, case, pods)
    return _result(case, expected, actual, (expected[0], actual[0]))


def _answer_namespace(servers: _Servers, case: Json, pods: list[Json]) -> tuple[bool, str, list[str]]:
    configuration = servers.configuration(case)
    new = read_labels(case["newLabels"], configuration.defaults)
    old = read_labels(case["oldLabels"], configuration.defaults) if case["operation"] == "UPDATE" else None
    if new.faults and (old is None or new.faults != old.faults):
        return True, f'Namespace "{case["name"]}" is invalid: {_write_faults(new.faults)}', []
    if old is not None and not _is_checked(old.demands[Mode.ENFORCE], new.demands[Mode.ENFORCE]):
        return False, "", []
    if case["name"] in configuration.namespaces:
        return False, "", _warn_exempt(case, new, configuration)
    if old is None:
        return False, "", []
    return False, "", _list_failing(servers, configuration, case["name"], new.demands[Mode.ENFORCE], pods)


def _is_checked(old: Demand, new: Demand) -> bool:
    if old == new or new.level is Level.PRIVILEGED:
        return False
    return not (old.version == new.version and not is_stricter(new.level, old.level))


def _warn_exempt(case: Json, policy: NamespacePolicy, configuration: Configuration) -> list[str]:
    if policy.is_off_in(*Mode) or all(_equal(policy.demands[mode], configuration.defaults[mode]) for mode in Mode):
        return []
    parts = [
        f"{mode}={policy.demands[mode]}"
        for mode in Mode
        if policy.demands[mode].level is not Level.PRIVILEGED
        and (mode.level_key in case["newLabels"] or mode.version_key in case["newLabels"])
    ]
    text = (
        f'namespace "{case["name"]}" is exempt from Pod Security, and the policy ({", ".join(parts)}) will be ignored'
    )
    return [text]


def _equal(one: Demand, other: Demand) -> bool:
    return one == other or (one.level is Level.PRIVILEGED and other.level is Level.PRIVILEGED)


def _list_failing(
    servers: _Servers, configuration: Configuration, name: str, demand: Demand, pods: list[Json]
) -> list[str]:
    by_reasons: dict[str, list[str]] = defaultdict(list)
    for body in pods:
        found = find_template(kind_of(body), body)
        assert found
        pod = read_pod(*found)
        if configuration.find_runtime_exemption(pod.spec):
            continue
        reasons = ", ".join(each.reason for each in apply_checks(list_judges(*demand, servers.server), pod).values())
        if reasons:
            by_reasons[reasons].append(body["metadata"]["name"])
    if not by_reasons:
        return []
    lines = sorted(f"{_write_names(names)}: {reasons}" for reasons, names in by_reasons.items())
    return [f'existing pods in namespace "{name}" violate the new PodSecurity enforce level "{demand}"', *lines]


def _write_names(names: list[str]) -> str:
    others = len(names) - 1
    return f"{min(names)} (and {others} other pod{'s' * (others != 1)})" if others else names[0]


def _write_faults(faults: Iterable[LabelFault]) -> str:
    """Errors as the server joins them: one alone, several in brackets."""
    texts = list(map(str, faults))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
