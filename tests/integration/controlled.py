"""Pods below their controllers, as the controllers would store them: none of them runs."""

from __future__ import annotations

from scanner.model.json import Json, JsonObject, as_object, as_text, dig
from tests.integration.apiserver import ApiServer
from tests.integration.made import namespace
from tests.integration.manifests import apply

HASH = "6b7f9c"
SELECTOR: JsonObject = {"matchLabels": {"app": "web"}}
TEMPLATE: JsonObject = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "main", "image": "web:1"}]},
}
ONCE: JsonObject = {**TEMPLATE, "spec": {**as_object(TEMPLATE["spec"]), "restartPolicy": "Never"}}
DATABASES: JsonObject = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "databases.db.example.com"},
    "spec": {
        "group": "db.example.com",
        "scope": "Namespaced",
        "names": {"kind": "Database", "plural": "databases", "singular": "database", "listKind": "AllDatabases"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}


class Filled:
    """A server with one Pod below each of four chains of controllers."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        apply(server, [namespace("shop"), DATABASES])
        deployment = self.store("apps/v1", "Deployment", "web", selector=SELECTOR, template=TEMPLATE)
        sets = self.store("apps/v1", "ReplicaSet", f"web-{HASH}", deployment, selector=SELECTOR, template=TEMPLATE)
        self.pod("web-6b7f9c-x2x4z", sets)
        cron_job = self.store(
            "batch/v1", "CronJob", "nightly", schedule="0 3 * * *", jobTemplate={"spec": {"template": ONCE}}
        )
        job = self.store("batch/v1", "Job", "nightly-29340", cron_job, template=ONCE)
        self.pod("nightly-29340-abcde", job)
        database = self.store("db.example.com/v1", "Database", "orders")
        orders = self.store(
            "apps/v1", "StatefulSet", "orders", database, serviceName="orders", selector=SELECTOR, template=TEMPLATE
        )
        self.pod("orders-0", orders)
        self.pod("etcd-node-1", self.store("v1", "Node", "node-1", within=""))

    def store(
        self, api_version: str, kind: str, name: str, above: Json = None, *, within: str = "shop", **spec: Json
    ) -> Json:
        """Store an object below another object, and return the answer of the server."""
        metadata: dict[str, Json] = {"name": name, "labels": {"app": "web", "pod-template-hash": HASH}}
        if within:
            metadata["namespace"] = within
        if above:
            metadata["ownerReferences"] = [_reference(above)]
        document: dict[str, Json] = {"apiVersion": api_version, "kind": kind, "metadata": metadata}
        return apply(self.server, [{**document, "spec": spec} if spec else document])[0]

    def pod(self, name: str, above: Json) -> None:
        """Store a Pod below an object."""
        self.store("v1", "Pod", name, above, containers=[{"name": "main", "image": "web:1"}])


def _reference(above: Json) -> JsonObject:
    """The reference to a stored object."""
    uid = as_text(dig(above, "metadata", "uid"))
    name = as_text(dig(above, "metadata", "name"))
    stated = as_object(above)
    return {"apiVersion": stated["apiVersion"], "kind": stated["kind"], "name": name, "uid": uid, "controller": True}
