"""Stories of broken clusters on a real server with the real controllers: what `assay preview` prints before a change happens after it.

Each story has a namespace with a workload that the change breaks, and one that it leaves alone. All are played at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from scanner.model.json import Json, JsonObject, as_list, as_object, as_text, dig
from tests.command import assay_here
from tests.integration.apiserver import ApiServer
from tests.integration.client import Answer
from tests.integration.faults import wait_until
from tests.integration.manifests import apply, wait_until_enforced
from tests.integration.previewed import running_cluster
from tests.integration.rule_changes import RuleChange, binding, config_map, namespace, policy

BARE: Final[JsonObject] = {"name": "c", "image": "example.com/app:1"}
LIMITED: Final[JsonObject] = {**BARE, "resources": {"limits": {"cpu": "1"}}}
LIMITS: Final = "object.spec.containers.all(c, has(c.resources.limits))"
GOLD: Final = (
    "object.spec.volumes.all(v, !has(v.persistentVolumeClaim) || v.persistentVolumeClaim.claimName.startsWith('gold-'))"
)
ENFORCE: Final = "pod-security.kubernetes.io/enforce"
ERRS: Final = "object.spec.containers[0].resources.limits.cpu != '7'"
HEALTHY: Final = "healthy"
SECONDS: Final = 240.0
"""As long as the controllers take at most, also beside many other tests."""
OPERATED: Final = "builds"
"""The workload whose pods an operator creates, and no controller."""
CLAIM: Final[JsonObject] = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
RUNNERS: Final[JsonObject] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "runners.ci.example.com"},
    "spec": {
        "group": "ci.example.com",
        "scope": "Namespaced",
        "names": {"kind": "Runner", "plural": "runners", "singular": "runner", "listKind": "RunnerList"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}


@dataclass(frozen=True, slots=True)
class Story:
    """A change of rules in a namespace of its own, and the workloads there."""

    change: RuleChange
    workloads: Sequence[JsonObject]


def workload(kind: str, name: str, within: str, pods: int, container: JsonObject, **spec: Json) -> JsonObject:
    """A workload with so many pods; with none it sleeps. `pod` are more fields of its pods."""
    of_pod = {"containers": [container], **as_object(spec.pop("pod", {}))}
    labels: JsonObject = {"app": name, **as_object(spec.pop("labels", {}))}
    body: dict[str, Json] = {"template": {"metadata": {"labels": labels}, "spec": of_pod}, **spec}
    if kind != "Job":
        body |= {"selector": {"matchLabels": {"app": name}}, "replicas": pods}
    metadata: JsonObject = {"name": name, "namespace": within}
    return {"apiVersion": "batch/v1" if kind == "Job" else "apps/v1", "kind": kind, "metadata": metadata, "spec": body}


def flip(name: str, expression: str) -> RuleChange:
    """The binding of a rule about pods changes from Audit to Deny."""
    rule = policy(name, name, expression)
    flags = ("--action", f"{name}=Deny")
    return RuleChange("Audit to Deny", name, [rule, binding(name, "Audit")], flags, [binding(name, "Deny")])


def tell_outage(name: str) -> Story:
    """Payments run without limits, and reports, which sleep, would too."""
    sleeping, api = workload("Deployment", "a-report", name, 0, BARE), workload("Deployment", "payments", name, 3, BARE)
    return Story(flip(name, LIMITS), [sleeping, api])


def tell_claims(name: str) -> Story:
    """A StatefulSet has claims that a rule forbids."""
    fields: dict[str, Json] = {"volumeClaimTemplates": [CLAIM], "podManagementPolicy": "Parallel"}
    return Story(
        flip(name, GOLD), [workload("StatefulSet", "ledger", name, 3, LIMITED, serviceName="ledger", **fields)]
    )


def tell_scope(name: str) -> Story:
    """A rule denies in the namespaces of production alone, and this one becomes one."""
    rule: Any = policy(name, name, LIMITS)
    rule["spec"]["matchConstraints"]["namespaceSelector"]["matchLabels"]["tier"] = "prod"
    flags, after = ("--namespace-label", f"{name}=tier=prod"), [namespace(name, tier="prod")]
    change = RuleChange("a label", name, [rule, binding(name, "Deny")], flags, after)
    return Story(change, [workload("Deployment", "payments", name, 2, BARE)])


def tell_param(name: str) -> Story:
    """The largest size is lowered."""
    kind: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap"}
    rule = policy(name, name, "int(object.metadata.labels.size) <= int(params.data.max)", paramKind=kind)
    ref: JsonObject = {"name": "sizes", "namespace": name, "parameterNotFoundAction": "Deny"}
    after, file = config_map(name, "2"), f"{name}.json"
    before = [config_map(name, "9"), rule, binding(name, "Deny", paramRef=ref)]
    change = RuleChange("a param", name, before, ("--param", file), [after], files={file: [after]})
    return Story(change, [workload("Deployment", "payments", name, 2, LIMITED, labels={"size": "5"})])


def tell_errors(name: str) -> Story:
    """An expression errs on pods without limits, which was ignored."""
    before, after = (policy(name, name, ERRS, failurePolicy=each) for each in ("Ignore", "Fail"))
    file = f"{name}.json"
    change = RuleChange(
        "Ignore to Fail", name, [before, binding(name, "Deny")], ("-f", file), [after], files={file: [after]}
    )
    return Story(change, [workload("Deployment", "payments", name, 2, BARE)])


def tell_runners(name: str) -> Story:
    """Runners of pipelines have no limits: one of an operator that runs, agents that sleep, and a Job that waits."""
    runner: JsonObject = {
        "apiVersion": "ci.example.com/v1",
        "kind": "Runner",
        "metadata": {"name": OPERATED, "namespace": name},
    }
    repair = workload("Job", "repair", name, 0, BARE, suspend=True, pod={"restartPolicy": "Never"})
    return Story(flip(name, LIMITS), [runner, workload("Deployment", "agents", name, 0, BARE), repair])


def tell_level(name: str) -> Story:
    """Pods use the network of their node, and the level of Pod Security is raised above that."""
    flags, after = ("--namespace-label", f"{name}={ENFORCE}=baseline"), [namespace(name, **{ENFORCE: "baseline"})]
    pod: JsonObject = {"hostNetwork": True}
    change = RuleChange("a level", name, [], flags, after)
    return Story(change, [workload("Deployment", "payments", name, 2, LIMITED, pod=pod)])


STORIES: Final[Mapping[str, Story]] = {
    name: tell(f"story-{name}")
    for name, tell in {
        "outage": tell_outage,
        "claims": tell_claims,
        "scope": tell_scope,
        "param": tell_param,
        "errors": tell_errors,
        "runners": tell_runners,
        "level": tell_level,
    }.items()
}


@dataclass(frozen=True, slots=True)
class Told:
    """What the preview of a story printed: the workloads, in one line, the end, and the messages about each workload."""

    text: str
    verdict: str
    messages: dict[str, list[str]]

    @property
    def first(self) -> str:
        """The workload that is named first, with its scale."""
        named = re.search(r"\b[A-Z]\w+ story-[\w-]+/[\w-]+ [\w ]+ (?:run|running)\b", self.text)
        return named.group() if named else ""


@dataclass(frozen=True, slots=True)
class Played:
    """What the preview of a story printed, and what happened.

    `living` are the pods of the broken workloads: before the change, after it, after one of them is deleted, and after all are.
    `refused` are the messages of the controllers that could not create a pod, by workload.
    """

    told: Told
    living: list[int]
    refused: dict[str, list[str]]

    @property
    def is_explained(self) -> bool:
        """Return whether the controllers of the same workloads failed, each time with a message of the preview."""
        messages = self.told.messages
        return messages.keys() - {OPERATED} == self.refused.keys() and all(
            any(message in text for message in messages[name]) for name, each in self.refused.items() for text in each
        )


class Stage:
    """The stories on one server."""

    def __init__(self, server: ApiServer, home: Path) -> None:
        self.server, self._home = server, home

    def play(self) -> dict[str, Played]:
        """Run the workloads, preview every change, make it, and delete pods: first one of each story, then all."""
        self._store()
        told = {name: self._preview(story.change) for name, story in STORIES.items()}
        counts = [self._count_broken()]
        for story in STORIES.values():
            apply(self.server, story.change.after)
        wait_until_enforced(self.server)
        counts.append(self._count_broken())
        for name in STORIES:
            self._delete_pods([pod for pod in self._list_pods(name) if _read_app(pod) != HEALTHY][:1])
        self._wake()
        _wait(lambda: all(self._list_refused(name) for name in STORIES))
        counts.append(self._count_broken())
        for name in STORIES:
            self._delete_pods(self._list_pods(name))
        # When the healthy pods are back, the controllers have had their turn.
        _wait(lambda: all(HEALTHY in map(_read_app, self._list_pods(name)) for name in STORIES))
        _wait(
            lambda: all(
                each.messages.keys() - {OPERATED} <= self._list_refused(name).keys() for name, each in told.items()
            )
        )
        counts.append(self._count_broken())
        return {
            name: Played(each, [count[name] for count in counts], self._list_refused(name))
            for name, each in told.items()
        }

    def _store(self) -> None:
        apply(self.server, [RUNNERS])
        for name, story in STORIES.items():
            space = story.change.namespace
            healthy = workload("Deployment", HEALTHY, space, 1, LIMITED, labels={"size": "1"})
            apply(self.server, [namespace(space), *story.change.before, *story.workloads, healthy])
            wanted = 1 + sum(int(as_text(str(dig(each, "spec", "replicas") or 0))) for each in story.workloads)
            _wait(partial(self._has_pods, name, wanted))
        assert 201 == self.create_runner().status
        wait_until_enforced(self.server)
        for name in STORIES:
            for pod in self._list_pods(name):
                path = f"/api/v1/namespaces/story-{name}/pods/{dig(pod, 'metadata', 'name')}/status"
                self.patch(path, {"status": {"phase": "Running"}})

    def _has_pods(self, name: str, number: int) -> bool:
        return len(self._list_pods(name)) == number

    def create_runner(self) -> Answer:
        """Create the pod of the runner, as the operator would."""
        path = f"/apis/ci.example.com/v1/namespaces/story-runners/runners/{OPERATED}"
        runner = self.server.request("GET", path).body
        owner: JsonObject = {
            "apiVersion": "ci.example.com/v1",
            "kind": "Runner",
            "name": OPERATED,
            "uid": as_text(dig(runner, "metadata", "uid")),
            "controller": True,
        }
        metadata: JsonObject = {"name": f"{OPERATED}-0", "labels": {"app": OPERATED}, "ownerReferences": [owner]}
        pod: JsonObject = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [BARE]}}
        return self.server.request("POST", "/api/v1/namespaces/story-runners/pods", pod)

    def _preview(self, change: RuleChange) -> Told:
        for name, documents in change.files.items():
            (self._home / name).write_text("\n---\n".join(map(json.dumps, documents)))
        flags: tuple[str | Path, ...] = ("preview", "-q", "--kubeconfig", self.server.kubeconfig, *change.flags, "-o")
        text, rows = (assay_here(*flags, form, home=self._home) for form in ("table", "json"))
        assert (0, 0) == (text.code, rows.code), text.stderr
        report: Any = rows.report
        messages = {
            each["workload"]["name"]: [decision["message"] for risk in each["risks"] for decision in risk["decisions"]]
            for each in report["workloads"]
        }
        _, workloads, *_, end, _ = (" ".join(part.split()) for part in text.stdout.decode().split("\n\n"))
        return Told(workloads, end, messages)

    def _count_broken(self) -> dict[str, int]:
        return {name: sum(_read_app(pod) != HEALTHY for pod in self._list_pods(name)) for name in STORIES}

    def _delete_pods(self, pods: Iterable[Json]) -> None:
        for pod in pods:
            path = f"/api/v1/namespaces/{dig(pod, 'metadata', 'namespace')}/pods/{dig(pod, 'metadata', 'name')}"
            self.server.request("DELETE", path)

    def _wake(self) -> None:
        """Start what sleeps: the reports, the agents, and the Job that would repair the rule."""
        sleeping: dict[str, JsonObject] = {
            "/apis/apps/v1/namespaces/story-outage/deployments/a-report": {"replicas": 1},
            "/apis/apps/v1/namespaces/story-runners/deployments/agents": {"replicas": 1},
            "/apis/batch/v1/namespaces/story-runners/jobs/repair": {"suspend": False},
        }
        for path, spec in sleeping.items():
            assert 200 == self.patch(path, {"spec": spec}).status

    def patch(self, path: str, body: Mapping[str, Json]) -> Answer:
        """Patch an object."""
        return self.server.client.request("PATCH", path, body, content_type="application/merge-patch+json")

    def _list_pods(self, name: str) -> Sequence[Json]:
        return as_list(dig(self.server.request("GET", f"/api/v1/namespaces/story-{name}/pods").body, "items"))

    def _list_refused(self, name: str) -> dict[str, list[str]]:
        """The messages of controllers that could not create a pod. A ReplicaSet has the name of its Deployment and a suffix."""
        events = as_list(dig(self.server.request("GET", f"/api/v1/namespaces/story-{name}/events").body, "items"))
        names = {as_text(dig(each, "metadata", "name")) for each in STORIES[name].workloads}
        found: dict[str, list[str]] = {}
        for each in events:
            involved = as_text(dig(each, "involvedObject", "name"))
            if dig(each, "reason") == "FailedCreate":
                owner = involved if involved in names else involved.rpartition("-")[0]
                found.setdefault(owner, []).append(as_text(dig(each, "message")))
        return found


def _wait(holds: Callable[[], bool]) -> None:
    wait_until(holds, SECONDS)


def _read_app(pod: Json) -> str:
    return as_text(dig(pod, "metadata", "labels", "app"))


@pytest.fixture(scope="module")
def stage(assets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A server of our own with the controllers of workloads."""
    folder = tmp_path_factory.mktemp("stories")
    with running_cluster(assets, folder) as server:
        yield Stage(server, folder)


