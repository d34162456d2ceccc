"""The cluster of the golden history, and its steps as `golden_history.yaml` has them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from scanner.model.json import Json, JsonObject, as_object, as_text, dig
from tests.integration import made
from tests.integration.apiserver import ApiServer, running
from tests.integration.faults import wait_until
from tests.integration.manifests import apply, delete

SCANNER = "auditor"
AUDIT: Json = ["Audit"]
USED: JsonObject = {"use": "limits"}
RESOURCES = {"pods": "", "configmaps": "", "services": "", "secrets": "", "deployments": "apps", "statefulsets": "apps"}
"""The API groups of resources that policies match."""
KINDS = {
    "Policy": "ValidatingAdmissionPolicy",
    "Binding": "ValidatingAdmissionPolicyBinding",
    "Param": "ConfigMap",
}
"""The kinds that have a short name in the steps."""
GROUPS = {"Deployment": "apps/v1", "StatefulSet": "apps/v1", "ReplicaSet": "apps/v1", "Policy": made.ADMISSION}
GROUPS["Binding"] = made.ADMISSION
CHOICE = re.compile(r"\{([^}]*)\}")

Fields = Mapping[str, Any]


@dataclass(frozen=True)
class Step:
    """A scan: what happens before it, how it is made, and what it has to record."""

    step: int
    title: str
    at: datetime
    do: tuple[Fields, ...] = ()
    flags: Fields | None = None
    assay: str = ""
    server: str = ""
    during: int = 0
    state: str = "complete"
    unchecked: int = 0
    findings: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def log(self) -> list[str]:
        """The lines of the log that the scan has to record, sorted."""
        changes = (f"{name} {line}" for name in ("finding", "problem") for line in getattr(self, f"{name}s"))
        return sorted([f"scan {self.state}, {self.unchecked} unchecked", *_expanded(changes)])

    @property
    def restores(self) -> bool:
        """Whether the cluster is another one before the scan."""
        return any("restore" in act for act in self.do)


def _expanded(lines: Iterator[str]) -> Iterator[str]:
    """The lines, with one for each of the names in braces."""
    for line in lines:
        texts = CHOICE.split(line)
        yield from map("".join, product(*([text] if n % 2 == 0 else text.split(",") for n, text in enumerate(texts))))


def golden_history() -> tuple[tuple[Fields, ...], tuple[Step, ...]]:
    """The acts before the first scan, and the steps."""
    document = yaml.safe_load((Path(__file__).parent / "golden_history.yaml").read_text())
    return tuple(document["begin"]), tuple(Step(**step) for step in document["steps"])


class GoldenCluster:
    """A cluster on a real API server; controllers do not run, so the acts store what controllers would."""

    def __init__(self, assets: Path, folder: Path, kept: ExitStack) -> None:
        """Start the server, which stops with `kept`."""
        self._assets, self._folder, self._kept = assets, folder, kept
        self.server = self._started("server")
        self._documents: dict[str, JsonObject] = {}
        self._under: dict[str, str] = {}
        self._allowed: set[str] = set()

    def _started(self, name: str) -> ApiServer:
        (self._folder / name).mkdir()
        return self._kept.enter_context(running(self._assets, self._folder / name))

    def do(self, act: Fields) -> None:
        """Do what one line of a step describes."""
        [(verb, fields)] = act.items()
        match verb:
            case "apply":
                self._apply(**fields)
            case "delete":
                [(kind, name)] = fields.items()
                self._delete(f"{kind} {name}")
            case "rollout":
                self._roll_out(**fields)
            case "restore":
                self._restore()
            case "allow":
                self._allow(self._allowed.union(fields))
            case "deny":
                self._allow(self._allowed.difference(fields))
            case _:
                raise AssertionError(f"no such verb: {verb}")

    def _apply(self, **fields: Any) -> None:
        [kind] = (name for name in fields if name[0].isupper())
        document = manifest(kind, **{"name" if name == kind else name: value for name, value in fields.items()})
        place = f"{kind} {fields[kind]}"
        self._documents[place] = document
        if "under" in fields:
            self._under[place] = fields["under"]
        self._store(place)

    def _store(self, place: str) -> None:
        document = self._documents[place]
        if place in self._under:
            metadata = {**as_object(document["metadata"]), "ownerReferences": [self._owner(self._under[place])]}
            document = {**document, "metadata": metadata}
        [stored] = apply(self.server, [document])
        self._documents[place] = {**self._documents[place], "uid": as_text(dig(stored, "metadata", "uid"))}

    def _owner(self, place: str) -> JsonObject:
        owner = self._documents[place]
        named = {name: owner[name] for name in ("apiVersion", "kind", "uid")}
        return {**named, "name": dig(owner, "metadata", "name"), "controller": True}

    def _delete(self, place: str) -> None:
        delete(self.server, self._documents.pop(place))
        self._under.pop(place, None)

    def _roll_out(self, **fields: Any) -> None:
        """Store Pods of a ReplicaSet, then delete other Pods of the Deployment."""
        deployment, replica_set = fields["Deployment"], fields["to"]
        space = deployment.partition("/")[0]
        self._apply(ReplicaSet=f"{space}/{replica_set}", under=f"Deployment {deployment}")
        for name in fields["new"]:
            under = f"ReplicaSet {space}/{replica_set}"
            self._apply(Pod=f"{space}/{replica_set}-{name}", under=under, image=fields["image"])
        for name in fields.get("gone", ()):
            self._delete(f"Pod {space}/{name}")

    def _restore(self) -> None:
        """Store every object on another server."""
        self.server = self._started("restored")
        self._allow(self._allowed)
        for place in self._documents:
            self._store(place)

    def _allow(self, resources: set[str]) -> None:
        """Let the scanner list these resources of the core group, and all of the groups that policies need."""
        groups = {"": tuple(sorted(resources)), "apps": ("*",), "admissionregistration.k8s.io": ("*",)}
        for number, (group, names) in enumerate(groups.items()):
            apply(self.server, made.may(SCANNER, f"golden-{number}", *names, group=group))
        for resource in resources | self._allowed:
            wait_until(partial(self._may_list, f"/api/v1/{resource}", allowed=resource in resources))
        for path in ("/apis/apps/v1/replicasets", f"/apis/{made.ADMISSION}/validatingadmissionpolicies"):
            wait_until(partial(self._may_list, path, allowed=True))
        self._allowed = resources

    def _may_list(self, path: str, *, allowed: bool) -> bool:
        answer = self.server.request("GET", path, token=self.server.tokens[SCANNER])
        return (answer.status == 200) is allowed


def manifest(kind: str, *, name: str, **fields: Any) -> JsonObject:
    """The manifest of an object, without its owner."""
    namespace, _, own = name.rpartition("/")
    metadata: dict[str, Json] = {"name": own}
    if namespace:
        metadata["namespace"] = namespace
    if "labels" in fields:
        metadata["labels"] = fields["labels"]
    if kind == "Param":
        metadata["labels"] = USED
    document: JsonObject = {"apiVersion": GROUPS.get(kind, "v1"), "kind": KINDS.get(kind, kind), "metadata": metadata}
    return {**document, **_content(kind, fields)}


def _content(kind: str, fields: Fields) -> JsonObject:
    template: JsonObject = {"metadata": {"labels": {"app": "web"}}, "spec": _pod("web:1")}
    selected: JsonObject = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    match kind:
        case "Policy":
            return {"spec": _policy(**fields)}
        case "Binding":
            return {"spec": _binding(**fields)}
        case "Param":
            return {"data": {"most": fields["most"]}}
        case "Pod":
            return {"spec": _pod(fields["image"])}
        case "Deployment":
            return {"spec": {**selected, "replicas": fields["replicas"]}}
        case "ReplicaSet":
            return {"spec": selected}
        case "StatefulSet":
            return {"spec": {**selected, "serviceName": "orders"}}
        case "Service":
            return {"spec": {"type": "ExternalName", "externalName": "example.com"}}
        case _:
            return {}


def _pod(image: str) -> JsonObject:
    return {"containers": [{"name": "main", "image": image}]}


def _policy(*, resources: list[str], checks: Mapping[str, str], params: bool = False) -> JsonObject:
    """A policy; the message of each check is its name."""
    rules: Json = [
        {
            "apiGroups": [RESOURCES[resource]],
            "apiVersions": ["v1"],
            "operations": ["CREATE", "UPDATE"],
            "resources": [resource],
        }
        for resource in resources
    ]
    validations: Json = [{"expression": expression, "message": name} for name, expression in checks.items()]
    spec: JsonObject = {"matchConstraints": {"resourceRules": rules}, "validations": validations}
    return {**spec, "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}} if params else spec


def _binding(*, policy: str, params: bool = False, env: str = "") -> JsonObject:
    spec: dict[str, Json] = {"policyName": policy, "validationActions": AUDIT}
    if params:
        selected: JsonObject = {"namespace": "settings", "selector": {"matchLabels": USED}}
        spec["paramRef"] = {**selected, "parameterNotFoundAction": "Deny"}
    if env:
        spec["matchResources"] = {"namespaceSelector": {"matchLabels": {"env": env}}}
    return spec
