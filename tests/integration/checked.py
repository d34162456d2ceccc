"""Random manifests under random policies of every language that the API server decides itself: its dry runs, and `assay check`.

`python -m tests.integration.checked --manifests 2000` prints the numbers and the first differences. Exit code 1 when there is one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count, islice
from pathlib import Path
from random import Random
from typing import Any, Final

from scanner.cluster.files.manifests import FileDocument
from scanner.cluster.live.cluster import LiveCluster
from scanner.cluster.overlay import AppliedManifests, ClusterAfter
from scanner.model.json import JsonObject, as_object
from scanner.model.scans.scan import Scope
from scanner.preview import CheckedObject, check
from scanner.scan.options import Options
from tests.integration import examples, generated
from tests.integration.apiserver import ApiServer, running
from tests.integration.fuzz.manifests import ADMISSION
from tests.integration.manifests import apply, delete, wait_until_enforced
from tests.integration.pod_security import Objects
from tests.requirements import API_SERVER

Document = dict[str, Any]
WITHOUT: Final = ("TaintNodesByCondition",)
"""The plug-ins that are disabled. ServiceAccount is not: the accounts that a controller would make are stored."""
LEVELS: Final = {
    "ps-baseline": {"pod-security.kubernetes.io/enforce": "baseline"},
    "ps-warned": {"pod-security.kubernetes.io/warn": "restricted"},
}
_LIMITS: Final[list[Document]] = [
    {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "own", "namespace": name},
        "spec": {"limits": [{"type": "Container", **limit}]},
    }
    for name, limit in (
        ("ps-baseline", {"default": {"memory": "64Mi"}, "max": {"cpu": "4"}}),
        ("ps-warned", {"min": {"cpu": "10m"}}),
    )
]
_BATCH: Final = 25
_MUTATIONS: Final = (
    ("label", 'Object{metadata: Object.metadata{labels: {"managed": "yes"}}}', ("*",)),
    (
        "note",
        'Object{metadata: Object.metadata{annotations: {"note": object.metadata.name}}}',
        ("configmaps", "secrets"),
    ),
    ("tier", 'Object{metadata: Object.metadata{labels: {"tier": "web"}}}', ("deployments", "services")),
    ("replicas", "Object{spec: Object.spec{replicas: 2}}", ("deployments", "statefulsets")),
    (
        "runtime",
        "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{hostPID: false}}}}",
        ("deployments", "daemonsets", "jobs"),
    ),
)


@dataclass(slots=True)
class Tally:
    """The numbers of manifests by the verdict and by how the server's compares, and the differences.

    `reasons` are the messages of the server that are not about policies.
    """

    manifests: int = 0
    compared: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)
    operations: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    differences: list[CheckedObject] = field(default_factory=list)

    def add(self, checked: CheckedObject) -> None:
        """Count one answer."""
        self.manifests += 1
        self.verdicts[checked.verdict.value] += 1
        self.operations[str(checked.operation)] += 1
        self.compared[checked.server.compared if checked.server else "none"] += 1
        if checked.server and checked.server.differs:
            self.differences.append(checked)
        elif checked.server and checked.server.verdict is None:
            self.reasons[checked.server.why.partition(":")[2].strip()[:60] or checked.server.why[:60]] += 1

    def write(self) -> Iterator[str]:
        """The numbers, and the first differences."""
        yield f"{self.manifests} manifests: {dict(self.compared)}; {dict(self.verdicts)}; {dict(self.operations)}"
        yield from (f"  not about policies: {number} × {reason}" for reason, number in self.reasons.most_common(12))
        for checked in self.differences[:20]:
            yield f"DIFFERENT {checked.kind} {checked.namespace}/{checked.name} {checked.operation}: {checked.verdict}"
            yield from (f"  assay: {each.effect} {each.policy}: {each.message[:200]}" for each in checked.decisions)
            yield f"  server: {checked.server.why[:600] if checked.server else ''}"


def manifests(chance: Random) -> Iterator[Document]:
    """Manifests without an end: objects as charts render them, examples, pods and workloads of all kinds."""
    pods = Objects(chance)
    for number in count():
        for document in generated.objects(chance):
            if document["kind"] == "Namespace":
                continue
            metadata: Document = dict(as_object(document["metadata"]))
            if chance.random() < 0.6:
                metadata["name"] = f"{metadata['name']}-{number}"
            yield {**document, "metadata": metadata}
        for part in range(20):
            document = pods.document()[1]
            metadata = {
                **document["metadata"],
                "name": f"w-{number}-{part}",
                "namespace": chance.choice([*LEVELS, *generated.NAMESPACES]),
            }
            yield {**document, "metadata": metadata}
        yield from (_rendered(each, chance, number) for each in examples.objects("after"))


def _rendered(document: JsonObject, chance: Random, number: int) -> Document:
    """An example, half of the time as a new object with the labels of a chart."""
    metadata: Document = dict(as_object(document["metadata"]))
    if chance.random() < 0.5 and document["kind"] not in ("Namespace", "CustomResourceDefinition"):
        labels = {**metadata.get("labels", {}), "helm.sh/chart": "shop-1.2.3", "app.kubernetes.io/managed-by": "Helm"}
        metadata |= {"name": f"{metadata['name']}-{number}", "labels": labels}
    return {**document, "metadata": metadata}


def policies(chance: Random, first: int) -> Iterator[JsonObject]:
    """Validating policies of a batch, half of whose bindings deny, and mutating policies that add what others demand."""
    for document in generated.policies(chance, [f"p{number}" for number in range(first, first + _BATCH)]):
        if document["kind"] == "ValidatingAdmissionPolicyBinding" and chance.random() < 0.15:
            spec: Document = {**as_object(document["spec"]), "validationActions": ["Deny"]}
            yield {**document, "spec": spec}
        else:
            yield document
    for name, expression, resources in chance.sample(_MUTATIONS, 2):
        yield from _mutating(f"m-{name}-{first}", expression, resources)


def _mutating(name: str, expression: str, resources: Sequence[str]) -> Iterator[JsonObject]:
    rule: Document = {
        "apiGroups": ["*"],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE"],
        "resources": list(resources),
    }
    spec: Document = {
        "matchConstraints": {"resourceRules": [rule]},
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}],
    }
    yield {"apiVersion": ADMISSION, "kind": "MutatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec}
    yield {
        "apiVersion": ADMISSION,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name},
    }


def prepare(server: ApiServer, chance: Random) -> None:
    """Store namespaces with levels and accounts, definitions, what plug-ins read, and objects that manifests update."""
    spaces: list[JsonObject] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": dict(labels)}}
        for name, labels in LEVELS.items()
    ]
    apply(server, [*spaces, generated.definition()])
    first: list[JsonObject] = [*generated.objects(chance), *examples.objects("after")]
    apply(server, [each for each in first if each["kind"] == "Namespace"])
    apply(server, [*_accounts(server), *_LIMITS])
    apply(server, first)


def _accounts(server: ApiServer) -> Iterator[JsonObject]:
    """The account `default` of each namespace."""
    listed: Any = server.request("GET", "/api/v1/namespaces").body
    for namespace in listed["items"]:
        metadata: Document = {"name": "default", "namespace": namespace["metadata"]["name"]}
        yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


def compare(server: ApiServer, chance: Random, number: int, batches: int) -> Tally:
    """The answers about so many manifests, evenly under so many batches of policies."""
    tally, source = Tally(), manifests(chance)
    for batch in range(batches):
        documents = [*policies(chance, batch * _BATCH)]
        apply(server, documents)
        wait_until_enforced(server)
        for checked in answer(server, [*islice(source, number // batches)]):
            tally.add(checked)
        for document in reversed(documents):
            delete(server, document)
    wait_until_enforced(server)
    return tally


def answer(server: ApiServer, documents: Sequence[JsonObject]) -> tuple[CheckedObject, ...]:
    """The answers of `check` about each document alone, with those of the server: other documents are not stored there."""
    live = LiveCluster(kubeconfig=str(server.kubeconfig))
    options = Options(Scope(namespaces=("default",)))
    placed = [FileDocument(f"document {number}", body, "-") for number, body in enumerate(documents)]
    after = ClusterAfter(live, AppliedManifests((), options.languages, "default"))
    return check(after, live, placed, options, datetime.now(UTC), live.dry_runs()).objects


def main() -> int:
    """Compare on a server of our own."""
    parser = argparse.ArgumentParser(prog="python -m tests.integration.checked")
    parser.add_argument("--manifests", type=int, default=2000)
    parser.add_argument("--batches", type=int, default=4)
    parser.add_argument("--seed", type=int, default=20261128)
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        running(Path(API_SERVER.require()), Path(folder), without_plugins=WITHOUT) as server,
    ):
        chance = Random(arguments.seed)
        prepare(server, chance)
        tally = compare(server, chance, arguments.manifests, arguments.batches)
    sys.stdout.writelines(f"{line}\n" for line in tally.write())
    return 1 if tally.differences else 0


if __name__ == "__main__":
    sys.exit(main())