@pytest.fixture(scope="module")
def played(stage: Stage) -> dict[str, Played]:
    """All stories, played."""
    return stage.play()


ONE: Final = "1 workload could not start again"


def test_the_outage_happens_as_it_was_told(played: dict[str, Played]) -> None:
    """Audit becomes Deny: three pods live on, the deleted ones never come back, and payments were named first."""
    story = played["outage"]

    assert "Deployment story-outage/payments 3 of 3 replicas run" == story.told.first
    assert ["payments", "a-report"] == [*story.told.messages]
    assert "2 workloads could not start again; 1 of them runs today." in story.told.verdict
    assert [3, 3, 2, 0] == story.living
    assert story.is_explained


def test_a_pod_of_a_stateful_set_never_comes_back(played: dict[str, Played], stage: Stage) -> None:
    """A rule forbids its claims, and the API refuses other claims: no edit would help."""
    story = played["claims"]
    path = "/apis/apps/v1/namespaces/story-claims/statefulsets/ledger"
    edit = stage.patch(path, {"spec": {"volumeClaimTemplates": [{**CLAIM, "metadata": {"name": "gold-data"}}]}})

    assert "StatefulSet story-claims/ledger 3 of 3 replicas run" == story.told.first
    assert (True, ["ledger"]) == (ONE in story.told.verdict, [*story.told.messages])
    assert [3, 3, 2, 0] == story.living
    assert story.is_explained
    assert 422 == edit.status


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("scope", "story-scope denies it"),
        ("param", "with story-param/sizes: story-param denies it"),
        ("errors", f"expression '{ERRS}' resulted in error: no such key: limits"),
        ("level", "host namespaces (hostNetwork=true)"),
    ],
)
def test_a_change_breaks_the_workload_that_the_preview_names(
    played: dict[str, Played], name: str, message: str
) -> None:
    """A label that brings a team into scope, a param tightened, Ignore to Fail with an error, a level raised: no pod comes back."""
    story = played[name]

    assert f"Deployment story-{name}/payments 2 of 2 replicas run" == story.told.first
    assert message in story.told.text
    assert (True, ["payments"]) == (ONE in story.told.verdict, [*story.told.messages])
    assert [2, 2, 1, 0] == story.living
    assert story.is_explained


def test_the_runners_that_should_repair_the_rule_are_refused_by_it(played: dict[str, Played], stage: Stage) -> None:
    """The runner that runs is named first; its operator, the agents and the Job of the repair are refused with the message."""
    story = played["runners"]
    again = stage.create_runner()

    assert "Runner story-runners/builds 1 pod running" == story.told.first
    assert ["builds", "agents", "repair"] == [*story.told.messages]
    assert "3 workloads could not start again; 1 of them runs today." in story.told.verdict
    assert [1, 1, 0, 0] == story.living
    assert story.is_explained
    assert (422, True) == (again.status, story.told.messages["builds"][0] in as_text(dig(again.body, "message")))
