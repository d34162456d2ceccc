"""The CEL environment of Kyverno's policies: Kubernetes' own, and the libraries that Kyverno adds to it.

Mirrors `pkg/cel/compiler` of Kyverno 1.18 and the libraries of kyverno/sdk: one file each, listed here. The environment is
Kyverno's own and does not depend on the cluster's release.
"""

from __future__ import annotations

from functools import cache

from scanner.cel.checking.env import ADMISSION, Environment, Fields
from scanner.cel.types.type_system import STRING, TIMESTAMP, list_of, object_type
from scanner.cel.values.values import Timestamp, Value
from scanner.model.release import Minor
from scanner.policies.kyverno.libraries import (
    certificates,
    documents,
    encodings,
    images,
    network,
    numbers,
    patterns,
    records,
    resources,
    syntax,
    times,
)
from scanner.policies.kyverno.libraries.cluster_data import (
    Call,
    ClusterData,
    Collection,
    Network,
    NoClusterData,
    NoEntries,
    SecretSafe,
    Unavailable,
)
from scanner.policies.kyverno.releases import CONFINED_GLOBAL_CONTEXT, CONFINED_HTTP, NEWEST

__all__ = [
    "Call",
    "ClusterData",
    "Collection",
    "Network",
    "NoClusterData",
    "Unavailable",
    "environment",
    "library_values",
    "secret_safe",
]

RULES = (1, 36)
"""The Kubernetes release whose libraries Kyverno is built with."""
EXCEPTIONS = object_type("kyverno.exceptions")
EXEMPTED: Fields = (("exceptions", EXCEPTIONS),)
"""The variable of a policy's expressions with the values that partial exceptions allow."""
RECEIVERS: Fields = (
    ("resource", resources.RESOURCE),
    ("globalContext", resources.GLOBAL_CONTEXT),
    ("http", network.HTTP),
    ("image", network.IMAGE_DATA),
    ("json", documents.JSON),
    ("yaml", documents.YAML),
    (syntax.NOW, TIMESTAMP),
)
_OBJECTS: tuple[tuple[str, Fields], ...] = (
    (EXCEPTIONS.name, (("allowedImages", list_of(STRING)), ("allowedValues", list_of(STRING)))),
    (records.SERVICE_ACCOUNT.name, (("Name", STRING), ("Namespace", STRING))),
)
_LIBRARIES = (
    syntax.LIBRARY,
    encodings.LIBRARY,
    numbers.LIBRARY,
    patterns.LIBRARY,
    resources.LIBRARY,
    network.LIBRARY,
    images.LIBRARY,
    records.LIBRARY,
    documents.LIBRARY,
    times.LIBRARY,
    certificates.LIBRARY,
)


@cache
def environment(*, namespaced: bool) -> Environment:
    """Return the declarations of a policy's expressions; a namespaced policy's `resource` functions take no namespace."""
    reading = resources.NAMESPACED if namespaced else resources.CLUSTER
    return Environment(
        variables=(*ADMISSION, *EXEMPTED, *RECEIVERS),
        objects=_OBJECTS,
        version=RULES,
        extras=(*_LIBRARIES, reading),
    )


def library_values(
    cluster_data: ClusterData, now: Timestamp, namespace: str = "", release: Minor = NEWEST
) -> dict[str, Value]:
    """Return the values of the libraries' variables; `namespace` is a namespaced policy's own."""
    has_entries = not (namespace and CONFINED_GLOBAL_CONTEXT.holds(release))
    return {
        "resource": resources.ResourceReader(cluster_data, namespace),
        "globalContext": resources.GlobalContext(cluster_data if has_entries else NoEntries()),
        "http": network.Http(cluster_data, namespace if CONFINED_HTTP.holds(release) else ""),
        "image": network.ImageData(cluster_data),
        "json": documents.JsonReader(),
        "yaml": documents.YamlReader(cluster_data),
        syntax.NOW: now,
    }


def secret_safe(cluster_data: ClusterData) -> dict[str, Value]:
    """Return the values of the variables that differ for a Secret; none if no data leave the process."""
    if not cluster_data.reaches_out:
        return {}
    return {"http": network.Http(SecretSafe()), "image": network.ImageData(SecretSafe())}
