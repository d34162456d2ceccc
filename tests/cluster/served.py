"""A small cluster behind the fake API server: discovery, reviews, and lists in pages as apiserver's storage makes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from scanner.model.json import Json
from scanner.model.resource import Kind
from tests.cluster.server import FakeApi, ReceivedRequest, Reply, Spoil, refusal

ADMISSION = "admissionregistration.k8s.io"
NAMESPACES = Kind("", "v1", "Namespace", "namespaces", namespaced=False)
MAPS = Kind("", "v1", "ConfigMap", "configmaps", namespaced=True)
POLICIES = Kind(ADMISSION, "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", namespaced=False)
BINDINGS = Kind(
    ADMISSION, "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", namespaced=False
)
KINDS = (NAMESPACES, MAPS, POLICIES, BINDINGS)
VERSION = "100"

Document = Mapping[str, Any]


@dataclass(frozen=True)
class Served:
    """Responds like a server that stores these documents, all of the kinds above."""

    documents: tuple[Document, ...]

    def __call__(self, request: ReceivedRequest) -> Reply | None:
        """See FakeApi.serve."""
        fixed: dict[str, Reply] = {
            "/version": Reply({"gitVersion": "v1.36.0"}),
            "/api": _discovery(("", [kind for kind in KINDS if not kind.group])),
            "/apis": _discovery((ADMISSION, [kind for kind in KINDS if kind.group])),
            **{f"{NAMESPACES.path}/{name}": Reply(document(NAMESPACES, name)) for name in ("kube-system", "shop")},
            "/apis/authentication.k8s.io/v1/selfsubjectreviews": Reply(
                {"status": {"userInfo": {"username": "auditor", "groups": ["auditors"]}}}, 201
            ),
        }
        kind = next((kind for kind in KINDS if request.path in (kind.path, within_the_shop(kind))), None)
        return self.page(kind, request.query) if kind else fixed.get(request.path)

    def page(self, kind: Kind, query: Mapping[str, str]) -> Reply:
        """The page of a list for a query."""
        matching = sorted(
            (
                document
                for document in self.documents
                if (document["apiVersion"], document["kind"]) == (kind.api_version, kind.kind)
            ),
            key=lambda document: (document["metadata"].get("namespace", ""), document["metadata"]["name"]),
        )
        start, limit = int(query.get("continue") or 0), int(query["limit"])
        left = len(matching) - start - limit
        more: dict[str, Json] = {"continue": str(start + limit), "remainingItemCount": left} if left > 0 else {}
        items = [
            {key: value for key, value in document.items() if key not in ("apiVersion", "kind")}
            for document in matching[start : start + limit]
        ]
        metadata = {"resourceVersion": VERSION, **more}
        return Reply({"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": metadata, "items": items})


def within_the_shop(kind: Kind) -> str:
    """The path of the list of one namespace."""
    return f"/api/v1/namespaces/shop/{kind.plural}"


def _discovery(*groups: tuple[str, Iterable[Kind]]) -> Reply:
    items: list[Json] = [
        {
            "metadata": {"name": name} if name else {},
            "versions": [{"version": "v1", "freshness": "Current", "resources": [_resource(kind) for kind in kinds]}],
        }
        for name, kinds in groups
    ]
    return Reply({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items})


def _resource(kind: Kind) -> Json:
    stated = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    scope = "Namespaced" if kind.namespaced else "Cluster"
    return {"resource": kind.plural, "responseKind": stated, "scope": scope, "verbs": ["get", "list"]}


def document(kind: Kind, name: str, **rest: Any) -> Document:
    """An object as the server stores it."""
    metadata = {"name": name, "uid": f"uid-of-{kind.plural}-{name}", "resourceVersion": "7"}
    if kind.namespaced:
        metadata["namespace"] = "shop"
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **rest}


def shop(objects: int) -> Served:
    """A cluster of one namespace whose config maps all violate the only policy."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "false"}]}
    return Served(
        (
            document(NAMESPACES, "kube-system"),
            document(NAMESPACES, "shop"),
            document(POLICIES, "strict", spec=spec),
            document(BINDINGS, "strict", spec={"policyName": "strict", "validationActions": ["Deny"]}),
            *(document(MAPS, f"map-{number:02}") for number in range(objects)),
        )
    )


# Ways to spoil an answer. A body that is no longer a JSON object stays as an earlier way has left it.


def changed(change: Callable[[dict[str, Any]], object]) -> Spoil:
    """The response with a change in its body."""

    def spoil(reply: Reply, _request: ReceivedRequest) -> Reply:
        body = json.loads(reply.data) if _is_object(reply) else None
        if body is None:
            return reply
        try:
            change(body)
        except (KeyError, IndexError, TypeError, AttributeError):
            return reply
        return replace(reply, body=body)

    return spoil


def instead(body: Json | bytes, status: int = 200, **headers: str) -> Spoil:
    """Another response."""
    return lambda _reply, _request: Reply(body, status, headers)


def refused(status: int, **metadata: Json) -> Spoil:
    """A refusal in the form of an API server."""
    return lambda _reply, _request: refusal(status, "spoiled", **metadata)


def with_fields(**fields: Any) -> Spoil:
    """The same response, sent in another way."""
    return lambda reply, _request: replace(reply, **fields)


def _is_object(reply: Reply) -> bool:
    try:
        return isinstance(json.loads(reply.data), dict)
    except ValueError:
        return False


def serve(api: FakeApi, objects: int = 6) -> FakeApi:
    """Let the fake API server respond like the cluster."""
    api.serve = shop(objects)
    return api
