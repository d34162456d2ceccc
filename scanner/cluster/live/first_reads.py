"""The reads of every command that asks a live cluster for its rules: sent first, while the modules that evaluate the answers are imported.

The lists are those of the stable API of admission. A server that does not serve one of them answers 404, and nothing asks for the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from scanner.model.json import JsonObject, as_text, dig

_JSON: Final = "application/json"
DISCOVERY: Final = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,"
    "application/json"
)
"""The forms of discovery documents, the newest first."""
KUBE_SYSTEM: Final = "/api/v1/namespaces/kube-system"
VERSION: Final = "/version"
_LISTS: Final = (
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "validatingwebhookconfigurations",
    "mutatingwebhookconfigurations",
)
_API_VERSION: Final = re.compile(r"([a-z][a-z0-9.-]*/)?v[a-z0-9]+")
_NAMESPACE: Final = re.compile(r"[a-z0-9-]+")
_MOST_SCHEMAS: Final = 8
_CORE: Final = "v1"
_WITH_PODS: Final = frozenset(
    {"Pod", "ReplicationController", "ReplicaSet", "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"}
)


def list_first_reads(chunk_size: int) -> tuple[tuple[str, str], ...]:
    """The paths with their content types, in the order in which they are needed; a page of a list has `chunk_size` objects."""
    lists = (f"/apis/admissionregistration.k8s.io/v1/{plural}?limit={chunk_size}" for plural in _LISTS)
    return (
        (KUBE_SYSTEM, _JSON),
        (VERSION, _JSON),
        ("/apis", DISCOVERY),
        ("/api", DISCOVERY),
        *((path, _JSON) for path in lists),
    )


def list_reads_about(objects: Iterable[JsonObject], namespace: str, chunk_size: int) -> Iterator[tuple[str, str]]:
    """The further reads for new objects, as `list_first_reads` has them: their schemas, and in one namespace what decides about pods.

    `namespace` is that of objects that name none. Objects are as written: a name that may not stand in a path is left out.
    """
    named = [
        (as_text(body.get("apiVersion")), as_text(dig(body, "metadata", "namespace")), _has_pods(body))
        for body in objects
    ]
    with_pods = any(has_pods for _, _, has_pods in named)
    versions = dict.fromkeys([version for version, _, _ in named] + ([_CORE] if with_pods else []))
    for version in islice(filter(_API_VERSION.fullmatch, versions), _MOST_SCHEMAS):
        yield f"/openapi/v3/{'apis' if '/' in version else 'api'}/{version}", _JSON
    namespaces = {each or namespace for _, each, has_pods in named if each or has_pods}
    # Of several namespaces, the list may be read.
    if len(namespaces) == 1 and _NAMESPACE.fullmatch(only := namespaces.pop()):
        yield f"/api/v1/namespaces/{only}", _JSON
        if with_pods:
            yield f"/api/v1/namespaces/{only}/limitranges?limit={chunk_size}", _JSON
            yield f"/apis/scheduling.k8s.io/v1/priorityclasses?limit={chunk_size}", _JSON


def _has_pods(body: JsonObject) -> bool:
    return as_text(body.get("kind")) in _WITH_PODS
