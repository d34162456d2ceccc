"""Row mutating: a scan of 20,000 objects by the policies of `benchmarks.policies`, with and without ten mutating ones beside them.

The scan is whole but for the network: pages in memory, policies compiled, outcomes in a database. About one object in a hundred
lacks a field that a mutating policy sets.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from benchmarks.measured import ROUNDS, say
from benchmarks.memory_cluster import MemoryCluster, paged, stored
from benchmarks.objects import namespaces, objects
from benchmarks.policies import policies
from scanner.model.json import Json, JsonObject
from scanner.model.scans.scan import Scan
from scanner.scan.documents import Manifest
from scanner.scan.options import Options
from scanner.scan.run import run
from scanner.store import open_store

_GOAL = 1.3
_OBJECTS = 20_000
_ADMISSION = "admissionregistration.k8s.io/v1"
_PODS: Final = ("", "pods")
_WORKLOADS: Final = ("apps", "deployments", "replicasets")
_CONFIGURED: Final = {
    "token": (_PODS, "Object{spec: Object.spec{automountServiceAccountToken: false}}"),
    "pull": (
        _PODS,
        "Object{spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{name: c.name, imagePullPolicy: 'IfNotPresent'})}}",
    ),
    "seccomp": (
        _PODS,
        "Object{spec: Object.spec{securityContext: Object.spec.securityContext{seccompProfile: Object.spec.securityContext.seccompProfile{type: 'RuntimeDefault'}}}}",
    ),
    "hardened": (
        _WORKLOADS,
        "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: object.spec.template.spec.containers.map(c, Object.spec.template.spec.containers{name: c.name, securityContext: Object.spec.template.spec.containers.securityContext{runAsNonRoot: true, readOnlyRootFilesystem: true}})}}}}",
    ),
    "accounts": (("", "serviceaccounts"), "Object{automountServiceAccountToken: false}"),
    "scrape": (("", "services", "configmaps"), "Object{metadata: Object.metadata{annotations: {'prometheus.io/scrape': 'true'}}}"),
}  # fmt: skip
_PATCHED: Final = {
    "owner": (
        ("", "pods", "services", "configmaps", "secrets"),
        "!has(object.metadata.labels) || !('owner' in object.metadata.labels)",
        "[JSONPatch{op: 'add', path: '/metadata/labels/owner', value: 'nobody'}]",
    ),
    "host-network": (
        _PODS,
        "has(object.spec.hostNetwork) && object.spec.hostNetwork",
        "[JSONPatch{op: 'remove', path: '/spec/hostNetwork'}]",
    ),
    "cleaning": (
        ("batch", "jobs"),
        "",
        "has(object.spec.ttlSecondsAfterFinished) && object.spec.ttlSecondsAfterFinished <= 86400 ? [] : [JSONPatch{op: 'add', path: '/spec/ttlSecondsAfterFinished', value: 86400}]",
    ),
    "retries": (
        ("batch", "jobs"),
        "object.spec.backoffLimit > 10",
        "[JSONPatch{op: 'replace', path: '/spec/backoffLimit', value: 10}]",
    ),
}


def beside_validating() -> None:
    """Row mutating: whole scans, by each set of policies in turn."""
    validating = tuple(Manifest("cluster", document) for document in policies())
    both = (*validating, *(Manifest("cluster", document) for document in _mutating()))
    everything = (*namespaces(), *objects(_OBJECTS))
    cluster = MemoryCluster(paged(stored(made, number) for number, made in enumerate(everything)))
    scans = {"with": both, "without": validating}
    scanned = {name: _scanned(cluster, manifests)[0] for name, manifests in scans.items()}
    drift = scanned["with"].findings - scanned["without"].findings
    rounds = [{name: _scanned(cluster, manifests)[1] for name, manifests in scans.items()} for _ in range(ROUNDS)]
    least = {name: min(seconds[name] for seconds in rounds) for name in scans}
    mutating = len(_CONFIGURED) + len(_PATCHED)
    say(
        f"{_OBJECTS} objects, {len(validating) // 2} validating policies and {mutating} mutating ones, {drift} findings of drift"
    )
    say(
        f"scanned in {least['with']:.2f} s with the mutating policies and {least['without']:.2f} s without, in the fastest of {ROUNDS} rounds"
    )
    compared = "a scan with ten mutating policies against the same scan without them"
    say(f"bench=mutating ratio={least['with'] / least['without']:.4g} goal=<={_GOAL} rounds={ROUNDS} ({compared})")


def _scanned(cluster: MemoryCluster, manifests: tuple[Manifest, ...]) -> tuple[Scan, float]:
    """Return a scan into a new database, and its processor time in seconds."""
    with tempfile.TemporaryDirectory() as folder, open_store(str(Path(folder) / "assay.db")) as store:
        started = time.process_time()
        scan = run(cluster, store, Options(manifests=manifests), scan_id="scan", clock=lambda: datetime.now(UTC))
        return scan, time.process_time() - started


def _mutating() -> Iterator[JsonObject]:
    for name, (resources, text) in _CONFIGURED.items():
        yield from _bound(
            name, resources, "", {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}}
        )
    for name, (resources, condition, text) in _PATCHED.items():
        yield from _bound(name, resources, condition, {"patchType": "JSONPatch", "jsonPatch": {"expression": text}})


def _bound(name: str, resources: tuple[str, ...], condition: str, mutation: Json) -> Iterator[JsonObject]:
    group, *plurals = resources
    rule: Json = {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": plurals}
    conditions: list[Json] = [{"name": "lacks", "expression": condition}] if condition else []
    yield {
        "apiVersion": _ADMISSION,
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "matchConditions": conditions,
            "reinvocationPolicy": "Never",
            "mutations": [mutation],
        },
    }
    yield {
        "apiVersion": _ADMISSION,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name},
    }
