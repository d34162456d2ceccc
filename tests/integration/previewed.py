"""What `assay preview` predicts of changes of rules, against what happens on a real server with the real controllers.

Each change has a namespace with workloads of its own. Its preview is taken, with and without questions to the API server, and the change
is applied for real. What a scan then finds besides what it found before must be what was predicted, object by object. Then pods are
deleted, finalizers are left to their controllers, sleeping workloads are woken, Deployments are scaled and rolled out, and every
workload is edited: what fails must be what was predicted, workload by workload.

    python -m tests.integration.previewed --workloads 500 --changes 30 --seed 7
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

from scanner.model.json import Json, JsonObject, as_list, as_text, dig
from tests.command import Ran, assay
from tests.integration.apiserver import ApiServer, running
from tests.integration.checked import WITHOUT
from tests.integration.controllers.controller_manager import OF_DEPLOYMENTS, running_controllers
from tests.integration.made import ADMISSION
from tests.integration.manifests import apply, wait_until_enforced
from tests.integration.rule_changes import RuleChange, list_changes, namespace
from tests.requirements import API_SERVER

KINDS: Final = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob")
CONTROLLERS: Final = (*OF_DEPLOYMENTS, "statefulset-controller", "daemonset-controller")
_PATHS: Final = {"Job": "/apis/batch/v1", "CronJob": "/apis/batch/v1"}
_NODE: Final = "node-1"
_SECONDS: Final = 420.0
_QUIET: Final = 6.0
"""The seconds without a change after which nothing more is expected to happen."""


# The workloads. A sleeping one has no pods: its pods are judged from the template alone.


@dataclass(frozen=True, slots=True)
class MadeWorkload:
    """A workload, and whether it sleeps."""

    name: str
    body: JsonObject
    sleeps: bool

    @property
    def kind(self) -> str:
        """Its kind."""
        return as_text(self.body["kind"])

    @property
    def path(self) -> str:
        """Its address."""
        within = as_text(dig(self.body, "metadata", "namespace"))
        return f"{_PATHS.get(self.kind, '/apis/apps/v1')}/namespaces/{within}/{self.kind.lower()}s/{self.name}"


def make_workload(chance: Random, within: str, number: int, kinds: Sequence[str]) -> MadeWorkload:
    """A workload of one pod, which some rules deny; a CronJob always sleeps, because it starts at full minutes."""
    kind = kinds[number % len(kinds)]
    name, sleeps = f"{kind.lower()}-{number}", kind == "CronJob" or chance.random() < 0.3
    container: dict[str, Json] = {"name": "c", "image": "example.com/web:1"}
    if chance.random() < 0.6:
        container["resources"] = {"limits": {"cpu": "1"}}
    labels: dict[str, Json] = {"app": name, "size": str(chance.randint(1, 9))}
    spec: dict[str, Json] = {"containers": [container], "hostNetwork": chance.random() < 0.3}
    template: JsonObject = {"metadata": {"labels": labels}, "spec": spec}
    body = _make_spec(kind, name, spec, template, sleeps=sleeps)
    metadata = {"name": name, "namespace": within}
    version = _PATHS.get(kind, "/apis/apps/v1").removeprefix("/apis/")
    return MadeWorkload(name, {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": body}, sleeps)


def _make_spec(kind: str, name: str, spec: dict[str, Json], template: JsonObject, *, sleeps: bool) -> JsonObject:
    if kind in ("Job", "CronJob"):
        spec["restartPolicy"] = "Never"
        job: JsonObject = {"template": template, "backoffLimit": 100, "suspend": sleeps and kind == "Job"}
        return job if kind == "Job" else {"schedule": "* * * * *", "suspend": True, "jobTemplate": {"spec": job}}
    selected: dict[str, Json] = {"selector": {"matchLabels": {"app": name}}, "template": template}
    if kind == "DaemonSet":
        spec["nodeSelector"] = {"awake": "yes"} if sleeps else {}
        return selected
    return {**selected, "replicas": 0 if sleeps else 1, **({"serviceName": name} if kind == "StatefulSet" else {})}


_AWAKE: Final[dict[str, JsonObject]] = {"Job": {"spec": {"suspend": False}}, "CronJob": {"spec": {"suspend": False}}}


# What happens.


@dataclass(frozen=True, slots=True)
class Observed:
    """The workloads that could not do something, by the name of the action in the JSON report.

    `denied` are the policies and objects that are newly denied, after a plus sign, or newly admitted, after a minus sign.
    """

    denied: frozenset[str]
    recreate: frozenset[str]
    finalize: frozenset[str]
    edit: frozenset[str]
    update: frozenset[str]


_ACTIONS: Final = ("recreate", "finalize", "edit", "update")
COLUMNS: Final = ("denied", *_ACTIONS)
_SIGNS: Final = {"newlyDenied": "+", "newlyAdmitted": "-"}


@dataclass(frozen=True, slots=True)
class Compared:
    """A change with what was predicted and what happened."""

    change: RuleChange
    workloads: int
    predicted: Observed
    happened: Observed
    asked: dict[str, int]
    """The requests about which the API server was asked, by how its answers relate to the predictions."""

    def list_differences(self) -> Iterator[str]:
        """The objects and workloads for which they differ, and answers of the API server that do."""
        for answer in ("differs", "notAsked"):
            if number := self.asked[answer]:
                yield f"{self.change.namespace} ({self.change.title}): the API server was asked about {number} requests: {answer}"
        for action in COLUMNS:
            predicted, happened = getattr(self.predicted, action), getattr(self.happened, action)
            where = f"{self.change.namespace} ({self.change.title}): {action}"
            yield from (f"{where}: {name} was predicted, and did not happen" for name in sorted(predicted - happened))
            yield from (f"{where}: {name} happened, and was not predicted" for name in sorted(happened - predicted))


class _State(NamedTuple):
    """What the controllers have done in a namespace: workloads by state of their pods, and the versions of the ReplicaSets."""

    living: frozenset[str]
    failed: frozenset[str]
    stuck: frozenset[str]
    versions: frozenset[str]
    asleep: frozenset[str]
    """The Deployments without replicas that are not scaled: if its ReplicaSet may not be updated, the controller reports nothing."""


class Run:
    """Some changes with their workloads on one server."""

    def __init__(
        self,
        server: ApiServer,
        home: Path,
        changes: Sequence[RuleChange],
        workloads: int,
        chance: Random,
        kinds: Sequence[str] = KINDS,
    ) -> None:
        """Make at least so many workloads, evenly for the changes, of some kinds."""
        self._server, self._home, self._changes = server, home, changes
        each = -(-workloads // len(changes))
        self._made = {
            change.namespace: [make_workload(chance, change.namespace, number, kinds) for number in range(each)]
            for change in changes
        }

    def compare(self) -> list[Compared]:
        """Store everything, preview and apply every change, disturb every workload, and compare."""
        self._store()
        denied = self._list_denied()
        predictions, found = [], []
        for change in self._changes:
            predictions.append(self._predict(change))
            self._apply(change)
            before, denied = denied, self._list_denied()
            found.append(
                frozenset({*(f"+{each}" for each in denied - before), *(f"-{each}" for each in before - denied)})
            )
        edits = {change.namespace: self._edit(change.namespace) for change in self._changes}
        for change in self._changes:
            self._disturb(change.namespace)
        self._patch(f"/api/v1/nodes/{_NODE}", {"metadata": {"labels": {"awake": "yes"}}})
        self._wait_until_quiet()
        unscaled = {change.namespace: self._find_unscaled(change.namespace) for change in self._changes}
        rolled = {change.namespace: self._roll_out(change.namespace) for change in self._changes}
        self._wait_until_quiet()
        stayed = {space: unscaled[space] | self._find_unrolled(space, names) for space, names in rolled.items()}
        return [
            Compared(
                change,
                len(self._made[change.namespace]),
                predicted,
                self._observe(change.namespace, newly, edits[change.namespace], stayed[change.namespace]),
                asked,
            )
            for change, (predicted, asked), newly in zip(self._changes, predictions, found, strict=True)
        ]

    def _store(self) -> None:
        node: JsonObject = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": _NODE}}
        apply(self._server, [node])
        for change in self._changes:
            apply(self._server, [namespace(change.namespace), *change.before])
        wait_until_enforced(self._server)
        for change in self._changes:
            apply(self._server, [each.body for each in self._made[change.namespace]])
        for change in self._changes:
            self._wait_for(partial(self._has_awake, change.namespace), "pods")

    def _has_awake(self, within: str) -> bool:
        """Return whether exactly the workloads that do not sleep have pods."""
        return self._find_living(within) == {each.name for each in self._made[within] if not each.sleeps}

    def _predict(self, change: RuleChange) -> tuple[Observed, dict[str, int]]:
        """The predictions of a preview, and the answers of the API server, which change no prediction."""
        for name, documents in change.files.items():
            (self._home / name).write_text("\n---\n".join(map(json.dumps, documents)))
        report = self._preview(change)
        asking = self._preview(change, "--ask-server")
        predicted, answered = (_read_predictions(each, change.namespace) for each in (report, asking))
        if predicted != answered:
            raise AssertionError(
                f"{change.title}: predicted {predicted}; with the answers of the API server {answered}"
            )
        return predicted, asking["asked"]

    def _preview(self, change: RuleChange, *flags: str) -> Any:
        ran = self._run("preview", "-q", "--kubeconfig", self._server.kubeconfig, "-o", "json", *flags, *change.flags)
        if ran.code:
            raise AssertionError(f"{change.title}: exit code {ran.code}: {ran.stderr} {ran.report['gaps']}")
        return ran.report

    def _apply(self, change: RuleChange) -> None:
        apply(self._server, change.after)
        for document in change.removed:
            self._delete(document)
        wait_until_enforced(self._server)

    def _list_denied(self) -> frozenset[str]:
        """The objects that admission would deny, with the policy, as a scan finds them."""
        report: Any = self._run("scan", "-q", "--kubeconfig", self._server.kubeconfig, "-o", "json").report
        return frozenset(
            _name_denied(each["policy"], each["object"]) for each in report["findings"] if each["wouldDeny"]
        )

    def _run(self, *arguments: str | Path) -> Ran:
        return assay(*arguments, home=self._home)

    def _delete(self, document: JsonObject) -> None:
        plural = f"{as_text(document['kind'])}s".lower().replace("policys", "policies")
        self._server.request("DELETE", f"/apis/{ADMISSION}/{plural}/{dig(document, 'metadata', 'name')}")

    def _edit(self, within: str) -> frozenset[str]:
        """The workloads whose edit is refused: a dry run, so that nothing rolls out."""
        refused = set()
        for each in self._made[within]:
            if self._patch(each.path, {"metadata": {"annotations": {"edited": "yes"}}}, dryRun="All") >= 400:
                refused.add(each.name)
        return frozenset(refused)

    def _disturb(self, within: str) -> None:
        """Delete every pod, wake what sleeps, and scale Deployments, which updates their ReplicaSets."""
        self._server.request("DELETE", f"/api/v1/namespaces/{within}/pods")
        for each in self._made[within]:
            if each.kind in _AWAKE and each.sleeps:
                self._patch(each.path, _AWAKE[each.kind])
            elif each.kind == "Deployment" or (each.sleeps and each.kind in ("ReplicaSet", "StatefulSet")):
                self._patch(f"{each.path}/scale", {"spec": {"replicas": 1 if each.sleeps else 2}})

    def _patch(self, path: str, body: JsonObject, **query: str) -> int:
        content_type = "application/merge-patch+json"
        return self._server.client.request("PATCH", path, body, query, content_type=content_type).status

    def _wait_for(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _SECONDS
        while not holds():
            if time.monotonic() > deadline:
                raise AssertionError(f"no {what} after {_SECONDS:.0f} s")
            time.sleep(0.5)

    def _wait_until_quiet(self) -> None:
        """Return when every workload that wants pods has one or a refusal, or sleeps on, and nothing has changed for some time.

        The controllers wait between their requests, and so longer for many workloads: every request that succeeds is a change.
        """
        deadline, known, since = time.monotonic() + _SECONDS, self._read_state(), time.monotonic()
        changed: list[str] = []
        while time.monotonic() - since <= _QUIET or not self._is_settled(known):
            if time.monotonic() > deadline:
                waiting = {
                    within: missing for within, seen in known.items() if (missing := self._find_waiting(within, seen))
                }
                why = f"no pod and no refusal of {waiting}, the last change was in {changed}"
                raise AssertionError(f"the controllers had not ended after {_SECONDS:.0f} s: {why}")
            time.sleep(1)
            state = self._read_state()
            if state != known:
                changed = [within for within, seen in state.items() if seen != known[within]]
                known, since = state, time.monotonic()

    def _read_state(self) -> dict[str, _State]:
        return {change.namespace: self._read_space(change.namespace) for change in self._changes}

    def _read_space(self, within: str) -> _State:
        versions = (as_text(dig(each, "metadata", "resourceVersion")) for each in self._list_replica_sets(within))
        sleeping = {each.name for each in self._made[within] if each.sleeps}
        return _State(
            self._find_living(within),
            self._find_failed(within),
            self._find_stuck(within),
            frozenset(versions),
            self._find_unscaled(within) & sleeping,
        )

    def _is_settled(self, state: dict[str, _State]) -> bool:
        return not any(self._find_waiting(within, seen) for within, seen in state.items())

    def _find_waiting(self, within: str, seen: _State) -> frozenset[str]:
        """The workloads that have neither a pod nor a refusal, and do not sleep on."""
        return frozenset(each.name for each in self._made[within]) - seen.living - seen.failed - seen.asleep

    def _observe(self, within: str, newly: frozenset[str], edits: frozenset[str], stayed: frozenset[str]) -> Observed:
        """What happened; a pod that is stuck with its finalizer also keeps a StatefulSet from making the next one."""
        return Observed(newly, self._find_failed(within), self._find_stuck(within), edits, stayed)

    def _roll_out(self, within: str) -> frozenset[str]:
        """Change the template of every Deployment; the names of those that may be changed."""
        change: JsonObject = {"spec": {"template": {"metadata": {"annotations": {"rolled": "yes"}}}}}
        made = [each for each in self._made[within] if each.kind == "Deployment"]
        return frozenset(each.name for each in made if self._patch(each.path, change) < 400)

    def _find_unrolled(self, within: str, rolled: frozenset[str]) -> frozenset[str]:
        """The Deployments without a ReplicaSet of the changed template."""
        new = (
            each
            for each in self._list_replica_sets(within)
            if dig(each, "spec", "template", "metadata", "annotations", "rolled")
        )
        return rolled - frozenset(map(_find_owner, new))

    def _list_replica_sets(self, within: str) -> Sequence[Json]:
        return as_list(dig(self._server.request("GET", f"/apis/apps/v1/namespaces/{within}/replicasets").body, "items"))

    def _find_unscaled(self, within: str) -> frozenset[str]:
        """The Deployments without a ReplicaSet of the wanted number of replicas."""
        wanted = {(each.name, 1 if each.sleeps else 2) for each in self._made[within] if each.kind == "Deployment"}
        found = {(_find_owner(each), dig(each, "spec", "replicas")) for each in self._list_replica_sets(within)}
        return frozenset(name for name, _ in wanted - found)

    def _list_pods(self, within: str) -> Sequence[Json]:
        return as_list(dig(self._server.request("GET", f"/api/v1/namespaces/{within}/pods").body, "items"))

    def _find_living(self, within: str) -> frozenset[str]:
        pods = (each for each in self._list_pods(within) if not dig(each, "metadata", "deletionTimestamp"))
        return frozenset(as_text(dig(pod, "metadata", "labels", "app")) for pod in pods)

    def _find_stuck(self, within: str) -> frozenset[str]:
        pods = (each for each in self._list_pods(within) if dig(each, "metadata", "deletionTimestamp"))
        return frozenset(
            as_text(dig(pod, "metadata", "labels", "app")) for pod in pods if dig(pod, "metadata", "finalizers")
        )

    def _find_failed(self, within: str) -> frozenset[str]:
        """The workloads whose controller reports that it cannot create a pod: the name of a ReplicaSet or a Job has a suffix."""
        events = as_list(dig(self._server.request("GET", f"/api/v1/namespaces/{within}/events").body, "items"))
        names = (
            as_text(dig(each, "involvedObject", "name")) for each in events if dig(each, "reason") == "FailedCreate"
        )
        return frozenset("-".join(name.split("-")[:2]) for name in names)


def _read_predictions(report: Any, within: str) -> Observed:
    """The predictions of a report, all of which are about one namespace."""
    places = {each["workload"]["namespace"] for each in (*report["workloads"], *report["objects"])}
    assert places <= {within}, places
    newly = {
        f"{_SIGNS[policy['difference']]}{_name_denied(policy['name'], each)}"
        for each in report["objects"]
        for policy in each["policies"]
        if policy["difference"] in _SIGNS
    }
    named = {
        action: frozenset(
            each["workload"]["name"]
            for each in report["workloads"]
            if any(risk["action"] == action and risk["refused"] for risk in each["risks"])
        )
        for action in _ACTIONS
    }
    return Observed(denied=frozenset(newly), **named)


def _name_denied(policy: str, named: JsonObject) -> str:
    return f"{policy}: {named['kind']} {named['namespace']}/{named['name']}"


def _find_owner(document: Json) -> str:
    """The name of the first owner of an object."""
    return as_text(dig(next(iter(as_list(dig(document, "metadata", "ownerReferences"))), {}), "name"))


@contextmanager
def running_cluster(assets: Path, folder: Path) -> Iterator[ApiServer]:
    """A server of our own, with Pod Security and the controllers of all workloads."""
    accounts = ("--use-service-account-credentials",)
    with (
        running(assets, folder, without_plugins=WITHOUT) as server,
        running_controllers(assets, server, CONTROLLERS, accounts),
    ):
        yield server


def write_table(compared: Iterable[Compared]) -> Iterator[str]:
    """A line for each change, with the numbers that were predicted, and those that happened if they differ."""
    yield f"{'CHANGE':60} {'WORKLOADS':>9} " + " ".join(f"{action.upper():>9}" for action in COLUMNS) + "     ASKED"
    for each in compared:
        cells = []
        for action in COLUMNS:
            predicted, happened = getattr(each.predicted, action), getattr(each.happened, action)
            cells.append(f"{len(predicted)}" if predicted == happened else f"{len(predicted)}≠{len(happened)}")
        yield (
            f"{each.change.title[:60]:60} {each.workloads:9} "
            + " ".join(f"{cell:>9}" for cell in cells)
            + f" {sum(each.asked.values()):9}"
        )


def main() -> int:
    """Compare on a server of our own."""
    parser = argparse.ArgumentParser(prog="python -m tests.integration.previewed")
    parser.add_argument("--workloads", type=int, default=500)
    parser.add_argument("--changes", type=int, default=30)
    parser.add_argument("--seed", type=int, default=20261128)
    arguments = parser.parse_args()
    chance, assets = Random(arguments.seed), Path(API_SERVER.require())
    with tempfile.TemporaryDirectory() as folder, running_cluster(assets, Path(folder)) as server:
        changes = list_changes(arguments.changes, chance)
        compared = Run(server, Path(folder), changes, arguments.workloads, chance).compare()
    differences = [line for each in compared for line in each.list_differences()]
    sys.stdout.writelines(f"{line}\n" for line in (*write_table(compared), *differences))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
